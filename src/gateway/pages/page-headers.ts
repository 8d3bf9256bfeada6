import type { Request } from 'express'
import { CACHE } from '../http/caching.js'
import type { HeaderName } from '../http/operation.js'
import type { HeaderFor } from '../http/send-body.js'

/** What a page of the host may do beyond showing itself and sending its forms to this host. */
interface PagePermissions {
  /** Sources of `connect-src` beside the host. */
  connect?: readonly string[]
  /** Whether its scripts may compile WebAssembly, and start workers. */
  wasm?: boolean
  /** Sources of what it may frame beside content of this host, all of which runs in a sandbox. */
  frames?: () => readonly string[]
  /** Whether other pages of this host may frame it: an error may be where a preview was expected. */
  isFramed?: boolean
}

/** Where a browser may know the service that it asks: hosts, with ports and the path that the service is below. */
export type PageHosts = (request: Request) => string[]

/** Where the service has the scripts and the style sheet of its pages, and nothing of anybody else. */
const FOLDERS = ['/explorer/', '/mine/']
/** A host that a policy can name (CSP3 2.3.1), and a path: no address of IPv6. */
const HOST = /^[a-z\d.-]+(?::\d+)?(?:\/[\w.~/-]*)?$/

/**
 * The sources of scripts and styles: folders of the host, as `'self'` would cover `/content/`, where strangers inscribe scripts.
 * For a host that no policy can name, it is that.
 */
function ownSources(hosts: readonly string[]): string {
  const sources = hosts
    .filter((host) => HOST.test(host))
    .flatMap((host) => FOLDERS.map((folder) => host + folder))
  return sources.length === 0 ? "'self'" : sources.join(' ')
}

/** The `Content-Security-Policy` of a page: no inline script or style, and nothing from another host. */
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
 * The headers of a page. It shares its origin with strangers' content: no other page may frame it, or keep a reference to it
 * after opening it. Nor does a browser open it in a sandbox, as it does with pages that content opens.
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
