import { ByteCursor } from './byte-cursor.js'
import { compareBytes, concatBytes, joinBytes, readStrictUtf8, utf8 } from './bytes.js'
import { CodedError } from './coded-error.js'
import { decodeOutpoint, encodeOutpoint, type Outpoint } from './outpoint.js'

/** The content type of directories in bytes. */
export const BINARY_DIRECTORY = 'ordfs/dir'

/** The body is no directory. `data.offset` is the byte at which a binary one is wrong. */
export class DirectoryError extends CodedError {
  override readonly name = 'DirectoryError'
  readonly code = 'BAD_DIRECTORY'
}

export interface BinaryEntry {
  name: string
  /** Bits of {@link ENTRY_FLAGS}, without the one for the kind of target. */
  flags: number
  /** The index of an output in the directory's own transaction, or the outpoint of any output. */
  target: number | Outpoint
}

/** What an entry is said to be. Readers follow links; the content type alone decides what is a directory. */
export const ENTRY_FLAGS = { directory: 1, executable: 2, link: 4 } as const
const IS_OUTPOINT = 8
const KNOWN_FLAGS = 15

const VERSION = 1
/** The count is a uint16, the length of a name and the index of an output of the same transaction a byte each. */
export const BINARY_LIMITS = { entries: 0xffff, nameBytes: 0xff, vout: 0xff } as const

/**
 * Reads a binary directory (`docs/spec/protocol.md`, Directories), one entry at a time: an error may only show at its end.
 *
 * @throws DirectoryError with the offset of the error.
 */
export function* readBinaryDirectory(body: Uint8Array): Generator<BinaryEntry> {
  const wrong = (message: string, offset = cursor.at): DirectoryError =>
    new DirectoryError(`${message}, at byte ${offset}`, { data: { offset } })
  const cursor: ByteCursor = new ByteCursor(body, () => wrong('the directory ends early', body.length))
  const version = cursor.u8()
  if (version !== VERSION) throw wrong(`the version is ${version}, and not ${VERSION}`, 0)
  const count = 256 * cursor.u8() + cursor.u8()
  let before: Uint8Array = new Uint8Array()
  for (let read = 0; read < count; read++) {
    const flags = cursor.u8()
    if (flags > KNOWN_FLAGS) throw wrong('reserved flags are set', cursor.at - 1)
    const length = cursor.u8()
    if (length === 0) throw wrong('a name is empty', cursor.at - 1)
    const at = cursor.at
    const bytes = cursor.take(length)
    const slip = bytes.findIndex((byte) => byte === 0 || byte === SLASH)
    if (slip >= 0) throw wrong('a name has a slash or a NUL', at + slip)
    const name = readStrictUtf8(bytes)
    if (name === undefined) throw wrong('a name is not UTF-8', at)
    if (compareBytes(before, bytes) >= 0)
      throw wrong('a name does not come after the one before it in the order of their bytes', at)
    before = bytes
    const target = (flags & IS_OUTPOINT) === 0 ? cursor.u8() : decodeOutpoint(cursor.take(OUTPOINT_BYTES))
    yield { name, flags: flags & ~IS_OUTPOINT, target }
  }
  if (!cursor.atEnd) throw wrong('bytes follow the last entry')
}

const SLASH = 0x2f
const OUTPOINT_BYTES = 36

/** Writes what {@link readBinaryDirectory} reads. The caller keeps to {@link BINARY_LIMITS}. @param entries In any order. */
export function encodeBinaryDirectory(entries: Iterable<BinaryEntry>): Uint8Array {
  const named = [...entries].map((entry) => ({ ...entry, bytes: utf8(entry.name) }))
  named.sort((one, other) => compareBytes(one.bytes, other.bytes))
  const head = Uint8Array.of(VERSION, named.length >> 8, named.length & 0xff)
  return joinBytes([
    head,
    ...named.map(({ bytes, flags, target }) =>
      typeof target === 'number'
        ? concatBytes(Uint8Array.of(flags, bytes.length), bytes, Uint8Array.of(target))
        : concatBytes(Uint8Array.of(flags | IS_OUTPOINT, bytes.length), bytes, encodeOutpoint(target)),
    ),
  ])
}
