import { LRUCache } from 'lru-cache'
import type { Sql } from '../facts/connection.js'
import type { Pending } from '../facts/state.js'
import type { TransactionRecord } from '../graph/records.js'
import { fromHex, toHex } from '../protocol/bytes.js'
import { CodedError } from '../protocol/coded-error.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { type Candidate, candidateOf } from './pending-graph.js'

/** How many transactions may be built on an unproven one: a proof, a sighting or a late value may decide about all of them. */
const MAX_UNPROVEN_DESCENDANTS = 5000
/** Of how many transactions it is remembered what is built on them. It is counted again for any other. */
const REMEMBERED = 1000

/** Too much is built on one unproven transaction: once it is mined, more may be. */
export class TooManyDescendantsError extends CodedError {
  override readonly name = 'TooManyDescendantsError'
  readonly code = 'TOO_MANY_DESCENDANTS'

  constructor(txid: string, most: number) {
    super(`${most} transactions are built on ${txid}, which is unproven; submit it again once that is mined`)
  }
}

/**
 * Bounds what is built on unproven transactions. What is built on them by spending nodes is left out: a tree of names has one root, and
 * each mint costs work.
 */
export class UnprovenLines {
  /** How much is built on a transaction, by txid. What was deleted since is counted, too. */
  private readonly counts = new LRUCache<string, number>({ max: REMEMBERED })

  constructor(private readonly options: { indexFile: Sql; pending: Pending; most?: number | undefined }) {}

  /**
   * @param records The transactions of a submission, with all unproven ones that it is built on.
   * @param fresh Those that are new.
   * @returns What counts them, once they are stored.
   * @throws TooManyDescendantsError
   */
  roomFor(
    records: ReadonlyMap<string, TransactionRecord>,
    fresh: ReadonlyMap<string, Candidate>,
  ): () => void {
    const { most = MAX_UNPROVEN_DESCENDANTS } = this.options
    const counts = [...this.rootsOf(records, fresh)].map((root): [string, number] => {
      const count = (this.counts.get(root) ?? this.descendantsOf(root, most)) + fresh.size
      if (count > most) throw new TooManyDescendantsError(root, most)
      return [root, count]
    })
    return () => {
      for (const [root, count] of counts) this.counts.set(root, count)
    }
  }

  /** The stored unproven transactions that new ones are built on, and that are built on none. */
  private rootsOf(
    records: ReadonlyMap<string, TransactionRecord>,
    fresh: ReadonlyMap<string, Candidate>,
  ): Set<string> {
    const roots = new Set<string>()
    const line = new Set(fresh.keys())
    for (const txid of line) {
      const record = records.get(txid)
      if (record === undefined) continue
      const { spends } = fresh.get(txid) ?? candidateOf(record)
      const parents = spends.filter(
        (spent) => this.isUnproven(records.get(spent.txid)) && !this.isNode(spent),
      )
      if (parents.length === 0 && !fresh.has(txid)) roots.add(txid)
      for (const parent of parents) line.add(parent.txid)
    }
    return roots
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

  private descendantsOf(root: string, most: number): number {
    const { indexFile, pending } = this.options
    const found = new Set([root])
    for (const txid of found) {
      if (found.size > most) break
      for (const child of indexFile.all(CHILDREN, fromHex(txid))) found.add(toHex(child.txid))
      for (const child of pending.childrenOf(txid)) found.add(child)
    }
    return found.size - 1
  }
}

const CHILDREN = `select spender.txid from tx join spend on spend.pid = tx.id join tx spender on spender.id = spend.sid
  where tx.txid = ? and not exists (select 1 from node where node.tid = tx.id and node.vout = spend.vout)`
