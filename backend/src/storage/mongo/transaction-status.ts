import { type ConflictView, type TransactionStatus, winnerOver } from '../../graph/conflict-resolution.js'
import type { SpendRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { LINEAGES_SAMPLED, MOVED_OUTPUTS_PER_SPEND } from '../read/lineages.js'
import { countInParts, hashColumn, hexOf, inParts, numberIn, outpointOf, unique } from '../rows/columns.js'
import { type ConflictRows, conflictsAmong, conflictsIn } from '../write/double-spends.js'
import { COLLECTIONS, type CollectionName, type Doc, outpointId } from './collections.js'
import { heldChunks } from './content.js'
import { anyOutpoint, type Documents, type Filter, type FindOptions } from './documents.js'
import { lineagesIn } from './lineages.js'

/** The spends of active and of inactive transactions. */
export const SPENDS = ['graph_spends', 'graph_silent_spends'] as const
const WITH_OUTPUTS = ['graph_outputs', 'graph_silent_facts'] as const
/** How many outputs of a transaction are counted, to estimate the cost of a status change. */
const MOST_OUTPUTS = 1000
export const SPEND = ['txid', 'vout', 'spender', 'satoshis']

/** For one decision. @param judged Transactions that this write has judged. */
export function conflictView(
  documents: Documents,
  judged: ReadonlySet<string> = new Set(),
  derives = false,
): ConflictView {
  return {
    statuses: (wanted) => statuses(documents, wanted),
    async parents(txid) {
      const docs = await spends(documents, { spender: hashColumn(txid) }, { fields: ['txid'] })
      return [...new Set(docs.map((doc) => hexOf(doc.txid)))]
    },
    children: (txid) => childrenOf(documents, [txid]),
    conflicts: conflictsIn(conflictRows(documents, derives), judged),
    async outputs(txid) {
      const own = { txid: hashColumn(txid) }
      const found = await Promise.all(
        WITH_OUTPUTS.map((name) => documents.all(name, own, { fields: ['vout'], limit: MOST_OUTPUTS })),
      )
      return found.flat().length
    },
  }
}

/** The matching documents of both collections of spends. */
export async function spends(documents: Documents, filter: Filter, options: FindOptions): Promise<Doc[]> {
  const found = await Promise.all(SPENDS.map((name) => documents.all(name, filter, options)))
  return found.flat()
}

export async function spendsOf(documents: Documents, outpoints: Outpoint[]): Promise<SpendRecord[]> {
  const docs = await inParts(outpoints, (part) => spends(documents, anyOutpoint(part), { fields: SPEND }))
  return docs.map(spendOf)
}

export function spendOf(doc: Doc): SpendRecord {
  const satoshis = numberIn(doc.satoshis)
  return {
    outpoint: outpointOf(doc),
    spender: hexOf(doc.spender),
    ...(satoshis !== undefined && { satoshis }),
  }
}

function conflictRows(documents: Documents, derives: boolean): ConflictRows {
  const isThere = async (name: CollectionName, filter: Filter): Promise<boolean> =>
    (await documents.first(name, filter, { fields: ['txid'] })) !== undefined
  return {
    async sharedWith(txid) {
      const own = await spends(documents, { spender: hashColumn(txid) }, { fields: ['txid', 'vout'] })
      const spent = await spendsOf(documents, own.map(outpointOf))
      const shared = spent.filter(({ spender }) => spender !== txid)
      const outpoints = unique(
        shared.map(({ outpoint }) => outpoint),
        formatOutpoint,
      )
      const nodes = await nodesAmong(documents, outpoints)
      const found = shared.map(({ outpoint, spender }) => ({
        spender,
        isNode: nodes.has(formatOutpoint(outpoint)),
      }))
      return unique(found, ({ spender, isNode }) => `${spender} ${isNode}`)
    },
    async hasNode(txid) {
      const hash = hashColumn(txid)
      return (
        (await isThere('graph_nodes', { txid: hash })) ||
        (await isThere('graph_silent_facts', { txid: hash, kind: 'node' }))
      )
    },
    async wasJudged(txid) {
      if (derives) return (await heldChunks(documents, [txid])).has(txid)
      for (const name of ['graph_outputs', 'graph_names', 'graph_silent_facts'] as const)
        if (await isThere(name, { txid: hashColumn(txid) })) return true
      return false
    },
  }
}

/** Those of the outpoints that are nodes, as text. */
async function nodesAmong(documents: Documents, outpoints: Outpoint[]): Promise<Set<string>> {
  const nodes = await inParts(outpoints, async (part) => {
    const fields = ['txid', 'vout']
    const active = await documents.all('graph_nodes', { _id: { $in: part.map(outpointId) } }, { fields })
    const inactive = { _id: { $in: part.map(inactiveNodeId) } }
    return [...active, ...(await documents.all('graph_silent_facts', inactive, { fields }))]
  })
  return new Set(nodes.map((doc) => formatOutpoint(outpointOf(doc))))
}

function inactiveNodeId({ txid, vout }: Outpoint): Buffer {
  return COLLECTIONS.graph_silent_facts.idOf({ txid: hashColumn(txid), vout, kind: 'node' })
}

export async function statuses(documents: Documents, txids: string[]): Promise<TransactionStatus[]> {
  const docs = await inParts([...new Set(txids)], (part) =>
    documents.all(
      'graph_transactions',
      { _id: { $in: part.map(hashColumn) } },
      { fields: ['txid', 'mined', 'arrival', 'silent'] },
    ),
  )
  return docs.map(({ txid, mined, arrival, silent }) => ({
    txid: hexOf(txid),
    mined: mined ?? undefined,
    insertionOrder: arrival,
    isInactive: silent,
  }))
}

/** See `TransactionTables.conflictsOf`. */
export async function conflictsOf(documents: Documents, spends: SpendRecord[]): Promise<string[]> {
  return await conflictsAmong(spends, (outpoints) => spendsOf(documents, outpoints))
}

/** See `TransactionTables.childrenOf`. */
export async function childrenOf(documents: Documents, txids: string[]): Promise<string[]> {
  const docs = await inParts(txids, (part) =>
    spends(documents, { txid: { $in: part.map(hashColumn) } }, { fields: ['spender'] }),
  )
  return [...new Set(docs.map(({ spender }) => hexOf(spender)))]
}

/** See `TransactionsReader.winnerOver`. */
export async function winnerIn(
  documents: Documents,
  txid: string,
  derives?: boolean,
): Promise<string | undefined> {
  return await winnerOver(txid, conflictView(documents, new Set(), derives))
}

/** See `Backlog.workBehind`. */
export async function workBehind(
  documents: Documents,
  { txids, limit }: { txids: string[]; limit: number },
): Promise<number> {
  return await countInParts(txids, limit, async (part) => {
    const spent = { txid: { $in: part.map(hashColumn) } }
    const found = await documents.all('graph_spends', spent, { fields: ['spender'], limit })
    const spenders = unique(
      found.map(({ spender }) => spender as Buffer),
      hexOf,
    )
    if (spenders.length === 0) return 0
    const behind = { spender: { $in: spenders } }
    const spends = (await documents.all('graph_spends', behind, { fields: ['spender'], limit })).length
    const heads = await documents.all(
      'graph_outputs',
      { previous_txid: spent.txid, step: 0 },
      { fields: ['lineage_txid', 'lineage_vout'], limit: LINEAGES_SAMPLED },
    )
    const { lastOf } = lineagesIn(documents)
    const lasts = await Promise.all(
      heads.map(({ lineage_txid, lineage_vout }) => lastOf([lineage_txid, lineage_vout])),
    )
    const steps = lasts.reduce((sum, last) => sum + (last?.step ?? 0), 0)
    return spends + Math.floor(steps / MOVED_OUTPUTS_PER_SPEND)
  })
}

/** See `TransactionsReader.heightOf`. */
export async function heightIn(documents: Documents, txid: string): Promise<number | undefined> {
  const doc = await documents.first('graph_transactions', { _id: hashColumn(txid) }, { fields: ['height'] })
  return doc?.height ?? undefined
}
