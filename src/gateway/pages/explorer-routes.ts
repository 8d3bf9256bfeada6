import { type Request, type RequestHandler, type Response, Router } from 'express'
import { z } from 'zod'
import { dependency } from '../../../backend/src/graph/dependencies.js'
import { decodeAddress } from '../../../backend/src/protocol/address.js'
import { NAME_PATTERN, nameMeant } from '../../../backend/src/protocol/mine-node.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { ChainView, Explorer, MadePage } from '../../explorer/index.js'
import type { GatewayParts } from '../gateway-options.js'
import { CACHE } from '../http/caching.js'
import { AnswerError, retryAfter } from '../http/errors.js'
import type { HeaderName } from '../http/operation.js'
import { badName, domain, name as nameSchema, txid, validate } from '../http/schemas.js'
import { HTML_TYPE } from '../http/send-body.js'
import { type ResponseCache, sendStored, textResponse, unlessAsked } from '../http/stored-response.js'
import { noName, requireCaughtUp, setNamesHeaders } from '../http/tree-progress.js'
import { fileHandler, type PageFiles } from './page-files.js'
import { loadExplorer, type PageHosts, pageHeaders, sendPage } from './send-page.js'

export interface ExplorerRoutesOptions {
  explorer: Explorer
  /** The public URL of the service with its path, without a trailing slash; only the path if the URL is unknown. */
  publicUrl: string
  hostsOf: PageHosts
  /** The height of the chain, and how far the host is behind. */
  chain: () => Promise<ChainView> | ChainView
}

const FEED_HEADERS = {
  'Cache-Control': CACHE.unproven,
  'X-Content-Type-Options': 'nosniff',
} satisfies Partial<Record<HeaderName, string>>

const ATOM_TYPE = 'application/atom+xml; charset=utf-8'

const ROBOTS = `User-agent: *
Disallow: /content/
Disallow: /map
Disallow: /search
Disallow: /svc/
Disallow: /type
`

type Pages = Awaited<ReturnType<typeof loadExplorer>>

/** Makes a page from the modules of the explorer and a request. */
type Make = (pages: Pages, request: Request) => MadePage

