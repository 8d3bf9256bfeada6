import type { Knex } from 'knex'
import type { OutputRecord, TransactionRecord } from '../../graph/records.js'
import { storedTransaction } from '../../graph/stored-transaction.js'
import { predecessorsOf } from '../../protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { TransactionView } from '../../protocol/transaction.js'
import {
  hashColumn,
  hexOf,
  outpointColumns,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../columns.js'
import { rest } from '../rest.js'
import { anyOf, anyOutpoint, knexReader } from './sql-reader.js'
import { transactionRecord } from './transaction-reads.js'

/**
 * Settles what outputs received that were told without knowing it, now that these facts have come: by their word, or by
 * the values of the coins that their transaction spends. So the graph is the same in whatever order transactions came.
 *
 * @returns The outputs that were settled.
 */
export async function settleOutputs(
  trx: Knex.Transaction,
  told: { outputs: OutputRecord[]; transactions: TransactionRecord[] },
): Promise<Outpoint[]> {
  const settled = await settleAsTold(trx, told.outputs)
  const waiting = new Set(
    told.outputs.filter(({ unsettled }) => unsettled).map(({ outpoint }) => outpoint.txid),
  )
  const arrived = unique(told.transactions, ({ txid }) => txid)
  for (const part of parts(arrived, ROWS_A_STATEMENT)) {
    const rows = await knexReader(trx).all(
      `select distinct spends.spender from graph_spends as spends
       join graph_outputs as outputs on outputs.txid = spends.spender
       where spends.txid in (${anyOf(part)}) and outputs.unsettled = 1`,
      part.map(({ txid }) => hashColumn(txid)),
    )
    for (const { spender } of rows) waiting.add(hexOf(spender))
  }
  for (const txid of waiting) {
    settled.push(...(await settleTransaction(trx, txid)))
    await rest()
  }
  return settled
}

/** An output may be told again with more than was known of it before. */
async function settleAsTold(trx: Knex.Transaction, outputs: OutputRecord[]): Promise<Outpoint[]> {
  const settled: Outpoint[] = []
  const known = outputs.filter(({ unsettled }) => !unsettled)
  const previous = new Map(known.map((output) => [formatOutpoint(output.outpoint), output.previous]))
  for (const part of parts(known, ROWS_A_STATEMENT)) {
    const rows = await trx('graph_outputs')
      .whereRaw(
        anyOutpoint(part),
        part.flatMap(({ outpoint }) => outpointPair(outpoint)),
      )
      .where({ unsettled: true })
      .select('txid', 'vout')
    for (const outpoint of rows.map(outpointOf)) {
      await settle(trx, outpoint, previous.get(formatOutpoint(outpoint)))
      settled.push(outpoint)
    }
    await rest()
  }
  return settled
}

/** Settles those outputs of a transaction whose flow the stored transactions tell. */
async function settleTransaction(trx: Knex.Transaction, txid: string): Promise<Outpoint[]> {
  const rows = await trx('graph_outputs')
    .where({ txid: hashColumn(txid), unsettled: true })
    .select('vout')
  const transaction = rows.length === 0 ? undefined : await read(trx, txid)
  if (transaction === undefined) return []
  const { inputs, outputs } = transaction
  const sources = new Map<string, TransactionView | undefined>()
  for (const source of new Set(inputs.map((input) => input.txid)))
    sources.set(source, await read(trx, source))
  const predecessors = predecessorsOf({
    inputValues: inputs.map((input) => sources.get(input.txid)?.outputs[input.vout]?.satoshis),
    outputValues: outputs.map(({ satoshis }) => satoshis),
  })
  const settled: Outpoint[] = []
  for (const vout of rows.map((row) => Number(row.vout))) {
    const predecessor = predecessors[vout]
    if (predecessor === undefined || predecessor.kind === 'unknown') continue
    await settle(trx, { txid, vout }, predecessor.kind === 'input' ? inputs[predecessor.input] : undefined)
    settled.push({ txid, vout })
  }
  return settled
}

async function settle(trx: Knex.Transaction, outpoint: Outpoint, previous?: Outpoint): Promise<void> {
  await trx('graph_outputs')
    .where(outpointColumns(outpoint))
    .update({
      unsettled: false,
      ...(previous && { previous_txid: hashColumn(previous.txid), previous_vout: previous.vout }),
    })
}

async function read(trx: Knex.Transaction, txid: string): Promise<TransactionView | undefined> {
  const reader = knexReader(trx)
  return await storedTransaction(txid, { transaction: (wanted) => transactionRecord(reader, wanted) })
}
