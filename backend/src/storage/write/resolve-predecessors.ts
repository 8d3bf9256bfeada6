import { type Flow, flowBy } from '../../graph/flow.js'
import type { OutputRecord, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import { readOutline } from '../../graph/transaction-outline.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import { groupBy, parts, unique } from '../rows/columns.js'
import { Effort } from './backlog.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import { rest } from './rest.js'

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

/**
 * What outputs are worth is kept with whatever spends them: where ordinals go through a transaction follows from its own
 * bytes and one read, however many transactions it spends of (BRC-159).
 */

/** The flow through a transaction, by what is kept of the values that it spends. */
export async function storedFlow(tables: TransactionTables, transaction: TransactionView): Promise<Flow> {
  const spends = await tables.spendsBy(transaction.txid)
  await rest()
  return flowBy(transaction, spends)
}

/** How many spends are looked at together. */
const A_PART = 1000

/** Adds the values that are known to spends that are about to be written. @param transactions Raw, those of the same write. */
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
    /** The values of outputs of transactions that were read. */
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
    await rest()
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

/** Tells what spends outputs of transactions that have come what these are worth. */
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
