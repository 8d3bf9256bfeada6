import { CACHE } from '../../gateway/http/caching.js'
import type { HeaderName } from '../../gateway/http/operation.js'

/** What a page of the host may do beyond showing itself and sending its forms to this host. */
interface PagePermissions {
  /** Sources of `connect-src` beside the host. */
  connect?: readonly string[]
  /** Whether its scripts may compile WebAssembly, and start workers. */
  wasm?: boolean
  /** Whether it may frame content of this host, which runs in a sandbox. */
  frames?: boolean
  /** Whether other pages of this host may frame it: an error may be where a preview was expected. */
  isFramed?: boolean
}

/** The `Content-Security-Policy` of a page: no inline script or style, and nothing from another host. */
export function pagePolicy({
  connect = [],
  wasm = false,
  frames = false,
  isFramed = false,
}: PagePermissions = {}): string {
  return [
    "default-src 'none'",
    `script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ''}`,
    ...(wasm ? ["worker-src 'self'"] : []),
    "style-src 'self'",
    ["connect-src 'self'", ...connect].join(' '),
    "img-src 'self'",
    ...(frames ? ["media-src 'self'", "frame-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'self'",
    `frame-ancestors ${isFramed ? "'self'" : "'none'"}`,
  ].join('; ')
}

/**
 * The headers of a page. It shares its origin with strangers' content: no other page may frame it, or keep a reference to it
 * after opening it. Nor does a browser open it in a sandbox, as it does with pages that content opens.
 */
export function pageHeaders(permissions?: PagePermissions) {
  return {
    'Cache-Control': CACHE.revalidate,
    'Content-Security-Policy': pagePolicy(permissions),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  } satisfies Partial<Record<HeaderName, string>>
}
