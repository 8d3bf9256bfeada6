import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { HEADER_CHECKPOINTS } from '../../backend/src/protocol/header-checkpoints.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../backend/src/protocol/profile.js'
import { field } from './bounded-fetch.js'
import { type HeaderStore, OwnHeaders } from './own-headers.js'
import { askStore, type SegmentStore } from './segment-store.js'
import {
  escaped,
  type SiteConfig,
  type SiteQuestion,
  type SiteVerdict,
  siteConfigIn,
  textPage,
} from './site-page.js'
import { VerifiedFetchError } from './verified-error.js'
import { createVerifiedFetch, type VerifiedFetch } from './verified-fetch.js'
import type { Headers as BlockHeaders } from './verify-transactions.js'

/**
 * A fetch for the content of a site.
 *
 * @param options.store Keeps its block headers; they are in memory by default. Headers are verified again, as pages of the site
 * can write to any store of its worker. Verified parts of the tree would not be, and so stay in memory.
 */
export function siteFetch(config: SiteConfig, { store }: { store?: HeaderStore } = {}): VerifiedFetch {
  const { profile = 'mainnet', gateways, tree, headers, tipPolicy, requireProofs } = config
  const { genesis, ...terms } = tree ?? {}
  const deployment = deploymentOf(PROFILES[profile], {
    ...terms,
    ...(genesis !== undefined && { genesis: parseOutpoint(genesis) }),
  })
  const chainTracker: BlockHeaders =
    headers === 'none' ? 'scripts only' : new OwnHeaders({ ...headers, ...(store && { store }) })
  return createVerifiedFetch({
    ...{ gateways, profile, chainTracker },
    ...(deployment && { deployment }),
    ...(tipPolicy && { tipPolicy }),
    ...(requireProofs && { requireProofs }),
  })
}

/** What a worker shows at the root of its origin. */
export interface VerifiedSite {
  /** A name or an outpoint. */
  site: string
  fetch: VerifiedFetch
}

/** What a worker shows, which may change while it runs. */
export interface SiteSource {
  /** @throws the reason why nothing can be shown. */
  current(): Promise<VerifiedSite>
  /** Looks for a change now; undefined if there is none. */
  renewed(): Promise<VerifiedSite | undefined>
}

/** How old a configuration may be before the host is asked for a new one, in milliseconds. */
const MAX_CONFIG_AGE = 60_000
/** The key for the guarantees of a site. Pages of the site can write there, but can only make the worker refuse. */
const CONFIG_KEY = 'site/config'

/**
 * The site by the configuration of its host, which is fetched whenever the worker starts and may change while it runs: other
 * gateways and sources of headers, and more guarantees, but no fewer ({@link refusalOf}).
 */
export class HostedSite implements SiteSource {
  private shown: Promise<VerifiedSite & { config: SiteConfig }> | undefined
  private fetchedAt = Number.NEGATIVE_INFINITY
  private renewing: Promise<VerifiedSite | undefined> | undefined

  /**
   * @param options.page Fetches the page of the host, which is trusted. Pages of the site must not be able to answer for it.
   * @param options.store Keeps the last configuration, to compare with.
   */
  constructor(
    private readonly options: {
      page: () => Promise<string>
      store: SegmentStore
      fetchFor: (config: SiteConfig) => VerifiedFetch
    },
  ) {}

  async current(): Promise<VerifiedSite> {
    if (this.shown === undefined) {
      this.shown = this.load()
      // The next request tries again.
      this.shown.catch(() => {
        this.shown = undefined
      })
    } else if (monotonic() - this.fetchedAt > MAX_CONFIG_AGE) {
      // Nobody waits for this. If it fails, the loaded configuration stays.
      void this.renewed().catch(() => undefined)
    }
    return await this.shown
  }

  async renewed(): Promise<VerifiedSite | undefined> {
    // A page may have a hundred files that fail at the same time.
    this.renewing ??= this.renew().finally(() => {
      this.renewing = undefined
    })
    return await this.renewing
  }

  private async renew(): Promise<VerifiedSite | undefined> {
    const before = await this.shown
    const now = await this.load()
    if (before !== undefined && JSON.stringify(before.config) === JSON.stringify(now.config)) return undefined
    this.shown = Promise.resolve(now)
    return now
  }

