import type { ContentSummary } from '../../backend/src/graph/records.js'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries } from '../../backend/src/protocol/directory.js'
import type { GraphReads } from '../../backend/src/read/graph-reads.js'

/** The files of a directory, as far as they are listed. */
export interface DirectoryFiles {
  /** The first names in it. */
  names: string[]
  total: number
  /** Whether it opens as a page: it has a default or an index. */
  hasIndex: boolean
}

/**
 * Reads a directory. The caller bounds its length.
 *
 * @throws DirectoryError.
 */
export function directoryFiles(
  { store }: { store: Pick<GraphReads, 'content'> },
  { sha256 }: Pick<ContentSummary, 'sha256'>,
  { most }: { most: number },
): DirectoryFiles {
  const files: DirectoryFiles = { names: [], total: 0, hasIndex: false }
  for (const [name] of directoryEntries(joinBytes([...store.content.chunks(sha256)]))) {
    files.total++
    if (name === '.' || name === 'index.html') files.hasIndex = true
    if (files.names.length < most) files.names.push(name)
  }
  return files
}

/** Longer directories are not looked into for a preview, in bytes for each that would be quoted of a text. */
const BYTES = 16
/** Of how many files a page shows the names. */
export const LISTED_FILES = 100

/** The files of a directory that does not open as a page; undefined for any other, and for a long one. */
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
