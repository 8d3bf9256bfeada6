import { p2pkhOwner } from './address.js'
import {
  B_MARKER,
  type BData,
  type BitcomProtocol,
  MAP_MARKER,
  MAX_BITCOM_PUSHES,
  type MapCommand,
  readB,
  readBitcom,
  readMapScript,
} from './bitcom.js'
import { ascii, concatBytes, equalBytes, joinBytes, utf8 } from './bytes.js'
import { readMediaType, UNTYPED } from './media-type.js'
import { decodeOutpoint, encodeOutpoint, type Outpoint } from './outpoint.js'
import { encodeMinimalPush, encodePush, OP, readPushes, ScriptWalk } from './script-walk.js'

/** One tag of an envelope with its value, as pushed. */
interface EnvelopeField {
  tag: Uint8Array
  value: Uint8Array
}

/** An inscription envelope (BRC-160). Byte fields are views into the script, except a body of several pushes. */
interface Envelope {
  /** Absent if the tag is, or if its last value is empty, not UTF-8, or has 256 bytes or more. */
  contentType?: string
  parent?: Outpoint
  /** Undefined without a body tag; empty if nothing follows that tag. */
  body?: Uint8Array
  /** The value of the last MAP tag, a script of pushes. */
  map?: Uint8Array
  /** The other tags in order. */
  fields: EnvelopeField[]
}

const ORD = ascii('ord')
const MAP_TAG = ascii(MAP_MARKER)
const BODY_TAG = 0
const CONTENT_TYPE_TAG = 1
const PARENT_TAG = 3

/** The most other tags that are kept: tags of two bytes take a hundred times their size in memory. */
const MAX_FIELDS = 1000

/** By opcode, 1 for code that neither pushes bytes nor opens or ends anything. */
const IS_PLAIN = new Uint8Array(256).fill(1, OP.PUSHDATA4 + 1)
for (const op of [OP.IF, OP.NOTIF, OP.ENDIF, OP.RETURN]) IS_PLAIN[op] = 0

/**
 * Walks a locking script up to its first top-level OP_RETURN, and reads the first envelope before it.
 *
 * @returns the envelope, if there is one, with the offsets of its start and end, and in `tail` the
 * offset after the OP_RETURN, if there is one. An OP_RETURN inside an IF is not top-level. Never throws; takes time
 * linear in the script.
 */
export function readEnvelope(script: Uint8Array): {
  envelope?: Envelope
  span?: { from: number; to: number }
  tail?: number
} {
  let walk = new ScriptWalk(script)
  let depth = 0
  let afterFalse = false
  let envelope: Envelope | undefined
  let span: { from: number; to: number } | undefined
  while (walk.next()) {
    const { op } = walk
    if (op === OP.RETURN && depth === 0) return { envelope, span, tail: walk.end }
    if (op === OP.IF || op === OP.NOTIF) depth++
    else if (op === OP.ENDIF && depth > 0) depth--
    if (op === OP.IF && afterFalse && envelope === undefined) {
      const found = readEnvelopeAt(script, walk.end)
      if (found !== undefined) {
        envelope = found.envelope
        // OP_FALSE and OP_IF are a byte each.
        span = { from: walk.end - 2, to: found.end }
        walk = new ScriptWalk(script, found.end)
        depth--
      }
    }
    afterFalse = op === OP.FALSE
    if (!afterFalse) walk.skip(IS_PLAIN)
  }
  return { envelope, span }
}

/**
 * Reads the envelope whose OP_FALSE OP_IF ends at `at`; `end` is the offset after its OP_ENDIF. Undefined if no `ord` follows, if any
 * opcode other than a push comes before the OP_ENDIF (that is code, and BRC-160 knows only pushes), or if there is no OP_ENDIF (the
 * script could not be run). Since a failed envelope ends before the next OP_IF, trying them all reads each byte twice at most.
 */
