import { readStrictUtf8 } from './bytes.js'
import { CodedError } from './coded-error.js'
import { REDIRECTS_FILE, type RedirectRule, redirectionOf, type ShownStatus } from './redirects.js'

/** A body that is no map of a directory. */
export class DirectoryError extends CodedError {
  override readonly name = 'DirectoryError'
  readonly code = 'BAD_DIRECTORY'
}

/**
 * Reads the map of a directory (service.md 2.4): from names, each a single path segment, to pointers, which are not checked
 * here. If a name occurs several times, the last one counts, as in JSON.parse. One by one, for callers that yield in between:
 * a body of a mebibyte may have a hundred thousand, and `JSON.parse` cannot be interrupted.
 *
 * @throws DirectoryError (`BAD_DIRECTORY`) if the body is not valid UTF-8 or not a JSON object, or has a value that is not
 * a string or a name with `/`: that may be known at its end only.
 */
export function* directoryEntries(body: Uint8Array): Generator<[name: string, pointer: string]> {
  const text = readStrictUtf8(body)
  if (text === undefined) throw new DirectoryError('it is not UTF-8')
  let at = 0
  const skip = (): void => {
    WHITE_SPACE.lastIndex = at
    WHITE_SPACE.test(text)
    at = WHITE_SPACE.lastIndex
  }
  const takes = (sign: string): boolean => {
    skip()
    if (text[at] !== sign) return false
    at++
    return true
  }
  /** The string at this place, unescaped. @param otherwise What anything else is refused as. */
  const string = (otherwise = NOT_JSON): string => {
    skip()
    if (text[at] !== '"') throw refusal(otherwise)
    let end = text.indexOf('"', at + 1)
    while (end !== -1 && isEscaped(text, end, at)) end = text.indexOf('"', end + 1)
    if (end === -1) throw new DirectoryError(NOT_JSON)
    const plain = text.slice(at + 1, end)
    at = end + 1
    return UNPLAIN.test(plain) ? unescaped(plain) : plain
  }
  /** The error for anything unexpected: another value, or not JSON. */
  const refusal = (message: string): DirectoryError =>
    new DirectoryError(OTHER_VALUE.test(text[at] ?? '') ? message : NOT_JSON)

  if (!takes('{')) throw refusal('it is not a JSON object')
  if (!takes('}')) {
    do {
      const name = string()
      if (!takes(':')) throw new DirectoryError(NOT_JSON)
      const pointer = string('a value in it is not a string')
      if (name.includes('/')) throw new DirectoryError('a name in it has a slash')
      yield [name, pointer]
    } while (takes(','))
    if (!takes('}')) throw new DirectoryError(NOT_JSON)
  }
  skip()
  if (at !== text.length) throw new DirectoryError(NOT_JSON)
}

