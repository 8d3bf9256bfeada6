import { unlessBlocked } from '../../backend/src/graph/blocklist.js'
import type { ContentSummary } from '../../backend/src/graph/records.js'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries, pointerOf } from '../../backend/src/protocol/directory.js'
import { formatOutpoint, type Outpoint, readPointer } from '../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../backend/src/read/fact-store.js'
import { kindOf } from './content-kinds.js'

export interface DirectoryFiles {
  names: string[]
  total: number
  /** Whether the directory opens as a page: it has a default or an index. */
  hasIndex: boolean
}

/**
 * Reads a directory. The caller bounds its length.
 *
 * @throws DirectoryError.
 */
export function directoryFiles(
  { store }: { store: Pick<GraphReads, 'content'> },
  { sha256, contentType }: Pick<ContentSummary, 'sha256' | 'contentType'>,
  { most }: { most: number },
): DirectoryFiles {
  const files: DirectoryFiles = { names: [], total: 0, hasIndex: false }
  for (const [name] of directoryEntries(joinBytes([...store.content.chunks(sha256)]), contentType)) {
    files.total++
    if (name === '.' || name === 'index.html') files.hasIndex = true
    if (files.names.length < most) files.names.push(name)
  }
  return files
}

/** Everything that a directory leads to, including subdirectories. */
export interface DirectorySize {
  /** The number of outputs; one with several names counts once. */
  files: number
  bytes: number
  isMore: boolean
}

/**
 * Limits on following a directory, for each byte of a text that would be quoted: outputs, directories, and bytes of directories.
 */
const FOLLOWED = { outputs: 0.25, directories: 0.05, bytes: 64 }

/** Follows a directory within the limits, as far as this store has it. */
export function directorySize(
  { store }: { store: Pick<GraphReads, 'content' | 'ordinals' | 'things'> },
  root: { outpoint: Outpoint; content: ContentSummary },
  { quoted }: { quoted: number },
): DirectorySize {
  const size: DirectorySize = { files: 0, bytes: 0, isMore: false }
  let [outputs, opened, bytes] = [
    FOLLOWED.outputs * quoted,
    FOLLOWED.directories * quoted,
    FOLLOWED.bytes * quoted,
  ]
  const seen = new Set([formatOutpoint(root.outpoint)])
  const directories = [root]
  for (const { outpoint, content } of directories) {
    bytes -= content.length
    if (bytes < 0 || opened-- <= 0) {
      size.isMore = true
      break
    }
    const found: Outpoint[] = []
    for (const entry of entriesOf({ store }, { outpoint, content })) {
      if (seen.has(formatOutpoint(entry))) continue
      if (outputs-- <= 0) {
        size.isMore = true
        break
      }
      seen.add(formatOutpoint(entry))
      found.push(entry)
    }
    for (const entry of store.things.contents(found).values()) {
      if (kindOf(entry.content.contentType) === 'directory') directories.push(entry)
      else {
        size.files++
        size.bytes += entry.content.length
      }
    }
  }
  return size
}

/** The outputs that the entries of a directory point at; none for other content, or for a blocked directory. */
function entriesOf(
  { store }: { store: Pick<GraphReads, 'content' | 'ordinals'> },
  { outpoint: { txid }, content }: { outpoint: Outpoint; content: ContentSummary },
): Outpoint[] {
  const body = unlessBlocked(() => joinBytes([...store.content.chunks(content.sha256)]))
  const found: Outpoint[] = []
  try {
    for (const [, entry] of directoryEntries(body ?? new Uint8Array(), content.contentType)) {
      const pointer = readPointer(pointerOf(entry))
      if (pointer?.kind === 'sibling') found.push({ txid, vout: pointer.vout })
      if (pointer?.kind === 'outpoint') found.push(pointer.outpoint)
    }
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error
    return []
  }
  return found
}

/** The longest directory that a preview reads, in bytes for each byte of a text that would be quoted. */
const BYTES = 16
export const LISTED_FILES = 100

/** The files of a short directory that does not open as a page; undefined for any other. */
export function filesWithoutIndex(
  explorer: Parameters<typeof directoryFiles>[0],
  content: ContentSummary,
  { quoted }: { quoted: number },
): DirectoryFiles | undefined {
  if (content.length > BYTES * quoted) return undefined
  try {
    const files = directoryFiles(explorer, content, { most: LISTED_FILES })
    return files.hasIndex ? undefined : files
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error
    return { names: [], total: 0, hasIndex: false }
  }
}
