import { essenceOf } from '../protocol/media-type.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { type MapState, mapBytes } from './map-merge.js'
import { sha256 } from './native-hash.js'

/**
 * What an ordinal is found by, where it stands now: one entry of its merged MAP, its parent, the type of its content,
 * its owner. All are looked up alike, by the SHA-256 in hex of what they say.
 */
export interface Attribute {
  kind: AttributeKind
  hash: string
}

export type AttributeKind = 'map' | 'parent' | 'contentType' | 'owner'

/**
 * How many entries of a MAP an ordinal is found by, the first that were set: so many, one more for each so many bytes that
 * it says, and so many at the most. A row for an entry of four bytes takes fifty times as much, with its indexes.
 */
const LEAST_MAP_TRAITS = 16
const BYTES_A_TRAIT = 256
const MAX_MAP_TRAITS = 256

export const attribute = {
  /** A key with its text, or with one of the texts of its list. */
  map: (key: string, value: string): Attribute => attributeOf('map', key, value),
  parent: (outpoint: Outpoint): Attribute => attributeOf('parent', formatOutpoint(outpoint)),
  /** Parameters and case do not matter. */
  contentType: (contentType: string): Attribute => attributeOf('contentType', essenceOf(contentType)),
  /** By the public key hash, in hex. */
  owner: (owner: string): Attribute => attributeOf('owner', owner),
}

function attributeOf(kind: AttributeKind, ...said: string[]): Attribute {
  return { kind, hash: sha256(Buffer.from(JSON.stringify([kind, ...said]), 'utf8')).toString('hex') }
}

/** The traits of merged MAP, each once. */
export function mapAttributes(state: MapState): Attribute[] {
  const attributes: Attribute[] = []
  const most = Math.min(LEAST_MAP_TRAITS + Math.floor(mapBytes(state) / BYTES_A_TRAIT), MAX_MAP_TRAITS)
  for (const [key, value] of state) {
    for (const text of typeof value === 'string' ? [value] : value) {
      if (attributes.length === most) return attributes
      attributes.push(attribute.map(key, text))
    }
  }
  return attributes
}
