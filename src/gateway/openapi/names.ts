import { z } from 'zod'
import { type Operation, PROOF_ANSWER, STORE_ERRORS } from '../http/operation.js'
import { askedOutpoint, domain, name, outpoint } from '../http/schemas.js'
import { nameRecordShape } from '../names/name-record.js'
import { listQuery, originsBody } from '../names/names.js'

const claimed = z.strictObject({ name, outpoint })
const params = z.object({ name })
const errors = {
  BAD_NAME: 'The path does not end with a name.',
  NOT_FOUND: 'The name is not claimed.',
  BLOCKED: 'The operator has blocked the name, or what it leads to.',
  ...STORE_ERRORS,
} satisfies Operation['errors']

export const NAMES_OPERATIONS: Operation[] = [
  {
    route: 'GET /',
    id: 'names',
    tag: 'names',
    summary: 'Names in order, with their origins, a page at a time; blocked ones are left out',
    query: listQuery,
    answer: {
      description: 'A page. `next` is absent from the last one.',
      headers: ['Cache-Control'],
      json: z.strictObject({ names: z.array(claimed), next: name.optional() }),
    },
    errors: {
      BAD_NAME: '`prefix` or `after` is not the beginning of a name.',
      BAD_BODY: '`limit` is out of range.',
      ...STORE_ERRORS,
    },
  },
  {
    route: 'GET /origin/{name}',
    id: 'nameOrigin',
    tag: 'names',
    summary: 'Where a name was mined',
    params,
    answer: {
      description: 'The outpoint in which the name was mined.',
      headers: ['Cache-Control'],
      json: claimed,
    },
    errors,
  },
  {
    route: 'GET /mine/{name}',
    id: 'nameToMine',
    tag: 'names',
    summary: 'Where a name can be mined from',
    params,
    answer: {
      description: 'The longest prefix that is mined, and its live node.',
      headers: ['Cache-Control'],
      json: z.strictObject({ domain, outpoint }),
    },
    errors: { ...errors, TAKEN: 'The name is taken.', NOT_FOUND: 'This host has no tree to mine from.' },
  },
  {
    route: 'GET /proof/{name}',
    id: 'nameProof',
    tag: 'names',
    summary: 'Proof that a name is genuine',
    description:
      'The origin of the name, and every transaction that spends a node on the way from the genesis outpoint to its mint, each with its merkle path if the store has one. Anyone who knows the genesis outpoint and has block headers can verify the name without trusting this host.',
    params,
    answer: PROOF_ANSWER,
    errors: {
      ...errors,
      NOT_FOUND: 'The name is not claimed, or this host lacks part of the way to genesis.',
    },
  },
  {
    route: 'GET /{name}',
    id: 'name',
    tag: 'names',
    summary: 'Everything that is known of a name',
    params,
    answer: {
      description: 'Where it was mined, and what has become of it.',
      headers: ['Cache-Control'],
      json: nameRecordShape,
    },
    errors,
  },
  {
    route: 'POST /origins',
    id: 'nameOrigins',
    tag: 'names',
    summary: 'Which outpoints are origins of genuine names',
    body: { description: 'At most 1,000 outpoints.', json: originsBody },
    answer: {
      description: 'For each outpoint as it was written, whether it is one, and not blocked.',
      headers: ['Cache-Control'],
      json: z.record(askedOutpoint, z.boolean()),
    },
    errors: {
      BAD_BODY: 'The body is not a JSON array of strings.',
      BAD_OUTPOINT: 'One of the strings, which the error quotes, is not an outpoint.',
      TOO_LARGE: 'There are more than 1,000 outpoints, or more than 256 KiB.',
      ...STORE_ERRORS,
    },
  },
]
