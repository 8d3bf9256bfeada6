import { unicodeEscaped } from '../../../backend/src/protocol/bytes.js'

/**
 * Characters that a terminal or a log viewer may interpret or hide: control characters (including DEL and C1, which JSON
 * does not escape), bidirectional and other invisible format characters, lone surrogates, private-use and unassigned ones,
 * and line and paragraph separators (Unicode general categories C, Zl and Zp).
 */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu

/**
 * Escapes untrusted text to one safe line: unsafe characters become `\u001b` and the like. JSON in one line keeps its meaning:
 * it has such characters in strings only, with the same escapes.
 */
export function escapeControlChars(text: string): string {
  return text.replace(UNSAFE, (character) => unicodeEscaped(character))
}

/** As {@link escapeControlChars}, but keeps line breaks, for trusted ones such as in a stack. */
export function escapeControlCharsInLines(text: string): string {
  return text.split('\n').map(escapeControlChars).join('\n')
}

/** The same value with each of its texts, and the names of fields, replaced; without undefined fields. */
export function withTexts<Value>(value: Value, replaced: (text: string) => string): Value
export function withTexts(value: unknown, replaced: (text: string) => string): unknown {
  if (typeof value === 'string') return replaced(value)
  if (Array.isArray(value)) return value.map((each) => withTexts(each, replaced))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(fields.map(([name, each]) => [replaced(name), withTexts(each, replaced)]))
}

/** The first characters of a text, at most `most`, followed by its length if it was longer. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Do not keep half of a surrogate pair.
  const kept = text.slice(0, most).replace(/[\ud800-\udbff]$/, '')
  return `${kept}… (${text.length} characters)`
}

/** The most characters of a text that are shown, and that are scanned: strangers control the length of some. */
const MAX_SHOWN = 300
const MAX_READ = 2000

/** A URL up to a space, a quote or a bracket, without trailing punctuation. */
const URLS = /\b[a-z][a-z\d+.-]{1,20}:\/\/[^\s"'<>`]*[^\s"'<>`.,:;)\]}]/gi

/**
 * An error text for anyone to read: one line of bounded length, without characters that a terminal would interpret. URLs are
 * cut to their origin, as the rest may contain keys and passwords.
 */
export function publicText(text: string): string {
  // A truncated URL could end in a password that looks like a host.
  const read = text.length > MAX_READ ? `${text.slice(0, MAX_READ).replace(/\S*$/, '')} …` : text
  return cut(escapeControlChars(read.replace(URLS, originOf)), MAX_SHOWN)
}

function originOf(url: string): string {
  if (!URL.canParse(url)) return `${url.slice(0, url.indexOf(':'))}://…`
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
