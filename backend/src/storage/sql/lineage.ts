import type { Knex } from 'knex'
import type { NameRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  type OutpointRow,
  outpointColumns,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../columns.js'
import { rest } from '../rest.js'
import { anyOutpoint, anyPair, knexReader } from './sql-reader.js'

/**
 * Every output of the graph stands in a lineage: the unbroken run of 1-sat coins that is known to lead to it (BRC-159),
 * called by its first output, and at a step of it. The lineages are kept when facts come, in whatever order, so that
 * no read has to follow an ordinal from coin to coin.
 *
 * An output starts as a lineage of its own. When the coin that it received is known and here, its lineage goes on that
 * coin's; when the origin of a name is, its lineage starts there whatever it received (protocol 5).
 *
 * @returns The lineages that are not as they were, each once.
 */
export async function keepLineages(
  trx: Knex.Transaction,
  told: { outputs: Outpoint[]; names: NameRecord[] },
): Promise<Change[]> {
  const changes = new Changes()
  for (const part of parts(told.names, ROWS_A_STATEMENT)) {
    const rows = await trx('graph_outputs')
      .whereRaw(
        anyOutpoint(part),
        part.flatMap(({ outpoint }) => outpointPair(outpoint)),
      )
      .where('step', '>', 0)
      .select('txid', 'vout')
    for (const row of rows) await startAt(trx, outpointOf(row), changes)
    await rest()
  }
  const outputs = unique(told.outputs, formatOutpoint)
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const pairs = part.flatMap(outpointPair)
    const found = await heads(trx).whereRaw(anyPair(['own.txid', 'own.vout'], part), pairs)
    // In the order in which they were told, so that what came parents first is moved step by step.
    const place = new Map(part.map((outpoint, at) => [formatOutpoint(outpoint), at]))
    const placeOf = (head: Head): number => place.get(formatOutpoint(outpointOf(head))) ?? 0
    for (const head of found.sort((a, b) => placeOf(a) - placeOf(b))) await goOn(trx, head, changes)
    const received = anyPair(['own.previous_txid', 'own.previous_vout'], part)
    for (const head of await heads(trx).whereRaw(received, pairs)) {
      await goOn(trx, head, changes)
    }
    await rest()
  }
  await changes.addOutputs(trx, [...outputs, ...told.names.map(({ outpoint }) => outpoint)])
  return changes.all
}

/** A lineage, and the first step of it from which on something is not as it was. */
export interface Change {
  lineage: Outpoint
  from: number
}

/** The lineages that one write has changed, each once. */
class Changes {
  /** Outputs with which a lineage went over into another. */
  readonly moved: Outpoint[] = []
  private readonly byLineage = new Map<string, Change>()

  get all(): Change[] {
    return [...this.byLineage.values()]
  }

  add(change: Change): void {
    const key = formatOutpoint(change.lineage)
    const known = this.byLineage.get(key)
    if (known === undefined || change.from < known.from) this.byLineage.set(key, change)
  }

  /** Adds the lineages in which outputs stand by now, from their steps on. */
  async addOutputs(trx: Knex.Transaction, outputs: Outpoint[]): Promise<void> {
    for (const change of await stepsOf(trx, [...outputs, ...this.moved])) this.add(change)
  }
}

/** The lineages and steps of those of the outputs that the store holds. */
export async function stepsOf(trx: Knex.Transaction, outpoints: Outpoint[]): Promise<Change[]> {
  const found: Change[] = []
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const rows = await knexReader(trx).all(
      `select lineage_txid, lineage_vout, step from graph_outputs where ${anyOutpoint(part)}`,
      part.flatMap(outpointPair),
    )
    for (const row of rows) {
      found.push({
        lineage: outpointOf({ txid: row.lineage_txid, vout: row.lineage_vout }),
        from: Number(row.step),
      })
    }
    await rest()
  }
  return found
}

interface Head extends OutpointRow {
  previous_txid: unknown
  previous_vout: unknown
}

/** Outputs that a lineage starts with though the coin that they received is here, and that are no name's origin. */
function heads(trx: Knex.Transaction): Knex.QueryBuilder<object, Head[]> {
  return trx('graph_outputs as own')
    .join('graph_outputs as previous', (on) =>
      on.on('previous.txid', 'own.previous_txid').andOn('previous.vout', 'own.previous_vout'),
    )
    .leftJoin('graph_names as names', (on) => on.on('names.txid', 'own.txid').andOn('names.vout', 'own.vout'))
    .whereNull('names.txid')
    .whereRaw('own.lineage_txid = own.txid and own.lineage_vout = own.vout')
    .select('own.txid', 'own.vout', 'own.previous_txid', 'own.previous_vout')
}

/** Lets a lineage go on that of the coin which its first output received. */
async function goOn(trx: Knex.Transaction, head: Head, changes: Changes): Promise<void> {
  await rest()
  const previous = outpointOf({ txid: head.previous_txid, vout: head.previous_vout })
  const row = await trx('graph_outputs')
    .where(outpointColumns(previous))
    .first('lineage_txid', 'lineage_vout', 'step')
  const { txid, vout } = outpointOf(head)
  // Nothing of this lineage stays; and from this output on, the other one has all that it had.
  changes.add({ lineage: { txid, vout }, from: 0 })
  changes.moved.push({ txid, vout })
  const further = Number(row.step) + 1
  await trx('graph_outputs')
    .where({ lineage_txid: hashColumn(txid), lineage_vout: vout })
    .update({
      lineage_txid: hashColumn(hexOf(row.lineage_txid)),
      lineage_vout: Number(row.lineage_vout),
      ...shifted(trx, further),
    })
}

/** Every count of steps, so many further. */
function shifted(trx: Knex.Transaction, further: number): Record<string, Knex.Raw> {
  const columns = ['step', 'content_step', 'parent_step', 'map_step']
  return Object.fromEntries(columns.map((column) => [column, trx.raw('?? + ?', [column, further])]))
}

/** Lets a lineage start at an output, from there on. */
async function startAt(trx: Knex.Transaction, outpoint: Outpoint, changes: Changes): Promise<void> {
  const own = outpointColumns(outpoint)
  const row = await trx('graph_outputs').where(own).first('lineage_txid', 'lineage_vout', 'step')
  const step = Number(row.step)
  changes.add({ lineage: outpointOf({ txid: row.lineage_txid, vout: row.lineage_vout }), from: 0 })
  await trx('graph_outputs')
    .where({ lineage_txid: hashColumn(hexOf(row.lineage_txid)), lineage_vout: Number(row.lineage_vout) })
    .where('step', '>=', step)
    .update({
      lineage_txid: own.txid,
      lineage_vout: own.vout,
      ...shifted(trx, -step),
    })
}
