import { hash } from 'node:crypto'
import type { Request, Response } from 'express'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import type { OrdinalStep } from '../../../backend/src/graph/records.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { AnswerError } from './errors.js'

export interface Exchange {
  request: Request
  response: Response
}

/** `Cache-Control` values (`docs/spec/http.md`). */
export const CACHE = {
  /** The bytes of an outpoint never change. */
  immutable: 'public, max-age=31536000, immutable',
  /** A step that is not mined may still be replaced. */
  unproven: 'public, max-age=60',
  /** The answer may change at any time: a name is claimed, a node is spent, an ordinal moves. */
  revalidate: 'no-cache',
  /** For answers made from the request itself, and for the operator's. */
  none: 'no-store',
} as const

/** `Cache-Control` for an ordinal at a numbered step: immutable once the step is mined. */
export function stepCache(store: GraphReads, { output }: OrdinalStep): string {
  const height = store.transactions.heightOf(output.outpoint.txid)
  return height === undefined ? CACHE.unproven : CACHE.immutable
}

/**
 * A strong entity tag (RFC 9110 8.8.3) of everything that a 304 omits: a body, by its SHA-256 in hex, and its served type. The
 * same bytes inscribed with another type are another representation.
 */
export function entityTag(digest: string, contentType: string): string {
  return `"${hash('sha256', `${digest} ${contentType}`)}"`
}

/** The entity tag of a body. */
export function tagOf(body: Uint8Array, contentType: string): string {
  return entityTag(sha256(body).toString('hex'), contentType)
}

/** A digest as in header fields (RFC 9530). @param sha256 In hex. */
export function digestField(sha256: string): string {
  return `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`
}

/**
 * Evaluates the preconditions of a GET or HEAD, in the order of RFC 9110 13.2.2, against the strong entity tag of the
 * response, and sends 304 if the client has it already. The request's `Cache-Control` is for caches and ignored here. Dates
 * are ignored too, as no response has one. `If-Range` belongs to the range.
 *
 * @returns Whether the response has ended.
 * @throws AnswerError if `If-Match` does not name the tag.
 */
export function endedByPrecondition({ request, response, tag }: Exchange & { tag: string }): boolean {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
  // Strong comparison (13.1.1): a weak tag never matches.
  if (ifMatch !== undefined && !matches(ifMatch, (each) => each === tag))
    throw new AnswerError('PRECONDITION_FAILED', 'the entity tag does not match If-Match')
  // Weak comparison (13.1.2).
  if (ifNoneMatch === undefined || !matches(ifNoneMatch, (each) => each === tag || each === `W/${tag}`))
    return false
  response.status(304).end()
  return true
}

/** A tag in a list. Tags may contain commas, so the list is not split at commas. */
const TAG = /(?:W\/)?"[^"]*"/g

/** @param header `*`, which matches any tag, or a list of tags. */
function matches(header: string, isMatch: (tag: string) => boolean): boolean {
  return header.trim() === '*' || (header.match(TAG)?.some(isMatch) ?? false)
}
