import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { Lookups } from '../read/lookups.js'
import { hexOf, inParts, outpointColumns, outpointOf, outpointPair, unique } from '../rows/columns.js'
import type { RecordRow } from '../rows/record-rows.js'
import { anyOf, anyOutpoint, type Filter, inLineage, type Row } from '../rows/rows.js'
import {
  type Head,
  INSCRIBED_STEPS,
  type MovedSteps,
  OutputTables,
  type Tip,
} from '../write/output-tables.js'
import type { PendingDocuments } from './pending-documents.js'

const OUTPUTS = 'graph_outputs'
const OUTPOINT = ['txid', 'vout']
const PREVIOUS = ['previous_txid', 'previous_vout']

/** See {@link OutputTables}. */
export class MongoOutputTables extends OutputTables {
  private readonly pending: PendingDocuments

  constructor({ pending, lookups }: { pending: PendingDocuments; lookups: Lookups }) {
    super({ rows: pending, lookups })
    this.pending = pending
  }

  receivedBy(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) => {
      const received = { ...anyOutpoint(part), previous_txid: { $ne: null } }
      const docs = await this.rows.all(OUTPUTS, received, { fields: [...OUTPOINT, ...PREVIOUS] })
      const named = await this.outpointsIn('graph_names', anyOutpoint(part))
      return docs.filter((doc) => !named.has(formatOutpoint(outpointOf(doc)))).map(previousOf)
    })
  }

  missingBehind(txids: string[]): Promise<Outpoint[]> {
    return inParts(txids, async (part) => {
      const docs = await this.rows.all(OUTPUTS, { previous_txid: anyOf(part) }, { fields: PREVIOUS })
      const previous = unique(docs.map(previousOf), formatOutpoint)
      if (previous.length === 0) return []
      const held = await this.outpointsIn(OUTPUTS, anyOutpoint(previous))
      return previous.filter((outpoint) => !held.has(formatOutpoint(outpoint)))
    })
  }

  aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.firstWithout({ step: { $gt: 0 } }, outpoints)
  }

  onlyInscribedAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return this.firstWithout({ $or: INSCRIBED_STEPS.map((step) => ({ [step]: { $gt: 0 } })) }, outpoints)
  }

  async tipsOf(lineages: Outpoint[]): Promise<Tip[]> {
    const tips: Tip[] = []
    const fields = [...OUTPOINT, 'step', 'owner', ...INSCRIBED_STEPS]
    for (const lineage of lineages) {
      const own = inLineage(outpointPair(lineage))
      const tip = await this.rows.first(OUTPUTS, own, { sort: { step: -1 }, fields })
      if (tip === undefined) continue
      const { step, owner, map_step } = tip
      const spent = outpointColumns(outpointOf(tip))
      const spend = owner && (await this.rows.first('graph_spends', spent, { fields: ['spender'] }))
      tips.push({
        lineage,
        step,
        holder: owner && spend === undefined ? hexOf(owner) : undefined,
        isInscribed: INSCRIBED_STEPS.some((step) => tip[step] !== null),
        hasMap: map_step !== null,
      })
      await yieldBetweenStatements()
    }
    return tips
  }

  async admitCarriers(rows: RecordRow[]): Promise<void> {
    for (const { txid, vout, owner, parent_txid, parent_vout } of rows) {
      const own = { txid, vout, carrier: true } as Filter
      await this.pending.update(OUTPUTS, own, ({ step }) => ({
        ...{ carrier: false, owner, parent_txid, parent_vout },
        parent_step: parent_txid === null ? null : step,
      }))
    }
  }

  async moveSteps({ lineage, from, to, further }: MovedSteps): Promise<void> {
    const shifted = (step: number | null): number | null => (step === null ? null : step + further)
    const moved = { ...inLineage(lineage), step: { $gte: from } }
    await this.pending.update(OUTPUTS, moved, ({ step, content_step, parent_step, map_step }) => ({
      ...inLineage(to),
      step: step + further,
      content_step: shifted(content_step),
      parent_step: shifted(parent_step),
      map_step: shifted(map_step),
    }))
  }

  protected async heads(outpoints: Outpoint[], fields: readonly [string, string]): Promise<Head[]> {
    const first = { ...anyOutpoint(outpoints, fields), step: 0 }
    const docs = await this.rows.all(OUTPUTS, first, { fields: [...OUTPOINT, ...PREVIOUS] })
    const starting = docs
      .filter(({ previous_txid }) => previous_txid !== null)
      .map((doc) => ({ outpoint: outpointOf(doc), previous: previousOf(doc) }))
    return await inParts(starting, async (part) => {
      const held = await this.outpointsIn(OUTPUTS, anyOutpoint(part.map(({ previous }) => previous)))
      const named = await this.outpointsIn('graph_names', anyOutpoint(part.map(({ outpoint }) => outpoint)))
      const isHead = ({ outpoint, previous }: Head): boolean =>
        held.has(formatOutpoint(previous)) && !named.has(formatOutpoint(outpoint))
      return part.filter(isHead)
    })
  }

  /** Those of the outputs that are the first of a lineage in which no output matches. */
  private firstWithout(filter: Filter, outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) => {
      const starting = { ...anyOutpoint(part), step: 0 }
      const firsts = (await this.rows.all(OUTPUTS, starting, { fields: OUTPOINT })).map(outpointOf)
      if (firsts.length === 0) return []
      const inTheirs = { $or: firsts.map((first) => inLineage(outpointPair(first))) }
      const fields = ['lineage_txid', 'lineage_vout']
      const found = await this.rows.all(OUTPUTS, { $and: [inTheirs, filter] }, { fields })
      const others = new Set(
        found.map((doc) => formatOutpoint(outpointOf({ txid: doc.lineage_txid, vout: doc.lineage_vout }))),
      )
      return firsts.filter((first) => !others.has(formatOutpoint(first)))
    })
  }

  /** The outpoints of matching documents, as text. */
  private async outpointsIn(
    collection: 'graph_outputs' | 'graph_names',
    filter: Filter,
  ): Promise<Set<string>> {
    const docs = await this.rows.all(collection, filter, { fields: OUTPOINT })
    return new Set(docs.map((doc) => formatOutpoint(outpointOf(doc))))
  }
}

function previousOf({ previous_txid, previous_vout }: Row): Outpoint {
  return outpointOf({ txid: previous_txid, vout: previous_vout })
}
