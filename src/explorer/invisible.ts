/**
 * What a reader does not see, or what changes how the text around it is shown: control characters, marks of direction, joiners
 * and spaces of no width, and halves of pairs. Line feeds and tabs stay.
 */
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

/** A text with its invisible characters written out, as `\u{202e}`. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`)
}
