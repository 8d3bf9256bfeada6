import type { Request, Response } from 'express'
import { PreconditionFailedError } from './errors.js'

/** A strong entity tag (RFC 9110 8.8.3) from the SHA-256 of a body, hex. */
export function entityTag(sha256: string): string {
  return `"${sha256}"`
}

/**
 * Evaluates the preconditions of a GET or HEAD, in the order of RFC 9110 13.2.2, against the strong entity tag of what
 * would be sent, and sends 304 where the client has it already. What else the request says does not count, as its
 * `Cache-Control`: that is for caches. Nor do dates, as nothing here has one; `If-Range` belongs to the range.
 *
 * @returns Whether the answer is over.
 * @throws PreconditionFailedError where `If-Match` has another tag.
 */
export function endedByPrecondition({
  request,
  response,
  tag,
}: {
  request: Request
  response: Response
  tag: string
}): boolean {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
  // Strong comparison (13.1.1): a weak tag never matches.
  if (ifMatch !== undefined && !matches(ifMatch, (each) => each === tag)) throw new PreconditionFailedError()
  // Weak comparison (13.1.2).
  if (ifNoneMatch === undefined || !matches(ifNoneMatch, (each) => each === tag || each === `W/${tag}`))
    return false
  response.status(304).end()
  return true
}

/** A tag of a list. A comma may be in one, so the list is not split at commas. */
const TAG = /(?:W\/)?"[^"]*"/g

/** @param header `*`, which stands for any tag, or a list of tags. */
function matches(header: string, isMatch: (tag: string) => boolean): boolean {
  return header.trim() === '*' || (header.match(TAG)?.some(isMatch) ?? false)
}
