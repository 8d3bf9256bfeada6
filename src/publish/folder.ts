import { joinBytes, readUtf8, utf8 } from '../../backend/src/protocol/bytes.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import {
  checkLock,
  contentTag,
  contentTypeOf,
  inscribe,
  PublishError,
  type PublishOutput,
} from './inscribe.js'

/** A file in a folder, with a content type if it differs from that of its name; or a subfolder. */
export type FolderEntry =
  | { name: string; bytes: Uint8Array; contentType?: string }
  | { name: string; entries: readonly FolderEntry[] }

export interface PublishFolder {
  /** In any order. */
  entries: readonly FolderEntry[]
  /** The locking script of the owner of all outputs. */
  lock: Uint8Array
  profile: Pick<Profile, 'directoryContentTypes'>
  /** The index of the first output in its transaction; 0 by default. */
  firstOutput?: number
}

export interface LaidOutFolder {
  /** Consecutive outputs of one transaction, from `firstOutput` on. */
  outputs: PublishOutput[]
  /** The index in that transaction of the folder itself, which is the first. */
  root: number
  /** Whether the folder has an entry `index.html`; without one, only the paths of its entries can be requested. */
  hasIndex: boolean
}

/** How many directories a path may pass through (service.md 8). */
const MAX_LEVELS = 8
const MAX_VOUT = 0xffffffff

/**
 * Lays a folder out as outputs of one transaction (service.md 4.2): each directory before its entries, entries in the byte
 * order of their names, pointers as `_N`. The root comes first, so that its txid alone also leads to it.
 * Each output is tagged `sha256:<hash of its body>`.
 *
 * @throws PublishError `BAD_NAME` for a name that no path can contain or that occurs twice in a folder, `NESTING_TOO_DEEP`
 * for more than 8 levels of folders, `BAD_FIRST_OUTPUT` if an index would not fit in 32 bits, `BAD_LOCK`,
 * `BAD_CONTENT_TYPE`.
 */
export function layOutFolder({ entries, lock, profile, firstOutput = 0 }: PublishFolder): LaidOutFolder {
  checkLock(lock)
  if (!Number.isSafeInteger(firstOutput) || firstOutput < 0)
    throw new PublishError('BAD_FIRST_OUTPUT', `not an index of an output: ${firstOutput}`)
  const [directoryType = ''] = profile.directoryContentTypes
  const outputs = layOutLevel({ entries, lock, directoryType, at: firstOutput, level: 1 })
  if (firstOutput + outputs.length - 1 > MAX_VOUT)
    throw new PublishError(
      'BAD_FIRST_OUTPUT',
      `${outputs.length} outputs from index ${firstOutput} on do not fit in 32 bits`,
    )
  return { outputs, root: firstOutput, hasIndex: entries.some(({ name }) => name === 'index.html') }
}

/** A directory at index `at`, followed by everything in it. */
function layOutLevel(folder: {
  entries: readonly FolderEntry[]
  lock: Uint8Array
  directoryType: string
  at: number
  level: number
}): PublishOutput[] {
  const { entries, lock, directoryType, at, level } = folder
  if (level > MAX_LEVELS)
    throw new PublishError('NESTING_TOO_DEEP', `folders are nested more than ${MAX_LEVELS} levels deep`)
  const inside: PublishOutput[] = []
  const pointers: [name: string, pointer: string][] = []
  for (const entry of inOrder(entries)) {
    const vout = at + 1 + inside.length
    pointers.push([entry.name, `_${vout}`])
    if ('entries' in entry) {
      const { entries: below } = entry
      for (const output of layOutLevel({ ...folder, entries: below, at: vout, level: level + 1 }))
        inside.push(output)
    } else {
      const { name, bytes: body, contentType = contentTypeOf(name) } = entry
      inside.push(inscribe({ lock, contentType, body, tags: [contentTag(body)] }))
    }
  }
  const body = encodeDirectory(pointers)
  return [inscribe({ lock, contentType: directoryType, body, tags: [contentTag(body)] }), ...inside]
}

/** Encodes a directory's map (service.md 2.4) in the given order, which an object would not keep for names like `10`. */
function encodeDirectory(pointers: readonly [name: string, pointer: string][]): Uint8Array {
  const members = pointers.map(([name, pointer]) =>
    utf8(`${JSON.stringify(name)}:${JSON.stringify(pointer)}`),
  )
  const comma = utf8(',')
  return joinBytes([
    utf8('{'),
    ...members.flatMap((member, i) => (i === 0 ? member : [comma, member])),
    utf8('}'),
  ])
}

function inOrder(entries: readonly FolderEntry[]): FolderEntry[] {
  const keyed = entries.map((entry) => ({ entry, key: utf8(checkedName(entry.name)) }))
  keyed.sort((a, b) => compareBytes(a.key, b.key))
  const sorted = keyed.map(({ entry }) => entry)
  const twice = sorted.find(({ name }, i) => name === sorted[i + 1]?.name)
  if (twice !== undefined) throw badName(twice.name, 'it occurs twice in its folder')
  return sorted
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/**
 * A name must be usable as a segment of a path: a slash would end it, clients resolve `.` and `..`, an empty segment means
 * a slash at the end, and half a surrogate pair has no UTF-8, so it cannot be percent-encoded.
 */
function checkedName(name: string): string {
  if (name === '' || name === '.' || name === '..') throw badName(name, 'a path cannot contain it')
  if (name.includes('/')) throw badName(name, 'it contains a slash')
  if (readUtf8(utf8(name)) !== name) throw badName(name, 'it is not valid Unicode')
  return name
}

function badName(name: string, why: string): PublishError {
  return new PublishError(
    'BAD_NAME',
    `${JSON.stringify(name)} cannot be the name of an entry in a folder: ${why}`,
  )
}
