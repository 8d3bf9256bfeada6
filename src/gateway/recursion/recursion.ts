import type { RequestHandler, Response } from 'express'
import { z } from 'zod'
import { dependency } from '../../../backend/src/graph/dependencies.js'
import { type MapState, mapBytes } from '../../../backend/src/graph/map-merge.js'
import type { RawTransaction } from '../../../backend/src/graph/stored-transaction.js'
import { timeOf } from '../../../backend/src/protocol/block-header.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { encodeDagCbor, encodeDagCborList, encodeDagCborMap } from '../../../backend/src/protocol/dag-cbor.js'
import type { HeaderRange } from '../../../backend/src/protocol/header-store.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore, GraphReads } from '../../../backend/src/read/fact-store.js'
import { type ContentOutput, contentAt } from '../content/content-root.js'
import { CACHE } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { hexChunks } from '../http/hex-chunks.js'
import { type JsonAnswer, jsonRoute } from '../http/json-route.js'
import { countTransactions } from '../http/long-read.js'
import { described, NOT_CAUGHT_UP, type Operation, type Routes, STORE_ERRORS } from '../http/operation.js'
import { askedOutpoint, count, position, txid, txidParams, validate } from '../http/schemas.js'
import { JSON_TYPE, sendChunks } from '../http/send-body.js'
import { noName } from '../http/tree-progress.js'
import { askedTransaction } from '../wallets/beef-routes.js'
import {
  blockInfo,
  blockInfoShape,
  formatId,
  hashOf,
  inscriptionId,
  inscriptionRecord,
  inscriptionShape,
  MEDIAN_BLOCKS,
  relativeRecords,
  relativeShape,
} from './recursion-records.js'

/** The prefix of these routes on every host that shows content: ord uses it, and inscribed pages request no other. */
export const RECURSION_PREFIX = '/r'

/** The same as in ord. */
const PAGE = 100
/** Limited, since a page requires reading past those before it. */
const MAX_PAGE = 999

/**
 * Those of ord's recursive endpoints that make sense here, with its shapes: a page written for them runs unchanged. They are
 * never renamed or removed (`docs/spec/http.md`, Recursion).
 */
export function recursionRoutes(parts: GatewayParts): Routes {
  const { graph, store, network, maxMapBytes } = parts
  const answered = (
    read: (params: Params, response: Response) => unknown,
    kept: Omit<JsonAnswer, 'value'> = {},
  ): RequestHandler<Params> =>
    jsonRoute(parts, ({ params }, response) => ({ value: read(params, response), ...kept }))
  const blocks = new Blocks(parts)
  const children = (params: Params, response: Response) => {
    const parent = inscriptionAt(store, params.id).outpoint
    const page = pageOf(params)
    // Reading past 10,000 children takes as long as another kind of read.
    countTransactions(response, page)
    const found = store.listings.children({ parent, skipped: page * PAGE, limit: PAGE })
    return { found: found.children, more: found.hasMore, page }
  }
  const parents = (params: Params) => {
    const { parent } = inscriptionAt(store, params.id)
    const page = pageOf(params)
    const found = parent !== undefined && page === 0 ? [parent] : []
    return { found: store.guard.unblocked(found, (each) => [each]), more: false, page }
  }
  const childrenIds = answered((params, response) => {
    const { found, ...rest } = children(params, response)
    return { ids: found.map(formatId), ...rest }
  }, LISTED)
  const childrenRecords = answered((params, response) => {
    const { found, ...rest } = children(params, response)
    return { children: relativeRecords(store, found), ...rest }
  })
  const parentsIds = answered((params) => {
    const { found, ...rest } = parents(params)
    // Ord uses this field name only in this list.
    return { ids: found.map(formatId), ...rest, page_index: rest.page }
  })
  const parentsRecords = answered((params) => {
    const { found, ...rest } = parents(params)
    return { parents: relativeRecords(store, found), ...rest }
  })
  return routes({
    blockHeight: answered(() => blocks.range().to),
    blockHash: answered(() => hashOf(blocks.header(blocks.range().to))),
    blockHashAt: answered(({ height }) => hashOf(blocks.header(heightIn(height)))),
    blockTime: answered(() => timeOf(blocks.header(blocks.range().to))),
    blockInfo: answered(({ query }) => blocks.info(query)),
    transactionHex: sendHex(graph),
    inscription: answered(({ id }) => inscriptionRecord(store, inscriptionAt(store, id), network)),
    inscriptionMetadata: answered(({ id }) => metadata(store, { asked: id, maxMapBytes }), FIXED),
    childInscriptions: childrenRecords,
    childInscriptionsOnPage: childrenRecords,
    children: childrenIds,
    childrenOnPage: childrenIds,
    parentInscriptions: parentsRecords,
    parentInscriptionsOnPage: parentsRecords,
    parents: parentsIds,
    parentsOnPage: parentsIds,
  })
}

