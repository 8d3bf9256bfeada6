import { parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../backend/src/protocol/profile.js'
import { type HeaderStore, OwnHeaders } from './own-headers.js'
import { escaped, type SiteConfig, type SiteQuestion, type SiteVerdict, textPage } from './site-page.js'
import { VerifiedFetchError } from './verified-error.js'
import { createVerifiedFetch, type VerifiedFetch } from './verified-fetch.js'
import type { Headers as BlockHeaders } from './verify-transactions.js'

/**
 * A fetch for what a site shows.
 *
 * @param options.store Where its block headers are kept; in memory by default. They are verified again, as pages of the site can
 * write to whatever its worker keeps. Verified parts of the tree would not be, and so stay in memory.
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
 * Makes a service worker answer every request of its pages with verified bytes, and none with others: what cannot be verified
 * is an error, and requests to other origins fail. The site is all that its origin shows, as each name has storage of its own.
 *
 * @param options.site The name or outpoint at the root of the origin.
 * @returns The answer to a request, which the worker sends.
 */
export function serveVerifiedSite(
  worker: WorkerScope,
  options: { site: string; fetch: VerifiedFetch },
): (request: Request) => Promise<Response> {
  const { origin } = worker.location
  const answer = (request: Request): Promise<Response> => siteResponse(request, { ...options, origin })
  worker.addEventListener('install', (event) => event.waitUntil(worker.skipWaiting()))
  worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()))
  worker.addEventListener('fetch', (event) => event.respondWith(answer(event.request)))
  worker.addEventListener('message', (event) => {
    const [port] = event.ports
    if (port === undefined || !isQuestion(event.data)) return
    event.waitUntil(verdictOn(event.data.path, options).then((verdict) => port.postMessage(verdict)))
  })
  return answer
}

function isQuestion(data: unknown): data is SiteQuestion {
  return typeof data === 'object' && data !== null && 'path' in data && typeof data.path === 'string'
}

async function verdictOn(
  path: string,
  { site, fetch }: { site: string; fetch: VerifiedFetch },
): Promise<SiteVerdict> {
  try {
    const { resource, stream } = resourceAt(path, site)
    const { status, verification } = await fetch(resource, { method: 'HEAD', stream })
    const { verified, tip } = verification
    return { kind: 'verified', status, verified, ...(tip && { tip }) }
  } catch (error) {
    if (!(error instanceof VerifiedFetchError)) return { kind: 'failed', message: String(error) }
    const { message, code, step } = error
    return { kind: 'failed', message, code, step }
  }
}

/** Inscriptions refer to each other so, on whatever host they are. */
const CONTENT = /^\/content\/(?=[0-9a-f]{64}(?:[_.:%/?]|$))/i
const STREAM = /^\/svc\/gateway\/stream\/(?=[0-9a-f]{64})/i

/** What a path of the site means. */
function resourceAt(path: string, site: string): { resource: string; stream: boolean } {
  if (CONTENT.test(path)) return { resource: path.replace(CONTENT, ''), stream: false }
  if (STREAM.test(path)) return { resource: path.replace(STREAM, ''), stream: true }
  return { resource: site + path, stream: false }
}

async function siteResponse(
  request: Request,
  { site, fetch, origin }: { site: string; fetch: VerifiedFetch; origin: string },
): Promise<Response> {
  const url = new URL(request.url)
  const { method, headers, signal, mode } = request
  if (url.origin !== origin) return Response.error()
  if (method !== 'GET' && method !== 'HEAD') return new Response(null, { status: 405 })
  const path = url.pathname + url.search
  try {
    const { resource, stream } = resourceAt(path, site)
    const response = await fetch(resource, { method, headers, signal, stream })
    if (response.status === 404 && mode === 'navigate')
      return errorPage(
        404,
        'Nothing is here',
        'The directories of this site were verified, and have no such path.',
      )
    // Whose it is, nobody knows: it does not get the storage of this site.
    const isOfAnybody = CONTENT.test(path) || STREAM.test(path)
    const policy = isOfAnybody ? `${SANDBOX}; ${SITE_POLICY}` : SITE_POLICY
    const all = new Headers(response.headers)
    for (const [name, value] of Object.entries(siteHeaders(policy))) all.set(name, value)
    return new Response(response.body, { status: response.status, headers: all })
  } catch (error) {
    if (signal.aborted) return Response.error()
    const { step, message } =
      error instanceof VerifiedFetchError ? error : { step: undefined, message: String(error) }
    const title = step === undefined ? 'Not verified' : `Not verified: ${step}`
    return errorPage(502, title, message)
  }
}

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

/** Whatever a page of the site loads, it loads through the worker. */
const SITE_POLICY =
  "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
/** A page that only says something. */
const TEXT_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

function siteHeaders(policy: string): Record<string, string> {
  return {
    'Content-Security-Policy': policy,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    // A page that a browser had kept would be shown without its worker being asked.
    'Cache-Control': 'no-store',
  }
}

function errorPage(status: number, title: string, text: string): Response {
  const html = textPage(title, `<h1>${escaped(title)}</h1><p id="error">${escaped(text)}</p>`)
  const headers = { ...siteHeaders(TEXT_POLICY), 'Content-Type': 'text/html; charset=utf-8' }
  return new Response(html, { status, headers })
}
