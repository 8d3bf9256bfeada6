import { BINARY_DIRECTORY, DirectoryError, ENTRY_FLAGS, readBinaryDirectory } from './binary-directory.js'
import { readStrictUtf8 } from './bytes.js'
import { formatOutpoint } from './outpoint.js'
import { REDIRECTS_FILE, type RedirectRule, redirectionOf, type ShownStatus } from './redirects.js'

export { DirectoryError }

/** The longest text of a symbolic link, in bytes. */
export const MAX_LINK_BYTES = 1024

/** A symbolic link: its pointer leads to the path of another entry. */
export class Link {
  constructor(readonly pointer: string) {}

  get length(): number {
    return this.pointer.length
  }
}

/** Names with their targets: the text of a pointer, or a link. */
export type DirectoryMap = ReadonlyMap<string, string | Link>

export function pointerOf(entry: string | Link): string {
  return entry instanceof Link ? entry.pointer : entry
}

/**
 * Reads a directory (`docs/spec/protocol.md`, Ordinals): a binary one, or a JSON object from names, each a single path segment,
 * to pointers, which are not checked here. If a name in JSON occurs several times, the last one counts, as in JSON.parse. Entries come one by one,
 * for callers that yield in between: a body of a mebibyte may have a hundred thousand, and `JSON.parse` cannot be interrupted.
 *
 * @throws DirectoryError (`BAD_DIRECTORY`) if the body is no directory of its type: JSON that is not valid UTF-8 or not an
 * object, or has a value that is not a string or a name with `/`. An error may only show at the end.
 */
