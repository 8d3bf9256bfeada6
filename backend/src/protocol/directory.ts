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
  const scanner = new Scanner(text)
  if (!scanner.takes('{')) throw scanner.refusal('it is not a JSON object')
  if (!scanner.takes('}')) {
    do {
      const name = scanner.string()
      if (name === undefined) throw new DirectoryError(NOT_JSON)
      if (!scanner.takes(':')) throw new DirectoryError(NOT_JSON)
      const pointer = scanner.string()
      if (pointer === undefined) throw scanner.refusal('a value in it is not a string')
      if (name.includes('/')) throw new DirectoryError('a name in it has a slash')
      yield [name, pointer]
    } while (scanner.takes(','))
    if (!scanner.takes('}')) throw new DirectoryError(NOT_JSON)
  }
  if (!scanner.isAtEnd) throw new DirectoryError(NOT_JSON)
}

const NOT_JSON = 'it is not JSON'
/** What a value of another kind starts with. */
const OTHER_VALUE = /["[{tfn\d-]/
const WHITE_SPACE = /[ \t\n\r]*/y
/** What a string cannot hold, or not unescaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON refuses these in strings.
const UNPLAIN = /[\\\x00-\x1f]/

/** Goes through JSON as far as a flat object of strings needs it. */
class Scanner {
  private at = 0

  constructor(private readonly text: string) {}

  get isAtEnd(): boolean {
    this.skip()
    return this.at === this.text.length
  }

  takes(sign: string): boolean {
    this.skip()
    if (this.text[this.at] !== sign) return false
    this.at++
    return true
  }

  /** The string at this place, unescaped; undefined if it is something else. */
  string(): string | undefined {
    this.skip()
    const { text, at } = this
    if (text[at] !== '"') return undefined
    let end = text.indexOf('"', at + 1)
    while (end !== -1 && this.isEscaped(end, at)) end = text.indexOf('"', end + 1)
    if (end === -1) throw new DirectoryError(NOT_JSON)
    this.at = end + 1
    const plain = text.slice(at + 1, end)
    return UNPLAIN.test(plain) ? this.unescaped(plain) : plain
  }

  /** The error for anything unexpected: another value, or not JSON. */
  refusal(message: string): DirectoryError {
    return new DirectoryError(OTHER_VALUE.test(this.text[this.at] ?? '') ? message : NOT_JSON)
  }

  private isEscaped(quote: number, start: number): boolean {
    let before = quote - 1
    while (before > start && this.text[before] === '\\') before--
    return (quote - before) % 2 === 0
  }

  private unescaped(plain: string): string {
    try {
      return JSON.parse(`"${plain}"`)
    } catch (cause) {
      throw new DirectoryError(NOT_JSON, { cause })
    }
  }

  private skip(): void {
    WHITE_SPACE.lastIndex = this.at
    WHITE_SPACE.test(this.text)
    this.at = WHITE_SPACE.lastIndex
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

/** What a path leads to. */
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
    const map = walk.open(root)
    const pointer = map.get(DEFAULT)
    if (pointer !== undefined) return defaultBehind(walk, root, pointer)
    const index = map.get(INDEX)
    return index === undefined ? NO_DEFAULT : { kind: 'index', load: () => walk.load(root, index, true) }
  }
  const { trail, isWhole } = trailOf(walk, root, segments)
  const { directory, map } = trail.at(-1) ?? { directory: root, map: new Map<string, string>() }
  if (isWhole !== true) return isWhole
  const last = segments.at(-1) ?? ''
  const pointer = last === '' ? undefined : map.get(last)
  if (last === DEFAULT && pointer !== undefined) return defaultBehind(walk, directory, pointer)
  const found = pointer ?? map.get(INDEX)
  if (found === undefined) return NO_INDEX
  return { kind: 'file', file: walk.load(directory, found, true), status: 200 }
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
  const { found, trail, folder } = placeOf(walk, question)
  if (found.kind !== 'missing') return found
  if (folder)
    return { kind: 'moved', status: 302, location: `/${segments.map(encodeURIComponent).join('/')}/` }
  const redirected = redirectedTo(start, { trail, segments, root })
  if (redirected !== undefined) return redirected
  for (const { directory, map } of [...trail].reverse()) {
    const page = map.get(NOT_FOUND_PAGE)
    const loaded = page === undefined ? undefined : walk.load(directory, page, true)
    if (loaded !== undefined && !walk.isDirectory(loaded)) return file(loaded, 404)
  }
  const last = trail.at(-1)
  const index = found === NO_INDEX ? last?.map.get(INDEX) : undefined
  return last === undefined || index === undefined ? found : file(walk.load(last.directory, index, true))
}

/** What the rules of a site say about a path that it does not have. A file that a rule leads to is looked for once. */
function redirectedTo<File>(
  start: () => Directories<File>,
  { trail, segments, root }: { trail: Trail<File>; segments: readonly string[]; root: File },
): Found<File> | undefined {
  const pointer = trail[0]?.map.get(REDIRECTS_FILE)
  if (pointer === undefined) return undefined
  const walk = start()
  const redirection = redirectionOf(walk.redirects(walk.load(root, pointer, true)), segments)
  if (redirection === undefined) return undefined
  if ('location' in redirection) return { kind: 'moved', ...redirection }
  const { found, folder } = placeOf(walk, { root, segments: redirection.segments, raw: false })
  if (found.kind === 'file') return { ...found, status: redirection.status }
  if (folder === undefined) return undefined
  const shown = defaultOf(walk, folder)
  return shown.kind === 'file' ? { ...shown, status: redirection.status } : undefined
}

/** The directories on a path, as far as it leads, with the root as the first. */
type Trail<File> = { directory: File; map: ReadonlyMap<string, string> }[]

/** The file at a path of a site, without what stands in for one that is missing; the folder, if the path is one without its slash. */
function placeOf<File>(
  walk: Directories<File>,
  { root, segments, raw }: PathQuestion<File>,
): { found: Found<File>; trail: Trail<File>; folder?: File } {
  const { trail, isWhole } = trailOf(walk, root, segments)
  const end = trail.at(-1)
  if (isWhole !== true || end === undefined) return { found: isWhole === true ? NO_ENTRY : isWhole, trail }
  const { directory, map } = end
  const last = segments.at(-1) ?? ''
  if (last === '') return { found: raw ? file(directory) : defaultOf(walk, directory, map), trail }
  const pointer = map.get(last)
  if (last === DEFAULT && pointer !== undefined)
    return { found: defaultBehind(walk, directory, pointer), trail }
  const target = pointer === undefined ? undefined : walk.load(directory, pointer, true)
  if (target !== undefined && (raw || !walk.isDirectory(target))) return { found: file(target), trail }
  const page = map.get(last + EXTENSION)
  const shown = page === undefined ? undefined : walk.load(directory, page, true)
  if (shown !== undefined && !walk.isDirectory(shown)) return { found: file(shown), trail }
  return { found: NO_INDEX, trail, ...(target !== undefined && { folder: target }) }
}

/** The directories that a path leads through, and whether they are all there. */
function trailOf<File>(
  walk: Directories<File>,
  root: File,
  segments: readonly string[],
): { trail: Trail<File>; isWhole: true | typeof NO_ENTRY } {
  const trail = [{ directory: root, map: walk.open(root) }]
  for (const segment of segments.slice(0, -1)) {
    const { directory, map } = trail[trail.length - 1] as Trail<File>[number]
    // The empty segment of a trailing slash has no entry, whatever the map says (`docs/spec/http.md`).
    const pointer = segment === '' ? undefined : map.get(segment)
    if (pointer === undefined) return { trail, isWhole: NO_ENTRY }
    const next = walk.load(directory, pointer, false)
    if (!walk.isDirectory(next)) return { trail, isWhole: NO_DIRECTORY }
    trail.push({ directory: next, map: walk.open(next) })
  }
  return { trail, isWhole: true }
}

/** What a directory shows in place: its default entry, or else its index. */
function defaultOf<File>(
  walk: Directories<File>,
  directory: File,
  map: ReadonlyMap<string, string> = walk.open(directory),
): Found<File> {
  const pointer = map.get(DEFAULT)
  if (pointer !== undefined) return defaultBehind(walk, directory, pointer)
  const index = map.get(INDEX)
  return index === undefined ? NO_INDEX : file(walk.load(directory, index, true))
}

/**
 * What the default entry of a directory leads to. If that is a directory too, its own default or index follows, without a
 * redirect: a redirect would look the index up in the directory that the path names.
 */
function defaultBehind<File>(walk: Directories<File>, directory: File, pointer: string): Found<File> {
  const target = walk.load(directory, pointer, true)
  return walk.isDirectory(target) ? defaultOf(walk, target) : file(target)
}

function file<File>(found: File, status: ShownStatus = 200): Found<File> {
  return { kind: 'file', file: found, status }
}

function missing(reason: string): { kind: 'missing'; reason: string } {
  return { kind: 'missing', reason }
}