function readEnvelopeAt(script: Uint8Array, at: number): { envelope: Envelope; end: number } | undefined {
  const walk = new ScriptWalk(script, at)
  if (!walk.next() || walk.data === undefined || !equalBytes(walk.data, ORD)) return undefined
  const envelope: Envelope = { fields: [] }
  const known: KnownFields = {}
  while (walk.next() && !isBodyTag(walk)) {
    if (walk.op === OP.ENDIF) return finish(envelope, known, walk.end)
    const field = knownField(walk)
    const tag = field === undefined && envelope.fields.length < MAX_FIELDS ? walk.pushed : undefined
    if (walk.pushedLength === undefined || !walk.next()) return undefined
    // A tag without a value is ignored; what was read before it counts.
    if (walk.op === OP.ENDIF) return finish(envelope, known, walk.end)
    if (walk.pushedLength === undefined) return undefined
    const value = (tag !== undefined || field !== undefined) && walk.pushed
    if (!value) continue
    if (field !== undefined) known[field] = value
    else if (tag !== undefined) envelope.fields.push({ tag, value })
  }
  const bodyStart = walk.end
  let bodyLength = 0
  let pushes = 0
  while (walk.next()) {
    if (walk.op === OP.ENDIF) {
      envelope.body = readBody({ script, at: bodyStart, length: bodyLength, pushes })
      return finish(envelope, known, walk.end)
    }
    if (walk.pushedLength === undefined) return undefined
    bodyLength += walk.pushedLength
    pushes++
  }
  return undefined
}

/** Joins counted pushes. Counted first, so that a body of millions of pushes does not take a view for each. */
function readBody(body: { script: Uint8Array; at: number; length: number; pushes: number }): Uint8Array {
  const walk = new ScriptWalk(body.script, body.at)
  if (body.pushes === 1 && walk.next() && walk.data !== undefined) return walk.data
  const joined = new Uint8Array(body.length)
  walk.end = body.at
  let filled = 0
  for (let left = body.pushes; left > 0 && walk.next(); left--) {
    walk.copyPushed(joined, filled)
    filled += walk.pushedLength ?? 0
  }
  return joined
}

/** The last value of each known field, whatever it holds (BRC-160). */
type KnownFields = Partial<Record<'contentType' | 'parent' | 'map', Uint8Array>>

/** OP_0 pushes nothing, and a push of the byte 0 is the same tag. */
function isBodyTag({ pushedLength, data }: ScriptWalk): boolean {
  return pushedLength === 0 || (pushedLength === 1 && data?.[0] === BODY_TAG)
}

/** The field that a tag names, an opcode or a push of any form. */
function knownField(walk: ScriptWalk): keyof KnownFields | undefined {
  const { pushedLength: length } = walk
  if (length === MAP_TAG.length) return equalBytes(walk.pushed ?? MAP_TAG, MAP_TAG) ? 'map' : undefined
  const tag = length === 1 ? walk.pushed?.[0] : undefined
  if (tag === CONTENT_TYPE_TAG) return 'contentType'
  return tag === PARENT_TAG ? 'parent' : undefined
}

function finish(
  envelope: Envelope,
  { contentType, parent, map }: KnownFields,
  end: number,
): { envelope: Envelope; end: number } {
  envelope.contentType = contentType && readMediaType(contentType)
  envelope.parent = parent && readParent(parent)
  if (map !== undefined) envelope.map = map
  return { envelope, end }
}

/** 36 bytes: an outpoint. 32 bytes: vout 0 of that transaction. Anything else: no parent. */
function readParent(value: Uint8Array): Outpoint | undefined {
  if (value.length === 36) return decodeOutpoint(value)
  return value.length === 32 ? decodeOutpoint(concatBytes(value, new Uint8Array(4))) : undefined
}

/**
 * Writes an envelope: content type, parent, further fields in order, then the body if there is one. Reading it gives
 * the same back; a body over 4 GiB, a content type that a reader drops, and a tag that starts the body are the caller's to avoid.
 */
export function encodeEnvelope(envelope: {
  contentType?: string
  parent?: Outpoint
  fields?: readonly EnvelopeField[]
  body?: Uint8Array
}): Uint8Array {
  const { contentType, parent, fields = [], body } = envelope
  const parts = [Uint8Array.of(OP.FALSE, OP.IF), encodePush(ORD)]
  if (contentType !== undefined)
    parts.push(encodeMinimalPush(Uint8Array.of(CONTENT_TYPE_TAG)), encodePush(utf8(contentType)))
  if (parent !== undefined)
    parts.push(encodeMinimalPush(Uint8Array.of(PARENT_TAG)), encodePush(encodeOutpoint(parent)))
  for (const { tag, value } of fields) parts.push(encodeMinimalPush(tag), encodePush(value))
  if (body !== undefined) parts.push(Uint8Array.of(OP.FALSE))
  if (body !== undefined && body.length > 0) parts.push(encodePush(body))
  parts.push(Uint8Array.of(OP.ENDIF))
  return joinBytes(parts)
}

