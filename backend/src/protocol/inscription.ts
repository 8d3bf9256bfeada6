import { p2pkhOwner } from './address.js'
import type { BData, BitcomProtocol, MapCommand } from './bitcom.js'
import { B_MARKER, MAP_MARKER, MAX_BITCOM_PUSHES, readB, readBitcom, readMapScript } from './bitcom.js'
import { type Envelope, readEnvelope } from './envelope.js'
import { UNTYPED } from './media-type.js'
import type { Outpoint } from './outpoint.js'
import { OP, readPushes } from './script-walk.js'

/** What an output carries besides its lock, and its owner. */
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
 * the protocols after it (protocol.md 3 and 4). Accepts any bytes, never throws, takes linear time.
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
 * An envelope's body with its type comes first; B where the envelope sets no type or has no body; a body without a
 * type last. An envelope with a type and no body at all is no content.
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
