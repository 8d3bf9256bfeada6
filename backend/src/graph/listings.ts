import { PROFILES } from '../protocol/profile.js'
import type { OutputRecord } from './records.js'

/** Above every block height, and below the recency of everything unproven. */
export const UNPROVEN = 2 ** 32

/**
 * What newest lists are sorted by, highest first, before the outpoint. Proven transactions come by height; unproven ones come
 * before all of them, those that came last first. So the lists depend on the insertion order as far as conflicts do
 * (`docs/spec/overlay.md`, Conflicts), and not at all once everything is proven.
 *
 * A row moves when its transaction is proven, or its block reorganised: a page read after that may show it once more, or leave
 * it out. All others are shown once.
 */
export function recencyOf({
  height,
  insertionOrder,
}: {
  height: number | undefined
  insertionOrder: number
}): number {
  return height ?? UNPROVEN + Math.max(0, insertionOrder)
}

/** The height that a recency stands for; undefined if it is that of an unproven transaction. */
export function heightIn(recency: number): number | undefined {
  return recency < UNPROVEN ? recency : undefined
}

/** The types of directories, and of further chunks of streams, of all networks; they are matched exactly. */
export const DIRECTORY_TYPES = Object.values(PROFILES).flatMap((profile) => profile.directoryContentTypes)
export const CHUNK_TYPES = Object.values(PROFILES).flatMap((profile) => profile.streamChunkContentTypes)

/** The types, matched exactly, of what is part of something else: names have a list of their own, and streams are listed by their first chunk. */
const PARTS: ReadonlySet<string> = new Set([
  ...Object.values(PROFILES).map(({ nameContentType }) => nameContentType),
  ...CHUNK_TYPES,
])

/** Whether an output is in the list of inscriptions. Follows from the output alone. */
export function isListed({ content, carrier }: Pick<OutputRecord, 'content' | 'carrier'>): boolean {
  return content !== undefined && carrier !== true && !PARTS.has(content.contentType)
}
