import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  inParts,
  outpointColumns,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import type { Head, OutputTables, Tip } from '../write/graph-tables.js'
import { outpointId } from './collections.js'
import { anyOutpoint, type Filter, inLineage } from './documents.js'
import { unblocked } from './lineages.js'
import { genuineOrigins } from './names.js'
import type { PendingDocuments } from './pending-documents.js'

const OUTPUTS = 'graph_outputs'
/** An inscribed output has one of these. */
const INSCRIBED_STEPS = ['content_step', 'parent_step', 'map_step']

/** Outputs that received one of these. */
function received(outpoints: Outpoint[]): Filter {
  return {
    $or: outpoints.map(({ txid, vout }) => ({ previous_txid: hashColumn(txid), previous_vout: vout })),
  }
}

/** See {@link OutputTables}. */
export function outputTablesIn(pending: PendingDocuments): OutputTables {
  const isThere = async (filter: Filter) =>
    (await pending.first(OUTPUTS, filter, { fields: ['step'] })) !== undefined
  return {
    unresolvedAmong: (outpoints) =>
      inParts(outpoints, async (part) => {
        const unresolved = { _id: { $in: part.map(outpointId) }, unsettled: true }
        return (await pending.all(OUTPUTS, unresolved, { fields: ['txid', 'vout'] })).map(outpointOf)
      }),
    async unresolvedOf(txid) {
      const unresolved = { txid: hashColumn(txid), unsettled: true }
      return (await pending.all(OUTPUTS, unresolved, { fields: ['vout'] })).map(({ vout }) => vout)
    },
    async unresolvedSpenders(txids) {
      const spends = await inParts(txids, (part) =>
        pending.all('graph_spends', { txid: { $in: part.map(hashColumn) } }, { fields: ['spender'] }),
      )
      const spenders = unique(
        spends.map(({ spender }) => spender as Buffer),
        hexOf,
      )
      const outputs = await inParts(spenders, (part) =>
        pending.all(OUTPUTS, { txid: { $in: part }, unsettled: true }, { fields: ['txid'] }),
      )
      return outputs.map(({ txid }) => hexOf(txid))
    },
    async resolvePredecessor(outpoint, previous) {
      await pending.update(
        OUTPUTS,
        { _id: outpointId(outpoint) },
        {
          unsettled: false,
          ...(previous && { previous_txid: hashColumn(previous.txid), previous_vout: previous.vout }),
        },
      )
    },
    valuesAmong: (outpoints) =>
      inParts(outpoints, async (part) => {
        const docs = await pending.all(
          OUTPUTS,
          { _id: { $in: part.map(outpointId) } },
          { fields: ['txid', 'vout', 'satoshis'] },
        )
        return docs.map((doc) => ({ outpoint: outpointOf(doc), satoshis: doc.satoshis }))
      }),
    receivedBy: (outpoints) =>
      inParts(outpoints, async (part) => {
        const docs = await pending.all(
          OUTPUTS,
          { _id: { $in: part.map(outpointId) }, previous_txid: { $ne: null } },
          { fields: ['txid', 'vout', 'previous_txid', 'previous_vout'] },
        )
        const named = await outpointsIn(pending, 'graph_names', anyOutpoint(part))
        return docs
          .filter((doc) => !named.has(formatOutpoint(outpointOf(doc))))
          .map((doc) => outpointOf({ txid: doc.previous_txid, vout: doc.previous_vout }))
      }),
    missingBehind: (txids) =>
      inParts(txids, async (part) => {
        const docs = await pending.all(
          OUTPUTS,
          { previous_txid: { $in: part.map(hashColumn) } },
          { fields: ['previous_txid', 'previous_vout'] },
        )
        const previous = unique(
          docs.map((doc) => outpointOf({ txid: doc.previous_txid, vout: doc.previous_vout })),
          formatOutpoint,
        )
        const held = await outpointsIn(pending, OUTPUTS, { _id: { $in: previous.map(outpointId) } })
        return previous.filter((outpoint) => !held.has(formatOutpoint(outpoint)))
      }),
    aloneAmong: (outpoints) => firstsWithout(pending, outpoints, { step: { $gt: 0 } }),
    onlyInscribedAmong: (outpoints) =>
      firstsWithout(pending, outpoints, {
        $or: INSCRIBED_STEPS.map((step) => ({ [step]: { $gt: 0 } })),
      }),
    spentAmong: (outpoints) =>
      inParts(outpoints, async (part) => {
        const docs = await pending.all('graph_spends', anyOutpoint(part), { fields: ['txid', 'vout'] })
        return unique(docs.map(outpointOf), formatOutpoint)
      }),
    carriersAmong: (outpoints) =>
      inParts(outpoints, async (part) => {
        const carriers = { _id: { $in: part.map(outpointId) }, carrier: true }
        return (await pending.all(OUTPUTS, carriers, { fields: ['txid', 'vout'] })).map(outpointOf)
      }),
    async admitCarriers(rows) {
      for (const { txid, vout, owner, parent_txid, parent_vout } of rows) {
        const outpoint = { txid: hexOf(txid), vout: Number(vout) }
        await pending.update(OUTPUTS, { _id: outpointId(outpoint), carrier: true }, ({ step }) => ({
          carrier: false,
          owner,
          parent_txid,
          parent_vout,
          parent_step: parent_txid === null ? null : step,
        }))
      }
    },
    receiversOf: (outpoints) =>
      inParts(outpoints, async (part) =>
        (await pending.all(OUTPUTS, received(part), { fields: ['txid', 'vout'] })).map(outpointOf),
      ),
    async furtherAmong(outpoints) {
      const further = { _id: { $in: outpoints.map(outpointId) }, step: { $gt: 0 } }
      return (await pending.all(OUTPUTS, further, { fields: ['txid', 'vout'] })).map(outpointOf)
    },
    headsAmong: (outpoints) => heads(pending, { _id: { $in: outpoints.map(outpointId) } }),
    headsBehind: (outpoints) => heads(pending, received(outpoints)),
    async moveSteps({ lineage, from, to, further }) {
      const shifted = (step: number | null): number | null => (step === null ? null : step + further)
      await pending.update(
        OUTPUTS,
        { ...inLineage(lineage), step: { $gte: from } },
        ({ step, content_step, parent_step, map_step }) => ({
          ...inLineage(to),
          step: step + further,
          content_step: shifted(content_step),
          parent_step: shifted(parent_step),
          map_step: shifted(map_step),
        }),
      )
    },
    stepsOf: (outpoints) =>
      inParts(unique(outpoints, formatOutpoint), async (part) => {
        const docs = await pending.all(
          OUTPUTS,
          { _id: { $in: part.map(outpointId) } },
          { fields: ['txid', 'vout', 'lineage_txid', 'lineage_vout', 'step'] },
        )
        return docs.map((doc) => ({
          outpoint: outpointOf(doc),
          lineage: outpointOf({ txid: doc.lineage_txid, vout: doc.lineage_vout }),
          from: doc.step,
        }))
      }),
    namesAmong: (outpoints) => genuineOrigins(pending, outpoints),
    async tipsOf(lineages) {
      const tips: Tip[] = []
      for (const lineage of lineages) {
        const tip = await pending.first(OUTPUTS, inLineage(outpointPair(lineage)), {
          sort: { step: -1 },
          fields: ['txid', 'vout', 'step', 'owner', ...INSCRIBED_STEPS],
        })
        if (tip === undefined) continue
        const { step, owner, map_step } = tip
        const spend =
          owner &&
          (await pending.first('graph_spends', outpointColumns(outpointOf(tip)), { fields: ['spender'] }))
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
    },
    hasMap: ({ lineage, from }) => isThere({ ...inLineage(lineage), map_step: { $gte: from } }),
    async mergedFrom({ lineage, from }) {
      const merged = { ...inLineage(lineage), map_step: { $gte: from }, merged_length: { $ne: null } }
      return (await pending.all(OUTPUTS, merged, { fields: ['txid', 'vout'] })).map(outpointOf)
    },
    async mapsFrom({ lineage, from, limit }) {
      const docs = await pending.all(
        OUTPUTS,
        { ...inLineage(lineage), map_step: { $gte: from } },
        { sort: { map_step: 1 }, limit, fields: ['txid', 'vout', 'map_step', 'map_length'] },
      )
      const last = docs.length < limit ? undefined : docs.at(-1)
      const maps = (await unblocked(pending, docs)).map((doc) => ({
        outpoint: outpointOf(doc),
        step: doc.map_step,
        length: doc.map_length,
      }))
      return { maps, next: last && last.map_step + 1 }
    },
    async setMerged(outpoint, length) {
      await pending.update(OUTPUTS, { _id: outpointId(outpoint) }, { merged_length: length })
    },
    async isInscribedFrom({ lineage, from }) {
      for (const step of INSCRIBED_STEPS)
        if (await isThere({ ...inLineage(lineage), [step]: { $gte: from } })) return true
      return false
    },
    async deleteAttributes(lineages, kinds) {
      for (const part of parts(lineages, ROWS_A_STATEMENT))
        await pending.delete('graph_traits', {
          $and: [{ $or: part.map(outpointPair).map(inLineage) }, { kind: { $in: kinds } }],
        })
    },
  }
}

/** Those of the outputs that are the first of a lineage in which no output matches. */
async function firstsWithout(
  pending: PendingDocuments,
  outpoints: Outpoint[],
  filter: Filter,
): Promise<Outpoint[]> {
  return await inParts(outpoints, async (part) => {
    const starting = { _id: { $in: part.map(outpointId) }, step: 0 }
    const firsts = (await pending.all(OUTPUTS, starting, { fields: ['txid', 'vout'] })).map(outpointOf)
    if (firsts.length === 0) return []
    const found = await pending.all(
      OUTPUTS,
      { $and: [{ $or: firsts.map((first) => inLineage(outpointPair(first))) }, filter] },
      { fields: ['lineage_txid', 'lineage_vout'] },
    )
    const others = new Set(
      found.map((doc) => formatOutpoint(outpointOf({ txid: doc.lineage_txid, vout: doc.lineage_vout }))),
    )
    return firsts.filter((first) => !others.has(formatOutpoint(first)))
  })
}

/** See `Head`. Origins of names are none. */
async function heads(pending: PendingDocuments, filter: Filter): Promise<Head[]> {
  const docs = await pending.all(
    OUTPUTS,
    { $and: [filter, { step: 0, previous_txid: { $ne: null } }] },
    { fields: ['txid', 'vout', 'previous_txid', 'previous_vout'] },
  )
  const starting: Head[] = docs.map((doc) => ({
    outpoint: outpointOf(doc),
    previous: outpointOf({ txid: doc.previous_txid, vout: doc.previous_vout }),
  }))
  return await inParts(starting, async (part) => {
    const held = await outpointsIn(pending, OUTPUTS, {
      _id: { $in: part.map(({ previous }) => outpointId(previous)) },
    })
    const named = await outpointsIn(pending, 'graph_names', anyOutpoint(part.map(({ outpoint }) => outpoint)))
    const isHead = ({ outpoint, previous }: Head): boolean =>
      held.has(formatOutpoint(previous)) && !named.has(formatOutpoint(outpoint))
    return part.filter(isHead)
  })
}

/** The outpoints of matching documents, as text. */
async function outpointsIn(
  pending: PendingDocuments,
  collection: 'graph_outputs' | 'graph_names',
  filter: Filter,
): Promise<Set<string>> {
  const docs = await pending.all(collection, filter, { fields: ['txid', 'vout'] })
  return new Set(docs.map((doc) => formatOutpoint(outpointOf(doc))))
}
