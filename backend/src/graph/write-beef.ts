import { BEEF_V1, BEEF_V2 } from '@bsv/sdk'
import { ByteCursor, encodeNumber, encodeVarint } from '../protocol/byte-cursor.js'
import { fromHex, joinBytes } from '../protocol/bytes.js'
import { type Bump, encodeBump, readBump } from '../protocol/merkle-path.js'
import { encodeOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { parentsFirst, unprovenParents } from './ancestry.js'
import type { Proof, TransactionRecord } from './records.js'
import type { RawSource, TransactionSource } from './stored-transaction.js'
import { yieldToEventLoop } from './yield-to-event-loop.js'

/**
 * Assembles the BEEF (BRC-62) of stored transactions: each once, parents before children, proven ones with their merkle path,
 * unproven ones with their ancestors down to proven ones as far as the store has them. For a single txid, its transaction is
 * last, where `Transaction.fromBEEF` expects the subject.
 *
 * @returns undefined if the store lacks one of the `txids`.
 */
export async function assembleBeef(
  txids: string[],
  store: TransactionSource,
): Promise<Uint8Array | undefined> {
  const found = new Map<string, { record: TransactionRecord; parents: string[] }>()
  const waiting = txids.toReversed()
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    const record = found.has(txid) ? undefined : await store.get(txid)
    if (record === undefined) continue
    const parents = unprovenParents(record)
    found.set(txid, { record, parents })
    for (const parent of parents.toReversed()) waiting.push(parent)
  }
  if (!txids.every((txid) => found.has(txid))) return undefined
  return encodeBeef(parentsFirst(found, ({ parents }) => parents).map(({ record }) => record))
}

/** A BEEF V1 of transactions in parents-first order. */
export function encodeBeef(transactions: Pick<TransactionRecord, 'raw' | 'proof'>[]): Uint8Array {
  const layout = new BeefLayout()
  const parts = transactions.flatMap(({ raw, proof }) => [raw, layout.add(proof)])
  return joinBytes([...layout.head(), ...parts])
}

/** A transaction to include in a BEEF, without its bytes; `length` is how many there are. */
export interface ListedTransaction {
  txid: string
  length: number
  proof?: Proof
}

const PROOFS_A_SLICE = 64
/** Approximate bytes of a listed transaction in memory. */
export const HELD_BY_ENTRY = 256

/** A BEEF whose raw transactions are read when it is sent. */
export interface ListedBeef {
  /** Its length in bytes. */
  length: number
  /** Approximate bytes in memory until all are sent, beside a chunk. */
  held: number
  /** The bytes before the first transaction, in parts. With the txids they identify the body. */
  head: Uint8Array[]
  /**
   * The bytes, with one chunk of a transaction in memory at a time.
   *
   * @throws Error if a transaction is not stored any more as it was listed; earlier bytes have been yielded by then.
   */
  bytes(): Generator<Uint8Array>
}

/**
 * Prepares the BEEF of stored transactions in parents-first order.
 *
 * @param options.envelope Bytes to put before it.
 * @param options.version V1 (BRC-62) by default, or V2 (BRC-96).
 */
export async function listedBeef(options: {
  transactions: ListedTransaction[]
  store: RawSource
  envelope?: Uint8Array[]
  version?: number
}): Promise<ListedBeef> {
  const { transactions, store, envelope = [], version = BEEF_V1 } = options
  const layout = new BeefLayout()
  const entries: { transaction: Pick<ListedTransaction, 'txid' | 'length'>; path: Uint8Array }[] = []
  for (const transaction of transactions) {
    const { txid, length, proof } = transaction
    entries.push({ transaction: { txid, length }, path: layout.add(proof) })
    // A history may be of any length.
    if (entries.length % PROOFS_A_SLICE === 0) await yieldToEventLoop()
  }
  const head = [...envelope]
  for (const piece of layout.head(version)) {
    head.push(piece)
    if (head.length % PROOFS_A_SLICE === 0) await yieldToEventLoop()
  }
  const lengths = entries.map(({ transaction, path }) => transaction.length + path.length)
  const total = (sum: number, length: number): number => sum + length
  const headLength = head.map((piece) => piece.length).reduce(total, 0)
  return {
    length: headLength + lengths.reduce(total, 0),
    held: headLength + entries.length * HELD_BY_ENTRY,
    head,
    *bytes() {
      yield* head
      for (const { transaction, path } of entries) {
        const { txid, length } = transaction
        const raw = store.raw(txid)
        if (raw?.length !== length) throw new Error(`the store no longer has the ${length} bytes of ${txid}`)
        if (version === BEEF_V2) yield path
        for (const { bytes } of raw.chunks()) yield bytes
        if (version === BEEF_V1) yield path
      }
    },
  }
}

