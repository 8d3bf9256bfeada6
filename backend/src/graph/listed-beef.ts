import { setImmediate } from 'node:timers/promises'
import { BEEF_V1, Beef, MerklePath, Utils } from '@bsv/sdk'
import type { TransactionReader } from './graph-store.js'
import type { Proof, TransactionRecord } from './records.js'

/** A transaction of a BEEF to come, without its bytes, of which there are `length`. */
export interface ListedTransaction {
  txid: string
  length: number
  proof?: Proof
}

export function listed({ txid, raw, proof }: TransactionRecord): ListedTransaction {
  return { txid, length: raw.length, ...(proof && { proof }) }
}

/** A BEEF that is known but for the raw transactions in it. */
export interface ListedBeef {
  /** All of it, in bytes. */
  length: number
  /** What stands before the first transaction, in pieces. With the txids it tells which body this is. */
  head: Uint8Array[]
  /**
   * The whole of it, one transaction held at a time.
   *
   * @throws Error where a transaction is no longer held as it was listed, with what came before given already.
   */
  bytes(): AsyncGenerator<Uint8Array>
}

/**
 * Lays out the BEEF V1 (BRC-62) of stored transactions, which stand parents first.
 *
 * @param options.envelope What is to stand before it.
 */
export async function listedBeef(options: {
  transactions: ListedTransaction[]
  store: TransactionReader
  envelope?: Uint8Array[]
}): Promise<ListedBeef> {
  const { transactions, store, envelope = [] } = options
  const { bumps, indexOf } = await mergedBumps(transactions)
  const head = [
    ...envelope,
    new Utils.Writer().writeUInt32LE(BEEF_V1).writeVarIntNum(bumps.length).toUint8Array(),
    ...bumps,
    varint(transactions.length),
  ]
  const tailOf = ({ txid }: ListedTransaction): Uint8Array => {
    const index = indexOf.get(txid)
    return index === undefined ? Uint8Array.of(0) : Uint8Array.of(1, ...varint(index))
  }
  const lengths = transactions.map((transaction) => transaction.length + tailOf(transaction).length)
  return {
    length: [...head.map((piece) => piece.length), ...lengths].reduce((total, length) => total + length, 0),
    head,
    async *bytes() {
      yield* head
      for (const transaction of transactions) {
        const { txid, length } = transaction
        const raw = (await store.transaction(txid))?.raw
        if (raw?.length !== length) throw new Error(`of ${txid}, ${length} bytes were held`)
        yield raw
        yield tailOf(transaction)
      }
    },
  }
}

function varint(value: number): Uint8Array {
  return new Utils.Writer().writeVarIntNum(value).toUint8Array()
}

interface Path {
  txid: string
  merklePath: Uint8Array
}

/** Merging takes the square of this, and nobody else is served meanwhile: a block may hold any number of steps. */
const PATHS_A_BUMP = 16

/** The merkle paths of all transactions, those of one block together, and which of them proves which transaction. */
async function mergedBumps(
  transactions: ListedTransaction[],
): Promise<{ bumps: Uint8Array[]; indexOf: Map<string, number> }> {
  const blocks = new Map<number, Path[]>()
  for (const { txid, proof } of transactions) {
    if (proof === undefined) continue
    const { height, merklePath } = proof
    const block = blocks.get(height)
    if (block === undefined) blocks.set(height, [{ txid, merklePath }])
    else block.push({ txid, merklePath })
  }
  const bumps: Uint8Array[] = []
  const indexOf = new Map<string, number>()
  for (const block of blocks.values()) {
    for (let at = 0; at < block.length; at += PATHS_A_BUMP) {
      const part = block.slice(at, at + PATHS_A_BUMP)
      const merged = part.length === 1 ? asStored(part) : merge(part)
      part.forEach(({ txid }, i) => {
        indexOf.set(txid, bumps.length + (merged.indexes[i] ?? 0))
      })
      bumps.push(...merged.bumps)
      // Others are served between.
      await setImmediate()
    }
  }
  return { bumps, indexOf }
}

interface Merged {
  bumps: Uint8Array[]
  /** Of each path, the bump that it is in. */
  indexes: number[]
}

function asStored(paths: Path[]): Merged {
  return { bumps: paths.map(({ merklePath }) => merklePath), indexes: paths.map((_, i) => i) }
}

/** One bump, or one for each root that the paths lead to: a store may know a height from before and after a reorg. */
function merge(paths: Path[]): Merged {
  const block = new Beef()
  const indexes = paths.map(({ merklePath }) =>
    // A plain copy: of a Buffer, which a database may give, the SDK would turn hashes about in place.
    block.mergeBump(MerklePath.fromReader(new Utils.ReaderUint8Array(new Uint8Array(merklePath)), false)),
  )
  return { bumps: block.bumps.map((bump) => Uint8Array.from(bump.toBinary())), indexes }
}
