import type { Knex } from 'knex'
import type { ChainPosition } from '../../graph/block-rules.js'
import type { HeldSubmission, HeldSubmissions } from '../../graph/host-store.js'
import { hashColumn } from '../rows/columns.js'
import { type HeldRow, heldOf, heldRow } from '../rows/record-rows.js'
import { insertNew, knexWriter, type SqlReader } from './database.js'
import { exclusiveWrite } from './exclusive-write.js'

/** See {@link HeldSubmissions}. */
export class SqlHeldSubmissions implements HeldSubmissions {
  constructor(private readonly database: { writer: Knex; reader: SqlReader }) {}

  async hold(submission: HeldSubmission, { maxCount }: { maxCount: number }): Promise<void> {
    await exclusiveWrite(this.database.writer, async (trx) => {
      const writer = knexWriter(trx)
      await insertNew(writer, 'graph_held', [heldRow(submission)])
      const { held } = (await writer.first('select count(*) as held from graph_held', [])) ?? {}
      if (Number(held) <= maxCount) return
      const rows = await writer.all(
        'select txid from graph_held order by lock_time desc, lock_height desc, txid limit ?',
        [Number(held) - maxCount],
      )
      for (const { txid } of rows) await trx('graph_held').where({ txid }).delete()
    })
  }

  async held(txid: string): Promise<HeldSubmission | undefined> {
    const { reader } = this.database
    const row: HeldRow | undefined = await reader.first('select * from graph_held where txid = ?', [
      hashColumn(txid),
    ])
    return row && heldOf(row)
  }

  async heldUntil({ height, time }: ChainPosition, limit: number): Promise<HeldSubmission[]> {
    const rows: HeldRow[] = await this.database.reader.all(
      `select * from graph_held where lock_height <= ? and lock_time < ?
       order by lock_height, lock_time, txid limit ?`,
      [height, time, limit],
    )
    return rows.map(heldOf)
  }

  async release(txid: string): Promise<void> {
    await exclusiveWrite(this.database.writer, async (trx) => {
      await trx('graph_held')
        .where({ txid: hashColumn(txid) })
        .delete()
    })
  }
}
