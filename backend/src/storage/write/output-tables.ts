import type { AttributeKind } from '../../graph/attributes.js'
import type { BlockedSubject } from '../../graph/blocklist.js'
import type { NameRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import type { LineageChange } from '../read/lineages.js'
import type { Lookups } from '../read/lookups.js'
import { genuineOrigins } from '../read/names.js'
import {
  hashColumn,
  hexOf,
  inParts,
  type Lineage,
  lineageOf,
  outpointColumns,
  outpointOf,
  unique,
} from '../rows/columns.js'
import type { RecordRow } from '../rows/record-rows.js'
import {
  anyOf,
  anyOutpoint,
  type Filter,
  inLineage,
  type Row,
  type RowWriter,
  type Table,
} from '../rows/rows.js'
import { eachPart } from './transaction-tables.js'

/** The last output of a lineage. */
export interface Tip {
  lineage: Lineage
  /** The first output of the lineage. */
  first: Outpoint
  step: number
  /** Its owner, as hex; undefined if it is spent or the owner is not known. */
  holder: string | undefined
  /** Whether it has content, a parent or MAP. */
  isInscribed: boolean
  hasMap: boolean
}

/** An output that is not in the lineage of the coin that it received, although that is stored. */
export interface Head {
  outpoint: Outpoint
  previous: Outpoint
}

/** An output at its place; the step is `from`. */
export interface PlacedOutput extends LineageChange {
  outpoint: Outpoint
}

/** A parent that an output names, and whether it counts (`index-ordinals.ts`). */
export interface Claim {
  place: PlacedOutput
  parent: Outpoint
  counts: boolean
}

/** An output with MAP, at its step. */
interface MapStep {
  outpoint: Outpoint
  step: number
  /** Of its own MAP, in bytes. */
  length: number
}

/** A lineage from a step on. */
interface Place {
  lineage: Lineage
  from: number
}

export interface MovedSteps extends Place {
  /** The step at which to stop; by default, all are moved. */
  until?: number
  to: Lineage
  further: number
}

/** An inscribed output has one of these. A parent that does not count has no step. */
export const INSCRIBED_STEPS = ['content_step', 'parent_step', 'map_step']

const OUTPUTS = 'graph_outputs'
const OUTPOINT = ['txid', 'vout'] as const
const RECEIVED = ['previous_txid', 'previous_vout'] as const
const PARENT = ['parent_txid', 'parent_vout'] as const
/** The columns that {@link placedOf} reads. */
const PLACED = [...OUTPOINT, 'lineage_txid', 'lineage_vout', 'step']

/** The statements on outputs and lineages that a write is made of. An inscribed output has content, a parent or MAP. */
export abstract class OutputTables {
  protected readonly rows: RowWriter
  private readonly lookups: Lookups

  constructor({ rows, lookups }: { rows: RowWriter; lookups: Lookups }) {
    this.rows = rows
    this.lookups = lookups
  }

  /** The predecessors of outputs, except of names' origins. */
  abstract receivedBy(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the coins that a stored output received, if it is not a name's origin. */
  abstract receivedAmong(coins: Outpoint[]): Promise<Outpoint[]>
  /** The outputs of these transactions that are not stored, but received by a stored output that is not a name's origin. */
  abstract missingBehind(txids: string[]): Promise<Outpoint[]>
  /** Those of the outputs that are the only one of their lineage. */
  abstract aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outputs that start a complete lineage, with no inscribed output after them. */
  abstract onlyInscribedAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The tips of the lineages that have one of the outputs. */
  abstract tipsOf(members: Outpoint[]): Promise<Tip[]>
  /** Turns carriers into admitted outputs. */
  abstract admitCarriers(rows: RecordRow[]): Promise<void>
  /** Moves a stretch of a lineage into another one, and adds `further` to its steps. */
  abstract moveSteps(moved: MovedSteps): Promise<void>
  /** The heads whose fields have one of the outpoints. At the origin of a name, a lineage starts whatever it received. */
  protected abstract heads(outpoints: Outpoint[], fields: readonly [string, string]): Promise<Head[]>

  /** The outputs that an entry of the blocklist blocks. */
  async blockedBy({ kind, value }: BlockedSubject): Promise<Outpoint[]> {
    if (kind === 'outpoint') return [parseOutpoint(value)]
    const rows =
      kind === 'name'
        ? await this.rows.all('graph_names', { name: value }, { fields: OUTPOINT })
        : await this.rows.all(OUTPUTS, { content_sha256: hashColumn(value) }, { fields: OUTPOINT })
    return rows.map(outpointOf)
  }

  /** Those of the outputs whose predecessor is unresolved. */
  unresolvedAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.among(OUTPUTS, outpoints, { unsettled: true })
  }

  /** The indexes of a transaction's outputs whose predecessor is unresolved. */
  async unresolvedOf(txid: string): Promise<number[]> {
    const unresolved = { txid: hashColumn(txid), unsettled: true }
    const rows = await this.rows.all(OUTPUTS, unresolved, { fields: ['vout'] })
    return rows.map(({ vout }) => Number(vout))
  }

  /** The transactions that spend from these and have such outputs. */
  async unresolvedSpenders(txids: string[]): Promise<string[]> {
    // In two steps: a join would pair each spend with each output of the spender.
    const spends = await inParts(txids, (part) =>
      this.rows.all('graph_spends', { txid: anyOf(part) }, { fields: ['spender'] }),
    )
    const spenders = [...new Set(spends.map(({ spender }) => hexOf(spender)))]
    const rows = await inParts(spenders, (part) =>
      this.rows.all(OUTPUTS, { txid: anyOf(part), unsettled: true }, { fields: ['txid'] }),
    )
    return [...new Set(rows.map(({ txid }) => hexOf(txid)))]
  }

  /** Sets the predecessor of an output: the coin that it received, or undefined for none. */
  async resolvePredecessor(outpoint: Outpoint, previous: Outpoint | undefined): Promise<void> {
    await this.rows.update(OUTPUTS, outpointColumns(outpoint), {
      unsettled: false,
      ...(previous && { previous_txid: hashColumn(previous.txid), previous_vout: previous.vout }),
    })
  }

  /** Those of the outputs that are stored, with their values. */
  async valuesAmong(outpoints: Outpoint[]): Promise<{ outpoint: Outpoint; satoshis: number }[]> {
    const rows = await this.rowsAmong(outpoints, [...OUTPOINT, 'satoshis'])
    return rows.map((row) => ({ outpoint: outpointOf(row), satoshis: Number(row.satoshis) }))
  }

  /** Those of the outpoints that an active transaction spends. */
  async spentAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return unique(await this.among('graph_spends', outpoints), formatOutpoint)
  }

  carriersAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.among(OUTPUTS, outpoints, { carrier: true })
  }

  /** The coins that outputs received, names' origins among them. */
  coinsOf(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) => {
      const received = { ...anyOutpoint(part), previous_txid: { $ne: null } }
      const rows = await this.rows.all(OUTPUTS, received, { fields: RECEIVED })
      return rows.map(({ previous_txid: txid, previous_vout: vout }) => outpointOf({ txid, vout }))
    })
  }

  async deleteCarriers(outpoints: Outpoint[]): Promise<void> {
    await eachPart(outpoints, (part) => this.rows.delete(OUTPUTS, { ...anyOutpoint(part), carrier: true }))
  }

  /** The outputs that received one of these coins, which need not be stored. */
  receiversOf(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) =>
      (await this.rows.all(OUTPUTS, anyOutpoint(part, RECEIVED), { fields: OUTPOINT })).map(outpointOf),
    )
  }

  /** The heads among outputs. */
  headsAmong(outpoints: Outpoint[]): Promise<Head[]> {
    return this.heads(outpoints, OUTPOINT)
  }

  /** The heads that received one of the outputs. */
  headsBehind(outpoints: Outpoint[]): Promise<Head[]> {
    return this.heads(outpoints, RECEIVED)
  }

  /** Those of the outputs that received no 1-sat coin. */
  withoutPredecessor(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.among(OUTPUTS, outpoints, { unsettled: false, previous_txid: null })
  }

  /** Those of the outputs that are stored, with their places. */
  async stepsOf(outpoints: Outpoint[]): Promise<PlacedOutput[]> {
    return (await this.rowsAmong(unique(outpoints, formatOutpoint), PLACED)).map(placedOf)
  }

  /** A page of the outputs of a lineage from a step on, before `until`, in order. */
  async pageOf({
    lineage,
    from,
    until,
    limit,
  }: Place & { until: number; limit: number }): Promise<PlacedOutput[]> {
    const within = { ...inLineage(lineage), step: { $gte: from, $lt: until } }
    return (await this.rows.all(OUTPUTS, within, { sort: { step: 1 }, limit, fields: PLACED })).map(placedOf)
  }

  /**
   * The transactions with outputs that name parents, of those that spend one of the outputs or name one of them: whether these
   * count depends on where those outputs are.
   */
  async claimantsOf(outpoints: Outpoint[]): Promise<string[]> {
    const found = await inParts(unique(outpoints, formatOutpoint), async (part) => {
      const spends = await this.rows.all('graph_spends', anyOutpoint(part), { fields: ['spender'] })
      const spenders = [...new Set(spends.map(({ spender }) => hexOf(spender)))]
      return [
        ...(await this.rows.all(OUTPUTS, anyOutpoint(part, PARENT), { fields: ['txid'] })),
        ...(await inParts(spenders, (some) =>
          this.rows.all(OUTPUTS, { txid: anyOf(some), parent_txid: { $ne: null } }, { fields: ['txid'] }),
        )),
      ]
    })
    return [...new Set(found.map(({ txid }) => hexOf(txid)))]
  }

  /** The parents that a transaction's outputs name. */
  async claimsOf(txid: string): Promise<Claim[]> {
    const claiming = { txid: hashColumn(txid), parent_txid: { $ne: null } }
    const rows = await this.rows.all(OUTPUTS, claiming, { fields: [...PLACED, ...PARENT, 'parent_step'] })
    return rows.map((row) => ({
      place: placedOf(row),
      parent: outpointOf({ txid: row.parent_txid, vout: row.parent_vout }),
      counts: row.parent_step !== null,
    }))
  }

  async setParentCounts({ outpoint, from }: PlacedOutput, counts: boolean): Promise<void> {
    await this.rows.update(OUTPUTS, outpointColumns(outpoint), { parent_step: counts ? from : null })
  }

  /** The names whose origin is one of the outpoints. */
  namesAmong(outpoints: Outpoint[]): Promise<NameRecord[]> {
    return genuineOrigins(this.rows, outpoints)
  }

  /** Whether an output from a step on has MAP, blocked or not. */
  hasMap({ lineage, from }: Place): Promise<boolean> {
    return this.isThere({ ...inLineage(lineage), map_step: { $gte: from } })
  }

  /** The outputs from a step on that keep a MAP snapshot, blocked or not. */
  async mergedFrom({ lineage, from }: Place): Promise<Outpoint[]> {
    const merged = { ...inLineage(lineage), map_step: { $gte: from }, merged_length: { $ne: null } }
    return (await this.rows.all(OUTPUTS, merged, { fields: OUTPOINT })).map(outpointOf)
  }

  /** A page of the outputs from a step on that have MAP and are not blocked, in order; and the step of the next page, if any. */
  async mapsFrom(page: Place & { limit: number }): Promise<{ maps: MapStep[]; next: number | undefined }> {
    const { rows, last } = await this.lookups.mapRows({ ...page, order: 1 })
    const maps = rows.map((row) => ({
      outpoint: outpointOf(row),
      step: Number(row.map_step),
      length: Number(row.map_length),
    }))
    return { maps, next: last === undefined ? undefined : last + 1 }
  }

  /** Sets the length of an output's MAP snapshot in bytes; null if it keeps none. */
  async setMerged(outpoint: Outpoint, length: number | null): Promise<void> {
    await this.rows.update(OUTPUTS, outpointColumns(outpoint), { merged_length: length })
  }

  /** Whether an output from a step on is inscribed. */
  isInscribedFrom({ lineage, from }: Place): Promise<boolean> {
    const isInscribed = INSCRIBED_STEPS.map((step) => ({ [step]: { $ne: null } }))
    return this.isThere({ ...inLineage(lineage), step: { $gte: from }, $or: isInscribed })
  }

  /** @param firsts The first outputs of lineages. */
  async deleteAttributes(firsts: Outpoint[], kinds: AttributeKind[]): Promise<void> {
    await eachPart(firsts, (part) =>
      this.rows.delete('graph_traits', {
        ...anyOutpoint(part, ['lineage_txid', 'lineage_vout']),
        kind: { $in: kinds },
      }),
    )
  }

  /** Removes outputs from the queue of missing ancestors. */
  async deleteQueued(outpoints: Outpoint[]): Promise<void> {
    await eachPart(outpoints, (part) => this.rows.delete('graph_ancestors', anyOutpoint(part)))
  }

  private async isThere(filter: Filter): Promise<boolean> {
    return (await this.rows.first(OUTPUTS, filter, { fields: ['step'] })) !== undefined
  }

  private rowsAmong(outpoints: Outpoint[], fields: string[]): Promise<Row[]> {
    return inParts(outpoints, (part) => this.rows.all(OUTPUTS, anyOutpoint(part), { fields }))
  }

  private among(table: Table, outpoints: Outpoint[], filter: Filter = {}): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) => {
      const found = { ...anyOutpoint(part), ...filter }
      return (await this.rows.all(table, found, { fields: OUTPOINT })).map(outpointOf)
    })
  }
}

function placedOf(row: Row): PlacedOutput {
  return { outpoint: outpointOf(row), lineage: lineageOf(row), from: Number(row.step) }
}
