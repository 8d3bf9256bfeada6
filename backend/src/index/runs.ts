import type { Sql } from '../facts/connection.js'
import type { OutputRow } from './outputs.js'

/**
 * Runs of outputs that are linked to each other and have no number, as the start is missing. When two become one, the shorter gets
 * the name of the longer: so an output is named again about as often as the logarithm of their number, in whatever order they come.
 */
export class Runs {
  constructor(private readonly sql: Sql) {}

  /** The run for an output that has none: that of the coin which it received, or a new one. */
  enter({ oid }: Pick<OutputRow, 'oid'>, coin: Pick<OutputRow, 'run'> | undefined): number {
    const { sql } = this
    if (coin !== undefined && coin.run !== null) {
      sql.run('update run set size = size + 1 where id = ?', coin.run)
      return coin.run
    }
    const run = (sql.get('select max(id) as id from run')?.id ?? 0) + 1
    sql.run('insert into run (id, head, size) values (?, ?, 1)', run, oid)
    return run
  }

  /** @param count How many outputs of a run have a number now, or are gone. */
  leave(run: number, count: number): void {
    this.sql.run('update run set size = size - ? where id = ?', count, run)
    this.sql.run('delete from run where id = ? and size <= 0', run)
  }

  /**
   * Makes one run of two.
   *
   * @param front The run that an output received its coin from.
   * @param back That of this output, of which it is the head.
   * @returns The name that is given up, and whether it was that of the back. Its outputs still have it.
   */
  join(front: number, back: number): { kept: number; gone: number; isBack: boolean } {
    const { sql } = this
    const [first, second] = [this.get(front), this.get(back)]
    const isBack = second.size <= first.size
    const [kept, gone] = isBack ? [front, back] : [back, front]
    sql.run('update run set head = ?, size = ? where id = ?', first.head, first.size + second.size, kept)
    sql.run('delete from run where id = ?', gone)
    return { kept, gone, isBack }
  }

  /** The first output of a run. */
  headOf(run: number): number {
    return this.get(run).head
  }

  private get(run: number): { head: number; size: number } {
    const row = this.sql.get('select head, size from run where id = ?', run)
    if (row === undefined) throw new Error(`the index has no run ${run}`)
    return { head: row.head, size: row.size }
  }
}
