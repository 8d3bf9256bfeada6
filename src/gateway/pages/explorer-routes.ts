import { type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { dependency } from '../../../backend/src/graph/dependencies.js'
import { decodeAddress } from '../../../backend/src/protocol/address.js'
import { MEDIA_TYPE } from '../../../backend/src/protocol/media-type.js'
import { NAME_PATTERN, nameMeant } from '../../../backend/src/protocol/mine-node.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { ChainView, Common, Explorer, MadePage } from '../../explorer/index.js'
import { CACHE } from '../http/caching.js'
import { AnswerError, retryAfter } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import type { HeaderName } from '../http/operation.js'
import { badName, domain, name as nameSchema, position, readTxid, validate } from '../http/schemas.js'
import { HTML_TYPE } from '../http/send-body.js'
import { type NamesResponse, sendStored, textResponse, unlessAsked } from '../http/stored-response.js'
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

type Make<Query> = (
  pages: Pages,
  asked: { query: Query; params: Readonly<Record<string, string>> },
) => MadePage

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
  const written = (pages: Pages, { html, dependsOn }: MadePage): NamesResponse => {
    const place = { mark: pages.AS_OF, text: pages.asOfText }
    return textResponse(html, { headers, type: HTML_TYPE, dependsOn, place })
  }
  /** A page that is cached until one of its dependencies changes, unless its query asks for a part of it. */
  const page = <Query extends z.ZodObject>(
    queryShape: Query,
    make: Make<z.output<Query>>,
    refusal = badQuery,
  ): RequestHandler => {
    const queryKey = unlessAsked(Object.keys(queryShape.shape))
    return async (request, response) => {
      const pages = await load()
      const params = request.params as Record<string, string>
      const read = () =>
        written(pages, make(pages, { query: validate(queryShape, request.query, refusal), params }))
      await responses.respond(request, response, read, { queryKey, isAboutNames: true })
    }
  }
  const found = (page: MadePage | undefined, message: string): MadePage => {
    if (page !== undefined) return page
    throw noName(message, { progress })
  }
  /** The response with a key; while the host catches up, it is made for each request. */
  const kept = async (key: string, make: () => NamesResponse): Promise<NamesResponse> =>
    await explorer.store.afterLong(() =>
      progress.isCatchingUp ? explorer.store.consistent(make) : responses.cachedBy(key, make),
    )
  const feed = (
    of: 'names' | 'inscriptions',
    make: (pages: Pages, base: string) => string,
  ): RequestHandler => {
    return async (request, response) => {
      const pages = await load()
      const options = { headers: FEED_HEADERS, type: ATOM_TYPE, dependsOn: [dependency.all] }
      const stored = await kept(`feed:${of}`, () => textResponse(make(pages, publicUrl), options))
      if (of === 'names') stored.stamp(progress)
      await sendStored({ request, response, stored })
    }
  }
  const ordinals = (pages: Pages, common: Common, after: string | undefined): MadePage =>
    pages.ordinalsPage(explorer, common, after === undefined ? undefined : parseOutpoint(after))
  return Router()
    .get('/', async (request, response) => {
      const pages = await load()
      const view = await chain()
      // Open pages request it every few seconds.
      const stored = await kept(`page:home:${view.height}:${view.lag}`, () => {
        const { html, dependsOn } = pages.homePage(explorer)
        return written(pages, { html: pages.withChain(html, view), dependsOn })
      })
      stored.stamp(progress)
      await sendStored({ request, response, stored })
    })
    .get(
      '/names',
      page(namesQuery, (pages, { query: { order, prefix, after } }) =>
        order === 'name'
          ? pages.namesInOrderPage(explorer, namesAfter(prefix, after))
          : pages.newestNamesPage(explorer, placeOf(pages, after)),
      ),
    )
    .get(
      '/tree',
      page(
        treeQuery,
        (pages, { query: { prefix } }) =>
          found(pages.treePage(explorer, prefix), `nobody has mined ${prefix}`),
        badName,
      ),
    )
    .get(
      '/charts',
      page(z.object(), (pages) => pages.chartsPage(explorer)),
    )
    .get(
      '/inscriptions',
      page(afterQuery, (pages, { query: { after } }) =>
        pages.newestInscriptionsPage(explorer, placeOf(pages, after)),
      ),
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
      page(stepQuery, (pages, { params, query: { from } }) => {
        const name = validate(nameSchema, params.name, badName)
        const mined = pages.namePage(explorer, name, from)
        if (mined !== undefined) return mined
        requireCaughtUp(progress)
        return found(pages.freeNamePage(explorer, name), `${name} cannot be mined in this tree`)
      }),
    )
    .get(
      '/ordinal/:outpoint',
      page(stepQuery, (pages, { params: { outpoint = '' }, query: { from } }) =>
        held(
          pages.ordinalPage(explorer, parseOutpoint(outpoint), from),
          'this store does not hold this output',
        ),
      ),
    )
    .get(
      '/address/:address',
      page(afterQuery, (pages, { params: { address = '' }, query: { after } }) => {
        const owner = decodeAddress(address)
        if (owner === undefined) throw new AnswerError('BAD_BODY', 'this is not a P2PKH address')
        return ordinals(pages, { kind: 'address', address, owner }, after)
      }),
    )
    .get(
      '/type',
      page(typeQuery, (pages, { query: { type, after } }) => ordinals(pages, { kind: 'type', type }, after)),
    )
    .get(
      '/map',
      page(mapQuery, (pages, { query: { key, value, after } }) =>
        ordinals(pages, { kind: 'map', key, value }, after),
      ),
    )
    .get(
      '/parent/:outpoint',
      page(afterQuery, (pages, { params: { outpoint = '' }, query: { after } }) =>
        ordinals(pages, { kind: 'parent', parent: parseOutpoint(outpoint) }, after),
      ),
    )
    .get(
      '/tx/:txid',
      page(outputQuery, (pages, { params, query: { after } }) =>
        held(
          pages.transactionPage(explorer, readTxid(params), after),
          'this store does not have this transaction',
        ),
      ),
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

/** For pages not about names, which exist or not, whatever the host's progress. */
function held(page: MadePage | undefined, message: string): MadePage {
  if (page === undefined) throw new AnswerError('NOT_FOUND', message)
  return page
}

const afterQuery = z.object({ after: z.string().max(120).optional() })
const namesQuery = z.object({
  order: z.enum(['newest', 'name']).default('newest'),
  prefix: domain.default(''),
  after: z.string().max(255).optional(),
})
const treeQuery = z.object({ prefix: domain.default('') })
const stepQuery = z.object({ from: position() })
const outputQuery = z.object({ after: position() })
const typeQuery = afterQuery.extend({ type: z.string().max(255).regex(MEDIA_TYPE) })
const mapQuery = afterQuery.extend({ key: z.string().max(1000), value: z.string().max(1000) })
const searchQuery = z.object({ q: z.string().max(1000).default('') })

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
