import { isDeepStrictEqual } from 'node:util'
import type {
  Admitted,
  ComparedPart,
  IndexComparison,
  IndexRebuild,
  LoggedTransaction,
  RebuildCheckpoint,
} from '../../graph/index-maintenance.js'
import { TOPICS } from '../../protocol/profile.js'
import { COUNTS, storedCounts } from '../read/listings.js'
import type { Lookups } from '../read/lookups.js'
import { REBUILD_CHECKPOINT, REBUILT_FROM } from '../read/settings.js'
import { transactionRecord } from '../read/transactions.js'
import { groupBy, hashColumn, hexOf, inParts, outpointOf } from '../rows/columns.js'
import { anyOf, type Filter, type RowDatabase, type RowWriter } from '../rows/rows.js'

/** The tables, or collections, that hold nothing but what follows from bytes, proofs and admissions. */
export const DERIVED = [
  'graph_traits',
  'graph_outputs',
  'graph_nodes',
  'graph_names',
  'graph_silent_facts',
  'graph_backlog',
  'graph_ancestors',
] as const

/** Where the index has the outputs of a topic: tables, and kinds of the facts of inactive transactions. */
export interface ComparedSide {
  topic: string
  /** The first has each output once. */
  tables: [IndexTable, ...IndexTable[]]
  kinds: string[]
}

type IndexTable = 'graph_outputs' | 'graph_nodes' | 'graph_names'

export const COMPARED_SIDES: ComparedSide[] = [
  { topic: TOPICS.ordinals, tables: ['graph_outputs'], kinds: ['output'] },
  { topic: TOPICS.names, tables: ['graph_nodes', 'graph_names'], kinds: ['node', 'name'] },
]

/** About how many admissions are compared at once: few enough to take some milliseconds. */
export const COMPARED_PART = 2000

/** How many blobs, or transactions, a rebuild handles at once. */
export const REBUILD_PAGE = 500

const NEEDED = 'needed'

export function formatCheckpoint(checkpoint: RebuildCheckpoint): string {
  return checkpoint.state === 'needed' ? NEEDED : REBUILT_FROM + checkpoint.place
}

function parseCheckpoint(text: string): RebuildCheckpoint {
  return text.startsWith(REBUILT_FROM)
    ? { state: 'under way', place: text.slice(REBUILT_FROM.length) }
    : { state: 'needed' }
}

/** A position in insertion order: the number of the write that inserted a transaction, and its txid. */
export function formatPosition(row: { arrival: unknown; txid: unknown }): string {
  return `${Number(row.arrival)} ${hexOf(row.txid)}`
}

/** @param text Empty for the position before all transactions. */
function parsePosition(text: string): { order: number; txid: Buffer } {
  const [order = '', txid = ''] = text.split(' ')
  return { order: Number(order), txid: hashColumn(txid) }
}

/** The transactions after a position. With a lower bound for `arrival` alone: without it, no engine seeks. */
function afterPosition(position: string): Filter {
  const { order, txid } = parsePosition(position)
  return { arrival: { $gte: order }, $or: [{ arrival: { $gt: order } }, { txid: { $gt: txid } }] }
}

/** The maintenance of an index, as far as it does not depend on the engine. */
export abstract class StoredIndex implements IndexComparison, IndexRebuild {
  constructor(
    protected readonly database: RowDatabase,
    private readonly lookups: Pick<Lookups, 'transactionHead'>,
  ) {}

  abstract compare(after: string | undefined): Promise<ComparedPart>
  abstract alone(work: () => Promise<void>): Promise<void>
  abstract empty(): Promise<void>

  async unadmit(txid: string): Promise<void> {
    await this.write(async (rows) => {
      for (const table of ['graph_admissions', 'graph_applied'] as const)
        await rows.delete(table, { txid: hashColumn(txid) })
    })
  }

  async rebuild(): Promise<RebuildCheckpoint | undefined> {
    const setting = await this.database.first('graph_settings', { name: REBUILD_CHECKPOINT })
    return setting && parseCheckpoint(String(setting.value))
  }

  async setRebuildCheckpoint(checkpoint: RebuildCheckpoint | undefined): Promise<void> {
    const name = REBUILD_CHECKPOINT
    await this.write((rows) =>
      checkpoint === undefined
        ? rows.delete('graph_settings', { name })
        : rows.put('graph_settings', { name, value: formatCheckpoint(checkpoint) }),
    )
  }

  async *transactionLog(after: string): AsyncGenerator<LoggedTransaction> {
    for (let position = after; ; ) {
      const rows = await this.database.all('graph_transactions', afterPosition(position), {
        sort: { arrival: 1, txid: 1 },
        limit: REBUILD_PAGE,
        fields: ['txid', 'arrival'],
      })
      const txids = rows.map((row) => hexOf(row.txid))
      const admissions = await inParts(txids, (part) =>
        this.database.all('graph_admissions', { txid: anyOf(part) }, { fields: ['txid', 'vout', 'topic'] }),
      )
      const admitted = groupBy(
        admissions.map((row): Admitted => ({ topic: row.topic, outpoint: outpointOf(row) })),
        ({ outpoint }) => outpoint.txid,
      )
      for (const row of rows) {
        const txid = hexOf(row.txid)
        const record = await transactionRecord(this.database, this.lookups, txid)
        if (record === undefined) continue
        yield { txid, raw: record.raw, admitted: admitted.get(txid) ?? [], place: formatPosition(row) }
      }
      const last = rows.at(-1)
      if (last === undefined) return
      position = formatPosition(last)
    }
  }

  transactionsLeft(after: string): Promise<number> {
    return this.database.count('graph_transactions', afterPosition(after))
  }

  /** Counts what the rebuild will not insert: the transactions, which stay. */
  protected async uncount(): Promise<void> {
    const transactions = await this.database.count('graph_transactions', {})
    const value = JSON.stringify({ names: 0, inscriptions: 0, transactions })
    await this.write((rows) => rows.put('graph_settings', { ...COUNTS, value }))
  }

  async recount(): Promise<void> {
    for (let isCounted = false; !isCounted; ) {
      const before = await storedCounts(this.database)
      const counted = {
        names: await this.database.count('graph_names', {}),
        inscriptions: await this.database.count('graph_outputs', { recency: { $gte: 0 } }),
        transactions: await this.database.count('graph_transactions', {}),
      }
      await this.write(async (rows) => {
        // Somebody may have written meanwhile: then it is counted again.
        isCounted = isDeepStrictEqual(await storedCounts(rows), before)
        if (isCounted) await rows.put('graph_settings', { ...COUNTS, value: JSON.stringify(counted) })
      })
    }
  }

  protected write(work: (rows: RowWriter) => Promise<void>): Promise<void> {
    return this.database.write(work)
  }

  /** Those of the blobs' owners, as hex, whose blob is a raw transaction or the BEEF of a failed hook. */
  protected async keptOwners(owners: Buffer[]): Promise<Set<string>> {
    const transactions = await inParts(owners, (part) =>
      this.database.all('graph_transactions', { txid: { $in: part } }, { fields: ['txid'] }),
    )
    const hooks = await inParts(owners, (part) =>
      this.database.all('graph_hook_notes', { beef: { $in: part } }, { fields: ['beef'] }),
    )
    return new Set([...transactions.map(({ txid }) => hexOf(txid)), ...hooks.map(({ beef }) => hexOf(beef))])
  }
}