const NOT_JSON = 'it is not JSON'
/** What a value of another kind starts with. */
const OTHER_VALUE = /["[{tfn\d-]/
const WHITE_SPACE = /[ \t\n\r]*/y
/** What a string cannot hold, or not unescaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON refuses these in strings.
const UNPLAIN = /[\\\x00-\x1f]/

function isEscaped(text: string, quote: number, start: number): boolean {
  let before = quote - 1
  while (before > start && text[before] === '\\') before--
  return (quote - before) % 2 === 0
}

function unescaped(plain: string): string {
  try {
    return JSON.parse(`"${plain}"`)
  } catch (cause) {
    throw new DirectoryError(NOT_JSON, { cause })
  }
}

/** The entries with a meaning of their own (`service.md` 2.4). */
const DEFAULT = '.'
const INDEX = 'index.html'
/** What a site shows where it has nothing. */
const NOT_FOUND_PAGE = '404.html'
/** What a path may leave out. */
const EXTENSION = '.html'

/** The files that a walk through directories meets. What cannot be opened or loaded throws, as does one step too many. */
export interface Directories<File> {
  isDirectory(file: File): boolean
  open(directory: File): ReadonlyMap<string, string>
  /** What an entry of a directory points at. @param isLast Whether nothing follows it on the path. */
  load(directory: File, pointer: string, isLast: boolean): File
  /** @throws RedirectsError */
  redirects(file: File): readonly RedirectRule[]
}

export interface PathQuestion<File> {
  root: File
  /** After the root, decoded. A trailing slash leaves an empty one. */
  segments: readonly string[]
  /** Whether a directory comes as inscribed. */
  raw: boolean
}

export type Found<File> =
  | { kind: 'file'; file: File; status: ShownStatus }
  /** The `index.html` of the directory that the path names. */
  | { kind: 'index'; load: () => File }
  /** Another place, as in a `Location`. */
  | { kind: 'moved'; status: number; location: string }
  | { kind: 'missing'; reason: string }

const NO_ENTRY = missing('a directory on this path does not have this entry')
const NO_DIRECTORY = missing('an entry in the middle of this path is not a directory')
const NO_INDEX = missing('this directory has neither this entry nor an index')
const NO_DEFAULT = missing('this directory has no default entry')

/** Follows a path below `/content/` (`service.md` 4.2). */
export function contentPath<File>(
  walk: Directories<File>,
  { root, segments, raw }: PathQuestion<File>,
): Found<File> {
  // Every path below a file leads to the file: there is no map to look the segments up in.
  if (!walk.isDirectory(root)) return file(root)
  // The slash alone is an empty path.
  if (segments.length <= 1 && (segments[0] ?? '') === '') {
    if (raw) return file(root)
    const place = placeAt(walk, root)
    const shown = entryOf(walk, place, DEFAULT)
    if (shown !== undefined) return shownBehind(walk, shown)
    const index = place.map.get(INDEX)
    return index === undefined ? NO_DEFAULT : { kind: 'index', load: () => walk.load(root, index, true) }
  }
  const { end, gap } = trailOf(walk, root, segments)
  if (gap !== undefined) return gap
  const last = segments.at(-1) ?? ''
  const found = entryOf(walk, end, last)
  if (last === DEFAULT && found !== undefined) return shownBehind(walk, found)
  return found === undefined ? indexOf(walk, end) : file(found)
}

/**
 * Follows a path on the host of a name or an outpoint, as static hosts do: the exact entry; the entry with `.html`; a folder, by
 * a redirect to its slash; the rules of `_redirects`; the nearest `404.html`; and else what {@link contentPath} falls back to.
 *
 * @param start Begins a walk, with bounds of its own.
 * @throws RedirectsError
 */
export function sitePath<File>(start: () => Directories<File>, question: PathQuestion<File>): Found<File> {
  const { root, segments } = question
  const walk = start()
  if (!walk.isDirectory(root)) return file(root)
  const { found, trail, end, folder } = shownAt(walk, question)
  if (found.kind !== 'missing') return found
  if (folder)
    return { kind: 'moved', status: 302, location: `/${segments.map(encodeURIComponent).join('/')}/` }
  const redirected = redirectedTo(start, { trail, segments, root })
  if (redirected !== undefined) return redirected
  for (const place of [...trail].reverse()) {
    const page = fileIn(walk, place, NOT_FOUND_PAGE)
    if (page !== undefined) return file(page, 404)
  }
  return found === NO_INDEX ? indexOf(walk, end) : found
}

/** What the rules of a site say about a path that it does not have. A file that a rule leads to is looked for once. */
function redirectedTo<File>(
  start: () => Directories<File>,
  { trail, segments, root }: { trail: Place<File>[]; segments: readonly string[]; root: File },
): Found<File> | undefined {
  const pointer = trail[0]?.map.get(REDIRECTS_FILE)
  if (pointer === undefined) return undefined
  const walk = start()
  const redirection = redirectionOf(walk.redirects(walk.load(root, pointer, true)), segments)
  if (redirection === undefined) return undefined
  if ('location' in redirection) return { kind: 'moved', ...redirection }
  const { found, folder } = shownAt(walk, { root, segments: redirection.segments, raw: false })
  const shown = folder === undefined ? found : defaultOf(walk, placeAt(walk, folder))
  return shown.kind === 'file' ? { ...shown, status: redirection.status } : undefined
}

/** A directory on a path. */
interface Place<File> {
  directory: File
  map: ReadonlyMap<string, string>
}

function placeAt<File>(walk: Directories<File>, directory: File): Place<File> {
  return { directory, map: walk.open(directory) }
}

/** What an entry at the end of a path leads to. */
function entryOf<File>(
  walk: Directories<File>,
  { directory, map }: Place<File>,
  name: string,
): File | undefined {
  // The empty segment of a trailing slash has no entry, whatever the map says (`docs/spec/http.md`).
  const pointer = name === '' ? undefined : map.get(name)
  return pointer === undefined ? undefined : walk.load(directory, pointer, true)
}

function fileIn<File>(walk: Directories<File>, place: Place<File>, name: string): File | undefined {
  const found = entryOf(walk, place, name)
  return found === undefined || walk.isDirectory(found) ? undefined : found
}

/** The file at a path of a site, without what stands in for one that is missing; the folder, if the path is one without its slash. */
function shownAt<File>(
  walk: Directories<File>,
  { root, segments, raw }: PathQuestion<File>,
): { found: Found<File>; trail: Place<File>[]; end: Place<File>; folder?: File } {
  const { gap, ...way } = trailOf(walk, root, segments)
  const { end } = way
  if (gap !== undefined) return { found: gap, ...way }
  const last = segments.at(-1) ?? ''
  if (last === '') return { found: raw ? file(end.directory) : defaultOf(walk, end), ...way }
  const target = entryOf(walk, end, last)
  if (last === DEFAULT && target !== undefined) return { found: shownBehind(walk, target), ...way }
  if (target !== undefined && (raw || !walk.isDirectory(target))) return { found: file(target), ...way }
  const page = fileIn(walk, end, last + EXTENSION)
  if (page !== undefined) return { found: file(page), ...way }
  return { found: NO_INDEX, ...way, ...(target !== undefined && { folder: target }) }
}

/** The directories that a path leads through, with the root as the first, and why it leads no further. */
function trailOf<File>(
  walk: Directories<File>,
  root: File,
  segments: readonly string[],
): { trail: Place<File>[]; end: Place<File>; gap?: typeof NO_ENTRY } {
  let end = placeAt(walk, root)
  const trail = [end]
  for (const segment of segments.slice(0, -1)) {
    const pointer = segment === '' ? undefined : end.map.get(segment)
    if (pointer === undefined) return { trail, end, gap: NO_ENTRY }
    const next = walk.load(end.directory, pointer, false)
    if (!walk.isDirectory(next)) return { trail, end, gap: NO_DIRECTORY }
    end = placeAt(walk, next)
    trail.push(end)
  }
  return { trail, end }
}

/** What a directory shows in place: its default entry, or else its index. */
function defaultOf<File>(walk: Directories<File>, place: Place<File>): Found<File> {
  const target = entryOf(walk, place, DEFAULT)
  return target === undefined ? indexOf(walk, place) : shownBehind(walk, target)
}

function indexOf<File>(walk: Directories<File>, place: Place<File>): Found<File> {
  const index = entryOf(walk, place, INDEX)
  return index === undefined ? NO_INDEX : file(index)
}

/**
 * What the target of a default entry shows. If that is a directory too, its own default or index follows, without a redirect: a
 * redirect would look the index up in the directory that the path names.
 */
function shownBehind<File>(walk: Directories<File>, target: File): Found<File> {
  return walk.isDirectory(target) ? defaultOf(walk, placeAt(walk, target)) : file(target)
}

function file<File>(found: File, status: ShownStatus = 200): Found<File> {
  return { kind: 'file', file: found, status }
}

function missing(reason: string): { kind: 'missing'; reason: string } {
  return { kind: 'missing', reason }
}
