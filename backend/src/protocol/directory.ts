import { readStrictUtf8 } from './bytes.js'
import { CodedError } from './coded-error.js'

/** A body that is no map of a directory. */
export class DirectoryError extends CodedError {
  override readonly name = 'DirectoryError'
  readonly code = 'BAD_DIRECTORY'
}

/**
 * Reads the map of a directory (service.md 2.4): from names, each a single path segment, to pointers, which are
 * not checked here. If a name occurs several times, the last one counts, as in JSON.parse.
 *
 * @throws DirectoryError (`BAD_DIRECTORY`) if the body is not valid UTF-8 or not a JSON object, or has a value that is not
 * a string or a name with `/`.
 */
export function readDirectory(body: Uint8Array): Map<string, string> {
  return new Map(directoryEntries(body))
}

/**
 * The entries of a directory one by one, for callers that yield in between: a body of a mebibyte may have a hundred
 * thousand, and `JSON.parse` cannot be interrupted. An invalid body is only known at its end.
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
