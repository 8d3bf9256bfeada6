import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { Lookups } from '../read/lookups.js'
import {
  formatLineage,
  hexOf,
  inParts,
  isSameLineage,
  lineageOf,
  outpointColumns,
  outpointOf,
  outpointPair,
  unique,
} from '../rows/columns.js'
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
const PREVIOUS = ['previous_txid', 'previous_vout'] as const
const LINEAGE = ['lineage_txid', 'lineage_vout']

/** See {@link OutputTables}. */
export class MongoOutputTables extends OutputTables {
  private readonly pending: PendingDocuments

  constructor({ pending, lookups }: { pending: PendingDocuments; lookups: Lookups }) {
    super({ rows: pending, lookups })
    this.pending = pending
  }

  receivedBy(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, (part) =>
      this.receivedWhere({ ...anyOutpoint(part), previous_txid: { $ne: null } }),
    )
  }

  receivedAmong(coins: Outpoint[]): Promise<Outpoint[]> {
    return inParts(coins, (part) => this.receivedWhere(anyOutpoint(part, PREVIOUS)))
  }

  missingBehind(txids: string[]): Promise<Outpoint[]> {
    return inParts(txids, async (part) => {
      const previous = unique(await this.receivedWhere({ previous_txid: anyOf(part) }), formatOutpoint)
      if (previous.length === 0) return []
      const held = await this.outpointsIn(OUTPUTS, anyOutpoint(previous))
      return previous.filter((outpoint) => !held.has(formatOutpoint(outpoint)))
    })
  }

  aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) => {
      const starting = { ...anyOutpoint(part), step: 0 }
      const own = await this.rows.all(OUTPUTS, starting, { fields: [...OUTPOINT, ...LINEAGE] })
      const others = own.flatMap((doc) =>
        [{ $gt: 0 }, { $lt: 0 }].map((step) => ({ ...inLineage(lineageOf(doc)), step })),
      )
      const shared = await this.lineagesIn(others)
      return own.filter((doc) => !shared.has(formatLineage(lineageOf(doc)))).map(outpointOf)
    })
  }

  onlyInscribedAmong(outpoints: Outpoint[]): Promise<Outpoint[]> {
    return inParts(outpoints, async (part) => {
      const starting = { ...anyOutpoint(part), step: 0 }
      const own = await this.rows.all(OUTPUTS, starting, { fields: [...OUTPOINT, ...LINEAGE] })
      const firsts = own.map(outpointOf).filter((outpoint, at) => {
        return isSameLineage(outpointPair(outpoint), lineageOf(own[at]))
      })
      const further = firsts.flatMap((first) =>
        INSCRIBED_STEPS.map((step) => ({ ...inLineage(outpointPair(first)), [step]: { $gt: 0 } })),
      )
      const inscribed = await this.lineagesIn(further)
      return firsts.filter((first) => !inscribed.has(formatLineage(outpointPair(first))))
    })
  }

  async tipsOf(members: Outpoint[]): Promise<Tip[]> {
    const tips: Tip[] = []
    const fields = [...OUTPOINT, 'step', 'owner', ...INSCRIBED_STEPS]
    for (const member of members) {
      const place = await this.rows.first(OUTPUTS, outpointColumns(member), { fields: LINEAGE })
      if (place === undefined) continue
      const lineage = lineageOf(place)
      const own = inLineage(lineage)
      const first = await this.rows.first(OUTPUTS, own, { sort: { step: 1 }, fields: OUTPOINT })
      const tip = await this.rows.first(OUTPUTS, own, { sort: { step: -1 }, fields })
      if (first === undefined || tip === undefined) continue
      const { step, owner, map_step } = tip
      const spent = outpointColumns(outpointOf(tip))
      const spend = owner && (await this.rows.first('graph_spends', spent, { fields: ['spender'] }))
      tips.push({
        lineage,
        first: outpointOf(first),
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
    for (const { txid, vout, owner, parent_txid, parent_vout, parent_step } of rows) {
      const own = { txid, vout, carrier: true } as Filter
      await this.pending.update(OUTPUTS, own, ({ step }) => ({
        ...{ carrier: false, owner, parent_txid, parent_vout },
        parent_step: parent_step === null ? null : step,
      }))
    }
  }

  async moveSteps({ lineage, from, until, to, further }: MovedSteps): Promise<void> {
    const shifted = (step: number | null): number | null => (step === null ? null : step + further)
    const stretch = { $gte: from, ...(until !== undefined && { $lt: until }) }
    const moved = { ...inLineage(lineage), step: stretch }
    await this.pending.update(OUTPUTS, moved, ({ step, content_step, parent_step, map_step }) => ({
      ...inLineage(to),
      step: step + further,
      content_step: shifted(content_step),
      parent_step: shifted(parent_step),
      map_step: shifted(map_step),
    }))
  }

  protected async heads(outpoints: Outpoint[], fields: readonly [string, string]): Promise<Head[]> {
    const placed = [...OUTPOINT, ...LINEAGE]
    const docs = await this.rows.all(OUTPUTS, anyOutpoint(outpoints, fields), {
      fields: [...placed, ...PREVIOUS],
    })
    const received = docs.filter(({ previous_txid }) => previous_txid !== null)
    return await inParts(received, async (part) => {
      const previous = await this.rows.all(OUTPUTS, anyOutpoint(part.map(previousOf)), { fields: placed })
      const lineages = new Map(previous.map((doc) => [formatOutpoint(outpointOf(doc)), lineageOf(doc)]))
      const apart = part.filter((doc) => {
        const lineage = lineages.get(formatOutpoint(previousOf(doc)))
        return lineage !== undefined && !isSameLineage(lineage, lineageOf(doc))
      })
      if (apart.length === 0) return []
      const named = await this.outpointsIn('graph_names', anyOutpoint(apart.map(outpointOf)))
      return apart
        .map((doc) => ({ outpoint: outpointOf(doc), previous: previousOf(doc) }))
        .filter(({ outpoint }) => !named.has(formatOutpoint(outpoint)))
    })
  }

  /** The predecessors of matching outputs, except of names' origins. */
  private async receivedWhere(filter: Filter): Promise<Outpoint[]> {
    const docs = await this.rows.all(OUTPUTS, filter, { fields: [...OUTPOINT, ...PREVIOUS] })
    if (docs.length === 0) return []
    const named = await this.outpointsIn('graph_names', anyOutpoint(docs.map(outpointOf)))
    return docs.filter((doc) => !named.has(formatOutpoint(outpointOf(doc)))).map(previousOf)
  }

  /** The lineages of the outputs that match one of the filters, as text. */
  private async lineagesIn(filters: Filter[]): Promise<Set<string>> {
    if (filters.length === 0) return new Set()
    const docs = await this.rows.all(OUTPUTS, { $or: filters }, { fields: LINEAGE })
    return new Set(docs.map((doc) => formatLineage(lineageOf(doc))))
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
