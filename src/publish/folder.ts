import {
  BINARY_DIRECTORY,
  BINARY_LIMITS,
  ENTRY_FLAGS,
  encodeBinaryDirectory,
} from '../../backend/src/protocol/binary-directory.js'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import {
  badName,
  type ContentNode,
  contentTree,
  type DirectoryNode,
  encodeDirectory,
  type FileNode,
  type FolderEntry,
} from './content-tree.js'
import { checkLock, contentTag, inscribe, PublishError, type PublishOutput } from './inscribe.js'
import { type PublishedContent, patchOn } from './patch.js'

/** How directories are written: JSON of the profile's own type, which is the default, or `ordfs/dir`. */
export type DirectoryFormat = 'json' | 'dir'

export interface PublishFolder {
  /** In any order. */
  entries: readonly FolderEntry[]
  /** The locking script of the owner of all outputs. */
  lock: Uint8Array
  profile: Pick<Profile, 'directoryContentTypes'>
  format?: DirectoryFormat
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

const MAX_VOUT = 0xffffffff
/** The longest directory into which gateways follow paths: the default of `MAX_DIRECTORY_BYTES`. */
export const MAX_DIRECTORY_BYTES = 1024 * 1024

/**
 * Lays a folder out as outputs of one transaction: each directory before its entries, entries in the byte order of their names,
 * pointers as `_N`. Content that occurs twice is inscribed once. The root comes first, so that its txid alone also leads to it.
 * Each output is tagged `sha256:<hash of its body>`.
 *
 * @throws PublishError `BAD_NAME` for a name that no path can contain or that occurs twice in a folder, `NESTING_TOO_DEEP` for
 * more than 8 levels of folders, `DIRECTORY_TOO_LARGE` for a directory that gateways would not follow paths into,
 * `BAD_FIRST_OUTPUT` if an index would not fit in 32 bits, `BAD_LOCK`, `BAD_CONTENT_TYPE`.
 */
export function layOutFolder(options: PublishFolder): LaidOutFolder {
  const { entries, lock, profile, format, firstOutput = 0 } = options
  if (!Number.isSafeInteger(firstOutput) || firstOutput < 0)
    throw new PublishError('BAD_FIRST_OUTPUT', `not an index of an output: ${firstOutput}`)
  const layout = new Layout({ lock, profile, format, firstOutput })
  const root = layout.inscribe(contentTree({ name: '', entries }))
  const { outputs } = layout
  if (firstOutput + outputs.length - 1 > MAX_VOUT)
    throw new PublishError(
      'BAD_FIRST_OUTPUT',
      `${outputs.length} outputs from index ${firstOutput} on do not fit in 32 bits`,
    )
  return { outputs, root, hasIndex: hasIndex(entries) }
}

export function hasIndex(entries: readonly { name: string }[]): boolean {
  return entries.some(({ name }) => name === 'index.html')
}

/** The output of a node, the length of its content, and the length of its patch if it is inscribed as one. */
export interface LaidOutPlace {
  vout: number
  bytes: number
  patch?: number
}

/** Outputs of one transaction. Content that is inscribed already is not inscribed again. */
export class Layout {
  readonly outputs: PublishOutput[] = []
  /** The places of nodes, by id. */
  readonly places = new Map<string, LaidOutPlace>()

  /**
   * @param options.inscribed Finds the output of content that is inscribed already, by its id.
   * @param options.earlier What the name showed in the place of a node: a base for a patch.
   * @throws PublishError `BAD_LOCK`.
   */
  constructor(
    private readonly options: {
      lock: Uint8Array
      profile: Pick<Profile, 'directoryContentTypes'>
      format?: DirectoryFormat | undefined
      firstOutput?: number
      inscribed?: ((id: string) => Outpoint | undefined) | undefined
      earlier?: (node: ContentNode) => PublishedContent | undefined
    },
  ) {
    checkLock(options.lock)
  }

  /** Adds a node, and those of its entries that are missing; returns the index of its output. */
  inscribe(node: ContentNode): number {
    const { lock, firstOutput = 0 } = this.options
    const at = this.outputs.length
    const place: LaidOutPlace = { vout: firstOutput + at, bytes: 0 }
    this.places.set(node.id, place)
    // A directory comes before its entries in the outputs, but its map needs their places.
    this.outputs.push({ satoshis: 1, lockingScript: lock, tags: [] })
    const content = 'entries' in node ? this.directory(node) : node
    place.bytes = content.body.length
    const patch = patchOn(this.options.earlier?.(node), content)
    if (patch !== undefined) place.patch = patch.body.length
    const { contentType, body } = patch ?? content
    this.outputs[at] = inscribe({ lock, contentType, body, tags: [content.tag] })
    return place.vout
  }

  private directory({ entries }: DirectoryNode): Pick<FileNode, 'contentType' | 'body' | 'tag'> {
    const { profile, format } = this.options
    const isBinary = format === 'dir'
    const [contentType = ''] = isBinary ? [BINARY_DIRECTORY] : profile.directoryContentTypes
    const targets = entries.map((entry) => ({ entry, target: this.targetOf(entry) }))
    const body = checkedDirectory(isBinary ? binaryDirectory(targets) : jsonDirectory(targets))
    return { contentType, body, tag: contentTag(body) }
  }

  /** The index of an output of this transaction, or the outpoint of an earlier one. */
  private targetOf(node: ContentNode): number | Outpoint {
    return this.options.inscribed?.(node.id) ?? this.places.get(node.id)?.vout ?? this.inscribe(node)
  }
}

type Targets = readonly { entry: ContentNode; target: number | Outpoint }[]

function jsonDirectory(targets: Targets): Uint8Array {
  return encodeDirectory(
    targets.map(({ entry, target }) => [
      entry.name,
      typeof target === 'number' ? `_${target}` : formatOutpoint(target),
    ]),
  )
}

function binaryDirectory(targets: Targets): Uint8Array {
  if (targets.length > BINARY_LIMITS.entries)
    throw tooLarge(`a directory in ${BINARY_DIRECTORY} has up to ${BINARY_LIMITS.entries} entries`)
  return encodeBinaryDirectory(
    targets.map(({ entry, target }) => {
      const { name } = entry
      if (utf8(name).length > BINARY_LIMITS.nameBytes || name.includes('\0'))
        throw badName(
          name,
          `${BINARY_DIRECTORY} has names of up to ${BINARY_LIMITS.nameBytes} bytes without NUL`,
        )
      if (typeof target === 'number' && target > BINARY_LIMITS.vout)
        throw tooLarge(
          `a directory in ${BINARY_DIRECTORY} can point at outputs up to ${BINARY_LIMITS.vout} of its transaction`,
        )
      return { name, flags: 'entries' in entry ? ENTRY_FLAGS.directory : 0, target }
    }),
  )
}

function tooLarge(why: string): PublishError {
  return new PublishError('DIRECTORY_TOO_LARGE', `${why}, and this folder has more: publish it as JSON`)
}

/** @throws PublishError `DIRECTORY_TOO_LARGE`. */
export function checkedDirectory(body: Uint8Array): Uint8Array {
  if (body.length <= MAX_DIRECTORY_BYTES) return body
  throw new PublishError(
    'DIRECTORY_TOO_LARGE',
    `the directory of a folder would have ${body.length} bytes; gateways read at most ${MAX_DIRECTORY_BYTES}: spread its files over subfolders`,
  )
}
