import { z } from 'zod'
import { type Operation, STORE_ERRORS } from '../../gateway/http/operation.js'
import { text } from '../../gateway/http/schemas.js'
import { blockBody, blockedShape, listQuery, unblockBody, unblockedShape } from '../routes/blocking-routes.js'
import { headersBody, roundShape } from '../routes/headers-routes.js'

const shared = {
  tag: 'operator',
  errors: {
    UNAUTHORIZED: 'The token is missing or wrong.',
    NOT_FOUND: 'The operator has set no token, so these routes do not exist.',
    ...STORE_ERRORS,
  },
} satisfies Partial<Operation>

const subjectErrors = {
  BAD_BODY: 'The body does not name exactly one thing, or lacks a reason.',
  BAD_OUTPOINT: 'The outpoint is not one.',
  BAD_NAME: 'The name cannot be one.',
  TOO_LARGE: 'The body is over 16 KiB.',
  STORE_FULL: 'The store has no space left.',
  ...shared.errors,
} satisfies Operation['errors']

const SUBJECT = 'One of `outpoint`, `sha256` and `name`; up to 16 KiB.'

/** What the operator may ask for, with a token. Pages of other origins cannot. */
export const OPERATOR_OPERATIONS: Operation[] = [
  {
    ...shared,
    route: 'POST /admin/block',
    id: 'block',
    summary: 'Blocks an output, content or a name',
    description:
      'From then on it is answered with 451 `BLOCKED`, and left out of lists. It does not have to be in this store yet. Blocking it again replaces the reason.',
    body: { description: SUBJECT, json: blockBody },
    answer: { description: 'It is blocked.', headers: ['Cache-Control'], json: blockedShape },
    errors: subjectErrors,
  },
  {
    ...shared,
    route: 'POST /admin/unblock',
    id: 'unblock',
    summary: 'Unblocks an output, content or a name',
    body: { description: SUBJECT, json: unblockBody },
    answer: { description: 'It is not blocked.', headers: ['Cache-Control'], json: unblockedShape },
    errors: subjectErrors,
  },
  {
    ...shared,
    route: 'GET /admin/blocked',
    id: 'blocked',
    summary: 'What is blocked, a page at a time',
    query: listQuery,
    answer: {
      description: 'A page, in order of kind and value. `next` is absent from the last one.',
      headers: ['Cache-Control'],
      json: z.strictObject({ blocked: z.array(blockedShape), next: text.optional() }),
    },
    errors: { BAD_BODY: 'The query does not match.', ...shared.errors },
  },
  {
    ...shared,
    route: 'POST /admin/headers',
    id: 'headersChanged',
    summary: 'Reports that the chain has changed',
    description:
      'The host checks the blocks that its stored proofs lead to, as it does from time to time on its own. A proof that leads to a block outside the chain is discarded.',
    body: { description: 'Optionally, the lowest height to check; up to 1 KiB.', json: headersBody },
    answer: { description: 'The check is done.', headers: ['Cache-Control'], json: roundShape },
    errors: {
      ...shared.errors,
      BAD_BODY: 'The height is not a number from 0 up.',
      TOO_LARGE: 'The body is over 1 KiB.',
      NOT_FOUND: 'The operator has set no token, or this host does not check proofs.',
      NOT_READY:
        'The source of block headers did not answer, or is far below its last height. What had been found by then is done.',
    },
  },
]
