import { essenceOf } from '../protocol/media-type.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { PROFILES } from '../protocol/profile.js'
import { type MapState, mapBytes } from './map-merge.js'
import { sha256 } from './native-hash.js'
import type { OutputRecord } from './records.js'

/**
 * Something by which an ordinal is found, at its current output: an entry of its merged MAP, its parent, the type of its content,
 * or its owner. It is looked up by the first {@link HASH_BYTES} of the SHA-256, in hex, of kind and value.
 */
export interface Attribute {
  kind: AttributeKind
  hash: string
}

export type AttributeKind = 'map' | 'parent' | 'contentType' | 'owner'

/**
 * An ordinal is found by the entries of its MAP that were set first: `MIN_MAP_ATTRIBUTES`, and one more for each `BYTES_PER_ATTRIBUTE`
 * of MAP, up to `MAX_MAP_ATTRIBUTES`. With its indexes, the row for an entry of four bytes takes fifty times as much.
 */
const MIN_MAP_ATTRIBUTES = 16
const BYTES_PER_ATTRIBUTE = 256
const MAX_MAP_ATTRIBUTES = 256

export const attribute = {
  /** A key with its text, or with one of the texts of its list. */
  map: (key: string, value: string): Attribute => attributeOf('map', key, value),
  parent: (outpoint: Outpoint): Attribute => attributeOf('parent', formatOutpoint(outpoint)),
  /** Ignores parameters and case. */
  contentType: (contentType: string): Attribute => attributeOf('contentType', essenceOf(contentType)),
  /** By the public key hash, in hex. */
  owner: (owner: string): Attribute => attributeOf('owner', owner),
}

/** Finding two values with the same 16 bytes takes 2^64 attempts, and both only find each other's ordinals. */
const HASH_BYTES = 16

function attributeOf(kind: AttributeKind, ...values: string[]): Attribute {
  const hash = sha256(Buffer.from(JSON.stringify([kind, ...values]), 'utf8'))
  return { kind, hash: hash.toString('hex', 0, HASH_BYTES) }
}

export function mapAttributes(state: MapState): Attribute[] {
  const attributes: Attribute[] = []
  const most = Math.min(
    MIN_MAP_ATTRIBUTES + Math.floor(mapBytes(state) / BYTES_PER_ATTRIBUTE),
    MAX_MAP_ATTRIBUTES,
  )
  for (const [key, value] of state) {
    for (const text of typeof value === 'string' ? [value] : value) {
      if (attributes.length === most) return attributes
      attributes.push(attribute.map(key, text))
    }
  }
  return attributes
}

/** Above every block height, and below the recency of everything unproven. */
export const UNPROVEN = 2 ** 32

/**
 * The sort key of newest lists, highest first, before the outpoint. Unproven transactions come before all proven ones, the latest
 * first; proven ones come by height. So the lists depend on the insertion order as far as conflicts do (`docs/spec/overlay.md`,
 * Conflicts), and not at all once everything is proven.
 *
 * A row moves when its transaction is proven, or its block reorganised: a later page may repeat it or leave it out. All others are
 * shown once.
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

/** The height in a recency; undefined if it is that of an unproven transaction. */
export function heightIn(recency: number): number | undefined {
  return recency < UNPROVEN ? recency : undefined
}

/** The types of directories, and of further chunks of streams, of all networks; they are matched exactly. */
export const DIRECTORY_TYPES = Object.values(PROFILES).flatMap((profile) => profile.directoryContentTypes)
export const CHUNK_TYPES = Object.values(PROFILES).flatMap((profile) => profile.streamChunkContentTypes)

/**
 * The types, matched exactly, that are not listed by themselves: names have their own list, streams are listed by their first chunk.
 */
const PARTS: ReadonlySet<string> = new Set([
  ...Object.values(PROFILES).map(({ nameContentType }) => nameContentType),
  ...CHUNK_TYPES,
])

/** Whether an output is in the list of inscriptions. Follows from the output alone. */
export function isListed({ content, carrier }: Pick<OutputRecord, 'content' | 'carrier'>): boolean {
  return content !== undefined && carrier !== true && !PARTS.has(content.contentType)
}

/**
 * The entries of a page, and the last of them if more follow.
 *
 * @param found Up to one more than the limit.
 */
export function pageOf<Entry>(found: readonly Entry[], limit: number): { shown: Entry[]; end?: Entry } {
  const shown = found.slice(0, limit)
  const end = shown.at(-1)
  return found.length > limit && end !== undefined ? { shown, end } : { shown }
}
