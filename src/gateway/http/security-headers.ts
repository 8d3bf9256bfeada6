import cors from 'cors'
import type { Request, RequestHandler } from 'express'
import { LRUCache } from 'lru-cache'
import { MIMEType } from 'whatwg-mimetype'
import {
  possibleEssences,
  servedEssence,
  TEXT_TYPES,
  typeField,
  UNTYPED,
} from '../../../backend/src/protocol/media-type.js'
import { AnswerError } from './errors.js'
import { HEADERS } from './operation.js'

const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'

/** The `Content-Security-Policy` of active content, including the operator's directives, in one header. */
export function sandboxPolicy(additions?: string): string {
  return additions === undefined ? SANDBOX : `${SANDBOX}; ${additions}`
}

/**
 * Content comes from strangers: browsers must not sniff another type, any site may embed it, and active content runs in a
 * separate origin (`docs/spec/http.md`, Content).
 */
export function securityHeaders(
  type: { active: false } | { active: boolean; policy: string | undefined },
): [name: string, value: string][] {
  const policy = type.active ? type.policy : undefined
  return [
    ['X-Content-Type-Options', 'nosniff'],
    ['Cross-Origin-Resource-Policy', 'cross-origin'],
    ...(policy === undefined ? [] : [['Content-Security-Policy', policy] satisfies [string, string]]),
  ]
}

/**
 * Refuses to serve a service worker: a stranger's would intercept every request to the origin.
 * @throws AnswerError
 */
export function refuseServiceWorker({ headers }: Request): void {
  if (headers['service-worker'] === 'script')
    throw new AnswerError('BAD_BODY', 'content must not be used as a service worker')
}

export const refuseServiceWorkers: RequestHandler = (request, _response, next) => {
  refuseServiceWorker(request)
  next()
}

/** Headers of answers that are for browsers alone, or for redirects and tokens. */
const NOT_EXPOSED = /^(?:Access-Control-|Location$|WWW-Authenticate$)/
/** All headers of `docs/spec/http.md`, of the mining page and of the log that pages of other origins may read. */
export const EXPOSED_HEADERS = [
  ...Object.keys(HEADERS).filter((name) => !NOT_EXPOSED.test(name)),
  ...['Allow', 'Content-Encoding', 'Content-Type', 'Link', 'X-Log-Position', 'X-Name'],
]
  .sort()
  .join()

/** How long a browser may cache a preflight, in seconds: a day. */
const PREFLIGHT_AGE = 86_400

/**
 * Lets pages of all origins send requests and read the answers (CORS), even if this host is in a private network (WICG
 * Private Network Access); answers preflights.
 */
export function crossOrigin(): RequestHandler {
  const preflight = cors({ exposedHeaders: EXPOSED_HEADERS, maxAge: PREFLIGHT_AGE })
  return (request, response, next) => {
    response.setHeader('Access-Control-Allow-Private-Network', 'true')
    if (isPreflight(request)) {
      preflight(request, response, next)
      return
    }
    // The same headers as `cors` sets, in a fraction of the time.
    response.setHeader('Access-Control-Allow-Origin', '*')
    response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS)
    next()
  }
}

/**
 * Whether a browser asks for permission (Fetch, CORS-preflight request), or a client sends `OPTIONS *` (RFC 9110 9.3.7).
 */
export function isPreflight({ method, url, headers }: Request): boolean {
  return method === 'OPTIONS' && (headers['access-control-request-method'] !== undefined || url === '*')
}

interface ServedType {
  value: string
  active: boolean
  /** Whether a browser shows it as a page whose scripts run: HTML and XML, including SVG. */
  document: boolean
  /** Whether it is text, which may be compressed or declare its character set. */
  text: boolean
}

/** Cached, as parsing a type takes longer than the rest of a response, and there are few types. */
const known = new LRUCache<string, ServedType>({ max: 1000 })

/**
 * The `Content-Type` for a stranger's text: as inscribed if all browsers read the same type in it, otherwise
 * `application/octet-stream`. Parsed as browsers do, so that the type that is judged is the type that runs.
 */
export function servedType(inscribed: string): ServedType {
  const type = known.get(inscribed) ?? readType(inscribed)
  known.set(inscribed, type)
  return type
}

function readType(inscribed: string): ServedType {
  const essence = servedEssence(inscribed)
  const mime = essence === undefined ? null : MIMEType.parse(essence)
  if (mime === null) return { value: UNTYPED, active: false, document: false, text: false }
  const active = possibleEssences(inscribed).some(isActive)
  const document = mime.isHTML() || mime.isXML()
  return { value: typeField(inscribed), active, document, text: TEXT_TYPES.test(mime.essence) }
}

function isActive(essence: string): boolean {
  const mime = MIMEType.parse(essence)
  if (mime === null) return false
  if (mime.isHTML() || mime.isXML() || mime.isJavaScript()) return true
  // A part has its own type: browsers open x-mixed-replace and mixed, and mail and page archives. XSL style sheets run
  // too, under a name that isXML (which covers +xml) does not know.
  return mime.type === 'multipart' || mime.type === 'message' || mime.essence === 'text/xsl'
}
