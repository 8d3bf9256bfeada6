import type { NameRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  outpointColumns,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../columns.js'
import { rest } from '../rest.js'
import { outpointId } from './collections.js'
import { anyOutpoint, type Doc, type Filter } from './documents.js'
import { inLineage } from './lineage-reads.js'
import type { PendingDocuments } from './pending-documents.js'

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
  pending: PendingDocuments,
  told: { outputs: Outpoint[]; names: NameRecord[] },
): Promise<Change[]> {
  const changes = new Changes()
  for (const name of told.names) await startAt(pending, name.outpoint, changes)
  const outputs = unique(told.outputs, formatOutpoint)
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const found = await heads(pending, { _id: { $in: part.map(outpointId) } })
    // In the order in which they were told, so that what came parents first is moved step by step.
    const place = new Map(part.map((outpoint, at) => [formatOutpoint(outpoint), at]))
    const placeOf = (head: Head): number => place.get(formatOutpoint(head.outpoint)) ?? 0
    for (const head of found.sort((a, b) => placeOf(a) - placeOf(b))) await goOn(pending, head, changes)
    const receiving: Filter = {
      $or: part.map(({ txid, vout }) => ({ previous_txid: hashColumn(txid), previous_vout: vout })),
    }
    for (const head of await heads(pending, receiving)) await goOn(pending, head, changes)
  }
  await changes.addOutputs(pending, [...outputs, ...told.names.map(({ outpoint }) => outpoint)])
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
  async addOutputs(pending: PendingDocuments, outputs: Outpoint[]): Promise<void> {
    for (const change of await stepsOf(pending, [...outputs, ...this.moved])) this.add(change)
  }
}

/** The lineages and steps of those of the outputs that the store holds. */
export async function stepsOf(pending: PendingDocuments, outpoints: Outpoint[]): Promise<Change[]> {
  const found: Change[] = []
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const docs = await pending.all(
      'graph_outputs',
      { _id: { $in: part.map(outpointId) } },
      { fields: ['lineage_txid', 'lineage_vout', 'step'] },
    )
    for (const doc of docs) found.push({ lineage: lineageOf(doc), from: doc.step })
  }
  return found
}

function lineageOf({ lineage_txid, lineage_vout }: Doc): Outpoint {
  return outpointOf({ txid: lineage_txid, vout: lineage_vout })
}

interface Head {
  outpoint: Outpoint
  previous: Outpoint
}

/** Outputs that a lineage starts with though the coin that they received is here, and that are no name's origin. */
async function heads(pending: PendingDocuments, filter: Filter): Promise<Head[]> {
  const docs = await pending.all(
    'graph_outputs',
    { $and: [filter, { step: 0, previous_txid: { $ne: null } }] },
    { fields: ['txid', 'vout', 'previous_txid', 'previous_vout'] },
  )
  const starting = docs.map((doc) => ({
    outpoint: outpointOf(doc),
    previous: outpointOf({ txid: doc.previous_txid, vout: doc.previous_vout }),
  }))
  const found: Head[] = []
  for (const part of parts(starting, ROWS_A_STATEMENT)) {
    const held = await thoseIn(pending, 'graph_outputs', {
      _id: { $in: part.map(({ previous }) => outpointId(previous)) },
    })
    const named = await thoseIn(pending, 'graph_names', anyOutpoint(part.map(({ outpoint }) => outpoint)))
    found.push(
      ...part.filter(
        ({ outpoint, previous }) =>
          held.has(formatOutpoint(previous)) && !named.has(formatOutpoint(outpoint)),
      ),
    )
  }
  return found
}

async function thoseIn(
  pending: PendingDocuments,
  collection: 'graph_outputs' | 'graph_names',
  filter: Filter,
): Promise<Set<string>> {
  const docs = await pending.all(collection, filter, { fields: ['txid', 'vout'] })
  return new Set(docs.map((doc) => formatOutpoint(outpointOf(doc))))
}

/** Lets a lineage go on that of the coin which its first output received. */
async function goOn(
  pending: PendingDocuments,
  { outpoint, previous }: Head,
  changes: Changes,
): Promise<void> {
  await rest()
  const doc = await pending.first('graph_outputs', { _id: outpointId(previous) })
  // Nothing of this lineage stays; and from this output on, the other one has all that it had.
  changes.add({ lineage: outpoint, from: 0 })
  changes.moved.push(outpoint)
  await pending.update(
    'graph_outputs',
    inLineage(outpointPair(outpoint)),
    moved({ lineage_txid: doc.lineage_txid, lineage_vout: doc.lineage_vout, further: doc.step + 1 }),
  )
}

/** Lets a lineage start at an output, from there on. */
async function startAt(pending: PendingDocuments, outpoint: Outpoint, changes: Changes): Promise<void> {
  const doc = await pending.first('graph_outputs', { _id: outpointId(outpoint) })
  if (doc === undefined || doc.step === 0) return
  const { txid, vout } = outpointColumns(outpoint)
  changes.add({ lineage: lineageOf(doc), from: 0 })
  await pending.update(
    'graph_outputs',
    { ...inLineage(outpointPair(lineageOf(doc))), step: { $gte: doc.step } },
    moved({ lineage_txid: txid, lineage_vout: vout, further: -doc.step }),
  )
}

/** Puts an output into another lineage, with every count of steps so many further. */
function moved(to: { lineage_txid: Buffer; lineage_vout: number; further: number }): (doc: Doc) => object {
  const { further, ...lineage } = to
  const shifted = (step: number | null): number | null => (step === null ? null : step + further)
  return ({ step, content_step, parent_step, map_step }) => ({
    ...lineage,
    step: step + further,
    content_step: shifted(content_step),
    parent_step: shifted(parent_step),
    map_step: shifted(map_step),
  })
}
