import type { RequestHandler } from 'express'
import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import { dependency } from '../../../backend/src/graph/dependencies.js'
import { pageOf } from '../../../backend/src/graph/listings.js'
import { DEFAULT_FEE_RATE } from '../../../backend/src/protocol/mint-cost.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { type NameOffer, nameOffers } from '../../../backend/src/read/name-offer.js'
import { nameProof } from '../../../backend/src/read/provenance.js'
import type { TreeProgress } from '../http/as-of.js'
import { CACHE, type Exchange } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { type JsonAnswer, jsonRoute } from '../http/json-route.js'
import { countTransactions, longRead } from '../http/long-read.js'
import { described, NOT_CAUGHT_UP, PROOF_ANSWER, type Routes, STORE_ERRORS } from '../http/operation.js'
import {
  askedOutpoint,
  badName,
  count,
  domain,
  MAX_ASKED,
  name as nameSchema,
  outpoint,
  validate,
  validateList,
  wholeNumber,
} from '../http/schemas.js'
import { BAD_PART, beefAnswer, incompleteProof, partOf, partQuery, sendBeef } from '../http/send-beef.js'
import { sendJson } from '../http/send-body.js'
import { namesJsonResponse, sendStored } from '../http/stored-response.js'
import { incomplete, NAMES_FIELDS, noName, requireCaughtUp, setNamesHeaders } from '../http/tree-progress.js'
import {
  dependenciesOfName,
  dependenciesOfTier,
  nameRecord,
  nameRecordShape,
  TIER_FIELDS,
  tierFields,
} from './name-record.js'

/** Room for 1,000 outpoints of at most 78 characters, with quotes and spaces. */
const MAX_ORIGINS_BYTES = 256 * 1024

export function namesRoutes(options: GatewayParts): Routes {
  return routes(
    {
      names: (request, response) => {
        const answer = request.query.available === undefined ? list : available
        return sendNames(answer(options, request.query), { request, response, progress: options.progress })
      },
      nameOrigin: origin(options),
      nameToMine: mine(options),
      nameProof: proof(options),
      name: record(options),
      nameOrigins: [options.bodies.json({ limit: MAX_ORIGINS_BYTES }), origins(options)],
    },
    badName,
  )
}

const MAX_LISTED = 100

const listQuery = z.object({
  prefix: domain.default('').describe('Only names that begin with this.'),
  after: domain.default('').describe('Only names after this one: the `next` of the previous page.'),
  limit: wholeNumber({ most: MAX_LISTED, usual: MAX_LISTED }).describe('The most names to return.'),
  available: z
    .string()
    .regex(/^[a-z0-9-]{1,255}(?:,[a-z0-9-]{1,255}){0,99}$/)
    .optional()
    .describe(
      'Up to 100 names, comma-separated. Returns whether each is free, and what it takes to mine it. All other parameters are ignored.',
    ),
})

/** Names in order, a page at a time; `next` is the `after` of the next page, missing on the last. */
function list({ store, progress }: GatewayParts, query: unknown): object {
  const { prefix, after, limit } = validate(listQuery, query, (issues) =>
    issues.some(({ path }) => path[0] === 'limit')
      ? new AnswerError('BAD_BODY', `limit must be a whole number from 1 to ${MAX_LISTED}`)
      : new AnswerError('BAD_NAME', 'prefix and after must be up to 255 characters of a-z 0-9 -'),
  )
  const { shown, end } = pageOf(store.names.byPrefix({ prefix, after, limit: limit + 1 }), limit)
  // While catching up, no list is known to end.
  if (shown.length === 0) requireCaughtUp(progress)
  return {
    names: shown.map(({ name, outpoint }) => ({ name, outpoint: formatOutpoint(outpoint) })),
    ...((end || progress.isCatchingUp) && { next: shown.at(-1)?.name }),
  }
}

