import type { RequestHandler } from 'express'
import { z } from 'zod'
import { percentDecoded } from '../../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import { CACHE, type Exchange } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { CONTENT_HEADERS, described, type Routes, SERVICE_WORKER } from '../http/operation.js'
import { refuseServiceWorkers, securityHeaders, servedType } from '../http/security-headers.js'
import { sendHead } from '../http/send-body.js'

/** The largest preview (`docs/spec/http.md`, Content). */
const MAX_PREVIEW_BYTES = 1024 * 1024

const HTML = 'text/html; charset=utf-8'

/**
 * Previews of an inscription (`docs/spec/http.md`, Content), below each of the prefixes: `GET /preview/{base64}` as HTML,
 * `POST /preview` with the type of the request. The bytes are sent back with the security headers of content of that type,
 * and are not stored.
 *
 * Paths have a limit (414 beyond): longer HTML has to be posted.
 */
export function previewRoutes({ policy, bodies }: Pick<GatewayParts, 'policy' | 'bodies'>): Routes {
  return routes({
    previewHtml: [refuseServiceWorkers, previewPath(policy)],
    preview: [refuseServiceWorkers, bodies.raw({ limit: MAX_PREVIEW_BYTES }), previewBody(policy)],
  })
}

function previewPath(policy: string): RequestHandler {
  return (request, response) => {
    const body = decodeBase64(request.path.slice('/preview/'.length))
    sendPreview({ request, response, contentType: HTML, body, policy })
  }
}

function previewBody(policy: string): RequestHandler {
  return (request, response) => {
    const body: unknown = request.body
    if (!(body instanceof Uint8Array)) throw nothingToShow()
    // Node decodes each byte to a character.
    const contentType = Buffer.from(request.get('Content-Type') ?? UNTYPED, 'latin1').toString('utf8')
    sendPreview({ request, response, contentType, body, policy })
  }
}

function sendPreview(exchange: Exchange & { contentType: string; body: Uint8Array; policy: string }): void {
  const { request, response, contentType, body, policy } = exchange
  if (body.length === 0) throw nothingToShow()
  if (body.length > MAX_PREVIEW_BYTES) throw new AnswerError('TOO_LARGE', 'a preview may have at most 1 MiB')
  const { active, value } = servedType(contentType)
  const headers = [['Cache-Control', CACHE.none] as const, ...securityHeaders({ active, policy })]
  const representation = { headers, contentType: value, length: body.length }
  if (sendHead({ request, response, representation }) !== undefined) response.end(body)
}

/** Either alphabet of RFC 4648 (4 and 5), not mixed, at least one byte; padding is optional. */
const BASE64 = new RegExp(
  `^(?:${['[A-Za-z0-9+/]', '[A-Za-z0-9_-]'].map((letter) => `(?:${letter}{4})*(?:${letter}{4}|${letter}{2}(?:==)?|${letter}{3}=?)`).join('|')})$`,
)

/** Decodes the end of a path as base64, after its percent-escapes. */
function decodeBase64(escaped: string): Uint8Array {
  const text = percentDecoded(escaped)
  if (text === undefined)
    throw new AnswerError('BAD_BODY', 'the path after /preview/ has an invalid percent-escape')
  if (text !== '' && !BASE64.test(text))
    throw new AnswerError('BAD_BODY', 'the path after /preview/ must be base64 or base64url')
  return Buffer.from(text, 'base64')
}

function nothingToShow(): AnswerError {
  return new AnswerError('BAD_BODY', 'there is nothing to preview')
}

const routes = described({
  tag: 'preview',
  operations: {
    previewHtml: {
      route: 'GET /preview/{html}',
      // Base64 may contain slashes.
      pattern: /^\/preview(?:\/|$)/,
      summary: 'Previews HTML as it would be served once inscribed. Nothing is stored',
      params: z.object({
        html: z
          .string()
          .regex(BASE64)
          .describe('The HTML as base64 or base64url, with or without padding. Slashes need no escape.'),
      }),
      headers: SERVICE_WORKER,
      answer: { description: 'The HTML, sandboxed.', headers: CONTENT_HEADERS, types: ['text/html'] },
      errors: {
        BAD_BODY: 'The path does not end with valid base64, or a service worker is being installed.',
        '414 TOO_LARGE': 'The path is longer than the operator allows.',
        '431 TOO_LARGE': 'The path and the headers together are longer than the operator allows.',
      },
    },
    preview: {
      route: 'POST /preview',
      summary: 'Previews a body as it would be served once inscribed. Nothing is stored',
      headers: SERVICE_WORKER,
      body: { description: 'Up to 1 MiB, with its `Content-Type`.', types: ['*/*'] },
      answer: { description: 'The body, sandboxed like content.', headers: CONTENT_HEADERS, types: ['*/*'] },
      errors: {
        BAD_BODY:
          'The body is empty or does not match its `Content-Encoding`, or a service worker is being installed.',
        TOO_LARGE: 'The body is over 1 MiB.',
      },
    },
  },
})
