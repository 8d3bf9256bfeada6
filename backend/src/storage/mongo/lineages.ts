import type { OutputRecord } from '../../graph/records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import {
  type LineageSummary,
  type Lineages,
  type Maps,
  mapPartOf,
  type Place,
  SHORT,
  SHORT_LINEAGE,
  type StepRow,
  shortLineage,
} from '../read/lineages.js'
import type { StreamPageQuery, StreamRow, Streams } from '../read/read-streams.js'

import { hashColumn, hexOf, type Lineage, type OutpointRow, outpointOf } from '../rows/columns.js'
import { OUTPUT, outputOf } from '../rows/record-rows.js'
import { type Doc, outpointId } from './collections.js'
import { chunksIn } from './content.js'
import { anyOutpoint, type Documents, inLineage } from './documents.js'

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
    async isComplete([txid, vout]) {
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
  /** The first or the last step of a kind in a lineage. */
  const edge = async (lineage: Lineage, step: string, order: 1 | -1): Promise<number | undefined> => {
    const filter = { ...inLineage(lineage), [step]: { $gte: 0 } }
    return (await documents.first(OUTPUTS, filter, { sort: { [step]: order }, fields: [step] }))?.[step]
  }
  const longLineage = async (place: Place): Promise<LineageSummary> => {
    const { lineage } = place
    const [isComplete, last = place.step, origin, content, parent] = await Promise.all([
      own.isComplete(lineage),
      edge(lineage, 'step', -1),
      edge(lineage, 'content_step', 1),
      edge(lineage, 'content_step', -1),
      edge(lineage, 'parent_step', -1),
    ])
    return { ...place, isComplete, last, origin, content, parent }
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
        isComplete: () => own.isComplete(lineage),
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

/** The MAP of a database. */
export function mapsIn(documents: Documents): Maps {
  return {
    ...chunksIn(documents),
    async latestMaps({ lineage, from, to, limit }) {
      const docs = await documents.all(
        'graph_outputs',
        { ...inLineage(lineage), map_step: { $gte: from, $lte: to } },
        {
          sort: { map_step: -1 },
          limit,
          fields: ['txid', 'vout', 'map_step', 'map_length', 'merged_length'],
        },
      )
      const last = docs.length < limit ? undefined : docs.at(-1)
      return { parts: (await unblocked(documents, docs)).map(mapPartOf), next: last && last.map_step - 1 }
    },
  }
}

/** Leaves out blocked outputs. */
export async function unblocked(documents: Documents, outputs: Doc[]): Promise<Doc[]> {
  if (outputs.length === 0) return []
  const found = await documents.all('graph_blocked', anyOutpoint(outputs.map(outpointOf)), {
    fields: ['txid', 'vout'],
  })
  const blocked = new Set(found.map((doc) => formatOutpoint(outpointOf(doc))))
  return outputs.filter((output) => !blocked.has(formatOutpoint(outpointOf(output))))
}

const FIELDS = ['txid', 'vout', 'satoshis', 'content_sha256', 'content_type', 'content_length', 'step']

/** The streams of a database. */
export function streamRowsIn(documents: Documents): Streams {
  const { placeOf } = lineagesIn(documents)
  return {
    async streamPage(query) {
      for (let place = await placeOf(query.outpoint); place !== undefined; ) {
        const rows = await pageFrom(documents, place, query)
        // If the output has moved meanwhile, this page may belong to neither place.
        const now = await placeOf(query.outpoint)
        if (now !== undefined && isSame(place, now)) return rows
        place = now
      }
      return []
    },
  }
}

async function pageFrom(
  documents: Documents,
  { lineage, step }: Place,
  { direction, from, limit }: StreamPageQuery,
): Promise<StreamRow[]> {
  const isForward = direction === 'forward'
  const docs = await documents.all(
    'graph_outputs',
    { ...inLineage(lineage), step: isForward ? { $gte: step + from } : { $lte: step - from } },
    { sort: { step: isForward ? 1 : -1 }, limit, fields: FIELDS },
  )
  return docs.map((doc) => ({ ...doc, away: doc.step - step }))
}

function isSame(one: Place, other: Place): boolean {
  const [txid, vout] = one.lineage
  return one.step === other.step && vout === other.lineage[1] && txid.equals(other.lineage[0])
}
