import type { OutputRecord, TransactionRecord } from '../../graph/records.js'
import { storedTransaction } from '../../graph/stored-transaction.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { Effort } from './backlog.js'
import type { GraphTables } from './graph-tables.js'
import { rest } from './rest.js'
import { storedFlow } from './spent-values.js'

/**
 * Settles what outputs received that were told without knowing it, now that these facts have come: by their word, or by
 * the values of the coins that their transaction spends. So the graph is the same in whatever order transactions came.
 *
 * @param told.left Transactions with such outputs that earlier writes have left to be settled.
 * @param told.limit How many transactions are looked at beside those that are told; a large one counts for several.
 * @returns The outputs that were settled, and the transactions that are left to be.
 */
export async function resolvePredecessors(
  tables: GraphTables,
  told: { outputs: OutputRecord[]; transactions: TransactionRecord[]; left: string[]; limit: number },
): Promise<{ settled: Outpoint[]; left: string[] }> {
  const settled = await settleAsTold(tables, told.outputs)
  const arrived = new Set(told.transactions.map(({ txid }) => txid))
  const own = new Set(told.outputs.filter(({ unsettled }) => unsettled).map(({ outpoint }) => outpoint.txid))
  const others = new Set([...told.left, ...(await tables.outputs.unresolvedSpenders([...arrived]))])
  const waiting = [...others].filter((txid) => !own.has(txid))
  for (const txid of own) settled.push(...(await resolveTransaction(tables, txid)))
  const effort = new Effort(told.limit)
  while (!effort.isOver) {
    const txid = waiting.pop()
    if (txid === undefined) break
    for (const each of await resolveTransaction(tables, txid, effort)) settled.push(each)
  }
  return { settled, left: waiting }
}

/** An output may be told again with more than was known of it before. */
async function settleAsTold(tables: GraphTables, outputs: OutputRecord[]): Promise<Outpoint[]> {
  const known = outputs.filter(({ unsettled }) => !unsettled)
  const previous = new Map(known.map((output) => [formatOutpoint(output.outpoint), output.previous]))
  const settled = await tables.outputs.unresolvedAmong(known.map(({ outpoint }) => outpoint))
  for (const outpoint of settled) {
    await tables.outputs.settle(outpoint, previous.get(formatOutpoint(outpoint)))
    await rest()
  }
  return settled
}

/** Settles those outputs of a transaction whose flow the stored transactions tell. */
async function resolveTransaction(tables: GraphTables, txid: string, effort?: Effort): Promise<Outpoint[]> {
  await rest()
  const unsettled = await tables.outputs.unresolvedOf(txid)
  const transaction = unsettled.length === 0 ? undefined : await storedTransaction(txid, tables.transactions)
  effort?.add(transaction)
  if (transaction === undefined) return []
  const { inputs } = transaction
  const { predecessors } = await storedFlow(tables.transactions, transaction)
  await rest()
  const settled: Outpoint[] = []
  for (const vout of unsettled) {
    const predecessor = predecessors[vout]
    if (predecessor === undefined || predecessor.kind === 'unknown') continue
    await tables.outputs.settle(
      { txid, vout },
      predecessor.kind === 'input' ? inputs[predecessor.input] : undefined,
    )
    settled.push({ txid, vout })
  }
  return settled
}