export function* directoryEntries(
  body: Uint8Array,
  contentType: string,
): Generator<[name: string, entry: string | Link]> {
  if (contentType === BINARY_DIRECTORY) return yield* binaryEntries(body)
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
  /** The string at this place, unescaped. @param otherwise The message if anything else is there. */
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

function* binaryEntries(body: Uint8Array): Generator<[name: string, entry: string | Link]> {
  for (const { name, flags, target } of readBinaryDirectory(body)) {
    const pointer = typeof target === 'number' ? `_${target}` : formatOutpoint(target)
    yield [name, (flags & ENTRY_FLAGS.link) === 0 ? pointer : new Link(pointer)]
  }
}

const NOT_JSON = 'it is not JSON'
/** The start of a value of another kind. */
const OTHER_VALUE = /["[{tfn\d-]/
const WHITE_SPACE = /[ \t\n\r]*/y
/** Characters that a string cannot hold, or only escaped. */
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

/** The entries with a meaning of their own (`docs/spec/protocol.md`, Ordinals). */
const DEFAULT = '.'
const INDEX = 'index.html'
/** Shown for paths that a site does not have. */
const NOT_FOUND_PAGE = '404.html'
/** The extension that a path may leave out. */
const EXTENSION = '.html'

/** Access to the files that a walk through directories meets. Throws if a file cannot be opened or loaded, or after too many steps. */
export interface Directories<File> {
  isDirectory(file: File): boolean
  /** Counts as a step, as does a link. */
  open(directory: File): DirectoryMap
  /** The file that an entry points at. @param isLast Whether nothing follows it on the path. */
  load(directory: File, pointer: string, isLast: boolean): File
  /** The content of a symbolic link; undefined if that is more than {@link MAX_LINK_BYTES}. */
  link(file: File): Uint8Array | undefined
  /** @throws RedirectsError */
  redirects(file: File): readonly RedirectRule[]
}

export interface PathQuestion<File> {
  root: File
  /** The path after the root, decoded. A trailing slash makes an empty last segment. */
  segments: readonly string[]
  /** Whether to show a directory as inscribed. */
  raw: boolean
}

/** The result of following a path. */
export type Found<File> =
  | { kind: 'file'; file: File; status: ShownStatus }
  /** The `index.html` of the directory that the path names. */
  | { kind: 'index' }
  /** Another place, as in a `Location`. */
  | { kind: 'moved'; status: number; location: string }
  | Gap

interface Gap {
  kind: 'missing'
  reason: string
}

const NO_ENTRY = missing('a directory on this path does not have this entry')
const NO_DIRECTORY = missing('an entry in the middle of this path is not a directory')
const NO_INDEX = missing('this directory has neither this entry nor an index')
const NO_DEFAULT = missing('this directory has no default entry')

/** Follows a path below `/content/` (`docs/spec/http.md`, Content). */
export function contentPath<File>(walk: Directories<File>, question: PathQuestion<File>): Found<File> {
  const { root, segments, raw } = question
  // Every path below a file leads to the file: there is no map to look the segments up in.
  if (!walk.isDirectory(root)) return file(root)
  // The slash alone is an empty path.
  const isEmpty = segments.length <= 1 && (segments[0] ?? '') === ''
  if (isEmpty && raw) return file(root)
  const top = placeAt(walk, { file: root })
  if (isEmpty) {
    const shown = entryOf(walk, top, DEFAULT)
    if (shown !== undefined) return shownBehind(walk, shown)
    return top.map.has(INDEX) ? { kind: 'index' } : NO_DEFAULT
  }
  const { end, gap } = endOf(walk, top, segments)
  if (gap !== undefined) return gap
  const last = segments.at(-1) ?? ''
  const found = entryOf(walk, end, last)
  if (last === DEFAULT && found !== undefined) return shownBehind(walk, found)
  return found === undefined ? indexOf(walk, end) : file(found.file)
}

/**
 * Follows a path on the host of a name or an outpoint, as static hosts do: the exact entry; the entry with `.html`; a folder, by
 * a redirect to its slash; the rules of `_redirects`; the nearest `404.html`; and else the fallback of {@link contentPath}.
 *
 * @param start Begins a walk, with bounds of its own.
 * @throws RedirectsError
 */
export function sitePath<File>(start: () => Directories<File>, question: PathQuestion<File>): Found<File> {
  const { root, segments } = question
  const walk = start()
  if (!walk.isDirectory(root)) return file(root)
  const top = placeAt(walk, { file: root })
  const { found, end, folder } = shownAt(walk, top, question)
  if (found.kind !== 'missing') return found
  if (folder)
    return { kind: 'moved', status: 302, location: `/${segments.map(encodeURIComponent).join('/')}/` }
  const redirected = redirectedTo(start, top, segments)
  if (redirected !== undefined) return redirected
  for (let place: Place<File> | undefined = end; place !== undefined; place = place.parent) {
    const page = fileIn(walk, place, NOT_FOUND_PAGE)
    if (page !== undefined) return file(page, 404)
  }
  return found === NO_INDEX ? indexOf(walk, end) : found
}

/** The result of a site's redirect rules for a path that it does not have. No rules apply to the file that a rule leads to. */
function redirectedTo<File>(
  start: () => Directories<File>,
  top: Place<File>,
  asked: readonly string[],
): Found<File> | undefined {
  const walk = start()
  const rules = entryOf(walk, top, REDIRECTS_FILE, false)
  const redirection = rules && redirectionOf(walk.redirects(rules.file), asked)
  if (redirection === undefined) return undefined
  if ('location' in redirection) return { kind: 'moved', ...redirection }
  const { segments, status } = redirection
  const { found, folder } = shownAt(walk, placeAt(walk, { file: top.directory }), { segments, raw: false })
  const shown = folder === undefined ? found : defaultOf(walk, placeAt(walk, folder))
  return shown.kind === 'file' ? { ...shown, status } : undefined
}

/**
 * A directory on a path. As links may lead anywhere, its parent is the directory that holds it, not the one that the path came from.
 */
interface Place<File> {
  directory: File
  map: DirectoryMap
  /** Undefined for the root. */
  parent?: Place<File> | undefined
}

/** Something in a directory; the root is in none. */
interface Target<File> {
  file: File
  parent?: Place<File> | undefined
}

function placeAt<File>(walk: Directories<File>, { file: directory, parent }: Target<File>): Place<File> {
  return { directory, map: walk.open(directory), parent }
}

/** The target of an entry. A link that leads nowhere is no entry. */
function entryOf<File>(
  walk: Directories<File>,
  place: Place<File>,
  name: string,
  isLast = true,
): Target<File> | undefined {
  // The empty segment of a trailing slash has no entry, whatever the map says (`docs/spec/http.md`).
  const entry = name === '' ? undefined : place.map.get(name)
  if (entry === undefined) return undefined
  if (entry instanceof Link)
    return behindLink(walk, place, walk.load(place.directory, entry.pointer, false), isLast)
  return { file: walk.load(place.directory, entry, isLast), parent: place }
}

/** Follows a link from the directory that it is in; undefined if it leads out of the root, or to nothing. */
function behindLink<File>(
  walk: Directories<File>,
  from: Place<File>,
  link: File,
  isLast: boolean,
): Target<File> | undefined {
  const bytes = walk.link(link)
  const path = bytes && readStrictUtf8(bytes)
  if (path === undefined || path === '' || path.startsWith('/')) return undefined
  let at: Target<File> | undefined = { file: from.directory, parent: from.parent }
  let place: Place<File> | undefined = from
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  for (const [index, name] of names.entries()) {
    if (at === undefined || !walk.isDirectory(at.file)) return undefined
    // Opened even if the path leaves it again, as each is a step.
    place ??= placeAt(walk, at)
    if (name === '..') {
      place = place.parent
      at = place && { file: place.directory, parent: place.parent }
    } else {
      at = entryOf(walk, place, name, isLast && index === names.length - 1)
      place = undefined
    }
  }
  return at
}

function fileIn<File>(walk: Directories<File>, place: Place<File>, name: string): File | undefined {
  const found = entryOf(walk, place, name)
  return found === undefined || walk.isDirectory(found.file) ? undefined : found.file
}

/** The file at a path of a site, without substitutes for a missing one; also the folder, if the path is one without its slash. */
function shownAt<File>(
  walk: Directories<File>,
  top: Place<File>,
  { segments, raw }: Pick<PathQuestion<File>, 'segments' | 'raw'>,
): { found: Found<File>; end: Place<File>; folder?: Target<File> } {
  const { end, gap } = endOf(walk, top, segments)
  if (gap !== undefined) return { found: gap, end }
  const last = segments.at(-1) ?? ''
  if (last === '') return { found: raw ? file(end.directory) : defaultOf(walk, end), end }
  const target = entryOf(walk, end, last)
  if (last === DEFAULT && target !== undefined) return { found: shownBehind(walk, target), end }
  if (target !== undefined && (raw || !walk.isDirectory(target.file)))
    return { found: file(target.file), end }
  const page = fileIn(walk, end, last + EXTENSION)
  if (page !== undefined) return { found: file(page), end }
  return { found: NO_INDEX, end, ...(target !== undefined && { folder: target }) }
}

/** The directory in which the last segment of a path is looked up; or the last one on the way there, and why it leads no further. */
function endOf<File>(
  walk: Directories<File>,
  top: Place<File>,
  segments: readonly string[],
): { end: Place<File>; gap?: Gap } {
  let end = top
  for (const segment of segments.slice(0, -1)) {
    const next = entryOf(walk, end, segment, false)
    if (next === undefined) return { end, gap: NO_ENTRY }
    if (!walk.isDirectory(next.file)) return { end, gap: NO_DIRECTORY }
    end = placeAt(walk, next)
  }
  return { end }
}

/** What a directory shows without a redirect: its default entry, or else its index. */
function defaultOf<File>(walk: Directories<File>, place: Place<File>): Found<File> {
  const target = entryOf(walk, place, DEFAULT)
  return target === undefined ? indexOf(walk, place) : shownBehind(walk, target)
}

function indexOf<File>(walk: Directories<File>, place: Place<File>): Found<File> {
  const index = entryOf(walk, place, INDEX)
  return index === undefined ? NO_INDEX : file(index.file)
}

/**
 * What the target of a default entry shows. If that is a directory too, its own default or index follows, without a redirect: a
 * redirect would look the index up in the directory that the path names.
 */
function shownBehind<File>(walk: Directories<File>, target: Target<File>): Found<File> {
  return walk.isDirectory(target.file) ? defaultOf(walk, placeAt(walk, target)) : file(target.file)
}

function file<File>(found: File, status: ShownStatus = 200): Found<File> {
  return { kind: 'file', file: found, status }
}

function missing(reason: string): { kind: 'missing'; reason: string } {
  return { kind: 'missing', reason }
}