/** The pages of the explorer that need only the store; `docs/spec/http.md` documents them. */
export function explorerRoutes(
  { responses, progress }: GatewayParts,
  { explorer, publicUrl, hostsOf, chain }: ExplorerRoutesOptions,
): Router {
  const { site } = explorer
  // Each name and outpoint has its own host.
  const frames = (): string[] => (site.gatewayHost === undefined ? [] : [`*.${site.gatewayHost}`])
  const headers = pageHeaders(hostsOf, { frames })
  const load = async (): Promise<Pages> => {
    await explorer.store.opened?.()
    return await loadExplorer()
  }
  const page = (make: Make, ...queries: { shape: object }[]): RequestHandler =>
    cachedPage({ load, responses, make, queries, headers })
  const found = (page: MadePage | undefined, message: string): MadePage => {
    if (page !== undefined) return page
    throw noName(message, { progress })
  }
  const feed = (
    of: 'names' | 'inscriptions',
    make: (pages: Pages, base: string) => string,
  ): RequestHandler => {
    return async (request, response) => {
      const pages = await load()
      const read = () =>
        textResponse(make(pages, publicUrl), {
          headers: FEED_HEADERS,
          type: ATOM_TYPE,
          dependsOn: [dependency.all],
        })
      const stored = await explorer.store.afterLong(() =>
        progress.isCatchingUp ? explorer.store.consistent(read) : responses.cachedBy(`feed:${of}`, read),
      )
      if (of === 'names') stored.stamp(progress)
      await sendStored({ request, response, stored })
    }
  }
  return Router()
    .get('/', async (request, response) => {
      const pages = await load()
      const view = await chain()
      const make = () => {
        const { html, dependsOn } = pages.homePage(explorer)
        const place = { mark: pages.AS_OF, text: pages.asOfText }
        return textResponse(pages.withChain(html, view), { headers, type: HTML_TYPE, dependsOn, place })
      }
      // Open pages request it every few seconds.
      const key = `page:home:${view.height}:${view.lag}`
      const stored = await explorer.store.afterLong(() =>
        progress.isCatchingUp ? explorer.store.consistent(make) : responses.cachedBy(key, make),
      )
      stored.stamp(progress)
      await sendStored({ request, response, stored })
    })
    .get(
      '/names',
      page((pages, { query }) => {
        const { order, prefix, after } = validate(namesQuery, query, badQuery)
        if (order === 'name') return pages.namesInOrderPage(explorer, namesAfter(prefix, after))
        return pages.newestNamesPage(explorer, placeOf(pages, after))
      }, namesQuery),
    )
    .get(
      '/tree',
      page((pages, { query }) => {
        const { prefix } = validate(treeQuery, query, badName)
        return found(pages.treePage(explorer, prefix), `nobody has mined ${prefix}`)
      }, treeQuery),
    )
    .get(
      '/charts',
      page((pages) => pages.chartsPage(explorer)),
    )
    .get(
      '/inscriptions',
      page((pages, { query }) => {
        const { after } = validate(afterQuery, query, badQuery)
        return pages.newestInscriptionsPage(explorer, placeOf(pages, after))
      }, afterQuery),
    )
    .get(
      '/name/:name',
      ({ params, originalUrl }, response, next) => {
        const asked = String(params.name)
        const name = nameMeant(asked)
        if (name === undefined || name === asked) return next()
        const [query = ''] = /\?.*$/s.exec(originalUrl) ?? []
        response.set('Cache-Control', CACHE.immutable)
        return response.redirect(301, `${explorer.site.path}/name/${name}${query}`)
      },
      page((pages, { params, query }) => {
        const name = validate(nameSchema, params.name, badName)
        const { from } = validate(stepQuery, query, badQuery)
        const mined = pages.namePage(explorer, name, from)
        if (mined !== undefined) return mined
        requireCaughtUp(progress)
        return found(pages.freeNamePage(explorer, name), `${name} cannot be mined in this tree`)
      }, stepQuery),
    )
    .get(
      '/ordinal/:outpoint',
      page((pages, { params, query }) => {
        const outpoint = parseOutpoint(String(params.outpoint))
        const { from } = validate(stepQuery, query, badQuery)
        return held(pages.ordinalPage(explorer, outpoint, from), 'this store does not hold this output')
      }, stepQuery),
    )
    .get(
      '/address/:address',
      page((pages, { params, query }) => {
        const address = String(params.address)
        const owner = decodeAddress(address)
        if (owner === undefined) throw new AnswerError('BAD_BODY', 'this is not a P2PKH address')
        return pages.ordinalsPage(explorer, { kind: 'address', address, owner }, outpointAfter(query))
      }, afterQuery),
    )
    .get(
      '/type',
      page(
        (pages, { query }) => {
          const { type } = validate(typeQuery, query, badQuery)
          return pages.ordinalsPage(explorer, { kind: 'type', type }, outpointAfter(query))
        },
        typeQuery,
        afterQuery,
      ),
    )
    .get(
      '/map',
      page(
        (pages, { query }) => {
          const { key, value } = validate(mapQuery, query, badQuery)
          return pages.ordinalsPage(explorer, { kind: 'map', key, value }, outpointAfter(query))
        },
        mapQuery,
        afterQuery,
      ),
    )
    .get(
      '/parent/:outpoint',
      page((pages, { params, query }) => {
        const parent = parseOutpoint(String(params.outpoint))
        return pages.ordinalsPage(explorer, { kind: 'parent', parent }, outpointAfter(query))
      }, afterQuery),
    )
    .get(
      '/tx/:txid',
      page((pages, { params, query }) => {
        const id = String(params.txid).toLowerCase()
        if (!txid.safeParse(id).success)
          throw new AnswerError('BAD_OUTPOINT', 'a transaction id is 64 characters of hex')
        const { after } = validate(outputQuery, query, badQuery)
        return held(pages.transactionPage(explorer, id, after), 'this store does not have this transaction')
      }, outputQuery),
    )
    .get('/search', async (request, response) => {
      const { q } = validate(searchQuery, request.query, badQuery)
      const pages = await load()
      const result = explorer.store.consistent(() => pages.search(explorer, q))
      setNamesHeaders(response, progress)
      if (result.kind === 'page') {
        response.set('Cache-Control', CACHE.none).redirect(303, explorer.site.path + result.path)
        return
      }
      if (result.status === 503) response.set(retryAfter('NOT_CAUGHT_UP'))
      const html = pages.withAsOf(result.html, progress.asOf)
      sendPage({ request, response: response.status(result.status), html, headers })
    })
    .get(
      '/feeds/names.atom',
      feed('names', (pages, base) => pages.namesFeed(explorer, base)),
    )
    .get(
      '/feeds/inscriptions.atom',
      feed('inscriptions', (pages, base) => pages.inscriptionsFeed(explorer, base)),
    )
    .get('/robots.txt', (_request, response) => {
      response.set({ ...FEED_HEADERS, 'Content-Type': 'text/plain; charset=utf-8' }).send(ROBOTS)
    })
    .get(['/favicon.svg', '/favicon.ico'], async (_request, response) => {
      const { FAVICON } = await loadExplorer()
      response.set({ ...FAVICON_HEADERS, 'Content-Type': 'image/svg+xml' }).send(FAVICON)
    })
}

