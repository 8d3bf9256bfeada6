import type { OutputRecord } from '../../graph/records.js'
import type { Lineage, LineageSummary, Lineages, Place, StepRow } from '../read/lineages.js'
import { SHORT, SHORT_LINEAGE, shortLineage } from '../read/short-lineage.js'
import { hashColumn, hexOf, type OutpointRow, outpointOf } from '../rows/columns.js'
import { OUTPUT, outputOf } from '../rows/output-rows.js'
import { outpointId } from './collections.js'
import { type Doc, type Documents, inLineage } from './documents.js'
import { unblocked } from './maps.js'

const OUTPUTS = 'graph_outputs'
const STEP = ['txid', 'vout', 'step']

/** The lineages of a database. */
export function lineagesIn(documents: Documents): Lineages {
  const own: Omit<Lineages, 'summaryOf'> = {
    async placeOf(outpoint) {
      const doc = await documents.first(
        OUTPUTS,
        { _id: outpointId(outpoint) },
        { fields: ['satoshis', 'carrier', 'lineage_txid', 'lineage_vout', 'step'] },
      )
      return (
        doc && {
          satoshis: doc.satoshis,
          isCarrier: doc.carrier === true,
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
    async outputsAt({ lineage, steps }) {
      const docs = await documents.all(
        OUTPUTS,
        { ...inLineage(lineage), step: { $in: steps } },
        { fields: [...OUTPUT, 'step'] },
      )
      return outputsByStep(docs)
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
  /** The first or the last step of a lineage that there is of a kind. */
  const edge = async (lineage: Lineage, step: string, order: 1 | -1): Promise<number | undefined> => {
    const filter = { ...inLineage(lineage), [step]: { $gte: 0 } }
    return (await documents.first(OUTPUTS, filter, { sort: { [step]: order }, fields: [step] }))?.[step]
  }
  const longLineage = async (place: Place): Promise<LineageSummary> => {
    const { lineage } = place
    const [isWhole, last = place.step, origin, content, parent] = await Promise.all([
      own.isWhole(lineage),
      edge(lineage, 'step', -1),
      edge(lineage, 'content_step', 1),
      edge(lineage, 'content_step', -1),
      edge(lineage, 'parent_step', -1),
    ])
    return { ...place, isWhole, last, origin, content, parent }
  }
  return {
    ...own,
    async summaryOf(outpoint) {
      const place = await own.placeOf(outpoint)
      if (place === undefined) return undefined
      const { lineage } = place
      const filter = { ...inLineage(lineage), step: { $lt: SHORT } }
      const docs = await documents.all(OUTPUTS, filter, { fields: SHORT_LINEAGE })
      if (docs.length === SHORT) return await longLineage(place)
      return await shortLineage(place, docs, {
        isWhole: () => own.isWhole(lineage),
        unblocked: (rows) => unblocked(documents, rows),
      })
    },
  }
}

function outputsByStep(docs: Doc[]): Map<number, OutputRecord> {
  return new Map(docs.map((doc) => [doc.step, outputOf(doc)]))
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
