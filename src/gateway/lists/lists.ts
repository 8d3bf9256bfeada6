import { z } from 'zod'
import { dependency } from '../../../backend/src/graph/dependencies.js'
import { type Attribute, attribute, pageOf } from '../../../backend/src/graph/listings.js'
import { decodeAddress } from '../../../backend/src/protocol/address.js'
import { MEDIA_TYPE } from '../../../backend/src/protocol/media-type.js'
import { formatOutpoint, PointerError, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { ListPlace, NewestQuery } from '../../../backend/src/read/listings.js'
import { freeCharacters } from '../../../backend/src/read/name-offer.js'
import { AnswerError, OriginUnknownError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { type JsonAnswer, jsonRoute } from '../http/json-route.js'
import { described, NOT_CAUGHT_UP, ORIGIN_PENDING, type Routes, STORE_ERRORS } from '../http/operation.js'
import {
  askedOutpoint,
  count,
  domain,
  outpoint,
  position,
  readTxid,
  text,
  txidParams,
  validate,
  wholeNumber,
} from '../http/schemas.js'
import { jsonResponse, sendStored } from '../http/stored-response.js'
import { NAMES_FIELDS, noName, requireCaughtUp } from '../http/tree-progress.js'
import {
  countsShape,
  formatPlace,
  historyStepShape,
  listedNameShape,
  listedNodeShape,
  listedOrdinalShape,
  listedOutputShape,
  listPlace,
  nameJson,
  nextSequence,
  ordinalJson,
  outputJson,
  parsePlace,
  stepJson,
  timed,
  transactionJson,
  transactionShape,
} from './list-records.js'
import { MAX_SEARCH_LENGTH, searchFor, searchResultShape } from './search.js'

const MAX_LISTED = 100
const USUAL = 50

const limit = wholeNumber({ most: MAX_LISTED, usual: USUAL }).describe('The most entries to return.')

const newestQuery = z.object({
  after: listPlace.optional().describe('The `next` of the previous page.'),
  limit,
})

const historyQuery = z.object({
  order: z.enum(['oldest', 'newest']).default('oldest').describe('Which steps come first.'),
  from: position().describe('The sequence of the first step to return: the `next` of the previous page.'),
  limit,
})

const ADDRESS = 'a P2PKH address of main or test'

const ordinalsQuery = z.object({
  owner: z
    .string()
    .regex(/^[1mn][1-9A-HJ-NP-Za-km-z]{25,34}$/)
    .optional()
    .describe('A P2PKH address of main or test: only unspent ordinals that it owns.'),
  contentType: z
    .string()
    .max(255)
    .regex(MEDIA_TYPE)
    .optional()
    .describe('A media type. Parameters and case do not matter.'),
  parent: askedOutpoint.optional().describe('The parent of the inscription.'),
  key: text.optional().describe('A key of the merged MAP. Requires `value`.'),
  value: z.string().optional().describe('The value of that key, or one entry if it is a list.'),
  after: askedOutpoint.optional().describe('The `next` of the previous page.'),
  limit,
})

const transactionQuery = z.object({
  after: position({ most: 0xffffffff }).describe('An output index: the `next` of the previous page.'),
  limit,
})

const searchQuery = z.object({
  text: text.max(MAX_SEARCH_LENGTH).describe('A name or its beginning, an outpoint, a txid or an address.'),
})

export function listsRoutes(options: GatewayParts): Routes {
  const { progress } = options
  const { listings } = options.store
  const treeBelow = jsonRoute<{ domain: string }>(options, ({ params }) => tree(options, params.domain), {
    isAboutNames: true,
  })
  return routes(
    {
      counts: jsonRoute(options, () => ({ value: listings.counts() }), { isAboutNames: true }),
      newestNames: jsonRoute(
        options,
        ({ query }) => {
          const { shown, next } = newestPage(query, (asked) => listings.newestNames(asked))
          const last = shown.at(-1)
          if (last === undefined) requireCaughtUp(progress)
          const names = timed(options, shown, nameJson)
          // While catching up, no list is known to end.
          const more = progress.isCatchingUp && last ? { next: formatPlace(last) } : next
          return { value: { names, ...more }, dependsOn: [dependency.names] }
        },
        { query: newestQuery, isAboutNames: true },
      ),
      newestInscriptions: jsonRoute(
        options,
        ({ query }) => {
          const { shown, next } = newestPage(query, (asked) => listings.newestInscriptions(asked))
          const inscriptions = timed(options, shown, outputJson)
          return { value: { inscriptions, ...next }, dependsOn: [dependency.inscriptions] }
        },
        { query: newestQuery },
      ),
      tree: treeBelow,
      treeBelow,
      history: jsonRoute<{ outpoint: string }>(
        options,
        ({ params, query }) => history(options, params.outpoint, query),
        { query: historyQuery },
      ),
      ordinals: async (request, response) => {
        const stored = jsonResponse(await ordinals(options, request.query))
        return sendStored({ request, response, stored })
      },
      transaction: jsonRoute<{ txid: string }>(
        options,
        ({ params, query }) => transaction(options, readTxid(params), query),
        { query: transactionQuery },
      ),
      search: jsonRoute(
        options,
        ({ query }) => {
          const asked = validate(searchQuery, query, `text must have 1 to ${MAX_SEARCH_LENGTH} characters`)
          return { value: searchFor(options, asked.text) }
        },
        { query: searchQuery, isAboutNames: true },
      ),
    },
    (path) => (path.startsWith('/tree/') ? badDomain() : new PointerError('BAD_OUTPOINT', path)),
  )
}

function newestPage<Row extends ListPlace>(
  query: unknown,
  read: (query: NewestQuery) => Row[],
): { shown: Row[]; next: { next?: string } } {
  const { after, limit } = validate(
    newestQuery,
    query,
    `limit must be a whole number from 1 to ${MAX_LISTED}, and after the next of another page`,
  )
  const found = read({ limit: limit + 1, ...(after !== undefined && { after: parsePlace(after) }) })
  const { shown, end } = pageOf(found, limit)
  return { shown, next: end ? { next: formatPlace(end) } : {} }
}

function tree({ store, progress }: GatewayParts, asked = ''): JsonAnswer {
  const prefix = validate(domain, asked, () => badDomain())
  const children = store.listings.childNodes(prefix)
  const node = store.names.liveNode(prefix)
  if (node === undefined && children.length === 0)
    throw noName(`this host has no node for ${JSON.stringify(prefix)}`, { progress })
  // Free characters and unspent nodes are not known before.
  const isKnown = !progress.isCatchingUp
  const free = node && isKnown && freeCharacters(store.transactions, node)
  const live = [node, ...children.map(({ outpoint }) => outpoint)]
  return {
    value: {
      domain: prefix,
      ...(node && isKnown && { outpoint: formatOutpoint(node) }),
      ...(typeof free === 'string' && { free }),
      children: children.map((child) => ({
        ...child,
        outpoint: child.outpoint && isKnown ? formatOutpoint(child.outpoint) : undefined,
      })),
    },
    // A new child comes with a mint, which spends the node.
    dependsOn: live.map((each) => (each ? dependency.spend(each) : dependency.all)),
  }
}

function badDomain(): AnswerError {
  return new AnswerError('BAD_NAME', 'a prefix must be up to 255 characters of a-z 0-9 -')
}

function history(options: GatewayParts, asked: string, query: unknown): JsonAnswer {
  const { store } = options
  const outpoint = parseOutpoint(asked)
  const { order, from, limit } = validate(
    historyQuery,
    query,
    `order must be oldest or newest, from a sequence, and limit a whole number from 1 to ${MAX_LISTED}`,
  )
  const found = store.listings.history({ outpoint, order, limit, ...(from !== undefined && { from }) })
  if (found === undefined)
    throw new OriginUnknownError('this store has no such output, or the origin is unknown here', outpoint)
  const next = nextSequence(found, order)
  return {
    value: {
      origin: formatOutpoint(found.origin),
      last: found.last,
      steps: timed(options, found.steps, stepJson),
      ...(next !== undefined && { next }),
    },
  }
}

async function ordinals(options: GatewayParts, query: unknown): Promise<object> {
  const asked = validate(
    ordinalsQuery,
    query,
    `limit must be a whole number from 1 to ${MAX_LISTED}, owner ${ADDRESS}, and contentType a media type; value is a text`,
  )
  const attributes = attributesOf(asked)
  if (attributes.length === 0)
    throw new AnswerError('BAD_BODY', 'give at least one of owner, contentType, parent, or key with value')
  const after = asked.after === undefined ? undefined : parseOutpoint(asked.after)
  const found = await options.store.listings.ordinalsWith({
    attributes,
    limit: asked.limit + 1,
    ...(after && { after }),
  })
  const { shown, end } = pageOf(found, asked.limit)
  return {
    ordinals: timed(options, shown, ordinalJson),
    ...(end && { next: formatOutpoint(end.outpoint) }),
  }
}

function attributesOf({
  owner,
  contentType,
  parent,
  key,
  value,
}: z.output<typeof ordinalsQuery>): Attribute[] {
  const holder = owner === undefined ? undefined : decodeAddress(owner)
  if (owner !== undefined && holder === undefined)
    throw new AnswerError('BAD_BODY', `owner must be ${ADDRESS}`)
  if ((key === undefined) !== (value === undefined))
    throw new AnswerError('BAD_BODY', 'key and value go together')
  return [
    ...(parent === undefined ? [] : [attribute.parent(parseOutpoint(parent))]),
    ...(holder === undefined ? [] : [attribute.owner(holder)]),
    ...(key === undefined || value === undefined ? [] : [attribute.map(key, value)]),
    ...(contentType === undefined ? [] : [attribute.contentType(contentType)]),
  ]
}

function transaction(options: GatewayParts, txid: string, query: unknown): JsonAnswer {
  const { after, limit } = validate(
    transactionQuery,
    query,
    `after must be an output index, and limit a whole number from 1 to ${MAX_LISTED}`,
  )
  const { listings } = options.store
  const found = listings.transaction({ txid, limit, ...(after !== undefined && { after }) })
  if (found === undefined) throw new AnswerError('NOT_FOUND', 'this store does not have this transaction')
  const [record] = timed(options, [found], transactionJson)
  return { value: { ...record, ...(found.next !== undefined && { next: found.next }) } }
}

const NAMES_HEADERS = ['ETag', 'X-As-Of', 'X-Complete'] as const
const NEXT = 'Absent from the last page.'
const badLimit = { BAD_BODY: '`limit`, or another parameter, is out of range.' }

const routes = described({
  tag: 'lists',
  errors: STORE_ERRORS,
  operations: {
    counts: {
      route: 'GET /counts',
      summary: 'Totals of this host',
      answer: {
        description: 'The totals, including blocked entries.',
        headers: NAMES_HEADERS,
        json: countsShape.extend(NAMES_FIELDS),
      },
    },
    newestNames: {
      route: 'GET /newest/names',
      summary: 'Names, newest first',
      description:
        'Names whose mint is unproven come first, the latest submitted first; the others follow by block height, descending. A name proven between two page requests may appear on both pages.',
      query: newestQuery,
      answer: {
        description: 'A page.',
        headers: NAMES_HEADERS,
        json: z.strictObject({
          names: z.array(listedNameShape),
          next: listPlace.optional().describe(NEXT),
          ...NAMES_FIELDS,
        }),
      },
      errors: { ...badLimit, NOT_CAUGHT_UP },
    },
    newestInscriptions: {
      route: 'GET /newest/inscriptions',
      summary: 'Outputs with content, newest first',
      description:
        'Ordered like the newest names. Reinscriptions of an ordinal are included; names and continuation chunks of streams are not.',
      query: newestQuery,
      answer: {
        description: 'A page.',
        headers: ['ETag'],
        json: z.strictObject({
          inscriptions: z.array(listedOutputShape),
          next: listPlace.optional().describe(NEXT),
        }),
      },
      errors: badLimit,
    },
    tree: treeOperation('GET /tree'),
    treeBelow: { ...treeOperation('GET /tree/{domain}'), params: z.object({ domain }) },
    history: {
      route: 'GET /history/{outpoint}',
      summary: 'The history of an ordinal, paged',
      params: z.object({ outpoint: askedOutpoint }),
      query: historyQuery,
      answer: {
        description: 'A page of its steps, as far as they are known here.',
        headers: ['ETag'],
        json: z.strictObject({
          origin: outpoint,
          last: count.describe('The sequence of its last step.'),
          steps: z.array(historyStepShape),
          next: count.optional().describe(`The \`from\` of the next page. ${NEXT}`),
        }),
      },
      errors: {
        ...badLimit,
        BAD_OUTPOINT: 'The path does not end with an outpoint.',
        NOT_FOUND: 'This store has no such output, or its origin is unknown here.',
        ORIGIN_PENDING,
        BLOCKED: 'The operator has blocked the output.',
      },
    },
    ordinals: {
      route: 'GET /ordinals',
      summary: 'Ordinals by owner, content type, parent or MAP',
      description:
        'Returns the current outpoints of ordinals that match all given parameters, in an order that does not change when an ordinal moves. At least one of `owner`, `contentType`, `parent`, or `key` with `value` is required.',
      query: ordinalsQuery,
      answer: {
        description: 'A page.',
        headers: ['ETag'],
        json: z.strictObject({
          ordinals: z.array(listedOrdinalShape),
          next: outpoint.optional().describe(NEXT),
        }),
      },
      errors: {
        BAD_BODY: 'No criterion is given, or a parameter is out of range.',
        BAD_OUTPOINT: '`parent` or `after` is not an outpoint.',
      },
    },
    transaction: {
      route: 'GET /transactions/{txid}',
      summary: 'The stored outputs of a transaction',
      params: txidParams,
      query: transactionQuery,
      answer: {
        description: 'A page of its outputs held by topics.',
        headers: ['ETag'],
        json: transactionShape.extend({ next: count.optional().describe(NEXT) }),
      },
      errors: {
        ...badLimit,
        BAD_OUTPOINT: 'The path does not end with a txid.',
        NOT_FOUND: 'This store does not have the transaction.',
      },
    },
    search: {
      route: 'GET /search',
      summary: 'Searches by name, outpoint, txid or address',
      query: searchQuery,
      answer: {
        description: 'Matches for the text, and the first names that begin with it.',
        headers: NAMES_HEADERS,
        json: z.strictObject({
          results: z.array(searchResultShape),
          names: z.array(listedNameShape.pick({ name: true, outpoint: true })),
          ...NAMES_FIELDS,
        }),
      },
      errors: { NOT_CAUGHT_UP, BAD_BODY: '`text` is missing or too long.' },
    },
  },
})

function treeOperation<Route extends 'GET /tree' | 'GET /tree/{domain}'>(route: Route) {
  return {
    route,
    summary: route === 'GET /tree' ? 'The root of the tree of names' : 'A node of the tree of names',
    description: 'The live node, the characters that can still be mined from it, and its child nodes.',
    answer: {
      description: 'The node.',
      headers: NAMES_HEADERS,
      json: z.strictObject({
        domain,
        outpoint: listedNodeShape.shape.outpoint,
        free: z.string().optional().describe('The characters that can be mined from it.'),
        children: z.array(listedNodeShape),
        ...NAMES_FIELDS,
      }),
    },
    errors: {
      NOT_CAUGHT_UP,
      NOT_FOUND: 'There is no such node.',
      ...(route === 'GET /tree/{domain}' && {
        BAD_NAME: 'The path does not end with a valid name prefix.',
        BLOCKED: 'The operator has blocked the name or what it resolves to.',
      }),
    },
  }
}