type Params = Record<string, string>

const LISTED = { dependsOn: [dependency.inscriptions] }
const FIXED = { cache: CACHE.immutable, dependsOn: [] }

/** @throws PointerError, BlockedError; AnswerError if this store has no inscription there. */
function inscriptionAt(store: GraphReads, asked: string | undefined): ContentOutput {
  const found = contentAt(store, { kind: 'outpoint', outpoint: parseOutpoint(asked ?? '') })
  if (found === undefined) throw new AnswerError('NOT_FOUND', 'this store has no inscription in this output')
  return found
}

function pageOf({ page = '0' }: Params): number {
  return validate(pageParam, page, `a page must be a whole number from 0 to ${MAX_PAGE}`)
}

const HASH_LENGTH = 64

function heightIn(text: string | undefined): number {
  return validate(heightParam, text, 'a height must be a whole number')
}

class Blocks {
  constructor(private readonly options: Pick<GatewayParts, 'store' | 'progress'>) {}

  range(): HeaderRange {
    const range = this.options.store.chain.range()
    if (range === undefined) throw noName('this host keeps no block headers', this.options)
    return range
  }

  header(height: number): Uint8Array {
    const header = this.options.store.chain.headers({ from: height, count: 1 })
    if (header.length > 0) return header
    const { from, to } = this.range()
    throw noName(`this host has the headers of blocks ${from} to ${to}`, this.options)
  }

  info(asked = ''): z.output<typeof blockInfoShape> {
    const { chain } = this.options.store
    const query = validate(blockQuery, asked, 'name a block by its height or its hash')
    const height = query.length === HASH_LENGTH ? chain.heightOf(query) : Number(query)
    const range = this.range()
    if (height === undefined) throw noName('this host has no header of this block', this.options)
    this.header(height)
    const from = Math.max(range.from, height - MEDIAN_BLOCKS + 1)
    const headers = chain.headers({ from, count: height - from + 2 })
    return blockInfo(headers, { index: height - from, height, tip: range.to })
  }
}

/** The MAP of an inscription in the form of ord's metadata: CBOR in hex. */
function metadata(
  store: GraphReads,
  { asked, maxMapBytes }: { asked: string | undefined; maxMapBytes: number },
): string {
  const { outpoint, mapLength } = inscriptionAt(store, asked)
  const map = mapLength === undefined ? undefined : store.metadata.own(outpoint)
  // A truncated MAP would look complete.
  if (map?.truncated || (map !== undefined && mapBytes(map) > maxMapBytes))
    throw new AnswerError('TOO_LARGE', `the MAP of this inscription has more than ${maxMapBytes} bytes`)
  if (map === undefined || map.size === 0) throw new AnswerError('NOT_FOUND', 'this inscription has no MAP')
  return toHex(encodedMap(map))
}

function encodedMap(map: MapState): Uint8Array {
  const members = [...map].map(([key, value]) => {
    const texts = typeof value === 'string' ? undefined : [...value].map(encodeDagCbor)
    return { key, encoded: texts === undefined ? encodeDagCbor(value as string) : encodeDagCborList(texts) }
  })
  return encodeDagCborMap(members)
}

function sendHex(graph: FactStore): RequestHandler<Params> {
  return async (request, response) => {
    const { length, chunks } = await askedTransaction(request.params, { graph, response })
    response.set({ 'Cache-Control': CACHE.immutable, 'Content-Type': JSON_TYPE })
    response.setHeader('Content-Length', 2 * length + 2)
    if (request.method === 'HEAD') response.end()
    else await sendChunks(response, { chunks: hexOf(chunks()), length: 2 * length + 2 })
  }
}

function* hexOf(chunks: ReturnType<RawTransaction['chunks']>): Generator<string> {
  yield '"'
  yield* hexChunks(chunks)
  yield '"'
}

const pageParam = position({ most: MAX_PAGE }).unwrap()
const heightParam = position({ most: 0xffffffff }).unwrap()
const blockQuery = z.string().regex(/^(?:0|[1-9][0-9]{0,9}|[0-9a-fA-F]{64})$/)
const id = askedOutpoint.describe('`<txid>i<vout>` or `<txid>_<vout>`.')
const ofInscription = z.object({ id })
const onPage = ofInscription.extend({ page: pageParam })

const BAD_ID = 'The id is not an outpoint.'
const paged = {
  more: z.boolean().describe('Whether there are later pages.'),
  page: count,
}
const childrenIdsShape = z.strictObject({ ids: z.array(inscriptionId), ...paged })

type Route = Operation['route']

function listOperation(route: Route, { json, summary }: { json: z.ZodType; summary: string }): Operation {
  const hasPage = route.endsWith('{page}')
  return {
    route,
    summary,
    params: hasPage ? onPage : ofInscription,
    answer: { description: `The ${hasPage ? '100 of a page' : 'first 100'}.`, headers: ['ETag'], json },
    errors: {
      BAD_OUTPOINT: BAD_ID,
      ...(hasPage && { BAD_BODY: `The page is not a whole number from 0 to ${MAX_PAGE}.` }),
      NOT_FOUND: 'This store has no inscription there.',
      BLOCKED: 'The operator has blocked the inscription.',
    },
  }
}

