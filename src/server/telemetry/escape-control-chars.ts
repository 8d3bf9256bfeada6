/**
 * What a terminal or a viewer of logs may take for more than text, or not show at all: control characters (DEL and C1
 * among them, which JSON lets through), those that turn the direction of writing, invisible ones, lone surrogates,
 * private and unassigned ones, and the separators of lines and paragraphs (Unicode, general categories C, Zl and Zp).
 */
const HARMFUL = /[\p{C}\p{Zl}\p{Zp}]/gu

/**
 * Text that strangers have a say in, as one line without harmful characters: each stands there as `\u001b`. JSON in one
 * line means the same afterwards: it has these characters in strings only, and the same escapes for them.
 */
export function escapeControlChars(text: string): string {
  return text.replace(HARMFUL, escaped)
}

/** The same for text of several lines, as a stack is: whoever wrote it may break lines. */
export function escapeControlCharsInLines(text: string): string {
  return text.split('\n').map(escapeControlChars).join('\n')
}

function escaped(character: string): string {
  let text = ''
  for (let at = 0; at < character.length; at++)
    text += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  return text
}

/** At most so many characters of a text, and how many it had. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text
  // Not half of a pair.
  const kept = text.slice(0, most).replace(/[\ud800-\udbff]$/, '')
  return `${kept}… (${text.length} characters)`
}
