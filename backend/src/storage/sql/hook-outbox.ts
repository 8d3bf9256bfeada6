import type { Knex } from 'knex'
import { type FailedHook, type HookOutbox, noteBeef } from '../../graph/hook-outbox.js'
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

/** How many notes are looked up at once; their BEEF is read one by one. */
const PAGE = 100

/** Notes of failed hooks in the database of the graph: where the graph can be written again, so can they. */
export class SqlHookOutbox implements HookOutbox {
  constructor(private readonly knex: Knex) {}

  async keep(note: FailedHook): Promise<void> {
    const bytes = noteBeef(note)
    const beef = bytes && { owner: beefOwner(bytes), bytes }
    await exclusiveWrite(this.knex, async (trx) => {
      if (beef !== undefined) await writeChunks(transactionTablesIn(trx), [beef])
      await insertNew(knexWriter(trx), 'graph_hook_notes', [failedHookRow(note)])
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

  async release(note: FailedHook): Promise<void> {
    await exclusiveWrite(this.knex, async (trx) => {
      await trx('graph_hook_notes')
        .where({ subject: subjectColumn(note) })
        .delete()
      const bytes = noteBeef(note)
      if (bytes === undefined) return
      const beef = beefOwner(bytes)
      // A transaction that left as many notes as it has outputs has one BEEF.
      if ((await trx('graph_hook_notes').where({ beef }).first('subject')) === undefined)
        await transactionTablesIn(trx).deleteChunks([beef])
    })
  }
}

/** How many notes wait, of all services. It reads past writers, so that nobody who only counts waits for them. */
export async function waitingFailedHooks(reader: SqlReader): Promise<number> {
  const row = await reader.first('select count(*) as waiting from graph_hook_notes', [])
  return Number(row?.waiting ?? 0)
}