  private async load(): Promise<VerifiedSite & { config: SiteConfig }> {
    const { page, store, fetchFor } = this.options
    this.fetchedAt = monotonic()
    const config = siteConfigIn(await page())
    const kept = await askStore(store, () => store.get(CONFIG_KEY)).catch(() => undefined)
    const refusal = kept && refusalOf(configIn(kept), config)
    if (refusal !== undefined)
      throw new TypeError(
        `the configuration of this site has changed: ${refusal}; to accept it, delete the data of this site`,
      )
    const fetch = fetchFor(config)
    const text = JSON.stringify(config)
    if (kept !== text) await askStore(store, () => store.put(CONFIG_KEY, text)).catch(() => undefined)
    return { site: config.site, fetch, config }
  }
}

function configIn(text: string): SiteConfig | undefined {
  try {
    return JSON.parse(text) as SiteConfig
  } catch {
    // Damaged: treated as missing.
    return undefined
  }
}

const POLICIES = ['any', 'majority', 'all']

/**
 * Why a site must not go on with another configuration: it is another site, or has fewer guarantees. Gateways and sources of
 * headers may change, as neither is trusted. Undefined if it may go on.
 */
export function refusalOf(before: SiteConfig | undefined, after: SiteConfig): string | undefined {
  if (before === undefined) return undefined
  if (before.site !== after.site) return 'it shows another site'
  const [old, now] = [guaranteesOf(before), guaranteesOf(after)]
  if (old.tree !== now.tree) return 'it has another tree'
  if (old.network !== now.network && old.network !== 'none') return 'its block headers are of another network'
  if (old.policy > now.policy) return 'fewer gateways have to agree'
  if (before.requireProofs === true && after.requireProofs !== true) return 'it no longer requires proofs'
  if (old.network === 'none') return undefined
  if (old.height > now.height) return 'its block headers are checked from a lower block on'
  const isOther = old.height === now.height && old.hash !== now.hash
  return isOther ? 'its block headers lead to another block' : undefined
}

function guaranteesOf({ profile = 'mainnet', tree, headers, tipPolicy = 'any' }: SiteConfig) {
  const members = Object.entries(tree ?? {}).sort(([one], [other]) => (one < other ? -1 : 1))
  const network = headers === 'none' ? 'none' : (headers.network ?? 'main')
  const known = network === 'none' ? undefined : HEADER_CHECKPOINTS[network]
  const { height = 0, hash = '' } = (headers !== 'none' && headers.checkpoint) || (known ?? {})
  return {
    ...{ tree: JSON.stringify([profile, members]), network, policy: POLICIES.indexOf(tipPolicy) },
    ...{ height, hash: hash.toLowerCase() },
  }
}

/** The part of a service worker's scope that is used: its types come with those of browsers. */
export interface WorkerScope {
  readonly location: { readonly origin: string }
  readonly clients: { claim(): Promise<void> }
  skipWaiting(): Promise<void>
  addEventListener(type: 'install' | 'activate', listener: (event: ExtendableEvent) => void): void
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void
}
interface ExtendableEvent {
  waitUntil(work: Promise<unknown>): void
}
interface FetchEvent {
  readonly request: Request
  respondWith(response: Promise<Response> | Response): void
}
interface MessageEvent extends ExtendableEvent {
  readonly data: unknown
  readonly ports: readonly { postMessage(message: SiteVerdict): void }[]
}

/**
 * Makes a service worker answer every request of its pages with verified bytes only: what cannot be verified is an error, and
 * requests to other origins fail. An origin shows a single site, as each name has its own storage.
 *
 * @param source The site at the root of the origin: always the same, or by the configuration of a host.
 * @returns The answer to a request, which the worker sends.
 */
export function serveVerifiedSite(
  worker: WorkerScope,
  source: VerifiedSite | SiteSource,
): (request: Request) => Promise<Response> {
  const { origin } = worker.location
  const shown: SiteSource =
    'current' in source ? source : { current: async () => source, renewed: async () => undefined }
  const answer = (request: Request): Promise<Response> => siteResponse(request, { source: shown, origin })
  worker.addEventListener('install', (event) => event.waitUntil(worker.skipWaiting()))
  worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()))
  worker.addEventListener('fetch', (event) => event.respondWith(answer(event.request)))
  worker.addEventListener('message', (event) => {
    const [port] = event.ports
    if (port === undefined || !isQuestion(event.data)) return
    event.waitUntil(verdictOn(event.data.path, shown).then((verdict) => port.postMessage(verdict)))
  })
  return answer
}

