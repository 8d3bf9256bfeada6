import type { STEAK } from '@bsv/sdk'
import type { RequestHandler } from 'express'
import { z } from 'zod'
import type { ServiceMetadata, TopicManager } from '../../../backend/src/graph/overlay-interfaces.js'
import { ByteCursor } from '../../../backend/src/protocol/byte-cursor.js'
import { asUint8Array } from '../../../backend/src/protocol/bytes.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { TreeProgress } from '../../gateway/http/as-of.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { described, type Routes, STORE_ERRORS } from '../../gateway/http/operation.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import { optionalText, validate } from '../../gateway/http/schemas.js'
import { lookupRoutes } from '../../gateway/lookups/lookup-routes.js'
import { anchorRoutes } from '../../gateway/sync/anchor-routes.js'
import { outputIndex } from '../../gateway/sync/sync-messages.js'
import { syncRoutes } from '../../gateway/sync/sync-routes.js'
import type { Config } from '../config/config.js'
import { APPROVAL_HEADER } from '../discovery/advertisement.js'
import type { Discovery } from '../discovery/discovery.js'
import { clientKey, isLocal } from '../http/gates.js'
import { withOrdinals } from '../writer/overlay.js'
import type { OverlayEngine } from '../writer/overlay-engine.js'
import type { Submit } from '../writer/submission-queue.js'

/** The most bytes of off-chain values after the BEEF of a submission; no topic here reads them. */
const MAX_OFF_CHAIN_BYTES = 1024 * 1024

export interface OverlayRoutesOptions extends Pick<Config, 'profile' | 'maxBodyBytes'> {
  engine: OverlayEngine
  discovery?: Discovery | undefined
  graph: FactStore
  bodies: RequestBodies
  submit: Submit
  /** See `GatewayLimits`. */
  maxPageBytes: number
  progress: TreeProgress
}

const runningShape = z.record(
  z.string(),
  z.strictObject({
    name: z.string(),
    shortDescription: z.string(),
    iconURL: z.string().optional().describe('A `data:` URL.'),
    version: z.string().optional(),
    informationURL: z.string().optional().describe('A URL relative to this document.'),
  }),
)
const outputIndexes = z.array(outputIndex)
const steakShape = z.record(
  z.string(),
  z.strictObject({
    outputsToAdmit: outputIndexes,
    coinsToRetain: outputIndexes,
    coinsRemoved: outputIndexes.optional(),
  }),
)
const topicDocumentationQuery = z.object({
  manager: z.string().min(1).describe('A topic, such as `tm_names`.'),
})
const lookupDocumentationQuery = z.object({
  lookupService: z.string().min(1).describe('A lookup service, such as `ls_names`.'),
})
const topicsHeader = z
  .array(z.string())
  .min(1)
  .max(32)
  .describe('The topics, such as `["tm_names"]` or `tm_names,tm_ordinals`.')
/** The routes of the overlay protocol, compatible with OverlayExpress 2.x (`docs/spec/http.md`, Overlay). */
export function overlayRoutes(options: OverlayRoutesOptions): Routes[] {
  const { engine, graph, profile, maxBodyBytes, maxPageBytes, bodies, progress } = options
  const topics = aliased(profile.topicAliases)
  const services = aliased(profile.lookupServiceAliases)
  const peers = {
    ...{ graph, bodies, progress },
    topicOf: (name: string) => [topics(name)].find((topic) => Object.hasOwn(engine.managers, topic)),
  }
  return [
    routes({
      topicManagers: async (_request, response) => {
        response.json(withAliases(await metadataOf(engine.managers), profile.topicAliases))
      },
      lookupServices: async (_request, response) => {
        response.json(withAliases(await metadataOf(engine.lookupServices), profile.lookupServiceAliases))
      },
      topicDocumentation: async ({ query }, response) => {
        const missing = 'the query must name a topic, such as manager=tm_names'
        const topic = topics(validate(topicDocumentationQuery, query, missing).manager)
        if (!Object.hasOwn(engine.managers, topic))
          throw new AnswerError('NOT_FOUND', 'this host does not have this topic manager')
        response.type('text/markdown').send(await engine.managers[topic]?.getDocumentation())
      },
      lookupDocumentation: async ({ query }, response) => {
        const missing = 'the query must name a lookup service, such as lookupService=ls_names'
        const service = services(validate(lookupDocumentationQuery, query, missing).lookupService)
        if (!Object.hasOwn(engine.lookupServices, service))
          throw new AnswerError('NOT_FOUND', 'this host does not have this lookup service')
        response.type('text/markdown').send(await engine.lookupServices[service]?.getDocumentation())
      },
      submit: [bodies.raw({ limit: maxBodyBytes }), submit(options, topics)],
    }),
    lookupRoutes({
      ...{ graph, maxPageBytes, bodies, progress },
      services: engine.lookupServices,
      aliases: profile.lookupServiceAliases,
    }),
    syncRoutes(peers),
    anchorRoutes(peers),
  ]
}

