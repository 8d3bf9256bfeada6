import { beefOfHook, type FailedHook, type HookOutbox } from '../../graph/hook-outbox.js'
import { chunksIn, heldChunks, readChunks } from '../read/read-blobs.js'
import { hashColumn, hexOf } from '../rows/columns.js'
import { beefOwner, failedHookOf, failedHookRow, subjectColumn } from '../rows/record-rows.js'
import type { RowDatabase } from '../rows/rows.js'
import { writeChunks } from './blob-chunks.js'

const HOOKS = 'graph_hook_notes'
/** How many are read at once; their BEEF is read one by one. */
const PAGE = 100

/** Failed hooks in the database of the graph: they can be written whenever the graph can. */
export class StoredHookOutbox implements HookOutbox {
  constructor(private readonly database: RowDatabase) {}

  async keep(failed: FailedHook): Promise<void> {
    const bytes = beefOfHook(failed)
    await this.database.write(async (rows) => {
      const tables = {
        held: (owners: string[]) => heldChunks(rows, owners),
        insertNew: rows.insertNew.bind(rows),
      }
      if (bytes !== undefined) await writeChunks(tables, [{ owner: beefOwner(bytes), bytes }])
      await rows.insertNew(HOOKS, [failedHookRow(failed)])
    })
  }

  async *kept(service: string): AsyncGenerator<FailedHook> {
    const blobs = chunksIn(this.database)
    for (let after: Buffer = Buffer.alloc(0); ; ) {
      const page = { sort: { subject: 1 }, limit: PAGE } as const
      const rows = await this.database.all(HOOKS, { service, subject: { $gt: after } }, page)
      for (const row of rows) yield await failedHookOf(row, (owner) => readChunks(blobs, owner))
      const last = rows.at(-1)
      if (last === undefined || rows.length < PAGE) return
      after = hashColumn(hexOf(last.subject))
    }
  }

  async release(failed: FailedHook): Promise<void> {
    await this.database.write(async (rows) => {
      await rows.delete(HOOKS, { subject: subjectColumn(failed) })
      const bytes = beefOfHook(failed)
      if (bytes === undefined) return
      const beef = beefOwner(bytes)
      // The failed hooks of one transaction share its BEEF.
      if ((await rows.first(HOOKS, { beef }, { fields: ['subject'] })) === undefined)
        await rows.delete('graph_pieces', { owner: beef })
    })
  }
}
