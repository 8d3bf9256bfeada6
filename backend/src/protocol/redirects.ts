import { percentDecoded, readStrictUtf8 } from './bytes.js'
import { CodedError } from './coded-error.js'

/** The file in the root directory of a site with redirects for paths that the site does not have. */
export const REDIRECTS_FILE = '_redirects'
/** The longest one, in bytes (Web _redirects File Specification, Max File Size). */
export const MAX_REDIRECTS_BYTES = 64 * 1024
/** The longest target of a rule: placeholders may repeat parts of a path. */
const MAX_LOCATION = 8 * 1024

/** The file of redirects cannot be read. The message is for the author of the site. */
export class RedirectsError extends CodedError {
  override readonly name = 'RedirectsError'
  readonly code = 'BAD_REDIRECTS'

  constructor(reason: string) {
    super(`could not parse _redirects: ${reason}`)
  }
}

const MOVED = [301, 302, 303, 307, 308] as const
const SHOWN = [200, 404, 410, 451] as const
export type MovedStatus = (typeof MOVED)[number]
export type ShownStatus = (typeof SHOWN)[number]

/** Where a rule leads: to another place, or to another file of the site, which is shown with a status. */
export type Redirection =
  | { status: MovedStatus; location: string }
  | { status: ShownStatus; segments: string[] }

/** A part of a pattern or of a target: literal text, or a placeholder for a part of a path. */
type Part = string | { placeholder: string }

/** One rule: `from to [status]`. */
export interface RedirectRule {
  /** Its line in the file, from 1. */
  line: number
  /** The segments of a path, decoded. */
  from: Part[]
  /** If the rule ends with `*`: how the segment after those begins. Anything may follow it. */
  splat: string | undefined
  /** As in a `Location`. */
  to: Part[]
  status: MovedStatus | ShownStatus
}

