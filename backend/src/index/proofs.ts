import type { Sql } from '../facts/connection.js'
import { type Fact, readProofFact } from '../facts/log.js'
import type { HeaderRange } from '../graph/header-chain.js'
import { equalBytes } from '../protocol/bytes.js'
import { rootAt } from './headers.js'

/**
 * What decides which proofs count: the best chain of headers; or what a tracker said of blocks, where all count that it did not refuse;
 * or nobody, and then the last one of a transaction.
 */
export type ProofTracker = 'headers' | 'tracker' | 'scripts-only'

/** The proofs of transactions. All are kept; which ones count changes with headers and verdicts. */
export class Proofs {
  /** Whether anything was said of any block. */
  hasVerdicts: boolean

  constructor(
    private readonly sql: Sql,
    private readonly tracker: ProofTracker,
  ) {
    this.hasVerdicts = sql.get('select 1 as one from verdict limit 1') !== undefined
  }

  add(id: number, fact: Fact): void {
    this.insert(id, fact)
    this.judge(id)
  }

  /** Adds the proof of a transaction that has none. @returns Its height, if it counts. */
  addFirst(id: number, fact: Fact): number | null {
    const { height, isValid } = this.insert(id, fact)
    return isValid ? height : null
  }

  /** Judges the proofs that lead to blocks of these heights. @returns The transactions of which other ones count now. */
  judgeBlocks(ranges: readonly HeaderRange[]): number[] {
    const ids = new Set<number>()
    for (const { from, to } of ranges)
      for (const { tid } of this.sql.all('select tid from proof where height between ? and ?', from, to))
        ids.add(tid)
    return [...ids].filter((id) => this.judge(id))
  }

  private insert(id: number, fact: Fact): { height: number; isValid: boolean } {
    const { height, root } = readProofFact(fact).proof
    const bytes = Buffer.from(root, 'hex')
    const isValid = this.isValid(height, bytes)
    const row = [id, height, fact.seq, bytes, isValid ? 1 : 0]
    this.sql.run('insert into proof (tid, height, seq, root, ok) values (?, ?, ?, ?, ?)', ...row)
    return { height, isValid }
  }

  /** @returns Whether other proofs of a transaction count than before. */
  private judge(id: number): boolean {
    let [hasLater, isChanged] = [false, false]
    for (const { height, seq, root, ok } of this.sql.all(
      'select height, seq, root, ok from proof where tid = ? order by seq desc',
      id,
    )) {
      const isValid = this.isValid(height, root)
      const counts = isValid && !(hasLater && this.tracker === 'scripts-only') ? 1 : 0
      hasLater ||= isValid
      if (counts === ok) continue
      isChanged = true
      this.sql.run(
        'update proof set ok = ? where tid = ? and height = ? and seq = ?',
        counts,
        id,
        height,
        seq,
      )
    }
    return isChanged
  }

  private isValid(height: number, root: Buffer): boolean {
    if (this.tracker !== 'headers') return !this.isRefused(height, root)
    const known = rootAt(this.sql, height)
    return known !== undefined && equalBytes(known, root)
  }

  /** Whether the last verdict on a block is that the chain does not have it. */
  isRefused(height: number, root: Uint8Array): boolean {
    if (!this.hasVerdicts) return false
    return this.sql.get('select ok from verdict where height = ? and root = ?', height, root)?.ok === 0
  }
}
