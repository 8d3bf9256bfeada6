import type { Knex } from 'knex'
import { beefOfHook, type FailedHook, type HookOutbox } from '../../graph/hook-outbox.js'
import { hashColumn, hexOf } from '../rows/columns.js'
import {
  beefOwner,
  type FailedHookRow,
  failedHookOf,
  failedHookRow,
  subjectColumn,
} from '../rows/record-rows.js'
import { writeChunks } from '../write/blob-chunks.js'
import { readChunks } from './content.js'
import { insertNew, knexReader, knexWriter, type SqlReader } from './database.js'
import { exclusiveWrite } from './exclusive-write.js'
import { transactionTablesIn } from './transaction-tables.js'

/** How many are read at once; their BEEF is read one by one. */
const PAGE = 100

/** Failed hooks in the database of the graph: they can be written whenever the graph can. */
export class SqlHookOutbox implements HookOutbox {
  constructor(private readonly knex: Knex) {}

  async keep(failed: FailedHook): Promise<void> {
    const bytes = beefOfHook(failed)
    const beef = bytes && { owner: beefOwner(bytes), bytes }
    await exclusiveWrite(this.knex, async (trx) => {
      if (beef !== undefined) await writeChunks(transactionTablesIn(trx), [beef])
      await insertNew(knexWriter(trx), 'graph_hook_notes', [failedHookRow(failed)])
    })
  }

  async *kept(service: string): AsyncGenerator<FailedHook> {
    for (let after: Buffer = Buffer.alloc(0); ; ) {
      const rows: FailedHookRow[] = await this.knex('graph_hook_notes')
        .where({ service })
        .where('subject', '>', after)
        .orderBy('subject')
        .limit(PAGE)
      for (const row of rows)
        yield await failedHookOf(row, (owner) => readChunks(knexReader(this.knex), owner))
      const last = rows.at(-1)
      if (last === undefined || rows.length < PAGE) return
      after = hashColumn(hexOf(last.subject))
    }
  }

  async release(failed: FailedHook): Promise<void> {
    await exclusiveWrite(this.knex, async (trx) => {
      await trx('graph_hook_notes')
        .where({ subject: subjectColumn(failed) })
        .delete()
      const bytes = beefOfHook(failed)
      if (bytes === undefined) return
      const beef = beefOwner(bytes)
      // The failed hooks of one transaction share its BEEF.
      if ((await trx('graph_hook_notes').where({ beef }).first('subject')) === undefined)
        await transactionTablesIn(trx).deleteChunks([beef])
    })
  }
}

/** How many failed hooks there are, of all services. Takes a reader, so that counting waits for no write. */
export async function waitingFailedHooks(reader: SqlReader): Promise<number> {
  const row = await reader.first('select count(*) as waiting from graph_hook_notes', [])
  return Number(row?.waiting ?? 0)
}
