/** A strong entity tag (RFC 9110 8.8.3) from the SHA-256 of a body, hex. */
export function entityTag(sha256: string): string {
  return `"${sha256}"`
}
