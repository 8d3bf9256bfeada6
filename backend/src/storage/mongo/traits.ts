import { type Trait, trait } from '../../graph/traits.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  outpointColumns,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../columns.js'
import { rest } from '../rest.js'
import { saidTraits } from '../said-traits.js'
import { outpointId } from './collections.js'
import type { Change } from './lineage.js'
import { inLineage, lineagesIn } from './lineage-reads.js'
import { mapsIn } from './map-reads.js'
import type { PendingDocuments } from './pending-documents.js'

/** What a tip alone tells, and what is told of the ordinal up to there. */
const HELD: Trait['kind'][] = ['owner']
const SAID: Trait['kind'][] = ['contentType', 'parent', 'map']

/** Makes what ordinals are found by follow what has changed of their lineages, and which of their outputs are spent. */
export async function keepTraits(
  pending: PendingDocuments,
  { changes, spent }: { changes: Change[]; spent: Outpoint[] },
): Promise<void> {
  const store = { ...lineagesIn(pending), ...mapsIn(pending) }
  const all = unique([...changes.map(({ lineage }) => lineage), ...spent], formatOutpoint)
  // A lineage may have lost steps and gone on otherwise at once: the first of them is where it changed.
  const from = new Map<string, number>()
  for (const change of changes) {
    const key = formatOutpoint(change.lineage)
    from.set(key, Math.min(change.from, from.get(key) ?? change.from))
  }
  const sayingMore: Outpoint[] = []
  const found: { lineage: Outpoint; trait: Trait }[] = []
  for (const lineage of all) {
    await rest()
    const tip = await store.lastOf(outpointPair(lineage))
    const traits = tip === undefined ? [] : await heldTraits(pending, tip.outpoint)
    if (await saysMore(pending, lineage, from.get(formatOutpoint(lineage)))) {
      sayingMore.push(lineage)
      if (tip !== undefined) traits.push(...(await saidTraits(store, outpointPair(lineage), tip.step)))
    }
    for (const trait of traits) found.push({ lineage, trait })
  }
  await forget(pending, all, HELD)
  await forget(pending, sayingMore, SAID)
  await pending.insertNew(
    'graph_traits',
    found.map(({ lineage, trait: { kind, hash } }) => ({
      trait: hashColumn(hash),
      ...inLineage(outpointPair(lineage)),
      kind,
    })),
  )
}

/** Whose a tip is that nothing spends. */
async function heldTraits(pending: PendingDocuments, tip: Outpoint): Promise<Trait[]> {
  const doc = await pending.first('graph_outputs', { _id: outpointId(tip) }, { fields: ['owner'] })
  if (!doc?.owner) return []
  const spend = await pending.first('graph_spends', outpointColumns(tip), { fields: ['spender'] })
  return spend === undefined ? [trait.owner(hexOf(doc.owner))] : []
}

/** Whether content, a parent or MAP may be new from a step on. A transfer brings none. */
async function saysMore(
  pending: PendingDocuments,
  lineage: Outpoint,
  from: number | undefined,
): Promise<boolean> {
  if (from === undefined || from === 0) return from === 0
  for (const step of ['content_step', 'parent_step', 'map_step']) {
    const further = { ...inLineage(outpointPair(lineage)), [step]: { $gte: from } }
    if ((await pending.first('graph_outputs', further, { fields: ['step'] })) !== undefined) return true
  }
  return false
}

async function forget(
  pending: PendingDocuments,
  lineages: Outpoint[],
  kinds: Trait['kind'][],
): Promise<void> {
  for (const part of parts(lineages, ROWS_A_STATEMENT)) {
    await pending.delete('graph_traits', {
      $and: [{ $or: part.map((lineage) => inLineage(outpointPair(lineage))) }, { kind: { $in: kinds } }],
    })
  }
}
