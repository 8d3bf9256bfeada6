import cors from 'cors'
import type { RequestHandler } from 'express'

/** Every header of `spec/http.md`, of the page for mining and of the log that a page of another origin may read. */
export const EXPOSED_HEADERS = [
  'Accept-Encoding',
  'Accept-Ranges',
  'Cache-Control',
  'Content-Length',
  'Content-Range',
  'Content-Security-Policy',
  'Content-Type',
  'Cross-Origin-Opener-Policy',
  'Cross-Origin-Resource-Policy',
  'ETag',
  'RateLimit',
  'RateLimit-Policy',
  'Referrer-Policy',
  'Retry-After',
  'X-Content-Type-Options',
  'X-Map',
  'X-Ord-Seq',
  'X-Origin',
  'X-Outpoint',
  'X-Parent',
  'X-Request-Id',
].join()

/** For how long a browser may keep what it was told of a route, in seconds: a day. */
const PREFLIGHT_AGE = 86_400

/** Lets pages of every origin ask, and read what is answered; a preflight is answered here. */
export function crossOrigin(): RequestHandler {
  return cors({ exposedHeaders: EXPOSED_HEADERS, maxAge: PREFLIGHT_AGE })
}
