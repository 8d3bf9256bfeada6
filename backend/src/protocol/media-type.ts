import { readStrictUtf8, utf8 } from './bytes.js'

/** protocol.md 3: a content type is under 256 bytes. */
const MAX_MEDIA_TYPE = 255

/** What content of unknown type is served as. */
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
/**
 * What no header field carries as it is, and the comma, after which browsers read another type (Fetch, extract a MIME type). Bytes beyond ASCII are legal (RFC
 * 9110 5.5), but have no meaning in a type, and Node would send others than were inscribed.
 */
const NO_FIELD_VALUE = /[^\t\x20-\x7e]|,/

/** Whether a text can be sent as a `Content-Type` as it is, and means one type at most to every browser. */
export function isFieldValue(text: string): boolean {
  return !NO_FIELD_VALUE.test(text)
}

/**
 * The media type without parameters, in lower case: what content is served as. Text that is no legal field value is
 * served as {@link UNTYPED}, and so is that here.
 */
export function essenceOf(contentType: string): string {
  return legalEssence(contentType) ?? UNTYPED
}

/** Whether a text is a media type to every reader: a legal field value of under 256 bytes. */
export function isMediaType(text: string): boolean {
  return legalEssence(text) !== undefined && utf8(text).length <= MAX_MEDIA_TYPE
}

function legalEssence(contentType: string): string | undefined {
  const essence = isFieldValue(contentType) ? ESSENCE.exec(contentType)?.[1] : undefined
  return essence?.toLowerCase()
}
