import {
  type AncestorCounts,
  type AncestorEntry,
  type AncestorQueue,
  WHOLE_TRANSACTION,
} from '../../graph/ancestor-queue.js'
import { steadyTime } from '../../protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  isComplete,
  lineageOf,
  outpointColumns,
  outpointOf,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import { anyOutpoint, inLineage, type Row, type RowDatabase, type RowReader } from '../rows/rows.js'

const QUEUE = 'graph_ancestors'
const OUTPUTS = 'graph_outputs'

/** See {@link AncestorQueue}. */
export class StoredAncestorQueue implements AncestorQueue {
  constructor(private readonly database: RowDatabase) {}

  async due({ now, limit }: { now: number; limit: number }): Promise<AncestorEntry[]> {
    const inOrder = { sort: { due: 1, arrival: 1 }, limit } as const
    const untried = { hole: false, due: 0 }
    const kinds = [
      this.database.all(QUEUE, untried, { sort: { arrival: 1 }, limit }),
      this.database.all(QUEUE, untried, { sort: { arrival: -1 }, limit }),
      this.database.all(QUEUE, { hole: false, due: { $gt: 0, $lte: now } }, inOrder),
      this.database.all(QUEUE, { hole: true, due: { $lte: now } }, inOrder),
    ]
    const rows = unique((await Promise.all(kinds)).flat(), (row) => formatOutpoint(outpointOf(row)))
    if (rows.length === 0) return []
    const fields = ['txid', 'vout', 'previous_txid', 'previous_vout']
    const outputs = await this.database.all(OUTPUTS, anyOutpoint(rows.map(outpointOf)), { fields })
    const received = new Map(outputs.map((row) => [formatOutpoint(outpointOf(row)), previousOf(row)]))
    return rows.map((row) => {
      const outpoint = outpointOf(row)
      const previous = received.get(formatOutpoint(outpoint))
      return {
        outpoint,
        ...(previous && { previous }),
        hole: Number(row.hole) === 1,
        tries: Number(row.tries),
        fetched: { transactions: Number(row.transactions), bytes: Number(row.bytes) },
      }
    })
  }

  async nextDue(): Promise<number | undefined> {
    const fields = ['due']
    const kinds = [false, true].map((hole) =>
      this.database.first(QUEUE, { hole }, { sort: { due: 1, arrival: 1 }, fields }),
    )
    const times = (await Promise.all(kinds)).flatMap((row) => (row === undefined ? [] : Number(row.due)))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  async count(limit: number): Promise<AncestorCounts> {
    const [waiting, holes] = await Promise.all([
      this.database.count(QUEUE, { hole: false }, limit),
      this.database.count(QUEUE, { hole: true }, limit),
    ])
    return { waiting, holes }
  }

  async postpone(entry: AncestorEntry, { due }: { due: number }): Promise<void> {
    const { outpoint, previous, hole, tries, fetched } = entry
    await this.database.write(async (rows) => {
      const first = await firstOf(rows, outpoint)
      if (first === undefined) return
      const { transactions, bytes } = fetched
      // Whatever waits in line was there before it.
      const arrival = steadyTime()
      const isUnplaced = previous === undefined && first.txid === outpoint.txid
      const outpoints = isUnplaced ? await unplacedOf(rows, outpoint.txid) : [first]
      for (const part of parts(outpoints, ROWS_A_STATEMENT))
        await rows.update(QUEUE, anyOutpoint(part), { hole, due, arrival, tries, transactions, bytes })
    })
  }

  async isWaiting(outpoint: Outpoint): Promise<boolean> {
    const first = await firstOf(this.database, outpoint)
    const row = first && (await this.database.first(QUEUE, outpointColumns(first), { fields: ['hole'] }))
    return row !== undefined && Number(row.hole) === 0
  }

  async isUnplaced(txid: string): Promise<boolean> {
    const waiting = { txid: hashColumn(txid), hole: false }
    return (await this.database.first(QUEUE, waiting, { fields: ['vout'] })) !== undefined
  }
}

/** The first output of the lineage of an output, if it is incomplete: the key of its entry. */
async function firstOf(rows: RowReader, outpoint: Outpoint): Promise<Outpoint | undefined> {
  if (outpoint.vout === WHOLE_TRANSACTION) return outpoint
  const row = await rows.first(OUTPUTS, outpointColumns(outpoint), {
    fields: ['lineage_txid', 'lineage_vout'],
  })
  const lineage = row && lineageOf(row)
  if (lineage === undefined || isComplete(lineage)) return undefined
  const first = await rows.first(OUTPUTS, inLineage(lineage), { sort: { step: 1 }, fields: ['txid', 'vout'] })
  return first && outpointOf(first)
}

/** The keys of entries for outputs of a transaction that wait for the same value of an input. */
async function unplacedOf(rows: RowReader, txid: string): Promise<Outpoint[]> {
  const unplaced = { txid: hashColumn(txid), previous_txid: null }
  const outputs = await rows.all(OUTPUTS, unplaced, { fields: ['txid', 'vout'] })
  return [...outputs.map(outpointOf), { txid, vout: WHOLE_TRANSACTION }]
}

function previousOf({ previous_txid, previous_vout }: Row): Outpoint | undefined {
  return previous_txid === null ? undefined : outpointOf({ txid: previous_txid, vout: previous_vout })
}
