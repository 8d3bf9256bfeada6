import type { Request } from 'express'
import { VERSION } from '../../../backend/src/graph/service-metadata.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Site } from '../../explorer/index.js'
import type { TreeProgress } from '../http/as-of.js'
import { CACHE, type Exchange, endedByPrecondition, tagOf } from '../http/caching.js'
import type { ErrorPage } from '../http/error-response.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import type { HeaderName } from '../http/operation.js'
import { type HeaderFor, HTML_TYPE, sendText, setHeaders } from '../http/send-body.js'

// Loaded with the first page, as a start needs none.
export const loadExplorer = () => import('../../explorer/index.js')

type Explorer = Awaited<ReturnType<typeof loadExplorer>>

export type RenderPage = (render: (explorer: Explorer & { site: Site }) => string) => Promise<string>

/** See `GatewayOptions` and `ServerOptions`. */
interface SiteOptions {
  gatewayHost?: string | undefined
  publicUrl?: string | undefined
  port?: () => number | undefined
  hasStatus?: boolean
  images?: unknown
}

export function siteOf(parts: GatewayParts, options: SiteOptions): Site {
  const { profile, network, deployment, path, progress } = parts
  return {
    network: profile.name === 'local' ? 'local' : network,
    genesis: deployment && formatOutpoint(deployment.genesis),
    get gatewayHost() {
      return gatewayAuthority(options)
    },
    get catchingUp() {
      return progress.isCatchingUp ? progress.progress() : undefined
    },
    namesPrefix: profile.namesPrefixes[0] ?? '',
    gatewayPrefix: profile.gatewayPrefixes[0] ?? '',
    version: VERSION,
    path,
    hasStatus: options.hasStatus ?? false,
    hasImages: options.images !== undefined,
  }
}

/** The domain of name hosts with the port that clients use; undefined if that is unknown. */
function gatewayAuthority({ gatewayHost, publicUrl, port: listened }: SiteOptions): string | undefined {
  if (gatewayHost === undefined) return undefined
  const port = publicUrl === undefined ? listened?.() : new URL(publicUrl).port
  if (port === undefined) return undefined
  return port === '' ? gatewayHost : `${gatewayHost}:${port}`
}

export function pageRenderer(site: Site, progress: TreeProgress): RenderPage {
  return async (render) => {
    const explorer = await loadExplorer()
    return explorer.withAsOf(render({ ...explorer, site }), progress.asOf)
  }
}

export function errorPages(render: RenderPage, hostsOf: PageHosts): ErrorPage {
  const headers = { ...pageHeaders(hostsOf, { isFramed: true }), 'Cache-Control': 'no-store' }
  return async (error) => ({
    headers,
    html: await render(({ errorPage, site }) => errorPage({ site, error })),
  })
}

/**
 * Sends a page made for this request. Preconditions apply only to successful answers (RFC 9110 13.2.1): a page that says that
 * nothing was found has no entity tag.
 */
export function sendPage(
  exchange: Exchange & { html: string; headers: Readonly<Record<string, HeaderFor[1]>> },
): void {
  const { request, response, html, headers } = exchange
  setHeaders({ request, response, headers: Object.entries(headers) })
  if (response.statusCode === 200) {
    const tag = tagOf(Buffer.from(html, 'utf8'), HTML_TYPE)
    response.setHeader('ETag', tag)
    if (endedByPrecondition({ request, response, tag })) return
  }
  sendText(response, html, HTML_TYPE)
}

/** What a page of the host may do, besides showing itself and sending its forms to this host. */
interface PagePermissions {
  /** Sources of `connect-src` besides the host. */
  connect?: readonly string[]
  /** Whether its scripts may compile WebAssembly, and start workers. */
  wasm?: boolean
  /** Sources of frames besides this host, all of whose content runs in a sandbox. */
  frames?: () => readonly string[]
  /** Whether other pages of this host may frame it: an error may replace an expected preview. */
  isFramed?: boolean
}

/** The hosts by which a browser may know the service, with ports and the path of the service. */
export type PageHosts = (request: Request) => string[]

/** Folders with the scripts and the style sheet of the service's pages, and no one else's. */
const FOLDERS = ['/explorer/', '/mine/']
/** A host that a policy can name (CSP3 2.3.1), with a path; not an IPv6 address. */
const HOST = /^[a-z\d.-]+(?::\d+)?(?:\/[\w.~/-]*)?$/

/**
 * The sources of scripts and styles: folders of the host, as `'self'` would cover `/content/`, where strangers inscribe scripts.
 * Only if no policy can name the host, it is `'self'`.
 */
function ownSources(hosts: readonly string[]): string {
  const sources = hosts
    .filter((host) => HOST.test(host))
    .flatMap((host) => FOLDERS.map((folder) => host + folder))
  return sources.length === 0 ? "'self'" : sources.join(' ')
}

/** The `Content-Security-Policy` of a page: no inline scripts or styles, and nothing from other hosts. */
function pagePolicy(
  own: string,
  { connect = [], wasm = false, frames, isFramed = false }: PagePermissions,
): string {
  return [
    "default-src 'none'",
    `script-src ${own}${wasm ? " 'wasm-unsafe-eval'" : ''}`,
    ...(wasm ? [`worker-src ${own}`] : []),
    `style-src ${own}`,
    ["connect-src 'self'", ...connect].join(' '),
    "img-src 'self'",
    ...(frames ? ["media-src 'self'", ["frame-src 'self'", ...frames()].join(' ')] : []),
    "base-uri 'none'",
    "form-action 'self'",
    `frame-ancestors ${isFramed ? "'self'" : "'none'"}`,
  ].join('; ')
}

/**
 * The headers of a page. It shares its origin with strangers' content, so no other page may frame it, or keep a reference to it
 * after opening it. Browsers do not open it sandboxed either, as they do with other pages that content opens.
 */
export function pageHeaders(hostsOf: PageHosts, permissions: PagePermissions = {}) {
  return {
    'Cache-Control': CACHE.revalidate,
    'Content-Security-Policy': (request: Request): string =>
      pagePolicy(ownSources(hostsOf(request)), permissions),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  } satisfies Partial<Record<HeaderName, HeaderFor[1]>>
}