/** Whether names are free, and the cost of each: the figures on the page of a free name. */
function available({ store, tree, progress }: GatewayParts, { available }: { available?: unknown }): object {
  if (String(available).split(',', MAX_ASKED.records + 1).length > MAX_ASKED.records)
    throw new AnswerError('TOO_LARGE', `available may have at most ${MAX_ASKED.records} names`)
  const refusal = 'available must be names of 1 to 255 characters of a-z 0-9 -, with commas between them'
  const schema = listQuery.shape.available.unwrap()
  const asked = validate(schema, available, () => new AnswerError('BAD_NAME', refusal)).split(',')
  const offerOf = nameOffers(store)
  const offers = store.consistent(() => asked.map((name) => unlessBlocked(() => offerOf(name, tree))))
  if (offers.some((offer) => offer !== undefined && offer.kind !== 'taken')) requireCaughtUp(progress)
  return {
    names: asked.map((name, at) => ({ name, ...offerJson(offers[at]) })),
    ...(tree && { difficulty: tree.difficulty }),
    satoshisPerKilobyte: DEFAULT_FEE_RATE,
  }
}

/** Sends an answer made for a single request. */
function sendNames(
  value: object,
  { progress, ...exchange }: Exchange & { progress: TreeProgress },
): Promise<void> | void {
  const stored = namesJsonResponse({ ...value, ...incomplete(progress) })
  stored.stamp(progress)
  return sendStored({ ...exchange, stored })
}

function offerJson(offer: NameOffer | undefined): Omit<z.output<typeof offerShape>, 'name'> {
  if (offer === undefined) return { free: false, blocked: true }
  const { kind, ...figures } = offer
  return { free: kind === 'free', ...figures }
}

const offerShape = z.strictObject({
  name: nameSchema,
  free: z.boolean().describe('Also false for a name that cannot be mined in this tree.'),
  blocked: z.literal(true).optional().describe('Present if the operator has blocked the name.'),
  domain: domain.optional().describe('The longest prefix that is mined, from which mining continues.'),
  mints: count.optional().describe('The mints that it takes, one for each missing character.'),
  hashes: count.optional().describe('The average number of hashes for these mints.'),
  bytes: count.optional().describe('The approximate size of these mints.'),
  satoshis: count.optional().describe('The fees of these mints at `satoshisPerKilobyte`.'),
})

function origin(options: GatewayParts): RequestHandler<{ name: string }> {
  return named(options, (name) => {
    const outpoint = options.store.names.originOf(name)
    if (outpoint === undefined) throw notClaimed(name, options)
    return {
      value: {
        name,
        outpoint: formatOutpoint(outpoint),
        ...tierFields(options.store, outpoint.txid),
      },
      dependsOn: dependenciesOfTier(outpoint.txid),
    }
  })
}

function record(options: GatewayParts): RequestHandler<{ name: string }> {
  return named(options, (name) => {
    const found = nameRecord(options, name)
    if (found === undefined) throw notClaimed(name, options)
    const dependsOn = dependenciesOfName(found)
    // Whether the node is unspent is not known yet.
    if (options.progress.isCatchingUp) delete found.node
    return { value: found, dependsOn }
  })
}

function named(
  parts: GatewayParts,
  read: (name: string, query: unknown) => JsonAnswer,
  query?: { shape: object },
): RequestHandler<{ name: string }> {
  return jsonRoute(parts, ({ params, query }) => read(nameOf(params.name), query), {
    ...{ isAboutNames: true, ...(query && { query }) },
  })
}

/** The proof that a name is genuine, for clients that know the genesis outpoint and have block headers (BRC-174). */
function proof({ store, genesis, progress }: GatewayParts): RequestHandler<{ name: string }> {
  return async (request, response) => {
    const name = nameOf(request.params.name)
    const part = partOf(request.query)
    const answer = await longRead(response, async (pace) => {
      const found =
        genesis && (await store.acrossSnapshots(() => nameProof(name, { store, genesis, ...part, pace })))
      if (found === undefined || found.kind === 'unclaimed') throw notClaimed(name, { progress })
      if (found.kind === 'incomplete') throw noName(incompleteProof(found).message, { progress })
      const { origin: subject, transactions } = found
      countTransactions(response, transactions.length)
      return await beefAnswer({ subject, transactions, store: store.transactions })
    })
    setNamesHeaders(response, progress)
    await sendBeef({ request, response, answer })
  }
}

