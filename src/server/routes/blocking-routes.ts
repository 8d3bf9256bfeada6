import type { RequestHandler } from 'express'
import type { Logger } from 'pino'
import { z } from 'zod'
import {
  BLOCKED_KINDS,
  type BlockedKind,
  type BlockedRecord,
  type BlockedSubject,
} from '../../../backend/src/graph/blocklist.js'
import { isName, NAME_PATTERN } from '../../../backend/src/protocol/mine-node.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { described, type Routes } from '../../gateway/http/operation.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import { askedOutpoint, badName, text, validate, wholeNumber } from '../../gateway/http/schemas.js'
import { OPERATOR_ERRORS } from '../http/admin-guard.js'

const MAX_BODY_BYTES = 16 * 1024
const MAX_LISTED = 1000
const MAX_REASON = 1000
const SHA256 = /^[0-9a-fA-F]{64}$/

const FIELDS = { content: 'sha256', name: 'name', outpoint: 'outpoint' } as const satisfies Record<
  BlockedKind,
  string
>

export interface BlockingOptions {
  graph: Pick<FactStore, 'blocklist'>
  logger: Logger
  bodies: RequestBodies
}

// `subjectOf` validates the values; each kind has its own error code.
const subjectFields = {
  outpoint: askedOutpoint.optional().describe('An output.'),
  sha256: z
    .string()
    .meta({ pattern: SHA256.source })
    .optional()
    .describe('The SHA-256 of content, blocked in any output.'),
  name: z
    .string()
    .meta({ pattern: NAME_PATTERN.source })
    .optional()
    .describe('A name, blocked with its origin.'),
}
const kind = z.enum(BLOCKED_KINDS)
const reason = z
  .string()
  .min(1)
  .max(MAX_REASON)
  .refine((text) => text.trim() !== '')
  .describe('A note for the operator, never shown to others.')

const unblockBody = z.strictObject(subjectFields).meta({ minProperties: 1, maxProperties: 1 })
const blockBody = z.strictObject({ ...subjectFields, reason }).meta({ minProperties: 2, maxProperties: 2 })
const blockedShape = z.strictObject({
  kind,
  ...subjectFields,
  reason,
  since: z
    .string()
    .regex(/^\d{4}-\d\d-\d\dT.+Z$/)
    .describe('When it was first blocked.'),
})
const unblockedShape = z.strictObject({ kind, ...subjectFields, wasBlocked: z.boolean() })

const listQuery = z.object({
  kind: kind.optional().describe('Only entries of this kind.'),
  limit: wholeNumber({ most: MAX_LISTED, usual: 100 }).describe('The most to return.'),
  after: z
    .string()
    .max(300)
    .regex(new RegExp(`^(?:${BLOCKED_KINDS.join('|')}):.+$`))
    .optional()
    .describe('Only entries after this: the `next` of the previous page.'),
})

function placeOf(next: string): BlockedSubject | undefined {
  const kind = BLOCKED_KINDS.find((each) => next.startsWith(`${each}:`))
  return kind && { kind, value: next.slice(kind.length + 1) }
}

/**
 * `POST /block`, `POST /unblock` and `GET /blocked`, below `/admin`: the blocklist of this host (`docs/operating.md`,
 * Blocking). Outputs that are not stored can be blocked in advance. Each change is logged.
 */
