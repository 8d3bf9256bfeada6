import { Mutex } from 'async-mutex'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { spendsOf } from '../../../backend/src/graph/transaction-records.js'
import { encodeHeader, hashNumber, targetOf, timeOf } from '../../../backend/src/protocol/block-header.js'
import { concatBytes, fromHex, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { type Bump, encodeBump } from '../../../backend/src/protocol/merkle-path.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'

/** The easiest target that headers can have, as in regtest (bitcoin-sv `chainparams.cpp`): every second nonce meets it. */
const BITS = 0x207fffff
const VERSION = 0x20000000
/** The previous hash of the first block. */
const NOTHING = '00'.repeat(32)

/**
 * The chain of a local network, which this host mines: each submission becomes the next block, with the current time. Its headers
 * are facts like all others. Merkle paths from clients are of blocks that nobody mined, and are dropped.
 */
export class LocalChain {
  private readonly turn = new Mutex()

  constructor(private readonly graph: Pick<FactStore, 'headers' | 'transactions' | 'blocks'>) {}

  /**
   * Mines those of some verified transactions that are in no block yet, as one block; none if one of them spends a coin that is
   * already spent, as no miner would accept that.
   *
   * @param store Stores the transactions with their new proofs. Nothing else is mined meanwhile: of two parallel double spends,
   * the second would not see the first.
   */
  async mine<Result>(
    transactions: TransactionRecord[],
    store: (mined: TransactionRecord[]) => Promise<Result>,
  ): Promise<Result> {
    return await this.turn.runExclusive(async () => await store(await this.mined(transactions)))
  }

  private async mined(transactions: TransactionRecord[]): Promise<TransactionRecord[]> {
    const stored = new Map(transactions.map(({ txid }) => [txid, this.storedProof(txid)]))
    const fresh = transactions.map(({ txid }) => txid).filter((txid) => stored.get(txid) === undefined)
    const isSpent = spendsOf(transactions).some(({ outpoint, spender }) => {
      const known = this.graph.transactions.spenderOf(outpoint)
      return known !== undefined && known !== spender
    })
    // Parents come before children, as in a block: a BEEF is read from its subject on.
    const mined = isSpent || fresh.length === 0 ? new Map() : await this.nextBlock(fresh.reverse())
    return transactions.map(({ txid, raw }) => {
      const proof: Proof | undefined = stored.get(txid) ?? mined.get(txid)
      return { txid, raw, ...(proof && { proof }) }
    })
  }

  private storedProof(txid: string): Proof | undefined {
    const { transactions } = this.graph
    return transactions.heightOf(txid) === undefined ? undefined : transactions.raw(txid)?.proof
  }

  /** Adds a block of these transactions to the chain. @returns Their proofs. */
  private async nextBlock(txids: string[]): Promise<Map<string, Proof>> {
    const { headers, blocks } = this.graph
    for (;;) {
      const range = await headers.range()
      const tip = range && (await headers.read({ from: range.to, count: 1 }))
      // Stores of earlier versions have proofs of blocks without headers.
      const height = (range?.to ?? blocks.lastHeight()) + 1
      const { root, proofs } = blockOf(txids, height)
      // Another thread, or another gateway on the log, may have been first.
      if (await headers.replaceFrom({ height, headers: headerAfter(tip, root), tip })) return proofs
    }
  }
}

/** A header that meets its target. */
function headerAfter(tip: Uint8Array | undefined, root: string): Uint8Array {
  const previous = tip === undefined ? NOTHING : toHex(reversed(nativeHash256(tip)))
  const time = Math.max(Math.floor(Date.now() / 1000), tip === undefined ? 0 : timeOf(tip))
  for (let nonce = 0; ; nonce++) {
    const header = encodeHeader({ version: VERSION, previous, root, time, bits: BITS, nonce })
    if (hashNumber(nativeHash256(header)) <= (targetOf(BITS) ?? 0n)) return header
  }
}

/** The merkle root of a block with these transactions, and the proof of each. */
function blockOf(txids: string[], height: number): { root: string; proofs: Map<string, Proof> } {
  const levels = [txids.map((txid) => reversed(fromHex(txid)))]
  for (let level = levels[0] ?? []; level.length > 1; levels.push(level)) {
    const pairs = level.flatMap((left, at) => (at % 2 === 0 ? [[left, level[at + 1] ?? left] as const] : []))
    level = pairs.map(([left, right]) => nativeHash256(concatBytes(left, right)))
  }
  const root = toHex(reversed(levels.at(-1)?.[0] ?? new Uint8Array(32)))
  const proofOf = (place: number): Proof => {
    const own = { hash: levels[0]?.[place], isTxid: true }
    const path: Bump['levels'] = levels.slice(0, -1).map((level, depth) => {
      const beside = (place >> depth) ^ 1
      return new Map([[beside, { hash: level[beside], isTxid: false }]])
    })
    if (path.length === 0) path.push(new Map())
    path[0]?.set(place, own)
    return { merklePath: encodeBump({ height, levels: path }), height, root }
  }
  return { root, proofs: new Map(txids.map((txid, place) => [txid, proofOf(place)])) }
}
