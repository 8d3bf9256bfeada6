import { type RequestHandler, Router } from 'express'
import type { Logger } from 'pino'
import { z } from 'zod'
import {
  BLOCKED_KINDS,
  type BlockedKind,
  type BlockedRecord,
  type BlockedSubject,
} from '../../../backend/src/graph/blocklist.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import { isName } from '../../../backend/src/protocol/mine-node.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError } from '../../gateway/http/errors.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'

const MAX_BODY_BYTES = 16 * 1024
const MAX_LISTED = 1000
const MAX_REASON = 1000

/** What each kind is called in a body: the value says what it is. */
const FIELDS = { content: 'sha256', name: 'name', outpoint: 'outpoint' } as const satisfies Record<
  BlockedKind,
  string
>

export interface BlockingOptions {
  graph: Pick<GraphStore, 'blocklist'>
  logger: Logger
  bodies: RequestBodies
}

/**
 * `POST /block`, `POST /unblock` and `GET /blocked`, below `/admin`: what this host serves no more (`spec/overlay.md`,
 * Eviction; `docs/blocking.md`). What is not here can be blocked, too, before it comes. Each change stands in the log.
 */
export function blockingRoutes(options: BlockingOptions): Router {
  const json = options.bodies.json({ limit: MAX_BODY_BYTES })
  return Router()
    .post('/block', json, block(options))
    .post('/unblock', json, unblock(options))
    .get('/blocked', list(options))
}

const subjectFields = {
  outpoint: z.string().optional(),
  sha256: z.string().optional(),
  name: z.string().optional(),
}
const unblocking = z.strictObject(subjectFields)
const blocking = z.strictObject({
  ...subjectFields,
  reason: z
    .string()
    .max(MAX_REASON)
    .refine((reason) => reason.trim() !== ''),
})

function block({ graph, logger }: BlockingOptions): RequestHandler {
  return async ({ body }, response) => {
    const asked = blocking.safeParse(body)
    if (!asked.success) {
      throw new BadRequestError(
        'BAD_BODY',
        `the body must be {"outpoint" or "sha256" or "name": …, "reason": …}, with a reason of 1 to ${MAX_REASON} characters`,
      )
    }
    const { reason, ...fields } = asked.data
    const record = await graph.blocklist.add({ ...subjectOf(fields), reason, since: Date.now() })
    logger.info(
      { blocked: { kind: record.kind, value: record.value, reason } },
      'the operator blocked an entry',
    )
    response.json(shown(record))
  }
}

function unblock({ graph, logger }: BlockingOptions): RequestHandler {
  return async ({ body }, response) => {
    const asked = unblocking.safeParse(body)
    if (!asked.success)
      throw new BadRequestError('BAD_BODY', 'the body must be {"outpoint" or "sha256" or "name": …}')
    const subject = subjectOf(asked.data)
    const wasBlocked = await graph.blocklist.remove(subject)
    logger.info({ unblocked: { ...subject, wasBlocked } }, 'the operator unblocked an entry')
    response.json({ kind: subject.kind, [FIELDS[subject.kind]]: subject.value, wasBlocked })
  }
}

const listQuery = z.object({
  kind: z.enum(BLOCKED_KINDS).optional(),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/)
    .transform(Number)
    .refine((limit) => limit <= MAX_LISTED)
    .default(100),
  after: z
    .string()
    .max(300)
    .transform((text, context): BlockedSubject => {
      const [, kind, value] = /^(\w+):(.+)$/.exec(text) ?? []
      const known = BLOCKED_KINDS.find((each) => each === kind)
      if (known !== undefined && value !== undefined) return { kind: known, value }
      context.addIssue('must be the next of the previous page')
      return z.NEVER
    })
    .optional(),
})

/** What is blocked, a page at a time; `next` is the `after` of the page behind it, absent on the last. */
function list({ graph }: BlockingOptions): RequestHandler {
  return async ({ query }, response) => {
    const asked = listQuery.safeParse(query)
    if (!asked.success) {
      throw new BadRequestError(
        'BAD_BODY',
        `kind must be one of ${BLOCKED_KINDS.join(', ')}, limit a whole number from 1 to ${MAX_LISTED}, and after the next of the previous page`,
      )
    }
    const { kind, after, limit } = asked.data
    // One more than is shown tells whether there is a page behind this one.
    const found = await graph.blocklist.page({
      ...(kind && { kind }),
      ...(after && { after }),
      limit: limit + 1,
    })
    const last = found.length > limit ? found[limit - 1] : undefined
    response.json({
      blocked: found.slice(0, limit).map(shown),
      ...(last && { next: `${last.kind}:${last.value}` }),
    })
  }
}

function shown({ kind, value, reason, since }: BlockedRecord): Record<string, string> {
  return { kind, [FIELDS[kind]]: value, reason, since: new Date(since).toISOString() }
}

/** @throws BadRequestError where it is not one thing, or not what it should be; PointerError for no outpoint. */
function subjectOf({ outpoint, sha256, name }: z.output<typeof unblocking>): BlockedSubject {
  const given = [outpoint, sha256, name].filter((value) => value !== undefined)
  if (given.length !== 1)
    throw new BadRequestError('BAD_BODY', 'exactly one of outpoint, sha256 and name is required')
  if (outpoint !== undefined) return { kind: 'outpoint', value: formatOutpoint(parseOutpoint(outpoint)) }
  if (name !== undefined) {
    if (!isName(name))
      throw new BadRequestError('BAD_NAME', 'a name must be 1 to 255 characters of a-z 0-9 -')
    return { kind: 'name', value: name }
  }
  const hash = sha256?.toLowerCase() ?? ''
  if (!/^[0-9a-f]{64}$/.test(hash))
    throw new BadRequestError('BAD_BODY', 'sha256 must be 64 characters of hex: the hash of the whole body')
  return { kind: 'content', value: hash }
}
