import type { OutputRecord, TransactionRecord } from '../../graph/records.js'
import { storedTransaction } from '../../graph/stored-transaction.js'
import { predecessorsOf } from '../../protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { TransactionView } from '../../protocol/transaction.js'
import { hashColumn, hexOf, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../columns.js'
import { rest } from '../rest.js'
import { outpointId } from './collections.js'
import type { PendingDocuments } from './pending-documents.js'
import { transactionRecord } from './transaction-reads.js'

/**
 * Settles what outputs received that were told without knowing it, now that these facts have come: by their word, or by
 * the values of the coins that their transaction spends. So the graph is the same in whatever order transactions came.
 *
 * @returns The outputs that were settled.
 */
export async function settleOutputs(
  pending: PendingDocuments,
  told: { outputs: OutputRecord[]; transactions: TransactionRecord[] },
): Promise<Outpoint[]> {
  const settled = await settleAsTold(pending, told.outputs)
  const waiting = new Set(
    told.outputs.filter(({ unsettled }) => unsettled).map(({ outpoint }) => outpoint.txid),
  )
  const arrived = unique(told.transactions, ({ txid }) => txid)
  for (const part of parts(arrived, ROWS_A_STATEMENT)) {
    const spends = await pending.all(
      'graph_spends',
      { txid: { $in: part.map(({ txid }) => hashColumn(txid)) } },
      { fields: ['spender'] },
    )
    const spenders = unique(
      spends.map(({ spender }) => spender as Buffer),
      hexOf,
    )
    for (const some of parts(spenders, ROWS_A_STATEMENT)) {
      const unsettled = { txid: { $in: some }, unsettled: true }
      for (const { txid } of await pending.all('graph_outputs', unsettled, { fields: ['txid'] }))
        waiting.add(hexOf(txid))
    }
  }
  for (const txid of waiting) {
    settled.push(...(await settleTransaction(pending, txid)))
    await rest()
  }
  return settled
}

/** An output may be told again with more than was known of it before. */
async function settleAsTold(pending: PendingDocuments, outputs: OutputRecord[]): Promise<Outpoint[]> {
  const settled: Outpoint[] = []
  const known = outputs.filter(({ unsettled }) => !unsettled)
  const previous = new Map(known.map((output) => [formatOutpoint(output.outpoint), output.previous]))
  for (const part of parts(known, ROWS_A_STATEMENT)) {
    const docs = await pending.all(
      'graph_outputs',
      { _id: { $in: part.map(({ outpoint }) => outpointId(outpoint)) }, unsettled: true },
      { fields: ['txid', 'vout'] },
    )
    for (const outpoint of docs.map(outpointOf)) {
      await settle(pending, outpoint, previous.get(formatOutpoint(outpoint)))
      settled.push(outpoint)
    }
  }
  return settled
}

/** Settles those outputs of a transaction whose flow the stored transactions tell. */
async function settleTransaction(pending: PendingDocuments, txid: string): Promise<Outpoint[]> {
  const docs = await pending.all(
    'graph_outputs',
    { txid: hashColumn(txid), unsettled: true },
    { fields: ['vout'] },
  )
  const transaction = docs.length === 0 ? undefined : await read(pending, txid)
  if (transaction === undefined) return []
  const { inputs, outputs } = transaction
  const sources = new Map<string, TransactionView | undefined>()
  for (const source of new Set(inputs.map((input) => input.txid)))
    sources.set(source, await read(pending, source))
  const predecessors = predecessorsOf({
    inputValues: inputs.map((input) => sources.get(input.txid)?.outputs[input.vout]?.satoshis),
    outputValues: outputs.map(({ satoshis }) => satoshis),
  })
  const settled: Outpoint[] = []
  for (const { vout } of docs) {
    const predecessor = predecessors[vout]
    if (predecessor === undefined || predecessor.kind === 'unknown') continue
    await settle(
      pending,
      { txid, vout },
      predecessor.kind === 'input' ? inputs[predecessor.input] : undefined,
    )
    settled.push({ txid, vout })
  }
  return settled
}

async function settle(pending: PendingDocuments, outpoint: Outpoint, previous?: Outpoint): Promise<void> {
  await pending.update(
    'graph_outputs',
    { _id: outpointId(outpoint) },
    {
      unsettled: false,
      ...(previous && { previous_txid: hashColumn(previous.txid), previous_vout: previous.vout }),
    },
  )
}

async function read(pending: PendingDocuments, txid: string): Promise<TransactionView | undefined> {
  return await storedTransaction(txid, { transaction: (wanted) => transactionRecord(pending, wanted) })
}
