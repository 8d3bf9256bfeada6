import { blockText } from '../../graph/records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, inParts, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { blockedRow, outputOf, pendingOf, proofColumns } from '../rows/record-rows.js'
import type { TransactionTables } from '../write/graph-tables.js'
import { admissionOf, admissionsAmong } from './admissions.js'
import { type CollectionName, chunksOf, type Doc } from './collections.js'
import { heldChunks } from './content.js'
import { anyOutpoint } from './documents.js'
import type { PendingDocuments } from './pending-documents.js'
import {
  childrenOf,
  conflictsOf,
  conflictView,
  heightIn,
  SPEND,
  SPENDS,
  spendOf,
  spends,
  spendsOf,
  statuses,
  winnerIn,
} from './transaction-status.js'
import { rawTransaction, transactionRecord } from './transactions.js'

/**
 * See {@link TransactionTables}.
 *
 * @param derives Whether the store derives the admissions of all stored transactions.
 */
export function transactionTablesIn(pending: PendingDocuments, derives = false): TransactionTables {
  return {
    insertNew: (table, rows) => pending.insertNew(table, rows),
    held: (owners) => heldChunks(pending, owners),
    async deleteChunks(owners) {
      for (const owner of owners) await pending.delete('graph_pieces', chunksOf(owner))
    },
    get: (txid) => transactionRecord(pending, txid),
    raw: (txid) => rawTransaction(pending, txid),
    async blocks(txids) {
      const docs = await inParts(txids, (part) =>
        pending.all(
          'graph_transactions',
          { _id: { $in: part.map(hashColumn) }, height: { $ne: null } },
          { fields: ['txid', 'height', 'merkle_root'] },
        ),
      )
      return new Map(
        docs.map(({ txid, height, merkle_root }) => [
          hexOf(txid),
          blockText({ height, root: hexOf(merkle_root) }),
        ]),
      )
    },
    statuses: (txids) => statuses(pending, txids),
    childrenOf: (txids) => childrenOf(pending, txids),
    conflictsOf: (spends) => conflictsOf(pending, spends),
    spendsOf: (outpoints) => spendsOf(pending, outpoints),
    async spendsBy(spender) {
      const docs = await spends(pending, { spender: hashColumn(spender) }, { fields: SPEND })
      return docs.map(spendOf)
    },
    async unvaluedOutputs(txids) {
      const docs = await inParts(txids, (part) =>
        spends(pending, { txid: { $in: part.map(hashColumn) } }, { fields: SPEND }),
      )
      return unique(
        docs.filter(({ satoshis }) => satoshis === null || satoshis === undefined).map(outpointOf),
        formatOutpoint,
      )
    },
    async setSpentValue({ txid, vouts, satoshis }) {
      for (const part of parts(vouts, ROWS_A_STATEMENT))
        for (const table of SPENDS)
          await pending.update(table, anyOutpoint(part.map((vout) => ({ txid, vout }))), { satoshis })
    },
    admissionsAmong: (outpoints) => admissionsAmong(pending, outpoints),
    async admissionsOf(txids) {
      const docs = await inParts(txids, (part) =>
        pending.all('graph_admissions', { txid: { $in: part.map(hashColumn) } }),
      )
      return docs.map(admissionOf)
    },
    async spendingAdmitted(txids) {
      const docs = await inParts(txids, (part) =>
        spends(pending, { spender: { $in: part.map(hashColumn) } }, { fields: SPEND }),
      )
      const spent = docs.map(spendOf)
      const admitted = await admissionsAmong(
        pending,
        unique(
          spent.map(({ outpoint }) => outpoint),
          formatOutpoint,
        ),
      )
      const found = new Set(admitted.map(({ outpoint }) => formatOutpoint(outpoint)))
      return [
        ...new Set(
          spent.filter(({ outpoint }) => found.has(formatOutpoint(outpoint))).map(({ spender }) => spender),
        ),
      ]
    },
    winnerOver: (txid) => winnerIn(pending, txid, derives),
    rankedView: (judged) => ({
      ...conflictView(pending, judged, derives),
      heightOf: (txid) => heightIn(pending, txid),
      async setRank({ txid, mined, insertionOrder }) {
        await pending.update(
          'graph_transactions',
          { _id: hashColumn(txid) },
          { mined: mined ?? null, arrival: insertionOrder },
        )
      },
    }),
    // To filter them takes about as long as to decide them, as both read the same documents.
    questionable: async (txids) => txids,
    async lastInsertionOrder() {
      const last = await pending.first(
        'graph_transactions',
        {},
        { sort: { arrival: -1, txid: -1 }, fields: ['arrival'] },
      )
      return last?.arrival ?? 0
    },
    async inactiveAmong(txids) {
      const docs = await inParts([...new Set(txids)], (part) =>
        pending.all(
          'graph_transactions',
          { _id: { $in: part.map(hashColumn) }, silent: true },
          { fields: ['txid'] },
        ),
      )
      return new Set(docs.map(({ txid }) => hexOf(txid)))
    },
    async setInactive(txids, isInactive) {
      for (const part of parts(txids, ROWS_A_STATEMENT))
        await pending.update(
          'graph_transactions',
          { _id: { $in: part.map(hashColumn) } },
          { silent: isInactive },
        )
    },
    async setProof(txid, proof) {
      await pending.update('graph_transactions', { _id: hashColumn(txid) }, proofColumns(proof))
    },
    async takeProofs({ height, root }) {
      const inBlock = { height, merkle_root: hashColumn(root) }
      const docs = await pending.all('graph_transactions', inBlock, { fields: ['txid'] })
      await pending.update('graph_transactions', inBlock, proofColumns(undefined))
      return docs.map(({ txid }) => hexOf(txid))
    },
    async takeSpends({ from, spenders, limit }) {
      const theirs = { spender: { $in: spenders.map(hashColumn) } }
      const docs = await pending.all(from, theirs, { fields: ['_id', ...SPEND], limit })
      await deleteDocs(pending, from, docs)
      return docs.map(spendOf)
    },
    async factsOf(txids, limit) {
      const theirs = { txid: { $in: txids.map(hashColumn) } }
      const outputs = await pending.all('graph_outputs', theirs, { limit })
      const nodes = await pending.all('graph_nodes', theirs)
      const names = await pending.all('graph_names', theirs)
      return {
        outputs: outputs.map(outputOf),
        nodes: nodes.map((doc) => ({ outpoint: outpointOf(doc), domain: doc.domain })),
        names: names.map((doc) => ({ outpoint: outpointOf(doc), name: doc.name })),
        merged: outputs.filter(({ merged_length }) => merged_length !== null).map(outpointOf),
      }
    },
    async deleteFacts(outpoints) {
      for (const part of parts(outpoints, ROWS_A_STATEMENT))
        for (const collection of ['graph_outputs', 'graph_nodes', 'graph_names'] as const)
          await pending.delete(collection, anyOutpoint(part))
    },
    async takeInactiveFacts(txids, limit) {
      const theirs = { txid: { $in: txids.map(hashColumn) } }
      const docs = await pending.all('graph_silent_facts', theirs, { fields: ['_id', 'kind', 'body'], limit })
      await deleteDocs(pending, 'graph_silent_facts', docs)
      return docs.map(({ kind, body }) => ({ kind, body }))
    },
    async pendingAmong(txids) {
      const docs = await inParts(txids, (part) =>
        pending.all('graph_pending', { _id: { $in: part.map(hashColumn) } }),
      )
      return docs.map(pendingOf)
    },
    async firstPending(limit) {
      const docs = await pending.all('graph_pending', {}, { sort: { proven: 1, arrival: 1, txid: 1 }, limit })
      return docs.map(pendingOf)
    },
    async setPendingProven(txid) {
      await pending.update('graph_pending', { _id: hashColumn(txid) }, { proven: true })
    },
    async deletePending(txids) {
      for (const part of parts(txids, ROWS_A_STATEMENT))
        await pending.delete('graph_pending', { _id: { $in: part.map(hashColumn) } })
    },
    async pendingTotal() {
      const doc = await pending.first('graph_settings', { _id: 'pending' }, { fields: ['value'] })
      return doc === undefined ? { transactions: 0, bytes: 0 } : JSON.parse(doc.value)
    },
    async setPendingTotal(total) {
      if (total.transactions === 0) await pending.delete('graph_settings', { _id: 'pending' })
      else await pending.put('graph_settings', { name: 'pending', value: JSON.stringify(total) })
    },
    async deleteTransaction(txid) {
      const hash = hashColumn(txid)
      await pending.delete('graph_pieces', chunksOf(hash))
      for (const table of SPENDS) await pending.delete(table, { spender: hash })
      await pending.delete('graph_transactions', { _id: hash })
    },
    async takeBacklog(kind, limit) {
      const docs = await pending.all('graph_backlog', { kind }, { limit })
      await deleteDocs(pending, 'graph_backlog', docs)
      return docs.map(outpointOf)
    },
    hasBacklog: async (kind) => (await pending.first('graph_backlog', { kind })) !== undefined,
    // The journal counts them.
    async countReorg() {},
    async setBlocked(record) {
      const { kind, value, reason } = record
      await pending.insertNew('graph_blocked', [blockedRow(record)])
      await pending.update('graph_blocked', { kind, value }, { reason })
      const { since } = await pending.first('graph_blocked', { kind, value })
      return { kind, value, reason, since }
    },
    async deleteBlocked({ kind, value }) {
      const wasBlocked = (await pending.first('graph_blocked', { kind, value })) !== undefined
      await pending.delete('graph_blocked', { kind, value })
      return wasBlocked
    },
  }
}

async function deleteDocs(pending: PendingDocuments, name: CollectionName, docs: Doc[]): Promise<void> {
  for (const part of parts(docs, ROWS_A_STATEMENT))
    await pending.delete(name, { _id: { $in: part.map(({ _id }) => _id) } })
}
