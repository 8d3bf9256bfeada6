import { unicodeEscaped } from '../../../backend/src/protocol/bytes.js'

/**
 * Characters that a terminal or a log viewer may interpret or hide: control characters (including DEL and C1, which JSON
 * does not escape), bidirectional and other invisible format characters, lone surrogates, private-use and unassigned ones,
 * and line and paragraph separators (Unicode general categories C, Zl and Zp).
 */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu

/**
 * Escapes untrusted text to one safe line: such a character becomes `\u001b`. The meaning of JSON in one line does not change:
 * it has these characters in strings only, with the same escapes.
 */
export function escapeControlChars(text: string): string {
  return text.replace(UNSAFE, (character) => unicodeEscaped(character))
}

/** The same for trusted line breaks, as in a stack. */
export function escapeControlCharsInLines(text: string): string {
  return text.split('\n').map(escapeControlChars).join('\n')
}

/** The first characters of a text, at most `most`, followed by its length if it was longer. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Not half of a pair.
  const kept = text.slice(0, most).replace(/[\ud800-\udbff]$/, '')
  return `${kept}… (${text.length} characters)`
}
