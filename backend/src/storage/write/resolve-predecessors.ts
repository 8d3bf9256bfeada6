import type { OutputRecord, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { readOutline, storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import { type Flow, flowBy } from '../../graph/transaction-records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import { groupBy, parts, unique } from '../rows/columns.js'
import { Effort } from './backlog.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'

/**
 * Resolves the predecessors of outputs that were recorded before the values they depend on were known: from the new records,
 * or from the values of the coins that their transaction spends. So the graph is the same in whatever order transactions
 * arrive.
 *
 * @param records.left Transactions with unresolved outputs that earlier writes left.
 * @param records.limit How many more transactions to look at; a large one counts for several.
 * @returns The resolved outputs, and the transactions that are left.
 */
export async function resolvePredecessors(
  tables: GraphTables,
  records: { outputs: OutputRecord[]; transactions: TransactionRecord[]; left: string[]; limit: number },
): Promise<{ resolved: Outpoint[]; left: string[] }> {
  const { outputs } = records
  const resolved = await resolveFromRecords(tables, outputs)
  const inserted = new Set(records.transactions.map(({ txid }) => txid))
  const own = new Set(outputs.filter(({ unsettled }) => unsettled).map(({ outpoint }) => outpoint.txid))
  const others = new Set([...records.left, ...(await tables.outputs.unresolvedSpenders([...inserted]))])
  const waiting = [...others].filter((txid) => !own.has(txid))
  for (const txid of own) resolved.push(...(await resolveTransaction(tables, txid)))
  const effort = new Effort(records.limit)
  while (!effort.isOver) {
    const txid = waiting.pop()
    if (txid === undefined) break
    for (const each of await resolveTransaction(tables, txid, effort)) resolved.push(each)
  }
  return { resolved, left: waiting }
}

/** A later record of an output may know more than the first. */
async function resolveFromRecords(tables: GraphTables, outputs: OutputRecord[]): Promise<Outpoint[]> {
  const known = outputs.filter(({ unsettled }) => !unsettled)
  const previous = new Map(known.map((output) => [formatOutpoint(output.outpoint), output.previous]))
  const unresolved = await tables.outputs.unresolvedAmong(known.map(({ outpoint }) => outpoint))
  for (const outpoint of unresolved) {
    await tables.outputs.resolvePredecessor(outpoint, previous.get(formatOutpoint(outpoint)))
    await yieldBetweenStatements()
  }
  return unresolved
}

/** Resolves those outputs of a transaction whose flow the stored values determine. */
async function resolveTransaction(tables: GraphTables, txid: string, effort?: Effort): Promise<Outpoint[]> {
  await yieldBetweenStatements()
  const unresolved = await tables.outputs.unresolvedOf(txid)
  const transaction = unresolved.length === 0 ? undefined : await storedTransaction(txid, tables.transactions)
  effort?.add(transaction)
  if (transaction === undefined) return []
  const { inputs } = transaction
  const { predecessors } = await storedFlow(tables.transactions, transaction)
  await yieldBetweenStatements()
  const resolved: Outpoint[] = []
  for (const vout of unresolved) {
    const predecessor = predecessors[vout]
    if (predecessor === undefined || predecessor.kind === 'unknown') continue
    await tables.outputs.resolvePredecessor(
      { txid, vout },
      predecessor.kind === 'input' ? inputs[predecessor.input] : undefined,
    )
    resolved.push({ txid, vout })
  }
  return resolved
}

/**
 * The flow of ordinals through a transaction (BRC-159). The values of outputs are stored with their spends, so that it takes
 * one read, however many transactions are spent from.
 */
export async function storedFlow(tables: TransactionTables, transaction: TransactionView): Promise<Flow> {
  const spends = await tables.spendsBy(transaction.txid)
  await yieldBetweenStatements()
  return flowBy(transaction, spends)
}

/** How many spends are looked up at once. */
const A_PART = 1000

/** Adds known values to spends before they are written. @param transactions Raw transactions of the same write. */
export async function withValues(
  tables: GraphTables,
  spends: SpendRecord[],
  transactions: ReadonlyMap<string, Uint8Array>,
): Promise<SpendRecord[]> {
  const outlines = new Map<string, number[] | undefined>()
  const valued: SpendRecord[] = []
  for (const part of parts(spends, A_PART))
    for (const spend of await valuesOfPart(tables, part, { transactions, outlines })) valued.push(spend)
  return valued
}

async function valuesOfPart(
  { transactions: tables, outputs }: GraphTables,
  spends: SpendRecord[],
  known: {
    transactions: ReadonlyMap<string, Uint8Array>
    /** The output values of transactions read so far. */
    outlines: Map<string, number[] | undefined>
  },
): Promise<SpendRecord[]> {
  const { transactions, outlines } = known
  const values = new Map<string, number>()
  const learn = (outpoint: { txid: string; vout: number }, satoshis: number | undefined): void => {
    if (satoshis !== undefined) values.set(formatOutpoint(outpoint), satoshis)
  }
  const spent = unique(
    spends.map(({ outpoint }) => outpoint),
    formatOutpoint,
  )
  const elsewhere = spent.filter(({ txid }) => !transactions.has(txid))
  for (const { outpoint, satoshis } of await outputs.valuesAmong(elsewhere)) learn(outpoint, satoshis)
  const unknown = elsewhere.filter((outpoint) => !values.has(formatOutpoint(outpoint)))
  const held = await tables.held([...new Set(unknown.map(({ txid }) => txid))])
  const valuesOf = async (txid: string): Promise<number[] | undefined> => {
    if (!outlines.has(txid)) outlines.set(txid, (await readOutline(txid, tables))?.outputValues)
    await yieldBetweenStatements()
    return outlines.get(txid)
  }
  for (const outpoint of spent) {
    const { txid, vout } = outpoint
    if (values.has(formatOutpoint(outpoint))) continue
    const raw = transactions.get(txid)
    if (raw !== undefined) learn(outpoint, outputOf(viewOf({ txid, raw }), vout)?.satoshis)
    else if (held.has(txid)) learn(outpoint, (await valuesOf(txid))?.[vout])
  }
  return spends.map((spend) => {
    const satoshis = values.get(formatOutpoint(spend.outpoint))
    return satoshis === undefined ? spend : { ...spend, satoshis }
  })
}

/** Adds the values of new transactions' outputs to stored spends of them. */
export async function writeSpentValues(
  { transactions: tables }: GraphTables,
  fresh: { txid: string; raw: Uint8Array }[],
): Promise<void> {
  const raw = new Map(fresh.map((transaction) => [transaction.txid, transaction.raw]))
  const byTransaction = groupBy(await tables.unvaluedOutputs([...raw.keys()]), ({ txid }) => txid)
  for (const [txid, spent] of byTransaction) {
    const bytes = raw.get(txid)
    const view = bytes && viewOf({ txid, raw: bytes })
    const byValue = groupBy(spent, ({ vout }) => view && outputOf(view, vout)?.satoshis)
    for (const [satoshis, outputs] of byValue)
      if (satoshis !== undefined)
        await tables.setSpentValue({ txid, vouts: outputs.map(({ vout }) => vout), satoshis })
  }
}
