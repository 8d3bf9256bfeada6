import { cut, escapeControlChars } from './escape-control-chars.js'

/** The most characters of a text that are shown, and that are looked at: strangers decide how long some are. */
const MAX_SHOWN = 300
const MAX_READ = 2000

/** A URL up to a space, a quote or a bracket, without the punctuation of the sentence after it. */
const URLS = /\b[a-z][a-z\d+.-]{1,20}:\/\/[^\s"'<>`]*[^\s"'<>`.,:;)\]}]/gi

/**
 * An error text for anyone to read: one line without characters that a terminal would interpret, of bounded length. Of URLs,
 * only the origin is left, as the rest may contain keys and passwords.
 */
export function publicText(text: string): string {
  // A URL that is cut could end in a password that looks like a host.
  const read = text.length > MAX_READ ? `${text.slice(0, MAX_READ).replace(/\S*$/, '')} …` : text
  return cut(escapeControlChars(read.replace(URLS, originOf)), MAX_SHOWN)
}

function originOf(url: string): string {
  if (!URL.canParse(url)) return `${url.slice(0, url.indexOf(':'))}://…`
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
