import { BINARY_DIRECTORY, encodeBinaryDirectory } from '../../backend/src/protocol/binary-directory.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import { type ContentNode, contentTree, encodeDirectory, type FolderEntry } from './content-tree.js'
import { checkedDirectory, type DirectoryFormat, hasIndex, Layout } from './folder.js'
import { checkLock, contentTag, inscribe, PublishError, type PublishOutput } from './inscribe.js'
import { type PublishedContent, patchOn } from './patch.js'
import type { DirectoryPointer, Published } from './published.js'

/** What happens to a file, or to a directory, whose path ends with a slash. */
export interface SiteChange {
  /** Relative to the site; `./` is its own directory. */
  path: string
  /**
   * `kept`: the bytes are inscribed already, or as another file of the site. The others compare with what the name showed at this
   * path.
   */
  kind: 'new' | 'changed' | 'kept' | 'removed'
  /** The length of the content; for a directory, of its map. */
  bytes: number
  /** The length of the patch, if it is inscribed as one. */
  patch?: number
}

export interface SitePlan {
  /**
   * Consecutive outputs of one transaction, from output 0 on. The transaction must be the next step of the name, which shows them
   * from then on.
   */
  outputs: PublishOutput[]
  changes: SiteChange[]
  /** Whether the name shows this already, so that nothing needs to be paid for. */
  isUnchanged: boolean
  /** Whether the address of the site itself shows something: in a folder without `index.html`, only paths do. */
  hasIndex: boolean
}

/**
 * Lays out a file or a folder as the next content of a name. What the name has inscribed before is referenced, not inscribed
 * again.
 *
 * @param options.site The name of a file determines its content type; that of a folder is not used.
 * @param options.published What the steps of the name have inscribed; without it, everything is new.
 * @param options.patches Whether files and directories may be published as patches on what the name has inscribed.
 * @throws PublishError as `layOutFolder`.
 */
export function planSite(options: {
  site: FolderEntry
  lock: Uint8Array
  profile: Pick<Profile, 'directoryContentTypes'>
  format?: DirectoryFormat | undefined
  published?: Published
  patches?: boolean
}): SitePlan {
  const { site, lock, profile, format, published, patches = true } = options
  const root = contentTree(site)
  const before = earlierContents(root, published)
  const layout = new Layout({
    ...{ lock, profile, format, inscribed: published?.inscribed },
    earlier: (node) => (patches ? before.get(node) : undefined),
  })
  layout.inscribe(root)
  const earlier = published?.inscribed(root.id)
  const isUnchanged = earlier !== undefined && isShown(earlier, published)
  // It was laid out all the same: nothing else may be the first output.
  if (isUnchanged) layout.places.delete(root.id)
  return {
    outputs: layout.outputs,
    changes: changesOf(root, { places: layout.places, published }),
    isUnchanged,
    hasIndex: !('entries' in root) || hasIndex(root.entries),
  }
}

/**
 * Restores an earlier state of a name: inscribes a directory with the same targets as that of the state, or the file of the state
 * once more, because a name shows what its own output holds.
 *
 * @param options.sequence The number of a step, from 1 on.
 * @throws PublishError `NO_SUCH_STATE`, `BAD_LOCK`, `DIRECTORY_TOO_LARGE`.
 */
export function planReturn(options: { published: Published; sequence: number; lock: Uint8Array }): SitePlan {
  const { published, sequence, lock } = options
  checkLock(lock)
  const state = published.shownAt(sequence)
  if (state === undefined)
    throw new PublishError(
      'NO_SUCH_STATE',
      published.shown === undefined
        ? 'nothing has been published on this name'
        : `nothing was published at state ${sequence}, and the last state is ${published.sequence}`,
    )
  const { contentType } = state
  const entries = published.entriesOf(state)
  const body = entries === undefined ? state.body : checkedDirectory(returnedDirectory(contentType, entries))
  const before = published.shown && published.entriesOf(published.shown)
  const removed = [...(before ?? [])].filter(([name]) => !entries?.has(name))
  const patch = patchOn(published.shown, { contentType, body })
  return {
    outputs: [inscribe({ lock, ...(patch ?? { contentType, body }), tags: [contentTag(body)] })],
    changes: [
      { path: './', kind: 'changed', bytes: body.length, ...(patch && { patch: patch.body.length }) },
      ...[...(entries ?? [])].map(([name, target]) => ({
        ...earlierPlace(name, target, published),
        kind: 'kept' as const,
      })),
      ...removed.map(([name, target]) => ({
        ...earlierPlace(name, target, published),
        kind: 'removed' as const,
      })),
    ],
    isUnchanged: isShown(state.outpoint, published),
    hasIndex: entries === undefined || entries.has('index.html') || entries.has('.'),
  }
}