async function metadataOf(
  described: Record<string, Pick<TopicManager, 'getMetaData'>>,
): Promise<Record<string, ServiceMetadata>> {
  const entries = Object.entries(described).map(
    async ([name, each]) => [name, await each.getMetaData()] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

function aliased(aliases: Record<string, string>): (name: string) => string {
  return (name) => (Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name)
}

function withAliases<Entry>(
  entries: Record<string, Entry>,
  aliases: Record<string, string>,
): Record<string, Entry> {
  const more = Object.entries(aliases).flatMap(([alias, name]) => {
    const entry = entries[name]
    return entry === undefined ? [] : [[alias, entry] as const]
  })
  return { ...entries, ...Object.fromEntries(more) }
}

function submit(
  { submit: send, discovery }: OverlayRoutesOptions,
  topics: (name: string) => string,
): RequestHandler {
  return async (request, response) => {
    const asked = readTopics(request.get('X-Topics'))
    const approved = approvedBy(request.get(APPROVAL_HEADER), discovery)
    const received: unknown = request.body
    if (!(received instanceof Uint8Array) || received.length === 0) {
      throw new AnswerError('BAD_BODY', 'the body must be a BEEF, sent as application/octet-stream')
    }
    const body = asUint8Array(received)
    const offChain = request.get('x-includes-off-chain-values') === 'true'
    const beef = offChain ? withoutOffChainValues(body) : body
    const requestId = response.getHeader('X-Request-Id')
    const steak = await send({
      beef,
      topics: withOrdinals(asked.map(topics)),
      ...(typeof requestId === 'string' && { requestId }),
      ...(!isLocal(request) && { client: clientKey(request) }),
    })
    if (approved !== undefined) await discovery?.approve(approved)
    response.json(asAsked(steak, asked, topics))
  }
}

/**
 * The txid in an approval that this host has signed.
 *
 * @throws AnswerError if the header has another form, or another key signed it.
 */
function approvedBy(header: string | undefined, discovery: Discovery | undefined): string | undefined {
  if (header === undefined) return undefined
  const [, txid, signature] = /^([0-9a-f]{64})\.((?:[0-9a-f]{2}){8,80})$/.exec(header) ?? []
  if (txid === undefined || signature === undefined)
    throw new AnswerError('BAD_BODY', `${APPROVAL_HEADER} must be <txid>.<signature>, both in hex`)
  if (discovery?.reader.isApproved({ txid, signature }) !== true)
    throw new AnswerError('BAD_BODY', `${APPROVAL_HEADER} must be signed by the key of this host`)
  return txid
}

/** Keeps the topics that a client named, under those names: newer clients of `@bsv/sdk` refuse an answer with others. */
function asAsked(steak: STEAK, asked: string[], topics: (name: string) => string): STEAK {
  const answer: STEAK = {}
  for (const name of asked) {
    const instructions = steak[topics(name)]
    if (instructions !== undefined) answer[name] = instructions
  }
  return answer
}

/**
 * The topics of a submission: a JSON array, or comma-separated names, as newer overlay clients send them.
 *
 * @throws AnswerError
 */
function readTopics(header = ''): string[] {
  const topics = header.trimStart().startsWith('[') ? parseJson(header) : namesIn(header)
  return validate(
    topicsHeader,
    topics,
    'the header X-Topics must be a JSON array of topics, such as ["tm_names"], or their names with commas between',
  )
}

function namesIn(header: string): string[] {
  return header
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller reports invalid JSON like any other invalid list.
    return undefined
  }
}

/**
 * The BEEF in a body that consists of a length, a BEEF of that length, and off-chain values. No topic of this host reads such
 * values, so they are dropped: the BEEF is copied, so that the body can be freed.
 *
 * @throws AnswerError if the values exceed the limit, or the length is invalid.
 */
function withoutOffChainValues(body: Uint8Array): Uint8Array {
  const cursor = new ByteCursor(body, (message) => new AnswerError('BAD_BODY', message))
  const beef = cursor.take(cursor.varint())
  if (body.length - cursor.at > MAX_OFF_CHAIN_BYTES)
    throw new AnswerError(
      'TOO_LARGE',
      `the off-chain values exceed the limit of ${MAX_OFF_CHAIN_BYTES} bytes`,
    )
  return beef.slice()
}

const routes = described({
  tag: 'overlay',
  operations: {
    topicManagers: {
      route: 'GET /listTopicManagers',
      summary: 'The topics of this host',
      answer: { description: 'The topics, each with a one-line description.', json: runningShape },
    },
    lookupServices: {
      route: 'GET /listLookupServiceProviders',
      summary: 'The lookup services of this host',
      answer: { description: 'The services, each with a one-line description.', json: runningShape },
    },
    topicDocumentation: {
      route: 'GET /getDocumentationForTopicManager',
      summary: 'The documentation of a topic',
      query: topicDocumentationQuery,
      answer: { description: 'The documentation.', types: ['text/markdown'] },
      errors: {
        BAD_BODY: 'The query names no topic.',
        NOT_FOUND: 'This host has no such topic.',
      },
    },
    lookupDocumentation: {
      route: 'GET /getDocumentationForLookupServiceProvider',
      summary: 'The documentation of a lookup service',
      query: lookupDocumentationQuery,
      answer: { description: 'The documentation.', types: ['text/markdown'] },
      errors: {
        BAD_BODY: 'The query names no lookup service.',
        NOT_FOUND: 'This host has no such lookup service.',
      },
    },
    submit: {
      route: 'POST /submit',
      summary: 'Submits a transaction to topics',
      description:
        'A transaction for `tm_names` is submitted to `tm_ordinals` as well: a mint belongs in both.',
      headers: z.object({
        'X-Topics': topicsHeader,
        [APPROVAL_HEADER]: optionalText(
          'For the operator: `<txid>.<signature>`, which approves that transaction as an advertisement of this host.',
        ),
        'x-includes-off-chain-values': optionalText(
          'With `true`, the body is a varint, a BEEF of that many bytes, and off-chain values. No topic here reads off-chain values.',
        ),
      }),
      body: {
        description:
          'A BEEF that ends with the submitted transaction, up to the size limit set by the operator.',
        types: ['application/octet-stream'],
      },
      answer: {
        description: 'The outputs that each topic admitted, and the spent coins that it retains.',
        json: steakShape,
      },
      errors: {
        BAD_BODY:
          'There is no such topic, the body is not a BEEF, the transaction is invalid, or the approval is not signed by the key of this host.',
        CONFLICT: 'The transaction spends an output that an admitted transaction already spends.',
        TOO_LARGE:
          'The body, the off-chain values or the BEEF is over a limit: its transactions, the depth of unproven ones, their inputs and outputs, a script, or the blocks that its proofs lead to.',
        NOT_READY:
          'The source of block headers did not answer, too many submissions are queued, or this one could not be verified in time; try again.',
        STORE_FULL: 'The store has no space left.',
        ...STORE_ERRORS,
      },
    },
  },
})
