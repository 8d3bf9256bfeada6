import { BeefLayout } from './beef-layout.js'
import type { TransactionSource } from './graph-store.js'
import type { Proof } from './records.js'
import { openTransaction } from './transaction-outline.js'
import { yieldToEventLoop } from './yield-to-event-loop.js'

/** A transaction of a BEEF to come, without its bytes, of which there are `length`. */
export interface ListedTransaction {
  txid: string
  length: number
  proof?: Proof
}

/** Each is read, and merged with others of its block. */
const PROOFS_A_SLICE = 64

/** A BEEF that is known but for the raw transactions in it. */
export interface ListedBeef {
  /** All of it, in bytes. */
  length: number
  /** What stands before the first transaction, in pieces. With the txids it tells which body this is. */
  head: Uint8Array[]
  /**
   * The whole of it, a piece of one transaction held at a time.
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
  store: TransactionSource
  envelope?: Uint8Array[]
}): Promise<ListedBeef> {
  const { transactions, store, envelope = [] } = options
  const layout = new BeefLayout()
  const entries: { transaction: Pick<ListedTransaction, 'txid' | 'length'>; tail: Uint8Array }[] = []
  for (const transaction of transactions) {
    const { txid, length, proof } = transaction
    entries.push({ transaction: { txid, length }, tail: layout.add(proof) })
    // Others are served between: a history may be of any length.
    if (entries.length % PROOFS_A_SLICE === 0) await yieldToEventLoop()
  }
  const head = [...envelope]
  for (const piece of layout.head()) {
    head.push(piece)
    if (head.length % PROOFS_A_SLICE === 0) await yieldToEventLoop()
  }
  const lengths = entries.map(({ transaction, tail }) => transaction.length + tail.length)
  const total = (sum: number, length: number): number => sum + length
  return {
    length: head.map((piece) => piece.length).reduce(total, 0) + lengths.reduce(total, 0),
    head,
    async *bytes() {
      yield* head
      for (const { transaction, tail } of entries) {
        const { txid, length } = transaction
        const raw = await openTransaction(txid, store)
        if (raw?.length !== length) throw new Error(`the store no longer has the ${length} bytes of ${txid}`)
        for await (const { bytes } of raw.chunks()) yield bytes
        yield tail
      }
    },
  }
}
