import type { Knex } from 'knex'
import type { ComparedPart } from '../../graph/index-maintenance.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { heldChunks } from '../read/read-blobs.js'
import {
  COMPARED_PART,
  COMPARED_SIDES,
  type ComparedSide,
  DERIVED,
  REBUILD_PAGE,
  StoredIndex,
} from '../rebuild/index-maintenance.js'
import { hashColumn, hexOf, outpointColumns, outpointOf, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import type { Table } from '../rows/rows.js'
import { anyOf, isMysql, knexReader, type SqlReader, type SqlValue } from './database.js'
import { holdingLock } from './exclusive-write.js'
import { lookupsIn } from './lookups.js'
import { sqlDatabase } from './rows.js'

/** How long to wait for another process that is doing it, in seconds. */
const PATIENCE = 10

/** Compares the index of a database with the admitted set, and empties it for a rebuild. */
export class SqlIndexMaintenance extends StoredIndex {
  private readonly writer: Knex
  private readonly reader: SqlReader

  constructor({ writer, reader }: { writer: Knex; reader: SqlReader }) {
    super(sqlDatabase({ writer, reader }), lookupsIn(reader, isMysql(writer)))
    this.writer = writer
    this.reader = reader
  }

  async compare(after: string | undefined): Promise<ComparedPart> {
    if (!isMysql(this.writer)) return await comparePart(this.reader, after)
    // A snapshot: others may write between two reads.
    return await this.writer.transaction((trx) => comparePart(knexReader(trx), after), {
      isolationLevel: 'repeatable read',
    })
  }

  async alone(work: () => Promise<void>): Promise<void> {
    await holdingLock(this.writer, { name: 'upkeep', patience: PATIENCE }, work)
  }

  /**
   * Empties the index in steps: a process that finds it half empty also finds the checkpoint, and empties it again.
   *
   * The spends of transactions without bytes stay: nothing else records them.
   */
  async empty(): Promise<void> {
    for (const table of DERIVED) {
      // In one statement: the engine can drop all pages at once.
      await this.writer(table).delete()
      await yieldBetweenStatements()
    }
    await this.write(async (rows) => {
      const inactive = await rows.all('graph_silent_spends', {}, { fields: ['txid', 'vout', 'spender'] })
      await rows.insertNew(
        'graph_spends',
        inactive.map((row) => ({
          ...outpointColumns(outpointOf(row)),
          spender: hashColumn(hexOf(row.spender)),
        })),
      )
      await rows.delete('graph_silent_spends', {})
    })
    await this.deleteByOwner('graph_spends', 'spender', async (owners) => {
      const held = await heldChunks(this.database, owners.map(hexOf))
      return owners.filter((owner) => held.has(hexOf(owner)))
    })
    await this.deleteByOwner('graph_pieces', 'owner', async (owners) => {
      const kept = await this.keptOwners(owners)
      return owners.filter((owner) => !kept.has(hexOf(owner)))
    })
    await this.uncount()
    // Statuses are decided again; insertion order and proofs stay.
    await this.writer('graph_transactions').update({
      mined: null,
      seen: false,
      rejected: false,
      silent: false,
    })
  }

  /** Deletes the rows of the owners that `pick` selects, a page at a time in order. */
  private async deleteByOwner(
    table: Table,
    column: string,
    pick: (owners: Buffer[]) => Promise<Buffer[]>,
  ): Promise<void> {
    for (let after: Buffer = Buffer.alloc(0); ; ) {
      const rows = await this.writer(table)
        .distinct(column)
        .where(column, '>', after)
        .orderBy(column)
        .limit(REBUILD_PAGE)
      const owners: Buffer[] = rows.map((row) => hashColumn(hexOf(row[column])))
      const last = owners.at(-1)
      if (last === undefined) return
      for (const part of parts(await pick(owners), ROWS_A_STATEMENT))
        await this.writer(table).whereIn(column, part).delete()
      await yieldBetweenStatements()
      after = last
    }
  }
}

const INACTIVE_FACTS = 'graph_silent_facts'
/** Above every txid. */
const END = Buffer.alloc(33, 0xff)

type Part = [after: Buffer, upTo: Buffer]

/** A condition that selects the rows of a part. */
const within = (table: string): string => `${table}.txid > ? and ${table}.txid <= ?`

/** A condition that no index applies to: the index by txid finds a part, one by topic would read the whole topic. */
const isOf = (column: string): string => `case when ${column} = ? then 1 else 0 end = 1`

/**
 * Compares the part after a txid. If the index has every output that a topic holds, and no more in number, they are the
 * same: that takes one index lookup per output, and counts.
 */
async function comparePart(reader: SqlReader, after: string | undefined): Promise<ComparedPart> {
  const from = hashColumn(after ?? '')
  const last = await reader.first(
    `select txid from graph_admissions where txid > ? order by txid limit 1 offset ${COMPARED_PART}`,
    [from],
  )
  const upTo = last && hexOf(last.txid)
  const part: Part = [from, upTo === undefined ? END : hashColumn(upTo)]
  const found: ComparedPart = { upTo, missing: [], extra: 0, lost: await lostIn(reader, part) }
  for (const side of COMPARED_SIDES) {
    const { held, absent } = await admittedIn(reader, side, part)
    const missing = absent === 0 ? [] : await missingIn(reader, side, part)
    found.missing.push(...missing)
    found.extra += (await countIndexed(reader, side, part)) - (held - missing.length)
  }
  return found
}

/**
 * How many outputs a topic holds, and how many of them no table of the index has: usually none. The first table has each
 * output once, so that the join doubles none.
 */
async function admittedIn(
  reader: SqlReader,
  { topic, tables: [first, ...others] }: ComparedSide,
  part: Part,
): Promise<{ held: number; absent: number }> {
  const isAbsent = ['own.txid is null', ...others.map((table) => notIn(table))].join(' and ')
  const row = await reader.first(
    `select count(*) as held, sum(case when ${isAbsent} then 1 else 0 end) as absent
     from graph_admissions as admissions
     left join ${first} as own on own.txid = admissions.txid and own.vout = admissions.vout${first === 'graph_outputs' ? ' and own.carrier = 0' : ''}
     where ${within('admissions')} and ${isOf('admissions.topic')}`,
    [...part, topic],
  )
  return { held: Number(row?.held ?? 0), absent: Number(row?.absent ?? 0) }
}

/** A condition on an admission: a table does not have its output. */
function notIn(table: string, condition = ''): string {
  return `not exists (
    select 1 from ${table} as entry where ${condition} ${table === 'graph_outputs' ? 'entry.carrier = 0 and' : ''}
    entry.txid = admissions.txid and entry.vout = admissions.vout
  )`
}

async function missingIn(
  reader: SqlReader,
  { topic, tables, kinds }: ComparedSide,
  part: Part,
): Promise<ComparedPart['missing']> {
  const absent = [
    ...tables.map((table) => notIn(table)),
    notIn(INACTIVE_FACTS, `kind in (${anyOf(kinds)}) and`),
  ]
  const rows = await reader.all(
    `select txid, vout from graph_admissions as admissions
     where ${within('admissions')} and ${isOf('topic')} and ${absent.join(' and ')}`,
    [...part, topic, ...kinds],
  )
  return rows.map((row) => ({ topic, outpoint: outpointOf(row) }))
}

/** How many outputs of a topic the index has, including those of inactive transactions. */
async function countIndexed(reader: SqlReader, { tables, kinds }: ComparedSide, part: Part): Promise<number> {
  const inactive = `${INACTIVE_FACTS} where ${within(INACTIVE_FACTS)} and kind in (${anyOf(kinds)})`
  let indexed = await count(reader, inactive, [...part, ...kinds])
  for (const table of tables) {
    const admitted = table === 'graph_outputs' ? ' and carrier = 0' : ''
    indexed += await count(reader, `${table} where ${within(table)}${admitted}`, part)
  }
  return indexed
}

async function count(reader: SqlReader, from: string, values: SqlValue[]): Promise<number> {
  const row = await reader.first(`select count(*) as found from ${from}`, values)
  return Number(row?.found)
}

/** The transactions that are applied to a topic but have no bytes. */
async function lostIn(reader: SqlReader, part: Part): Promise<string[]> {
  const rows = await reader.all(
    `select applied.txid from graph_applied as applied
     left join graph_pieces as chunks on chunks.owner = applied.txid and chunks.position = 0
     where ${within('applied')} and chunks.owner is null`,
    part,
  )
  return [...new Set(rows.map(({ txid }) => hexOf(txid)))]
}
