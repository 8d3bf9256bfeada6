/**
 * Characters that a reader does not see, or that change how the text around them is shown: control and format characters (marks
 * of direction among them), joiners and spaces of no width, and halves of pairs. Line feeds and tabs stay.
 */
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** A text with its invisible characters written out, as `\u{202e}`. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}
