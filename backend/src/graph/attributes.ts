import { essenceOf } from '../protocol/media-type.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { type MapState, mapBytes } from './map-merge.js'
import { sha256 } from './native-hash.js'

/**
 * What an ordinal in its current output is found by: an entry of its merged MAP, its parent, the type of its content, its
 * owner. All are looked up by the SHA-256, in hex, of their kind and value.
 */
export interface Attribute {
  kind: AttributeKind
  hash: string
}

export type AttributeKind = 'map' | 'parent' | 'contentType' | 'owner'

/**
 * By how many entries of its MAP, the first that were set, an ordinal is found: at least so many, one more for each so many bytes
 * of MAP, and at most so many. A row for an entry of four bytes takes fifty times as much, with its indexes.
 */
const MIN_MAP_ATTRIBUTES = 16
const BYTES_PER_ATTRIBUTE = 256
const MAX_MAP_ATTRIBUTES = 256

export const attribute = {
  /** A key with its text, or with one of the texts of its list. */
  map: (key: string, value: string): Attribute => attributeOf('map', key, value),
  parent: (outpoint: Outpoint): Attribute => attributeOf('parent', formatOutpoint(outpoint)),
  /** Parameters and case do not matter. */
  contentType: (contentType: string): Attribute => attributeOf('contentType', essenceOf(contentType)),
  /** By the public key hash, in hex. */
  owner: (owner: string): Attribute => attributeOf('owner', owner),
}

function attributeOf(kind: AttributeKind, ...values: string[]): Attribute {
  return { kind, hash: sha256(Buffer.from(JSON.stringify([kind, ...values]), 'utf8')).toString('hex') }
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
