import { escapeInvisible } from '../../backend/src/protocol/invisible.js'

// Strangers' text and numbers, as pages show them.

/** How many characters of a stranger's text are shown in a line, and in a block. */
export const LINE = 80
export const BLOCK = 600

/** A stranger's text for display: its start, with invisible and direction-changing characters escaped. */
export function shown(text: string, most = LINE): string {
  // Cut before it is escaped: a text may have megabytes.
  const start = text.length > most ? `${text.slice(0, most).trimEnd()}…` : text
  return escapeInvisible(start)
}

const UNSAFE = /["&<]/
const ENTITIES: Record<string, string> = { '"': '&quot;', '&': '&amp;', '<': '&lt;' }

/** A text as HTML or XML, in an element or in an attribute with double quotes. */
export function escaped(text: string): string {
  return UNSAFE.test(text) ? text.replace(/["&<]/g, (character) => ENTITIES[character] ?? '') : text
}

/** The start and the end of a long word, such as a txid or an outpoint. */
export function shortened(word: string, { start = 8, end = 6 } = {}): string {
  return word.length <= start + end + 1 ? word : `${word.slice(0, start)}…${word.slice(-end)}`
}

export function shortOutpoint(outpoint: string): string {
  const [txid = '', vout = ''] = outpoint.split('_')
  return `${shortened(txid, { start: 8, end: 4 })}_${vout}`
}

/** A whole number with commas. `Intl` takes ten times as long. */
export function count(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

/** A number of bytes, such as `1.5 MB`. */
export function byteSize(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1]
  const digits = unit === 0 || value >= 10 ? 0 : 1
  return `${value.toFixed(digits)} ${UNITS[unit]}`
}

const SPANS: [unit: string, seconds: number, below: number][] = [
  ['second', 1, 120],
  ['minute', 60, 120],
  ['hour', 3600, 48],
  ['day', 86_400, 730],
]

/** A duration in words: each unit is used up to two of the next one. */
export function lasting(seconds: number): string {
  if (seconds < 1.5) return 'about a second'
  const [unit, length] = SPANS.find(([, each, below]) => seconds / each < below) ?? ['year', 31_557_600]
  return `about ${counted(Math.round(seconds / length), unit)}`
}

/** A time, to the minute, in UTC. */
export function moment(milliseconds: number): string {
  const text = new Date(milliseconds).toISOString()
  return `${text.slice(0, 10)} ${text.slice(11, 16)}`
}

/** Whether a text has no lone surrogates, which would become another text in a URL. */
export function isWellFormed(text: string): boolean {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)
}

const ERROR_TITLES: Record<number, string> = {
  400: 'This address is invalid.',
  401: 'Only the operator may do this.',
  404: 'There is nothing here.',
  409: 'Somebody else was first.',
  412: 'The content has changed.',
  413: 'The request is too large.',
  415: 'This content type is not supported here.',
  416: 'The requested range is beyond the end.',
  429: 'Too many requests.',
  451: 'The operator has blocked this.',
  500: 'Something went wrong here.',
  503: 'Not ready yet.',
}

export function errorTitle({ status, code }: { status: number; code: string }): string {
  if (code === 'ORIGIN_PENDING') return 'Its history is being fetched.'
  if (code === 'NOT_CAUGHT_UP') return 'Not known here yet.'
  return ERROR_TITLES[status] ?? 'This did not work.'
}

/** The text as a sentence: with a capital, unless it begins with a name, and a full stop. */
export function sentence(text: string): string {
  const start = / is not claimed$/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?…]$/.test(start) ? start : `${start}.`
}