/** The contents of an output beside its lock, and its owner. */
export interface Inscription {
  /** `body` is a view into the script if it is one push. */
  content?: { contentType: string; body: Uint8Array; source: 'envelope' | 'b' }
  parent?: Outpoint
  /** Changes of metadata, in the order of the script. */
  map: MapCommand[]
  /** The public key hash, in hex, if the lock is P2PKH. */
  owner?: string
}

/**
 * Reads a locking script once for content, parent, MAP and owner: the first envelope before a top-level OP_RETURN, then
 * the protocols after it (`docs/spec/protocol.md`, Scripts). Accepts any bytes, never throws, takes linear time.
 */
export function readInscription(script: Uint8Array): Inscription {
  const { envelope, span, tail } = readEnvelope(script)
  const protocols = tail === undefined ? [] : readBitcom(script, tail)
  return {
    content: readContent(envelope, protocols),
    parent: envelope?.parent,
    map: readMap(envelope, protocols),
    owner: readOwner(script, { span, tail }),
  }
}

/** The owner alone, as {@link readInscription} reads it. */
export function ownerOf(script: Uint8Array): string | undefined {
  return readOwner(script, readEnvelope(script))
}

/**
 * The lock is the script without the envelope and the OP_RETURN. Tools of the field put it on either side of the envelope, and
 * some an OP_CODESEPARATOR between them, which has no effect on who may spend.
 */
function readOwner(
  script: Uint8Array,
  { span, tail }: Pick<ReturnType<typeof readEnvelope>, 'span' | 'tail'>,
): string | undefined {
  const end = tail === undefined ? script.length : tail - 1
  const parts =
    span === undefined
      ? [[0, end]]
      : [
          [0, span.from],
          [span.to, end],
        ]
  const locks = parts
    .map(([from, to]) => withoutSeparators(script.subarray(from, to)))
    .filter(({ length }) => length > 0)
  const [lock] = locks
  return lock === undefined || locks.length > 1 ? undefined : p2pkhOwner(lock)
}

/** A lock without the OP_CODESEPARATORs at its ends. */
function withoutSeparators(lock: Uint8Array): Uint8Array {
  let [from, to] = [0, lock.length]
  while (from < to && lock[from] === OP.CODESEPARATOR) from++
  while (to > from && lock[to - 1] === OP.CODESEPARATOR) to--
  return lock.subarray(from, to)
}

/**
 * An envelope's body with its type comes first, then B, then a body without a type. An envelope with a type but no body is no content.
 */
function readContent(
  envelope: Envelope | undefined,
  protocols: readonly BitcomProtocol[],
): Inscription['content'] {
  const body = envelope?.body
  const contentType = envelope?.contentType
  if (body !== undefined && contentType !== undefined) return { contentType, body, source: 'envelope' }
  const b = findB(protocols)
  if (b !== undefined) return { contentType: b.mediaType ?? UNTYPED, body: b.data, source: 'b' }
  return body && { contentType: UNTYPED, body, source: 'envelope' }
}

function findB(protocols: readonly BitcomProtocol[]): BData | undefined {
  for (const { marker, pushes } of protocols) {
    const b = marker === B_MARKER ? readB(pushes) : undefined
    if (b !== undefined) return b
  }
  return undefined
}

function readMap(envelope: Envelope | undefined, protocols: readonly BitcomProtocol[]): MapCommand[] {
  const own = envelope?.map && readPushes(envelope.map, { limit: MAX_BITCOM_PUSHES })
  const others = protocols.flatMap(({ marker, pushes }) => (marker === MAP_MARKER ? [pushes] : []))
  return [...(own ? [own] : []), ...others].flatMap(readMapScript)
}
