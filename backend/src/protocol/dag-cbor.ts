import { compareBytes, concatBytes, joinBytes, readStrictUtf8, utf8 } from './bytes.js'

// The part of DAG-CBOR (https://ipld.io/specs/codecs/dag-cbor/spec/) that profiles of identity bindings use: one map whose
// members are text or bytes. Members of other kinds keep their encoding. Libraries for all of DAG-CBOR have 7 and 12 KiB
// compressed, a third and a half of what a browser loads of the client; tests compare with one of them.

export interface DagCborMember {
  key: string
  /** Undefined for any other kind of value. */
  value: string | Uint8Array | undefined
  encoded: Uint8Array
}

/** Kinds of values: the upper three bits of their first byte. */
const KIND = { uint: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6, simple: 7 } as const
/** The only tag of DAG-CBOR: a CID. */
const CID_TAG = 42
/** `false`, `true`, `null`, and a float of 64 bits. */
const SIMPLE = [20, 21, 22, 27]
/** How deep values may be nested. */
const MAX_DEPTH = 16

/**
 * Reads a map: definite lengths, shortest numbers, keys that are unique text. The order of keys is not checked.
 *
 * @returns Its members in order; undefined for any other bytes. Never throws; takes linear time.
 */
export function readDagCborMap(bytes: Uint8Array): DagCborMember[] | undefined {
  try {
    const reader = new Reader(bytes)
    const members = reader.map(MAX_DEPTH)
    return reader.at === bytes.length ? members : undefined
  } catch (error) {
    if (error instanceof NotDagCbor) return undefined
    throw error
  }
}

/** The length of a map at the start of these bytes; undefined if there is none. Never throws; takes linear time. */
export function dagCborMapLength(bytes: Uint8Array): number | undefined {
  try {
    const reader = new Reader(bytes)
    reader.map(MAX_DEPTH)
    return reader.at
  } catch (error) {
    if (error instanceof NotDagCbor) return undefined
    throw error
  }
}

class NotDagCbor extends Error {}

class Reader {
  at = 0

  constructor(private readonly bytes: Uint8Array) {}

  map(depth: number): DagCborMember[] {
    const { kind, argument } = this.head()
    if (kind !== KIND.map) throw new NotDagCbor()
    return this.members(argument, depth)
  }

  private members(count: number, depth: number): DagCborMember[] {
    const members: DagCborMember[] = []
    const keys = new Set<string>()
    for (let left = count; left > 0; left--) {
      const key = this.value(depth).value
      if (typeof key !== 'string' || keys.has(key)) throw new NotDagCbor()
      keys.add(key)
      members.push({ key, ...this.value(depth) })
    }
    return members
  }

  private value(depth: number): Pick<DagCborMember, 'value' | 'encoded'> {
    if (depth === 0) throw new NotDagCbor()
    const start = this.at
    const { kind, info, argument } = this.head()
    let value: string | Uint8Array | undefined
    if (kind === KIND.bytes) value = this.take(argument)
    else if (kind === KIND.text) {
      value = readStrictUtf8(this.take(argument))
      if (value === undefined) throw new NotDagCbor()
    } else if (kind === KIND.array) for (let left = argument; left > 0; left--) this.value(depth - 1)
    else if (kind === KIND.map) this.members(argument, depth - 1)
    else if (kind === KIND.tag) {
      const cid = this.value(depth - 1).value
      if (argument !== CID_TAG || !(cid instanceof Uint8Array)) throw new NotDagCbor()
    } else if (kind === KIND.simple && !SIMPLE.includes(info)) throw new NotDagCbor()
    return { value, encoded: this.bytes.subarray(start, this.at) }
  }

  /** The first byte of a value, and the number that it and up to eight more bytes hold. */
  private head(): { kind: number; info: number; argument: number } {
    const [first = 0] = this.take(1)
    const [kind, info] = [first >> 5, first & 31]
    if (info < 24) return { kind, info, argument: info }
    // 28 to 30 mean nothing, and 31 an indefinite length.
    if (info > 27) throw new NotDagCbor()
    let argument = 0
    for (const byte of this.take(1 << (info - 24))) argument = argument * 256 + byte
    const least = info === 24 ? 24 : 2 ** (4 << (info - 24))
    // The eight bytes of a float are no number.
    if (kind !== KIND.simple && argument < least) throw new NotDagCbor()
    return { kind, info, argument }
  }

  private take(length: number): Uint8Array {
    const end = this.at + length
    if (end > this.bytes.length) throw new NotDagCbor()
    const taken = this.bytes.subarray(this.at, end)
    this.at = end
    return taken
  }
}

export function encodeDagCbor(value: string | Uint8Array): Uint8Array {
  const bytes = typeof value === 'string' ? utf8(value) : value
  return concatBytes(head(typeof value === 'string' ? KIND.text : KIND.bytes, bytes.length), bytes)
}

export function encodeDagCborList(items: readonly Uint8Array[]): Uint8Array {
  return joinBytes([head(KIND.array, items.length), ...items])
}

/** A map of encoded values, with its keys in the order of DAG-CBOR: the shorter first, then by their bytes. */
export function encodeDagCborMap(members: readonly Pick<DagCborMember, 'key' | 'encoded'>[]): Uint8Array {
  const encoded = members
    .map((member) => ({ key: utf8(member.key), value: member.encoded }))
    .sort((a, b) => a.key.length - b.key.length || compareBytes(a.key, b.key))
  const parts = encoded.flatMap(({ key, value }) => [head(KIND.text, key.length), key, value])
  return joinBytes([head(KIND.map, members.length), ...parts])
}

function head(kind: number, argument: number): Uint8Array {
  const first = kind << 5
  if (argument < 24) return Uint8Array.of(first | argument)
  if (argument < 256) return Uint8Array.of(first | 24, argument)
  if (argument < 65_536) return Uint8Array.of(first | 25, argument >> 8, argument & 255)
  return Uint8Array.of(
    first | 26,
    argument >>> 24,
    (argument >> 16) & 255,
    (argument >> 8) & 255,
    argument & 255,
  )
}
