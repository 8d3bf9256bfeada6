import { readStrictUtf8, utf8 } from './bytes.js'

/** A content type is under 256 bytes (`docs/spec/protocol.md`, Scripts). */
const MAX_MEDIA_TYPE = 255

/** The type of content whose type is unknown. */
export const UNTYPED = 'application/octet-stream'

/**
 * The media type in a push: 1 to 255 bytes of valid UTF-8, else none. Nothing more is checked: the gateway decides what
 * goes into an HTTP header.
 */
export function readMediaType(push: Uint8Array): string | undefined {
  return push.length === 0 || push.length > MAX_MEDIA_TYPE ? undefined : readStrictUtf8(push)
}

/** Type and subtype, each a token (RFC 9110 5.6.2 and 8.3.1). */
const ESSENCE = /^[\t ]*([!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+)[\t ]*(?:;|$)/
/** What may be asked for: one media type, perhaps with parameters, of which every browser reads the essence. */
export const MEDIA_TYPE = /^(?!\*\/\*(?:;|$))[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+(?:;[ -+\--~]*)?$/
/** Control characters, which no header field carries. Bytes beyond ASCII are legal (RFC 9110 5.5), as in the name of a file. */
const NO_FIELD_VALUE = /[^\t\x20-\x7e\u0080-\uffff]/
/** A part that means nothing (Fetch, "extract a MIME type"). */
const ANY = '*/*'

/** The media type without parameters, in lower case. {@link UNTYPED} if not every browser reads the text as the same type. */
export function essenceOf(contentType: string): string {
  return servedEssence(contentType) ?? UNTYPED
}

/** A content type as a header value for APIs: a character for each inscribed byte. */
export function typeField(contentType: string): string {
  return String.fromCharCode(...utf8(contentType))
}

/** Whether a text is a media type to every reader, of under 256 bytes. */
export function isMediaType(text: string): boolean {
  return servedEssence(text) !== undefined && utf8(text).length <= MAX_MEDIA_TYPE
}

/**
 * The essence that every browser reads in a `Content-Type` (Fetch, "extract a MIME type"): the same one in all parts that have any.
 * Undefined if no part has one, if two differ (some browsers take the first, others the last), or if no header can carry it.
 */
export function servedEssence(contentType: string): string | undefined {
  if (NO_FIELD_VALUE.test(contentType)) return undefined
  const [essence, ...others] = new Set(partsOf(contentType).flatMap((part) => essenceOfPart(part) ?? []))
  return others.length === 0 ? essence : undefined
}

/** All essences that a reader may find in a `Content-Type`: some readers also split inside quoted strings. Security depends on all. */
export function possibleEssences(contentType: string): string[] {
  return [...partsOf(contentType), ...contentType.split(',')].flatMap((part) => essenceOfPart(part) ?? [])
}

/** Types of text, by their essence in lower case. Scripts and XML are text under other names. */
export const TEXT_TYPES = /^text\/|[/+]xml$|[/+]json$|\/(?:x-)?(?:java|ecma)script$/
/** A charset parameter. A match inside a quoted string only has the effect that none is added. */
const CHARSET = /;\s*charset\s*=/i

/** Whether text was compressed before it was published: none begins with the signature of gzip (RFC 1952 2.3.1). */
export function isGzip(body: Uint8Array): boolean {
  return body[0] === 0x1f && body[1] === 0x8b && body[2] === 8
}

/** Text whose type states its character set; XML states it in its first line, and JSON is UTF-8. */
const SAYS_CHARSET = /^[\t ]*text\/(?!xml|xsl)/i

/**
 * The type of a site's text. Adds UTF-8 if no character set is stated and the bytes are valid UTF-8: browsers would else assume
 * the character set of the reader's country.
 */
export function textType(contentType: string, body: Uint8Array): string {
  const isUnsaid = SAYS_CHARSET.test(contentType) && !CHARSET.test(contentType) && !contentType.includes(',')
  return isUnsaid && readStrictUtf8(body) !== undefined
    ? `${contentType.replace(/[\s;]+$/, '')}; charset=utf-8`
    : contentType
}

function essenceOfPart(part: string): string | undefined {
  const essence = ESSENCE.exec(part)?.[1]?.toLowerCase()
  return essence === ANY ? undefined : essence
}

/** Splits at commas outside quoted strings (Fetch, "get, decode, and split"). An unclosed string goes on to the end. */
function partsOf(value: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let at = 0; at < value.length; at++) {
    const sign = value[at]
    if (sign === '"') isQuoted = !isQuoted
    else if (isQuoted && sign === '\\') at++
    else if (!isQuoted && sign === ',') {
      parts.push(value.slice(start, at))
      start = at + 1
    }
  }
  return [...parts, value.slice(start)]
}
