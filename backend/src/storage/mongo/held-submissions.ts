import type { Db } from 'mongodb'
import type { ChainPosition } from '../../graph/block-rules.js'
import type { HeldSubmission, HeldSubmissions } from '../../graph/host-store.js'
import { hashColumn } from '../rows/columns.js'
import { heldOf, heldRow } from '../rows/record-rows.js'
import { type Documents, dbDocuments } from './documents.js'
import type { MongoWriter } from './writer.js'

const HELD = 'graph_held'

/** See {@link HeldSubmissions}. */
export class MongoHeldSubmissions implements HeldSubmissions {
  private readonly documents: Documents
  private readonly writer: MongoWriter

  constructor({ db, writer }: { db: Db; writer: MongoWriter }) {
    this.documents = dbDocuments(db)
    this.writer = writer
  }

  async hold(submission: HeldSubmission, { maxCount }: { maxCount: number }): Promise<void> {
    await this.writer.write(async (pending) => {
      await pending.insertNew(HELD, [heldRow(submission)])
      const docs = await pending.all(HELD, {}, { fields: ['_id', 'lock_time', 'lock_height'] })
      const last = docs.sort((a, b) => b.lock_time - a.lock_time || b.lock_height - a.lock_height)
      for (const { _id } of last.slice(0, Math.max(docs.length - maxCount, 0)))
        await pending.delete(HELD, { _id })
    })
  }

  async held(txid: string): Promise<HeldSubmission | undefined> {
    const doc = await this.documents.first(HELD, { _id: hashColumn(txid) })
    return doc && heldOf(doc)
  }

  async heldUntil({ height, time }: ChainPosition, limit: number): Promise<HeldSubmission[]> {
    const docs = await this.documents.all(
      HELD,
      { lock_height: { $lte: height }, lock_time: { $lt: time } },
      { sort: { lock_height: 1, lock_time: 1, txid: 1 }, limit },
    )
    return docs.map(heldOf)
  }

  async release(txid: string): Promise<void> {
    await this.writer.write((pending) => pending.delete(HELD, { _id: hashColumn(txid) }))
  }
}
