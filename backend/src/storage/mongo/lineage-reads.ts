import type { OutputRecord } from '../../graph/records.js'
import { hashColumn, hexOf, type OutpointRow, outpointOf } from '../columns.js'
import type { Lineage, Lineages, StepRow } from '../lineages.js'
import { OUTPUT, outputOf } from '../output-rows.js'
import { outpointId } from './collections.js'
import type { Documents, Filter } from './documents.js'

const OUTPUTS = 'graph_outputs'
const STEP = ['txid', 'vout', 'step']

/** The lineages of a database. */
export function lineagesIn(documents: Documents): Lineages {
  return {
    async placeOf(outpoint) {
      const doc = await documents.first(
        OUTPUTS,
        { _id: outpointId(outpoint) },
        { fields: ['satoshis', 'lineage_txid', 'lineage_vout', 'step'] },
      )
      return (
        doc && {
          satoshis: doc.satoshis,
          lineage: [doc.lineage_txid, doc.lineage_vout],
          step: doc.step,
        }
      )
    },
    async outputAt(outpoint) {
      const doc = await documents.first(OUTPUTS, { _id: outpointId(outpoint) }, { fields: OUTPUT })
      return doc && outputOf(doc)
    },
    async lastOf(lineage) {
      const doc = await documents.first(OUTPUTS, inLineage(lineage), { sort: { step: -1 }, fields: STEP })
      return doc && stepOf(doc)
    },
    async firstContentOf(lineage) {
      const doc = await documents.first(
        OUTPUTS,
        { ...inLineage(lineage), content_step: { $gte: 0 } },
        { sort: { content_step: 1 }, fields: STEP },
      )
      return doc && stepOf(doc)
    },
    async outputAtStep({ lineage, step }) {
      const doc = await documents.first(OUTPUTS, { ...inLineage(lineage), step }, { fields: OUTPUT })
      return doc && outputOf(doc)
    },
    async latestContent({ lineage, from, to }) {
      const doc = await documents.first(
        OUTPUTS,
        { ...inLineage(lineage), content_step: { $gte: from, $lte: to } },
        { sort: { content_step: -1 }, fields: OUTPUT },
      )
      return doc && outputOf(doc)
    },
    async latestParent({ lineage, from, to }) {
      const doc = await documents.first(
        OUTPUTS,
        { ...inLineage(lineage), parent_step: { $gte: from, $lte: to } },
        { sort: { parent_step: -1 }, fields: ['parent_txid', 'parent_vout'] },
      )
      return doc && outpointOf({ txid: doc.parent_txid, vout: doc.parent_vout })
    },
    async isWhole([txid, vout]) {
      const first = await documents.first(
        OUTPUTS,
        { _id: outpointId({ txid: hexOf(txid), vout }) },
        { fields: ['unsettled', 'previous_txid'] },
      )
      if (first === undefined) return false
      if (!first.unsettled && first.previous_txid === null) return true
      return (await documents.first('graph_names', { txid, vout }, { fields: ['name'] })) !== undefined
    },
    async stepsFrom({ lineage, step, limit }) {
      const docs = await documents.all(
        OUTPUTS,
        { ...inLineage(lineage), step: { $gte: step } },
        { sort: { step: 1 }, limit, fields: STEP },
      )
      return docs.map(stepOf)
    },
  }
}

/** The outputs of a lineage. */
export function inLineage([lineage_txid, lineage_vout]: Lineage): Filter {
  return { lineage_txid, lineage_vout }
}

/** The first output of a transaction with content. */
export async function firstContentIn(documents: Documents, txid: string): Promise<OutputRecord | undefined> {
  const doc = await documents.first(
    OUTPUTS,
    { txid: hashColumn(txid), content_sha256: { $ne: null } },
    { sort: { vout: 1 }, fields: OUTPUT },
  )
  return doc && outputOf(doc)
}

function stepOf(doc: OutpointRow & { step: number }): StepRow {
  return { outpoint: outpointOf(doc), step: doc.step }
}
