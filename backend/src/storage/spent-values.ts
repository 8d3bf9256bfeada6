import type { SpendRecord } from '../graph/records.js'
import { storedTransaction, viewOf } from '../graph/stored-transaction.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import type { TransactionView } from '../protocol/transaction.js'
import { groupBy, unique } from './columns.js'
import type { GraphTables } from './graph-tables.js'
import { rest } from './rest.js'

/**
 * What outputs are worth is kept with whatever spends them: where ordinals go through a transaction follows from its own
 * bytes and one read, however many transactions it spends of (BRC-159).
 */

/** Adds the values that are known to spends that are about to be written. @param transactions Raw, those of the same write. */
export async function withValues(
  { transactions: tables, outputs }: GraphTables,
  spends: SpendRecord[],
  transactions: ReadonlyMap<string, Uint8Array>,
): Promise<SpendRecord[]> {
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
  const views = new Map<string, TransactionView | undefined>()
  const viewIn = async (txid: string): Promise<TransactionView | undefined> => {
    const raw = transactions.get(txid)
    if (raw !== undefined) return viewOf({ txid, raw })
    if (!held.has(txid)) return undefined
    if (!views.has(txid)) views.set(txid, await storedTransaction(txid, tables))
    await rest()
    return views.get(txid)
  }
  for (const outpoint of spent) {
    if (values.has(formatOutpoint(outpoint))) continue
    learn(outpoint, (await viewIn(outpoint.txid))?.outputs[outpoint.vout]?.satoshis)
  }
  return spends.map((spend) => {
    const satoshis = values.get(formatOutpoint(spend.outpoint))
    return satoshis === undefined ? spend : { ...spend, satoshis }
  })
}

/** Tells what spends outputs of transactions that have come what these are worth. */
export async function tellValues(
  { transactions: tables }: GraphTables,
  fresh: { txid: string; raw: Uint8Array }[],
): Promise<void> {
  const raw = new Map(fresh.map((transaction) => [transaction.txid, transaction.raw]))
  const byTransaction = groupBy(await tables.unvaluedOutputs([...raw.keys()]), ({ txid }) => txid)
  for (const [txid, spent] of byTransaction) {
    const bytes = raw.get(txid)
    const view = bytes && viewOf({ txid, raw: bytes })
    const byValue = groupBy(spent, ({ vout }) => view?.outputs[vout]?.satoshis)
    for (const [satoshis, outputs] of byValue)
      if (satoshis !== undefined)
        await tables.setSpentValue({ txid, vouts: outputs.map(({ vout }) => vout), satoshis })
  }
}
