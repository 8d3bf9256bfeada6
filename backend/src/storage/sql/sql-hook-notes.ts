import type { Knex } from 'knex'
import { type HookNote, type HookNotes, noteBeef } from '../../graph/hook-note.js'
import { hashColumn, hexOf } from '../columns.js'
import { writePieces } from '../piece-writes.js'
import { beefOwner, type HookNoteRow, hookNoteOf, hookNoteRow, subjectColumn } from '../rows.js'
import { exclusiveWrite } from './exclusive-write.js'
import { insertNew } from './insert-new.js'
import { readPieces } from './pieces.js'
import { knexReader, knexWriter, type SqlReader } from './sql-reader.js'
import { transactionTablesIn } from './transaction-tables.js'

/** How many notes are looked up at once; their BEEF is read one by one. */
const PAGE = 100

/** Notes of failed hooks in the database of the graph: where the graph can be written again, so can they. */
export class SqlHookNotes implements HookNotes {
  constructor(private readonly knex: Knex) {}

  async keep(note: HookNote): Promise<void> {
    const bytes = noteBeef(note)
    const beef = bytes && { owner: beefOwner(bytes), bytes }
    await exclusiveWrite(this.knex, async (trx) => {
      if (beef !== undefined) await writePieces(transactionTablesIn(trx), [beef])
      await insertNew(knexWriter(trx), 'graph_hook_notes', [hookNoteRow(note)])
    })
  }

  async *kept(service: string): AsyncGenerator<HookNote> {
    for (let after: Buffer = Buffer.alloc(0); ; ) {
      const rows: HookNoteRow[] = await this.knex('graph_hook_notes')
        .where({ service })
        .where('subject', '>', after)
        .orderBy('subject')
        .limit(PAGE)
      for (const row of rows) yield await hookNoteOf(row, (owner) => readPieces(knexReader(this.knex), owner))
      const last = rows.at(-1)
      if (last === undefined || rows.length < PAGE) return
      after = hashColumn(hexOf(last.subject))
    }
  }

  async release(note: HookNote): Promise<void> {
    await exclusiveWrite(this.knex, async (trx) => {
      await trx('graph_hook_notes')
        .where({ subject: subjectColumn(note) })
        .delete()
      const bytes = noteBeef(note)
      if (bytes === undefined) return
      const beef = beefOwner(bytes)
      // A transaction that left as many notes as it has outputs has one BEEF.
      if ((await trx('graph_hook_notes').where({ beef }).first('subject')) === undefined)
        await transactionTablesIn(trx).deletePieces([beef])
    })
  }
}

/** How many notes wait, of all services. It reads past writers, so that nobody who only counts waits for them. */
export async function waitingHookNotes(reader: SqlReader): Promise<number> {
  const row = await reader.first('select count(*) as waiting from graph_hook_notes', [])
  return Number(row?.waiting ?? 0)
}