function isQuestion(data: unknown): data is SiteQuestion {
  return typeof field(data, 'path') === 'string'
}

/**
 * Runs a fetch; if it fails, once more with a changed configuration, if the host has one. The bytes are verified in either case.
 */
async function fetched<Result>(
  source: SiteSource,
  run: (site: VerifiedSite) => Promise<Result>,
): Promise<Result> {
  const site = await source.current()
  try {
    return await run(site)
  } catch (error) {
    if (!(error instanceof VerifiedFetchError)) throw error
    const renewed = await source.renewed().catch(() => undefined)
    if (renewed === undefined) throw error
    return await run(renewed)
  }
}

async function verdictOn(path: string, source: SiteSource): Promise<SiteVerdict> {
  try {
    const { status, verification } = await fetched(source, async ({ site, fetch }) => {
      const { resource, ...how } = resourceAt(path, site)
      return await fetch(resource, { method: 'HEAD', ...how })
    })
    const { verified, tip } = verification
    return { kind: 'verified', status, verified, ...(tip && { tip }) }
  } catch (error) {
    if (!(error instanceof VerifiedFetchError)) return { kind: 'failed', message: messageOf(error) }
    const { message, code, step } = error
    return { kind: 'failed', message, code, step }
  }
}

/** How inscriptions refer to each other on any host. */
const CONTENT = /^\/content\/(?=[0-9a-f]{64}(?:[_.i:%/?]|$))/i
const STREAM = /^\/svc\/gateway\/stream\/(?=[0-9a-f]{64})/i

/** The resource at a path of the site. The site's own paths follow the rules of hosts, such as redirects. */
function resourceAt(path: string, site: string): { resource: string; stream?: boolean; site?: boolean } {
  if (CONTENT.test(path)) return { resource: path.replace(CONTENT, '') }
  if (STREAM.test(path)) return { resource: path.replace(STREAM, ''), stream: true }
  return { resource: site + path, site: true }
}

async function siteResponse(
  request: Request,
  { source, origin }: { source: SiteSource; origin: string },
): Promise<Response> {
  const url = new URL(request.url)
  const { method, headers, signal, mode } = request
  if (url.origin !== origin) return Response.error()
  if (method !== 'GET' && method !== 'HEAD') return new Response(null, { status: 405 })
  const path = url.pathname + url.search
  try {
    const response = await fetched(source, async ({ site, fetch }) => {
      const { resource, ...how } = resourceAt(path, site)
      return await fetch(resource, { method, headers, signal, ...how })
    })
    // A site's own page for missing paths has a tag.
    if (response.status === 404 && mode === 'navigate' && !response.headers.has('ETag'))
      return errorPage(404, 'Not found', 'The verified directories of this site have no such path.')
    // Anybody may have made this, so it does not get the storage of this site.
    const isOfAnybody = CONTENT.test(path) || STREAM.test(path)
    const policy = isOfAnybody ? `${SANDBOX}; ${SITE_POLICY}` : SITE_POLICY
    const all = new Headers(response.headers)
    for (const [name, value] of Object.entries(siteHeaders(policy))) all.set(name, value)
    // The response has no URL, so a browser could not resolve a relative location.
    const location = all.get('Location')
    if (location !== null) all.set('Location', new URL(location, url).href)
    return new Response(response.body, { status: response.status, headers: all })
  } catch (error) {
    if (signal.aborted) return Response.error()
    const { step, message } =
      error instanceof VerifiedFetchError ? error : { step: undefined, message: messageOf(error) }
    const title = step === undefined ? 'Not verified' : `Not verified: ${step}`
    return errorPage(502, title, message)
  }
}

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

/** Everything that a page of the site loads comes through the worker. */
const SITE_POLICY =
  "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
/** For pages of plain text. */
const TEXT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

function siteHeaders(policy: string): Record<string, string> {
  return {
    'Content-Security-Policy': policy,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    // A page in the browser's cache would be shown without asking its worker.
    'Cache-Control': 'no-store',
  }
}

function errorPage(status: number, title: string, text: string): Response {
  const html = textPage(title, `<h1>${escaped(title)}</h1><p id="error">${escaped(text)}</p>`)
  const headers = { ...siteHeaders(TEXT_POLICY), 'Content-Type': 'text/html; charset=utf-8' }
  return new Response(html, { status, headers })
}
