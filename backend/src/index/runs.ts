import type { Sql } from '../facts/connection.js'
import type { OutputRow } from './outputs.js'

/** An output without number, and its run; null if it is linked to no other one. */
type Member = Pick<OutputRow, 'oid' | 'run'>

/**
 * Runs of outputs that are linked to each other and have no number, as the start is missing. When two become one, the shorter gets
 * the name of the longer: so an output is named again about as often as the logarithm of their number, in whatever order they come.
 */
export class Runs {
  constructor(private readonly sql: Sql) {}

  /** @param count How many outputs of a run have a number now, or are gone. */
  leave(run: number, count: number): void {
    const { sql } = this
    sql.run('update run set size = size - ? where id = ?', count, run)
    if (this.get(run).size > 1) return
    sql.run('update out set run = null where run = ?', run)
    sql.run('delete from run where id = ?', run)
  }

  /**
   * Makes one run of two, or of single outputs.
   *
   * @param back An output that received a coin, the first of its run.
   * @returns The run, and the former one whose outputs are to get its name, if any; and whether it is that of the back.
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

  /** The first output of the run of one, which may be itself. */
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
