import type { Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import { LOOKUP_SERVICES } from '../../../backend/src/protocol/profile.js'
import type { AnsweringOutput, AnsweringService } from '../../../backend/src/read/provenance.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { described, NOT_CAUGHT_UP, type Routes, STORE_ERRORS } from '../http/operation.js'
import { asOf, optionalText, validate } from '../http/schemas.js'
import { notCaughtUp, setNamesHeaders } from '../http/tree-progress.js'
import { outputIndex } from '../sync/sync-messages.js'
import { sendLookupAnswer } from './lookup-answer.js'

const outputListShape = z.strictObject({
  type: z.literal('output-list'),
  outputs: z.array(
    z.strictObject({
      beef: z
        .array(z.int().min(0).max(255))
        .describe('The BEEF of the transaction, as an array of byte values.'),
      outputIndex,
    }),
  ),
  truncated: z
    .literal(true)
    .optional()
    .describe('Present if the page was cut short because of the size of its BEEF: continue with `after`.'),
  asOf: asOf.optional(),
})
const lookupBody = z.object({ service: z.string(), query: z.unknown() })

/** A query is parsed synchronously: 1,000 outpoints take 81,000 bytes. */
const MAX_QUERY_BYTES = 128 * 1024

export interface LookupRoutesOptions
  extends Pick<GatewayParts, 'graph' | 'maxPageBytes' | 'bodies' | 'progress'> {
  services: Readonly<Record<string, AnsweringService>>
  aliases: Readonly<Record<string, string>>
  /** Whether the host has further services, which it answers itself. */
  leavesOthers?: boolean
}

/** `POST /lookup` (`docs/spec/http.md`, Overlay), answered from the index. */
export function lookupRoutes(options: LookupRoutesOptions): Routes {
  const { bodies, leavesOthers = false } = options
  const read = bodies.json({ limit: MAX_QUERY_BYTES })
  const answer = lookup(options)
  /**
   * A query longer than ours is for a service of the host. One with a topic is from a peer that syncs: it asks what an output was
   * submitted with (`Peer.sources`), which only the engine keeps.
   */
  const isOurs = ({ headers }: Request): boolean =>
    headers['x-bsv-topic'] === undefined && Number(headers['content-length'] ?? 0) <= MAX_QUERY_BYTES
  const handler: RequestHandler = (request, response, next) => {
    if (leavesOthers && !isOurs(request)) {
      next()
      return
    }
    read(request, response, (error?: unknown) => {
      // Tells later parsers that the body was read.
      if (leavesOthers) Object.assign(request, { _body: true })
      if (error !== undefined) next(error)
      else answer(request, response).then((isAnswered) => isAnswered || next(), next)
    })
  }
  return routes({ lookup: handler })
}

/** @returns Whether the service was found here. */
function lookup({
  services,
  aliases,
  graph,
  maxPageBytes,
  progress,
  leavesOthers,
}: LookupRoutesOptions): (request: Request, response: Response) => Promise<boolean> {
  return async (request, response) => {
    if (leavesOthers && !lookupBody.safeParse(request.body).success) return false
    const { query, ...asked } = validate(
      lookupBody,
      request.body,
      'the body must be {"service": "ls_…", "query": …}',
    )
    const service = Object.hasOwn(aliases, asked.service) ? (aliases[asked.service] ?? '') : asked.service
    const provider = Object.hasOwn(services, service) ? services[service] : undefined
    if (provider === undefined) {
      if (leavesOthers) return false
      throw new AnswerError('BAD_BODY', 'this host does not have this lookup service')
    }
    if (graph.opened !== undefined) await graph.opened()
    const bounded = isOfSdk(request) ? withPartOf(query) : query
    const formula: AnsweringOutput[] = await provider.lookup({ service, query: bounded })
    const pageBytes = isPage(query) ? maxPageBytes : undefined
    const isAboutNames = service === LOOKUP_SERVICES.names
    if (isAboutNames) {
      if (progress.isCatchingUp && (await provider.saysAbsence?.(query, formula.length)))
        throw notCaughtUp(progress.progress())
      setNamesHeaders(response, progress)
    }
    await sendLookupAnswer({
      ...{ request, response, formula, graph: graph.transactions, pageBytes },
      asOf: isAboutNames ? progress.asOf : undefined,
    })
    return true
  }
}

/** As JSON four times as much, of which clients of `@bsv/sdk` 3 accept 4 MiB. */
const HISTORY_BYTES = 1_000_000

/** Whether the client is the SDK's: it wants binary, but does not say that it accepts a history in binary. */
function isOfSdk(request: Request): boolean {
  return request.get('X-Aggregation') === 'yes' && request.accepts('json', UNTYPED) !== UNTYPED
}

/** Limits a history query to what its client accepts, unless the query has a limit. */
function withPartOf(query: unknown): unknown {
  const asksHistory =
    typeof query === 'object' && query !== null && 'history' in query && query.history === true
  return asksHistory ? { maxBytes: HISTORY_BYTES, ...query } : query
}

/** The forms of queries that are answered in pages, which `after` continues. */
const PAGED = ['origins', 'prefix', 'map', 'parent', 'contentType', 'owner']

function isPage(query: unknown): boolean {
  return typeof query === 'object' && query !== null && PAGED.some((form) => Object.hasOwn(query, form))
}

const routes = described({
  tag: 'overlay',
  operations: {
    lookup: {
      route: 'POST /lookup',
      summary: 'Queries a lookup service',
      headers: z.object({
        'X-Aggregation': optionalText(
          '`yes` requests a binary answer; an answer with histories is binary only if `Accept` asks for it as well.',
        ),
      }),
      body: {
        description: 'A lookup service, and a query in a form that the service documents.',
        json: lookupBody,
      },
      answer: {
        description:
          'The matching outputs; `ls_names` adds `asOf`. Binary form: the number of outputs (varint); for each output, its txid, its index (varint), the length of its context (varint) and the context; then one BEEF with all transactions.',
        headers: ['X-As-Of', 'X-Complete'],
        json: outputListShape,
        types: ['application/octet-stream'],
      },
      errors: {
        BAD_BODY: 'The body is malformed, or there is no such service or query.',
        TOO_LARGE: 'The body is over the limit.',
        BLOCKED: 'The operator has blocked the output. Lists omit it.',
        NOT_CAUGHT_UP,
        ...STORE_ERRORS,
      },
    },
  },
})
