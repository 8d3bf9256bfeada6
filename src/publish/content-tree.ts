import { Hash } from '@bsv/sdk'
import { compareBytes, joinBytes, readUtf8, toHex, utf8 } from '../../backend/src/protocol/bytes.js'
import { contentTag, contentTypeOf, PublishError } from './inscribe.js'

/** A file in a folder, with a content type if it differs from that of its name; or a subfolder. */
export type FolderEntry =
  | { name: string; bytes: Uint8Array; contentType?: string }
  | { name: string; entries: readonly FolderEntry[] }

/** Content to inscribe, checked. Two nodes with the same id show the same, whatever their names are. */
export type ContentNode = FileNode | DirectoryNode

export interface FileNode {
  name: string
  id: string
  contentType: string
  body: Uint8Array
  /** `sha256:` and the hash of the body. */
  tag: string
}

export interface DirectoryNode {
  name: string
  id: string
  /** In the byte order of their names. */
  entries: ContentNode[]
}

/** How many directories a path may pass through. */
export const MAX_LEVELS = 8

/**
 * Reads a file, or a folder with its entries sorted.
 *
 * @throws PublishError `BAD_NAME` for a name that no path can contain or that occurs twice in a folder, `NESTING_TOO_DEEP`
 * for more than 8 levels of folders.
 */
export function contentTree(entry: FolderEntry, level = 1): ContentNode {
  const { name } = entry
  if (!('entries' in entry)) {
    const { bytes: body, contentType = contentTypeOf(name) } = entry
    const tag = contentTag(body)
    return { name, id: fileId({ contentType, tag }), contentType, body, tag }
  }
  if (level > MAX_LEVELS)
    throw new PublishError('NESTING_TOO_DEEP', `folders are nested more than ${MAX_LEVELS} levels deep`)
  const entries = inOrder(entry.entries).map((inside) => contentTree(inside, level + 1))
  return { name, id: directoryId(entries.map((inside) => [inside.name, inside.id])), entries }
}

/** Identifies what a file shows, by its bytes and its content type. */
export function fileId({ contentType, tag }: Pick<FileNode, 'contentType' | 'tag'>): string {
  return `${tag} ${contentType}`
}

/** Identifies what a directory shows, by its names and what each of them shows. */
export function directoryId(entries: readonly (readonly [name: string, id: string])[]): string {
  const hash = new Hash.SHA256()
  for (const entry of sorted(entries, ([name]) => name)) hash.update(`${JSON.stringify(entry)}\n`)
  return `directory ${toHex(Uint8Array.from(hash.digest()))}`
}

/**
 * Encodes the map of a directory (`docs/spec/protocol.md`, Directories) in the given order, which an object would not keep for
 * names like `10`.
 */
export function encodeDirectory(pointers: Iterable<readonly [name: string, pointer: string]>): Uint8Array {
  const comma = utf8(',')
  const members: Uint8Array[] = []
  for (const [name, pointer] of pointers)
    members.push(comma, utf8(`${JSON.stringify(name)}:${JSON.stringify(pointer)}`))
  return joinBytes([utf8('{'), ...members.slice(1), utf8('}')])
}

function inOrder(entries: readonly FolderEntry[]): FolderEntry[] {
  const ordered = sorted(entries, ({ name }) => checkedName(name))
  const twice = ordered.find(({ name }, i) => name === ordered[i + 1]?.name)
  if (twice !== undefined) throw badName(twice.name, 'it occurs twice in its folder')
  return ordered
}

/** Sorts in the byte order of names. */
function sorted<Named>(all: readonly Named[], nameOf: (each: Named) => string): Named[] {
  const keyed = all.map((each) => ({ each, key: utf8(nameOf(each)) }))
  keyed.sort((a, b) => compareBytes(a.key, b.key))
  return keyed.map(({ each }) => each)
}

/**
 * Checks that a name can be a segment of a path: a slash would end it, clients resolve `.` and `..`, an empty segment means a
 * slash at the end, and half a surrogate pair has no UTF-8, so it cannot be percent-encoded.
 */
function checkedName(name: string): string {
  if (name === '' || name === '.' || name === '..') throw badName(name, 'a path cannot contain it')
  if (name.includes('/')) throw badName(name, 'it contains a slash')
  if (readUtf8(utf8(name)) !== name) throw badName(name, 'it is not valid Unicode')
  return name
}

export function badName(name: string, why: string): PublishError {
  return new PublishError(
    'BAD_NAME',
    `${JSON.stringify(name)} cannot be the name of an entry in a folder: ${why}`,
  )
}
