import type { HeldSubmission, HeldSubmissions } from '../../graph/host-store.js'
import type { ChainPosition } from '../../protocol/block-rules.js'
import { hashColumn, hexOf } from '../rows/columns.js'
import { heldOf, heldRow } from '../rows/record-rows.js'
import type { RowDatabase } from '../rows/rows.js'

const HELD = 'graph_held'

/** The submissions that a database holds until they are final. */
export class StoredSubmissions implements HeldSubmissions {
  constructor(private readonly database: RowDatabase) {}

  async hold(submission: HeldSubmission, { maxCount }: { maxCount: number }): Promise<void> {
    await this.database.write(async (rows) => {
      await rows.insertNew(HELD, [heldRow(submission)])
      if ((await rows.count(HELD, {})) <= maxCount) return
      const held = await rows.all(HELD, {}, { fields: ['txid', 'lock_time', 'lock_height'] })
      const longest = held.sort(
        (a, b) => Number(b.lock_time) - Number(a.lock_time) || Number(b.lock_height) - Number(a.lock_height),
      )
      for (const { txid } of longest.slice(0, held.length - maxCount))
        await rows.delete(HELD, { txid: hashColumn(hexOf(txid)) })
    })
  }

  async held(txid: string): Promise<HeldSubmission | undefined> {
    const row = await this.database.first(HELD, { txid: hashColumn(txid) })
    return row && heldOf(row)
  }

  async heldUntil({ height, time }: ChainPosition, limit: number): Promise<HeldSubmission[]> {
    const isFinal = { lock_height: { $lte: height }, lock_time: { $lt: time } }
    const sort = { lock_height: 1, lock_time: 1, txid: 1 } as const
    return (await this.database.all(HELD, isFinal, { sort, limit })).map(heldOf)
  }

  async release(txid: string): Promise<void> {
    await this.database.write((rows) => rows.delete(HELD, { txid: hashColumn(txid) }))
  }
}