const FAVICON_HEADERS = {
  ...FEED_HEADERS,
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
}

const EXPLORER_FILES = ['style.css', 'explorer.js', 'verify.js'] as const

export function explorerFileRoutes(files: PageFiles | undefined, hostsOf: PageHosts): Router {
  const headers = pageHeaders(hostsOf)
  // A page that may not read answers of this host may still use the style: an error in a sandboxed frame.
  const ofStyle = { ...headers, 'Cross-Origin-Resource-Policy': 'cross-origin' }
  const send = fileHandler(files, EXPLORER_FILES, (name) => (name === 'style.css' ? ofStyle : headers))
  return Router().get('/explorer/:file', send)
}

/** A page that is cached until one of its dependencies changes, unless its query asks for a part of it. */
function cachedPage({
  load,
  responses,
  make,
  queries,
  headers,
}: {
  load: () => Promise<Pages>
  responses: ResponseCache
  make: Make
  queries: { shape: object }[]
  headers: ReturnType<typeof pageHeaders>
}): RequestHandler {
  const queryKey = unlessAsked(queries.flatMap(({ shape }) => Object.keys(shape)))
  return async (request: Request, response: Response) => {
    const pages = await load()
    const place = { mark: pages.AS_OF, text: pages.asOfText }
    const read = () => {
      const { html, dependsOn } = make(pages, request)
      return textResponse(html, { headers, type: HTML_TYPE, dependsOn, place })
    }
    await responses.respond(request, response, read, { queryKey, isAboutNames: true })
  }
}

/** For pages not about names, which exist or not, whatever the host's progress. */
function held(page: MadePage | undefined, message: string): MadePage {
  if (page === undefined) throw new AnswerError('NOT_FOUND', message)
  return page
}

const place = z.string().max(120)
const afterQuery = z.object({ after: place.optional() })
const namesQuery = z.object({
  order: z.enum(['newest', 'name']).default('newest').describe('The order: newest first, or by name.'),
  prefix: domain.default('').describe('Only names that begin with this. Requires order `name`.'),
  after: z.string().max(255).optional().describe('The end of the previous page.'),
})
const treeQuery = z.object({
  prefix: domain.default('').describe('The domain of the node. Defaults to the root.'),
})
const whole = z
  .string()
  .regex(/^\d{1,10}$/)
  .transform(Number)
  .pipe(z.int().nonnegative())
const stepQuery = z.object({
  from: whole.optional().describe('The step from which its history is shown, backwards.'),
})
const outputQuery = z.object({ after: whole.optional().describe('Only outputs after this one.') })
const typeQuery = z.object({
  type: z.string().min(1).max(300).describe('A content type. Its parameters are ignored.'),
})
const mapQuery = z.object({
  key: z.string().max(1000).describe('A key of MAP.'),
  value: z.string().max(1000).describe('The value of that key, or one of its values.'),
})
const searchQuery = z.object({
  q: z.string().max(1000).default('').describe('A name, outpoint, txid or address.'),
})

function badQuery(): AnswerError {
  return new AnswerError('BAD_BODY', 'a parameter in this URL is invalid')
}

function placeOf(pages: Pages, after: string | undefined) {
  if (after === undefined) return undefined
  const found = pages.readPlace(after)
  if (found === undefined) throw badQuery()
  return found
}

function namesAfter(prefix: string, after = ''): { prefix: string; after: string } {
  if (after !== '' && !NAME_PATTERN.test(after)) throw badName()
  return { prefix, after }
}

function outpointAfter(query: unknown) {
  const { after } = validate(afterQuery, query, badQuery)
  return after === undefined ? undefined : parseOutpoint(after)
}