export function blockingRoutes({ graph, logger, bodies }: BlockingOptions): Routes {
  const json = bodies.json({ limit: MAX_BODY_BYTES })
  const block: RequestHandler = async ({ body }, response) => {
    const { reason, ...fields } = validate(
      blockBody,
      body,
      `the body must be {"outpoint" or "sha256" or "name": …, "reason": …}, with a reason of 1 to ${MAX_REASON} characters`,
    )
    const record = await graph.blocklist.add({ ...subjectOf(fields), reason, since: Date.now() })
    const { kind, value } = record
    logger.info({ blocked: { kind, value, reason } }, 'the operator blocked an entry')
    response.json(shown(record))
  }
  const unblock: RequestHandler = async ({ body }, response) => {
    const message = 'the body must be {"outpoint" or "sha256" or "name": …}'
    const subject = subjectOf(validate(unblockBody, body, message))
    const wasBlocked = await graph.blocklist.remove(subject)
    logger.info({ unblocked: { ...subject, wasBlocked } }, 'the operator unblocked an entry')
    response.json({ kind: subject.kind, [FIELDS[subject.kind]]: subject.value, wasBlocked })
  }
  const blocked: RequestHandler = ({ query }, response) => {
    const asked = validate(
      listQuery,
      query,
      `kind must be one of ${BLOCKED_KINDS.join(', ')}, limit a whole number from 1 to ${MAX_LISTED}, and after the next of the previous page`,
    )
    const { kind, limit } = asked
    const after = placeOf(asked.after ?? '')
    // One more than the limit, to know whether there is a next page: `next` is missing on the last.
    const page = { ...(kind && { kind }), ...(after && { after }), limit: limit + 1 }
    const found = graph.blocklist.page(page)
    const last = found.length > limit ? found[limit - 1] : undefined
    const next = last && { next: `${last.kind}:${last.value}` }
    response.json({ blocked: found.slice(0, limit).map(shown), ...next })
  }
  return routes({ block: [json, block], unblock: [json, unblock], blocked })
}

function shown({ kind, value, reason, since }: BlockedRecord): Record<string, string> {
  return { kind, [FIELDS[kind]]: value, reason, since: new Date(since).toISOString() }
}

/** @throws AnswerError unless there is exactly one valid field; PointerError for an invalid outpoint. */
function subjectOf({ outpoint, sha256, name }: z.output<typeof unblockBody>): BlockedSubject {
  const given = [outpoint, sha256, name].filter((value) => value !== undefined)
  if (given.length !== 1)
    throw new AnswerError('BAD_BODY', 'exactly one of outpoint, sha256 and name is required')
  if (outpoint !== undefined) return { kind: 'outpoint', value: formatOutpoint(parseOutpoint(outpoint)) }
  if (name !== undefined) {
    if (!isName(name)) throw badName()
    return { kind: 'name', value: name }
  }
  const hash = sha256 ?? ''
  if (!SHA256.test(hash))
    throw new AnswerError('BAD_BODY', 'sha256 must be 64 characters of hex: the hash of the whole body')
  return { kind: 'content', value: hash.toLowerCase() }
}

const errors = {
  BAD_BODY: 'The body does not have exactly one subject, or lacks a reason.',
  BAD_OUTPOINT: 'The outpoint is invalid.',
  BAD_NAME: 'The name is invalid.',
  TOO_LARGE: 'The body is over 16 KiB.',
  STORE_FULL: 'The store has no space left.',
}

const routes = described({
  tag: 'operator',
  errors: OPERATOR_ERRORS,
  operations: {
    block: {
      route: 'POST /block',
      summary: 'Blocks an output, content or a name',
      description:
        'Requests for it then return 451 `BLOCKED`, and lists omit it. It need not be in this store yet. Blocking it again replaces the reason.',
      body: { description: 'One of `outpoint`, `sha256` and `name`; up to 16 KiB.', json: blockBody },
      answer: { description: 'The blocked entry.', json: blockedShape },
      errors,
    },
    unblock: {
      route: 'POST /unblock',
      summary: 'Unblocks an output, content or a name',
      body: { description: 'One of `outpoint`, `sha256` and `name`; up to 16 KiB.', json: unblockBody },
      answer: { description: 'The entry, which is no longer blocked.', json: unblockedShape },
      errors,
    },
    blocked: {
      route: 'GET /blocked',
      summary: 'Blocked entries, paged',
      query: listQuery,
      answer: {
        description: 'A page, ordered by kind and value. The last one has no `next`.',
        json: z.strictObject({ blocked: z.array(blockedShape), next: text.optional() }),
      },
      errors: { BAD_BODY: '`kind` or `after` is invalid, or `limit` is out of range.' },
    },
  },
})