/** BRC-158, Specification: an Atomic BEEF (BRC-95) whose subject is an output. */
const OUTPOINT_BEEF = fromHex('16a7beef')

/** The Outpoint BEEF (BRC-158) of an output of a short mined transaction. */
export function shortOutpointBeef(
  subject: Outpoint,
  transaction: Pick<TransactionRecord, 'raw' | 'proof'>,
): Uint8Array {
  return joinBytes([OUTPOINT_BEEF, encodeOutpoint(subject), encodeBeef([transaction])])
}

/** Prepares the Outpoint BEEF (BRC-158) of stored transactions in parents-first order. */
export async function outpointBeef(options: {
  subject: Outpoint
  transactions: ListedTransaction[]
  store: RawSource
}): Promise<ListedBeef> {
  const { subject, ...beef } = options
  return await listedBeef({ ...beef, envelope: [OUTPOINT_BEEF, encodeOutpoint(subject)] })
}

/** The most paths merged into one: the SDK takes the square of this to read it, and a block may have any number of steps. */
const PATHS_A_BUMP = 16

/**
 * The bytes around the raw transactions of a BEEF in parents-first order. The SDK's own writer moves transactions
 * with a missing ancestor to the front, so the subject would no longer be last.
 *
 * Merkle paths of one block are merged. They were validated when they were stored, so nothing is hashed here: paths with the same
 * root share a tree.
 */
export class BeefLayout {
  /** Each as stored, cut for its transaction, until another is merged into it: parsed, a path takes ten times as much memory. */
  private readonly bumps: (Bump | Uint8Array)[] = []
  /** For each block, the path into which others are merged. */
  private readonly open = new Map<string, { index: number; paths: number }>()
  private count = 0

  /** Adds the next transaction. @returns The bytes after its raw bytes, in a V2 BEEF before them. */
  add(proof: Proof | undefined): Uint8Array {
    this.count++
    return proof === undefined ? Uint8Array.of(0) : Uint8Array.of(1, ...encodeVarint(this.indexOf(proof)))
  }

  /** The bytes before the first transaction, in parts, when all were added. Encoding a path takes time. */
  *head(version: number = BEEF_V1): Generator<Uint8Array> {
    yield encodeNumber(version, 4)
    yield encodeVarint(this.bumps.length)
    for (const bump of this.bumps) yield 'levels' in bump ? encodeBump(trimmed(bump)) : bump
    yield encodeVarint(this.count)
  }

  /** The index of the path that now contains this one. */
  private indexOf({ merklePath, height, root }: Proof): number {
    // A store may have proofs of one height from before and after a reorg.
    const block = `${height} ${root} ${levelsOf(merklePath)}`
    const open = this.open.get(block)
    if (open !== undefined && open.paths < PATHS_A_BUMP) {
      const known = asBump(this.bumps[open.index] ?? merklePath)
      addLeaves(known, asBump(merklePath))
      this.bumps[open.index] = known
      open.paths++
      return open.index
    }
    const index = this.bumps.push(merklePath) - 1
    this.open.set(block, { index, paths: 1 })
    return index
  }
}

/** One merkle path for all transactions of these, which must be of one block (BUMP, BRC-74). */
export function mergedPath([first = new Uint8Array(0), ...others]: readonly Uint8Array[]): Uint8Array {
  const merged = asBump(first)
  for (const path of others) addLeaves(merged, asBump(path))
  return encodeBump(trimmed(merged))
}

/** A merkle path as it is stored, parsed. @throws Error if it cannot be read */
export function asBump(path: Bump | Uint8Array): Bump {
  return 'levels' in path ? path : readBump(path, unreadable)
}

/** How many levels a path has: the byte after its height. */
function levelsOf(path: Uint8Array): number {
  const cursor = new ByteCursor(path, unreadable)
  cursor.varint()
  return cursor.u8()
}

function unreadable(message: string): Error {
  return new Error(`a stored proof cannot be read: ${message}`)
}

/** Adds the leaves of a path to those of another of the same tree. */
function addLeaves(merged: Bump, { levels }: Bump): void {
  for (const [level, leaves] of levels.entries()) {
    const known = merged.levels[level]
    // A sibling in one path may be a transaction in the other.
    for (const [offset, leaf] of leaves) if (leaf.isTxid || !known?.has(offset)) known?.set(offset, leaf)
  }
}

/** Leaves out the nodes that can be computed from the transactions below them. */
function trimmed({ height, levels: [lowest = new Map(), ...above] }: Bump): Bump {
  let led = new Set<number>()
  for (const [offset, { isTxid }] of lowest) if (isTxid) led.add(offset)
  const upper = above.map((level) => {
    led = new Set([...led].map((at) => at >>> 1))
    return new Map([...level].filter(([at]) => !led.has(at)))
  })
  return { height, levels: [lowest, ...upper] }
}
