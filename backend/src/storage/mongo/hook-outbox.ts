import type { Db } from 'mongodb'
import { beefOfHook, type FailedHook, type HookOutbox } from '../../graph/hook-outbox.js'
import { beefOwner, failedHookOf, failedHookRow, subjectColumn } from '../rows/record-rows.js'
import { writeChunks } from '../write/blob-chunks.js'
import { readChunks } from './content.js'
import { countIn, type Documents, dbDocuments } from './documents.js'
import { transactionTablesIn } from './transaction-tables.js'
import type { MongoWriter } from './writer.js'

/** How many are read at once; their BEEF is read one by one. */
const PAGE = 100

/** Failed hooks in the database of the graph: they can be written whenever the graph can. */
export class MongoHookOutbox implements HookOutbox {
  private readonly documents: Documents

  constructor(
    private readonly db: Db,
    private readonly writer: MongoWriter,
  ) {
    this.documents = dbDocuments(db)
  }

  async keep(failed: FailedHook): Promise<void> {
    const bytes = beefOfHook(failed)
    await this.writer.write(async (pending) => {
      if (bytes !== undefined)
        await writeChunks(transactionTablesIn(pending), [{ owner: beefOwner(bytes), bytes }])
      await pending.insertNew('graph_hook_notes', [failedHookRow(failed)])
    })
  }

  async *kept(service: string): AsyncGenerator<FailedHook> {
    for (let after = Buffer.alloc(0); ; ) {
      const docs = await this.documents.all(
        'graph_hook_notes',
        { service, subject: { $gt: after } },
        { sort: { subject: 1 }, limit: PAGE },
      )
      for (const doc of docs) yield await failedHookOf(doc, (owner) => readChunks(this.documents, owner))
      const last = docs.at(-1)
      if (last === undefined || docs.length < PAGE) return
      after = last.subject
    }
  }

  /** How many failed hooks there are, of all services. */
  async waiting(): Promise<number> {
    return await countIn(this.db, 'graph_hook_notes')
  }

  async release(failed: FailedHook): Promise<void> {
    await this.writer.write(async (pending) => {
      await pending.delete('graph_hook_notes', { _id: subjectColumn(failed) })
      const bytes = beefOfHook(failed)
      if (bytes === undefined) return
      const beef = beefOwner(bytes)
      // The failed hooks of one transaction share its BEEF.
      if ((await pending.first('graph_hook_notes', { beef }, { fields: ['subject'] })) === undefined)
        await transactionTablesIn(pending).deleteChunks([beef])
    })
  }
}