const NO_HEADER = 'This host keeps no block headers, or not the header of this block.'

function blockOperation(
  route: Route,
  { json, summary, params }: { json: z.ZodType; summary: string; params?: z.ZodObject },
): Operation {
  return {
    route,
    summary,
    ...(params && { params }),
    answer: { description: 'The value from the best chain known to this host.', headers: ['ETag'], json },
    errors: {
      NOT_FOUND: NO_HEADER,
      NOT_CAUGHT_UP,
      ...(params && { BAD_BODY: 'The parameter is not a height, or not a hash where one is accepted.' }),
    },
  }
}

const CHILDREN = 'Inscriptions with a valid claim to this parent'
const CHILD_IDS = { json: childrenIdsShape, summary: CHILDREN }
const CHILD_RECORDS = {
  json: z.strictObject({ children: z.array(relativeShape), ...paged }),
  summary: CHILDREN,
}
const PARENTS = 'The parent of an inscription, if the claim is valid'
const PARENT_IDS = {
  json: childrenIdsShape.extend({ page_index: count.describe('The same as `page`.') }),
  summary: PARENTS,
}
const PARENT_RECORDS = {
  json: z.strictObject({ parents: z.array(relativeShape), ...paged }),
  summary: PARENTS,
}

const routes = described({
  tag: 'recursion',
  errors: STORE_ERRORS,
  operations: {
    blockHeight: blockOperation('GET /blockheight', { json: count, summary: 'The height of the last block' }),
    blockHash: blockOperation('GET /blockhash', { json: txid, summary: 'The hash of the last block' }),
    blockHashAt: blockOperation('GET /blockhash/{height}', {
      ...{ json: txid, summary: 'The hash of a block' },
      params: z.object({ height: heightParam }),
    }),
    blockTime: blockOperation('GET /blocktime', {
      ...{ json: count, summary: 'The time in the header of the last block, in seconds since 1970' },
    }),
    blockInfo: blockOperation('GET /blockinfo/{query}', {
      ...{ json: blockInfoShape, summary: 'The header of a block' },
      params: z.object({ query: blockQuery.describe('The height or hash of the block.') }),
    }),
    transactionHex: {
      route: 'GET /tx/{txid}',
      summary: 'A transaction in hex',
      params: txidParams,
      answer: { description: 'The transaction.', json: z.string().regex(/^([0-9a-f]{2})+$/) },
      errors: {
        BAD_OUTPOINT: 'The path does not end with a txid.',
        NOT_FOUND: 'This host does not have the transaction, or the transaction lost to a conflicting one.',
        BLOCKED: 'The operator has blocked one of its outputs.',
      },
    },
    inscription: {
      route: 'GET /inscription/{id}',
      summary: 'An inscription and the current outpoint of its ordinal',
      params: ofInscription,
      answer: { description: 'The inscription.', headers: ['ETag'], json: inscriptionShape },
      errors: {
        BAD_OUTPOINT: BAD_ID,
        NOT_FOUND: 'This store has no inscription there.',
        BLOCKED: 'The operator has blocked the inscription or the current content of its ordinal.',
      },
    },
    inscriptionMetadata: {
      route: 'GET /metadata/{id}',
      summary: 'The MAP of an inscription, as CBOR in hex',
      description: 'A map of strings to strings and lists of strings, as inscribed.',
      params: ofInscription,
      answer: { description: 'The MAP.', headers: ['ETag'], json: z.string().regex(/^([0-9a-f]{2})+$/) },
      errors: {
        BAD_OUTPOINT: BAD_ID,
        NOT_FOUND: 'This store has no inscription there, or it has no MAP.',
        TOO_LARGE: 'The MAP exceeds the limit of this host.',
        BLOCKED: 'The operator has blocked the inscription.',
      },
    },
    childInscriptions: listOperation('GET /children/{id}/inscriptions', CHILD_RECORDS),
    childInscriptionsOnPage: listOperation('GET /children/{id}/inscriptions/{page}', CHILD_RECORDS),
    children: listOperation('GET /children/{id}', CHILD_IDS),
    childrenOnPage: listOperation('GET /children/{id}/{page}', CHILD_IDS),
    parentInscriptions: listOperation('GET /parents/{id}/inscriptions', PARENT_RECORDS),
    parentInscriptionsOnPage: listOperation('GET /parents/{id}/inscriptions/{page}', PARENT_RECORDS),
    parents: listOperation('GET /parents/{id}', PARENT_IDS),
    parentsOnPage: listOperation('GET /parents/{id}/{page}', PARENT_IDS),
  },
})