/** @throws AnswerError while the host catches up. */
function notClaimed(name: string, { progress }: Pick<GatewayParts, 'progress'>): AnswerError {
  return noName(`${name} is not claimed`, { progress })
}

function mine(options: GatewayParts): RequestHandler<{ name: string }> {
  const read = (name: string, query: unknown): JsonAnswer => {
    const { store, progress, asksNetwork } = options
    const { names, transactions } = store
    const { unseen } = validate(mineQuery, query, 'unseen must be true or false')
    // A mint that nobody has seen may never be mined, so mining does not continue from it if the network can be asked.
    const seen = asksNetwork && unseen === 'false' ? names.longestNode(name, { seen: true }) : undefined
    const node = seen ?? names.longestNode(name)
    if (node?.domain === name) throw noName(`${name} is taken`, { progress, isTaken: true })
    // A longer prefix may have been mined, and this node spent.
    requireCaughtUp(progress)
    if (node === undefined) throw noName('this host has no genesis to mine from', { progress })
    const { domain, outpoint } = node
    const spender = transactions.spenderOf(outpoint)
    return {
      value: { domain, outpoint: formatOutpoint(outpoint), ...tierFields(store, outpoint.txid) },
      // A longer node comes with a mint, which spends this one.
      dependsOn: [
        dependency.spend(outpoint),
        ...[outpoint.txid, ...(spender === undefined ? [] : [spender])].flatMap(dependenciesOfTier),
      ],
    }
  }
  return named(options, read, mineQuery)
}

const mineQuery = z.object({
  unseen: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      '`true` includes nodes of mints that the network is not known to have, such as one just submitted.',
    ),
})

const originsBody = z.array(askedOutpoint).max(MAX_ASKED.reads)

function origins({ store, progress }: GatewayParts): RequestHandler {
  return ({ body }, response) => {
    const asked = validateList(originsBody, body, 'the body must be a JSON array of outpoints')
    const outpoints = asked.map(parseOutpoint)
    const found = store.names.genuineOrigins(outpoints)
    const genuine = new Set(found.map(({ outpoint }) => formatOutpoint(outpoint)))
    const answer = asked.map((text, index): [string, boolean] => {
      const outpoint = outpoints[index]
      return [text, outpoint !== undefined && genuine.has(formatOutpoint(outpoint))]
    })
    const known = answer.filter(([, isGenuine]) => isGenuine)
    if (known.length < answer.length) requireCaughtUp(progress, { origins: Object.fromEntries(known) })
    // Only in a header, as every field is a requested outpoint.
    setNamesHeaders(response, progress)
    sendJson(response.set('Cache-Control', CACHE.revalidate), Object.fromEntries(answer))
  }
}

function nameOf(text: string): string {
  return validate(nameSchema, text, badName)
}

const claimedShape = z.strictObject({ name: nameSchema, outpoint })
const NAMES_HEADERS = ['X-As-Of', 'X-Complete'] as const
const TAGGED_HEADERS = ['ETag', ...NAMES_HEADERS] as const
const params = z.object({ name: nameSchema })
const nameErrors = {
  NOT_CAUGHT_UP,
  BAD_NAME: 'The path does not end with a name.',
  NOT_FOUND: 'The name is not claimed.',
  BLOCKED: 'The operator has blocked the name or what it resolves to.',
}

