import type { Knex } from 'knex'
import { type HookNote, type HookNotes, noteBeef, subjectOf } from '../../graph/hook-note.js'
import { sha256 } from '../../graph/native-hash.js'
import { utf8 } from '../../protocol/bytes.js'
import { hashColumn, hexOf, type OutpointRow, outpointColumns, outpointOf } from '../columns.js'
import { exclusiveWrite } from './exclusive-write.js'
import { insertNew } from './insert-new.js'
import { readPieces, writePieces } from './pieces.js'
import { knexReader, type SqlReader } from './sql-reader.js'

/** How many notes are looked up at once; their BEEF is read one by one. */
const PAGE = 100

interface NoteRow extends OutpointRow {
  subject: unknown
  service: string
  hook: HookNote['hook']
  topic: string | null
  spender: unknown
  beef: unknown
}

/** Notes of failed hooks in the database of the graph: where the graph can be written again, so can they. */
export class SqlHookNotes implements HookNotes {
  constructor(private readonly knex: Knex) {}

  async keep(note: HookNote): Promise<void> {
    const bytes = noteBeef(note)
    const beef = bytes && { owner: beefOwner(bytes), bytes }
    await exclusiveWrite(this.knex, async (trx) => {
      if (beef !== undefined) await writePieces(trx, [beef])
      await insertNew(trx, 'graph_hook_notes', [
        {
          subject: subjectColumn(note),
          service: note.service,
          hook: note.hook,
          topic: note.hook === 'evicted' ? null : note.topic,
          ...outpointColumns(note.outpoint),
          spender: note.hook === 'spent' ? hashColumn(note.spender) : null,
          beef: beef?.owner ?? null,
        },
      ])
    })
  }

  async *kept(service: string): AsyncGenerator<HookNote> {
    for (let after: Buffer = Buffer.alloc(0); ; ) {
      const rows: NoteRow[] = await this.knex('graph_hook_notes')
        .where({ service })
        .where('subject', '>', after)
        .orderBy('subject')
        .limit(PAGE)
      for (const row of rows) yield await this.noteOf(row)
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
        await trx('graph_pieces').where({ owner: beef }).delete()
    })
  }

  private async beefOf(owner: unknown): Promise<Uint8Array> {
    return await readPieces(knexReader(this.knex), hashColumn(hexOf(owner)))
  }

  private async noteOf(row: NoteRow): Promise<HookNote> {
    const { service, hook } = row
    const told = { service, outpoint: outpointOf(row) }
    const topic = row.topic ?? ''
    if (hook === 'evicted') return { ...told, hook }
    const beef = row.beef === null ? undefined : await this.beefOf(row.beef)
    if (hook === 'spent') return { ...told, hook, topic, spender: hexOf(row.spender), ...(beef && { beef }) }
    if (beef === undefined) throw new Error(`the note of an admission in ${told.outpoint.txid} has no BEEF`)
    return { ...told, hook, topic, beef }
  }
}

/** How many notes wait, of all services. It reads past writers, so that nobody who only counts waits for them. */
export async function waitingHookNotes(reader: SqlReader): Promise<number> {
  const row = await reader.first('select count(*) as waiting from graph_hook_notes', [])
  return Number(row?.waiting ?? 0)
}

function subjectColumn(note: HookNote): Buffer {
  return sha256(utf8(subjectOf(note)))
}

/** Whose pieces hold the BEEF. Not its hash: a body that somebody inscribed may be the same bytes, and comes and goes otherwise. */
function beefOwner(beef: Uint8Array): Buffer {
  return sha256(utf8(`BEEF of a note ${sha256(beef).toString('hex')}`))
}
