import type { SpendRecord } from '../../graph/records.js'
import { readOutline, viewOf } from '../../graph/stored-transaction.js'
import { type Flow, flowBy } from '../../graph/transaction-records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import { groupBy, parts, unique } from '../rows/columns.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import { rest } from './rest.js'

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