const routes = described({
  tag: 'names',
  errors: STORE_ERRORS,
  operations: {
    names: {
      route: 'GET /',
      summary:
        'Names in order, with their origins, paged and without blocked ones; or, with `available`, whether names are free',
      query: listQuery,
      answer: {
        description: 'A page. The last one has no `next`.',
        headers: TAGGED_HEADERS,
        json: z.union([
          z.strictObject({
            names: z.array(claimedShape),
            next: nameSchema.optional(),
            ...NAMES_FIELDS,
          }),
          z.strictObject({
            names: z.array(offerShape),
            difficulty: count
              .optional()
              .describe('The zero bits that a solution needs. Absent if this host has no tree.'),
            satoshisPerKilobyte: count.describe('The assumed fee rate per 1,000 bytes.'),
            ...NAMES_FIELDS,
          }),
        ]),
      },
      errors: {
        NOT_CAUGHT_UP,
        BAD_NAME:
          '`prefix` or `after` is not a valid beginning of a name, or `available` contains an invalid name.',
        BAD_BODY: '`limit` is out of range.',
        TOO_LARGE: '`available` has more than 100 names.',
      },
    },
    nameOrigin: {
      route: 'GET /origin/{name}',
      summary: 'The origin of a name',
      params,
      answer: {
        description: 'The outpoint in which the name was mined.',
        headers: TAGGED_HEADERS,
        json: claimedShape.extend({ ...TIER_FIELDS, ...NAMES_FIELDS }),
      },
      errors: nameErrors,
    },
    nameToMine: {
      route: 'GET /mine/{name}',
      summary: 'The node from which a name can be mined',
      description:
        'A host that checks transactions with the network returns the node of a mint that is proven or seen, if there is one.',
      params,
      query: mineQuery,
      answer: {
        description: 'The longest prefix that is mined, and its live node.',
        headers: ['ETag', 'X-As-Of'],
        json: z.strictObject({ domain, outpoint, ...TIER_FIELDS, asOf: NAMES_FIELDS.asOf }),
      },
      errors: {
        ...nameErrors,
        BAD_BODY: '`unseen` is neither true nor false.',
        TAKEN: 'The name is taken.',
        NOT_FOUND: 'This host has no tree.',
      },
    },
    nameProof: {
      route: 'GET /proof/{name}',
      summary: 'Proof that a name is genuine',
      description:
        'The origin of the name, and every transaction that spends a node between the genesis outpoint and its mint, each with its merkle path if stored. Anyone with the genesis outpoint and block headers can verify the name without trusting this host. With `known`, only what follows the last mint that the caller knows. With `maxBytes`, a proof that is too long is replaced by the proof of a prefix.',
      params,
      query: partQuery,
      answer: { ...PROOF_ANSWER, headers: [...(PROOF_ANSWER.headers ?? []), ...NAMES_HEADERS] },
      errors: {
        ...nameErrors,
        BAD_OUTPOINT: BAD_PART,
        NOT_FOUND: 'The name is not claimed, or a transaction between genesis and its mint is missing here.',
      },
    },
    name: {
      route: 'GET /{name}',
      summary: 'The record of a name',
      params,
      answer: {
        description: 'The origin of the name and its current state.',
        headers: TAGGED_HEADERS,
        json: nameRecordShape,
      },
      errors: nameErrors,
    },
    nameOrigins: {
      route: 'POST /origins',
      summary: 'Checks whether outpoints are origins of genuine names',
      body: { description: 'At most 1,000 outpoints.', json: originsBody },
      answer: {
        description:
          'For each outpoint, keyed as sent, whether it is the origin of a genuine name that is not blocked.',
        headers: NAMES_HEADERS,
        json: z.record(askedOutpoint, z.boolean()),
      },
      errors: {
        NOT_CAUGHT_UP: `${NOT_CAUGHT_UP} \`origins\` has the outpoints known to be genuine.`,
        BAD_BODY: 'The body is not a JSON array of strings.',
        BAD_OUTPOINT: 'A string is not an outpoint; the error quotes it.',
        TOO_LARGE: 'More than 1,000 outpoints, or a body over 256 KiB.',
      },
    },
  },
})