function returnedDirectory(contentType: string, entries: Map<string, DirectoryPointer>): Uint8Array {
  return contentType === BINARY_DIRECTORY
    ? encodeBinaryDirectory(
        [...entries].flatMap(([name, { outpoint: target, flags = 0 }]) =>
          target ? { name, flags, target } : [],
        ),
      )
    : encodeDirectory([...entries].map(([name, { pointer }]) => [name, pointer]))
}

/** What the name shows in the place of each node. */
function earlierContents(
  root: ContentNode,
  published: Published | undefined,
): Map<ContentNode, PublishedContent> {
  const found = new Map<ContentNode, PublishedContent>()
  const visit = (node: ContentNode, content: PublishedContent | undefined): void => {
    if (content === undefined || published === undefined) return
    found.set(node, content)
    const earlier = published.entriesOf(content)
    for (const entry of 'entries' in node ? node.entries : []) {
      const target = earlier?.get(entry.name)?.outpoint
      visit(entry, target && published.at(target))
    }
  }
  visit(root, published?.shown)
  return found
}

function isShown(outpoint: Outpoint, published: Published | undefined): boolean {
  return published?.shown !== undefined && published.isSame(outpoint, published.shown.outpoint)
}

/** An entry of a directory that was inscribed before. */
function earlierPlace(
  path: string,
  { outpoint }: DirectoryPointer,
  published: Published | undefined,
): Pick<SiteChange, 'path' | 'bytes'> {
  const content = outpoint && published?.at(outpoint)
  const isFolder = content !== undefined && published?.entriesOf(content) !== undefined
  return { path: isFolder ? `${path}/` : path, bytes: content?.body.length ?? 0 }
}

/** Compares a site with what a name shows, folder by folder; a removed folder is one change. */
function changesOf(
  root: ContentNode,
  { places, published }: { places: Layout['places']; published: Published | undefined },
): SiteChange[] {
  const changes: SiteChange[] = []
  const listed = new Set<string>()
  const visit = (
    node: ContentNode,
    { path, before, isNew }: { path: string; before: PublishedContent | undefined; isNew: boolean },
  ): void => {
    const place = listed.has(node.id) ? undefined : places.get(node.id)
    listed.add(node.id)
    const isFolder = 'entries' in node
    // A kept folder is listed by its files.
    if (place !== undefined || !isFolder)
      changes.push({
        path: path || './',
        kind: place === undefined ? 'kept' : isNew ? 'new' : 'changed',
        bytes: isFolder ? (place?.bytes ?? 0) : node.body.length,
        ...(place?.patch !== undefined && { patch: place.patch }),
      })
    const earlier = before && published?.entriesOf(before)
    const left = new Set<string>()
    for (const entry of isFolder ? node.entries : []) {
      const target = earlier?.get(entry.name)
      const content = target?.outpoint && published?.at(target.outpoint)
      const isSubfolder = 'entries' in entry
      const wasSubfolder = content === undefined ? isSubfolder : published?.entriesOf(content) !== undefined
      const isNewEntry = target === undefined || wasSubfolder !== isSubfolder
      if (!isNewEntry) left.add(entry.name)
      visit(entry, {
        path: path + entry.name + (isSubfolder ? '/' : ''),
        before: isNewEntry ? undefined : content,
        isNew: isNewEntry,
      })
    }
    for (const [name, target] of earlier ?? [])
      if (!left.has(name))
        changes.push({
          ...earlierPlace(isFolder ? path + name : name, target, published),
          kind: 'removed',
        })
  }
  const shown = published?.shown
  visit(root, { path: 'entries' in root ? '' : root.name, before: shown, isNew: shown === undefined })
  return changes
}
