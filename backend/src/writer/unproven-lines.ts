import { LRUCache } from 'lru-cache'
import type { Sql } from '../facts/connection.js'
import type { Pending } from '../facts/state.js'
import type { TransactionRecord } from '../graph/records.js'
import { fromHex, toHex } from '../protocol/bytes.js'
import { GeneralError } from '../protocol/coded-error.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { type Candidate, candidateOf, IndexedSpends } from './pending-graph.js'

/** How many transactions may be built on the unproven coins behind one: a proof, a sighting or a late value may decide about all. */
const MAX_UNPROVEN_DESCENDANTS = 5000
/** Of how many coins it is remembered how much is built on them. It is counted again for any other. */
const REMEMBERED = 1000

/**
 * Bounds what is built on unproven transactions, by the coin of the topmost one that a submission stands on: so whoever receives one
 * of many outputs fills up his own, and nobody else's. What is built on them by spending nodes is left out: a tree of names has one
 * root, and each mint costs work.
 */
export class UnprovenLines {
  /** How much is built on a coin, by its outpoint, at most: what was deleted since is counted, too, until that would matter. */
  private readonly counts = new LRUCache<string, number>({ max: REMEMBERED })
  private readonly indexed: IndexedSpends

  constructor(private readonly options: { indexFile: Sql; pending: Pending; most?: number | undefined }) {
    this.indexed = new IndexedSpends(options.indexFile)
  }

  /**
   * @param records The transactions of a submission, with all unproven ones that it is built on.
   * @param fresh Those that are new.
   * @returns What counts them, once they are stored.
   * @throws GeneralError `TOO_MANY_DESCENDANTS`: once they are mined, more may be built on them
   */
  roomFor(
    records: ReadonlyMap<string, TransactionRecord>,
    fresh: ReadonlyMap<string, Candidate>,
  ): () => void {
    const { most = MAX_UNPROVEN_DESCENDANTS } = this.options
    const coins = this.coinsOf(records, fresh)
    if (coins.length === 0) return () => {}
    const known = coins.map((coin) => this.counts.get(formatOutpoint(coin)) ?? Number.POSITIVE_INFINITY)
    let all = known.reduce((sum, count) => sum + count, fresh.size)
    if (all > most) {
      all = this.countBehind(coins, most) + fresh.size
      if (all > most)
        throw new GeneralError(
          'TOO_MANY_DESCENDANTS',
          `${most} transactions are built on ${formatOutpoint(coins[0] as Outpoint)}, which is unproven; submit it again once that is mined`,
        )
    }
    return () => {
      for (const [at, coin] of coins.entries())
        this.counts.set(formatOutpoint(coin), Math.min((known[at] as number) + fresh.size, all))
    }
  }

  /** The coins of stored unproven transactions that are built on none, from which new ones come. */
  private coinsOf(
    records: ReadonlyMap<string, TransactionRecord>,
    fresh: ReadonlyMap<string, Candidate>,
  ): Outpoint[] {
    /** By a transaction on the way, the unproven coins that it spends. */
    const spent = new Map<string, Outpoint[]>()
    const line = new Set(fresh.keys())
    for (const txid of line) {
      const record = records.get(txid)
      if (record === undefined) continue
      const { spends } = fresh.get(txid) ?? candidateOf(record)
      const coins = spends.filter((coin) => this.isUnproven(records.get(coin.txid)) && !this.isNode(coin))
      spent.set(txid, coins)
      for (const coin of coins) line.add(coin.txid)
    }
    return [...spent.values()]
      .flat()
      .filter(({ txid }) => !fresh.has(txid) && (spent.get(txid)?.length ?? 0) === 0)
  }

  private isUnproven(record: TransactionRecord | undefined): boolean {
    const { indexFile, pending } = this.options
    if (record === undefined || record.proof !== undefined) return false
    if (pending.outline(record.txid)?.isProven) return false
    return (
      (indexFile.get('select mined from tx where txid = ?', fromHex(record.txid))?.mined ?? null) === null
    )
  }

  private isNode({ txid, vout }: Outpoint): boolean {
    const row = this.options.indexFile.get(
      'select 1 as one from tx join node on node.tid = tx.id where txid = ? and node.vout = ?',
      ...[fromHex(txid), vout],
    )
    return row !== undefined
  }

  /** How many stored transactions are built on some coins together. Stops counting at one more than a number. */
  private countBehind(coins: readonly Outpoint[], most: number): number {
    const { indexFile, pending } = this.options
    const found = new Set<string>()
    for (const coin of coins) {
      if (found.size > most) break
      for (const spender of this.indexed.spendersOf(coin)) found.add(spender)
      for (const isWaiting of [false, true])
        for (const spender of pending.spendersOf(coin, { isWaiting })) found.add(spender)
    }
    for (const txid of found) {
      if (found.size > most) break
      for (const child of indexFile.all(CHILDREN, fromHex(txid))) found.add(toHex(child.txid))
      for (const child of pending.childrenOf(txid)) found.add(child)
    }
    return found.size
  }
}

const CHILDREN = `select spender.txid from tx join spend on spend.pid = tx.id join tx spender on spender.id = spend.sid
  where tx.txid = ? and not exists (select 1 from node where node.tid = tx.id and node.vout = spend.vout)`