const BYTE_ORDER_MARK = /^\ufeff/
/** A field of a rule, between white space. A line may end with CR LF. */
const FIELD = /[^ \t\r]+/g
const SPLAT = 'splat'
const STATUSES = new Map([...MOVED, ...SHOWN].map((status) => [String(status), status]))
/** The name of a placeholder: none is longer, so that finding one in a target takes a bounded time. */
const NAME = /^[\w-]{1,64}$/
const PLACEHOLDER = /:([\w-]{1,64})/g
/** Scheme and authority of a target elsewhere; no placeholder counts in these. */
const ELSEWHERE = /^https?:\/\/[^/?#\\]+/i

/**
 * Reads a file of redirects (Web _redirects File Specification, specs.ipfs.tech): a rule in each line, in order.
 *
 * @throws RedirectsError for more than 64 KiB, for bytes that are no UTF-8, and for a line that is no rule: then no rule counts.
 */
export function readRedirects(body: Uint8Array): RedirectRule[] {
  if (body.length > MAX_REDIRECTS_BYTES) throw redirectsTooLarge()
  const text = readStrictUtf8(body)
  if (text === undefined) throw new RedirectsError('it is not UTF-8')
  const rules: RedirectRule[] = []
  let line = 0
  for (const written of text.replace(BYTE_ORDER_MARK, '').split('\n')) {
    line++
    const fields = written.match(FIELD)
    if (fields === null || fields[0].startsWith('#')) continue
    try {
      rules.push(ruleOf(fields, line))
    } catch (error) {
      if (!(error instanceof RedirectsError)) throw error
      throw new RedirectsError(`line ${line}: ${error.message.replace(/^[^:]*: /, '')}`)
    }
  }
  return rules
}

export function redirectsTooLarge(): RedirectsError {
  return new RedirectsError(`redirects file size cannot exceed ${MAX_REDIRECTS_BYTES} bytes`)
}

function ruleOf([from = '', to, status = '301', ...others]: string[], line: number): RedirectRule {
  if (to === undefined || others.length > 0) throw new RedirectsError("a rule is 'from to [status]'")
  if (status.endsWith('!')) throw new RedirectsError('forced redirects (or "shadowing") are not supported')
  const known = STATUSES.get(status)
  if (known === undefined) throw new RedirectsError(`status ${quoted(status)} is not supported`)
  const { parts, splat, names } = patternOf(from)
  return { line, from: parts, splat, to: targetOf(to, names), status: known }
}

function patternOf(from: string): {
  parts: Part[]
  splat: string | undefined
  /** The names of its placeholders. */
  names: ReadonlySet<string>
} {
  if (!from.startsWith('/')) throw new RedirectsError(`the path ${quoted(from)} must begin with '/'`)
  const star = from.indexOf('*')
  if (star !== -1 && star !== from.length - 1)
    throw new RedirectsError(`an asterisk in ${quoted(from)} can only be at its end, and only once`)
  const segments = from.slice(1).split('/')
  // A slash at the end means nothing.
  const last = segments.pop() ?? ''
  const splat = star === -1 ? undefined : decoded(last.slice(0, -1))
  if (splat === undefined && last !== '') segments.push(last)
  const names = new Set<string>()
  if (splat !== undefined) names.add(SPLAT)
  const parts = segments.map((segment): Part => {
    if (!segment.startsWith(':')) return decoded(segment)
    const placeholder = segment.slice(1)
    if (!NAME.test(placeholder)) throw new RedirectsError(`${quoted(segment)} is not a valid placeholder`)
    if (names.has(placeholder)) throw new RedirectsError(`the placeholder ${quoted(segment)} occurs twice`)
    names.add(placeholder)
    return { placeholder }
  })
  return { parts, splat, names }
}

function targetOf(to: string, names: ReadonlySet<string>): Part[] {
  const [origin = ''] = ELSEWHERE.exec(to) ?? []
  const isPath = /^\/(?![/\\])/.test(to)
  if (!isPath && !(origin !== '' && URL.canParse(origin)))
    throw new RedirectsError(`the target ${quoted(to)} is neither a path nor an http or https URL`)
  const parts: Part[] = [origin && new URL(origin).origin]
  const rest = to.slice(origin.length)
  // Most rules have no placeholders, and a file may have ten thousand rules.
  if (names.size === 0 || !rest.includes(':'))
    return origin === '' ? [safeText(rest)] : [...parts, safeText(rest)]
  let end = 0
  for (const { 0: written, 1: name = '', index } of rest.matchAll(PLACEHOLDER)) {
    // `:yearly` is the placeholder `year` and two letters, unless there is a placeholder `yearly`.
    let length = name.length
    while (length > 0 && !names.has(name.slice(0, length))) length--
    if (length === 0) continue
    parts.push(safeText(rest.slice(end, index)), { placeholder: name.slice(0, length) })
    end = index + written.length - (name.length - length)
  }
  return [...parts, safeText(rest.slice(end))].filter((part) => part !== '')
}

const UNSAFE = /[^\x21-\x7e]/

/** Text as a header carries it: everything but printable ASCII escaped. */
function safeText(text: string): string {
  return UNSAFE.test(text) ? text.replace(/[^\x21-\x7e]+/g, encodeURIComponent) : text
}

function decoded(segment: string): string {
  return segment.includes('%') ? (percentDecoded(segment) ?? segment) : segment
}

/** An untrusted text as messages show it. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}

/**
 * The redirection by the first rule that a path matches; undefined if there is none. A path with a segment `.` or `..` matches
 * none: put into a target, it would lead out of it.
 *
 * @param segments The segments of the path, decoded. A trailing slash makes an empty last one.
 * @throws RedirectsError if the rule needs another server, or its target is too long.
 */
export function redirectionOf(
  rules: readonly RedirectRule[],
  segments: readonly string[],
): Redirection | undefined {
  if (segments.some((segment) => segment === '.' || segment === '..')) return undefined
  const rule = rules.find((each) => matches(each, segments))
  if (rule === undefined) return undefined
  const location = expanded(rule, segments)
  const { status, line } = rule
  if (isMoved(status)) return { status, location }
  if (!location.startsWith('/'))
    throw new RedirectsError(`line ${line}: a target with status ${status} has to be a path of this site`)
  const path = location.replace(/[?#].*$/, '')
  return { status, segments: path.slice(1).split('/').map(decoded) }
}

function isMoved(status: RedirectRule['status']): status is MovedStatus {
  return MOVED.some((each) => each === status)
}

function matches({ from, splat }: RedirectRule, segments: readonly string[]): boolean {
  const isClosed = segments.at(-1) === ''
  const count = splat === undefined && isClosed ? segments.length - 1 : segments.length
  if (splat === undefined ? count !== from.length : count <= from.length) return false
  if (splat !== undefined && segments[from.length]?.startsWith(splat) !== true) return false
  return from.every((part, at) => (typeof part === 'string' ? part === segments[at] : segments[at] !== ''))
}

/** The target with the path's parts filled in: each segment is escaped on its own, so that it stays one. */
function expanded({ from, splat, to, line }: RedirectRule, segments: readonly string[]): string {
  const values = new Map<string, string>()
  for (const [at, part] of from.entries())
    if (typeof part !== 'string') values.set(part.placeholder, escapedSegment(segments[at] ?? ''))
  if (splat !== undefined) {
    const [first = '', ...others] = segments.slice(from.length)
    values.set(SPLAT, [first.slice(splat.length), ...others].map(escapedSegment).join('/'))
  }
  let location = ''
  for (const part of to) {
    location += typeof part === 'string' ? part : (values.get(part.placeholder) ?? '')
    if (location.length > MAX_LOCATION)
      throw new RedirectsError(`line ${line}: its target has more than ${MAX_LOCATION} characters`)
  }
  // A path may add slashes, with which a browser would read the name of another host behind the first one.
  return location.startsWith('/') ? location.replace(/^[/\\]+/, '/') : location
}

function escapedSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll('%40', '@')
}

/**
 * Adds the query of a request to a location, and overrides its parameters (Web _redirects File Specification, Query Parameters).
 *
 * @param query As sent, with its question mark; empty for none.
 */
export function withQuery(location: string, query: string): string {
  const [, path = '', own, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(location) ?? []
  if (query === '') return location
  if (own === undefined) return path + query + fragment
  const asked = new Set(new URLSearchParams(query).keys())
  const kept = own.split('&').filter((pair) => pair !== '' && !asked.has(nameOf(pair)))
  return `${path}?${[...kept, query.slice(1)].join('&')}${fragment}`
}

function nameOf(pair: string): string {
  return [...new URLSearchParams(pair).keys()][0] ?? ''
}
