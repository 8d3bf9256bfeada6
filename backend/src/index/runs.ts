import type { Sql } from '../facts/connection.js'
import type { OutputRow } from './outputs.js'

/** An output without a number, and its run; null if it is linked to no other one. */
type Member = Pick<OutputRow, 'oid' | 'run'>

/**
 * Runs of linked outputs that have no number, as their start is missing. When two become one, the shorter takes the id of the
 * longer: so each output is renamed only a logarithmic number of times, in whatever order they come.
 */
export class Runs {
  constructor(private readonly sql: Sql) {}

  /** @param count How many outputs of the run got a number, or were deleted. */
  leave(run: number, count: number): void {
    const { sql } = this
    sql.run('update run set size = size - ? where id = ?', count, run)
    if (this.get(run).size > 1) return
    sql.run('update out set run = null where run = ?', run)
    sql.run('delete from run where id = ?', run)
  }

  /**
   * Joins two runs, or single outputs.
   *
   * @param back An output that received a coin, the first of its run.
   * @returns The joint run; the former one whose outputs must be renamed, if any; and whether that was the back's.
   */
  join(coin: Member, back: Member): { run: number; renamed: number | null; isBack: boolean } {
    const { sql } = this
    const [front, rear] = [this.of(coin), this.of(back)]
    const isBack = rear.size <= front.size
    const [longer, shorter] = isBack ? [coin, back] : [back, coin]
    const run = longer.run ?? this.begin(longer)
    sql.run(
      'insert into run (id, head, size) values (?1, ?2, ?3) on conflict (id) do update set head = ?2, size = ?3',
      ...[run, front.head, front.size + rear.size],
    )
    if (shorter.run === null) sql.run('update out set run = ? where oid = ?', run, shorter.oid)
    else sql.run('delete from run where id = ?', shorter.run)
    return { run, renamed: shorter.run, isBack }
  }

  private begin({ oid }: Member): number {
    const run: number = (this.sql.get('select max(id) as id from run')?.id ?? 0) + 1
    this.sql.run('update out set run = ? where oid = ?', run, oid)
    return run
  }

  /** The first output of a member's run, which may be the member itself. */
  headOf(member: Member): number {
    return this.of(member).head
  }

  private of({ oid, run }: Member): { head: number; size: number } {
    return run === null ? { head: oid, size: 1 } : this.get(run)
  }

  private get(run: number): { head: number; size: number } {
    const row = this.sql.get('select head, size from run where id = ?', run)
    if (row === undefined) throw new Error(`the index has no run ${run}`)
    return { head: row.head, size: row.size }
  }
}
