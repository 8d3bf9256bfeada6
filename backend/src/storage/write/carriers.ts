import type { OutputRecord } from '../../graph/records.js'
import { storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import { holdsOrdinal } from '../../graph/transaction-records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { outputOf, type TransactionView } from '../../protocol/transaction.js'
import { groupBy, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { outputRow } from '../rows/record-rows.js'
import { Effort } from './backlog.js'
import type { GraphTables } from './graph-tables.js'
import { rest } from './rest.js'
import { storedFlow } from './spent-values.js'

/**
 * The origin of an ordinal is the first output of its lineage with content (BRC-159): coins of 1 satoshi without any may
 * stand before it. Those that are known are written as carriers, back to where the lineage starts or to a coin that is not
 * known, so that it shows whether anything is missing.
 *
 * @param told.outputs Outputs that are new, or of which it is known since what they received.
 * @param told.transactions Raw transactions that are new, by txid.
 * @param told.left Coins that earlier writes have left to be looked at.
 * @param told.limit About how many transactions are looked at; a large one counts for several.
 * @returns The carriers that were written, those first that stand first, so that a lineage grows at its end; and the coins
 * that are left to be looked at.
 */
export async function writeCarriers(
  tables: GraphTables,
  told: {
    outputs: Outpoint[]
    transactions: ReadonlyMap<string, Uint8Array>
    left: Outpoint[]
    limit: number
  },
): Promise<{ carriers: Outpoint[]; left: Outpoint[] }> {
  const { transactions } = told
  const written: Outpoint[] = []
  let wanted = [
    ...(await tables.outputs.receivedBy(told.outputs)),
    ...(await tables.outputs.missingBehind([...transactions.keys()])),
    ...told.left,
  ]
  const effort = new Effort(told.limit)
  while (wanted.length > 0 && !effort.isOver) {
    const carriers = await carriersAt(tables, unique(wanted, formatOutpoint), { transactions, effort })
    for (const part of parts(carriers, ROWS_A_STATEMENT))
      await tables.transactions.insertNew(
        'graph_outputs',
        part.map((output) => outputRow(output)),
      )
    written.push(...carriers.map(({ outpoint }) => outpoint))
    wanted = carriers.flatMap(({ previous }) => previous ?? [])
    await rest()
  }
  return { carriers: written.reverse(), left: wanted }
}

/** Those of the outpoints that are coins without content of known transactions, and are not here. */
async function carriersAt(
  tables: GraphTables,
  outpoints: Outpoint[],
  { transactions, effort }: { transactions: ReadonlyMap<string, Uint8Array>; effort: Effort },
): Promise<OutputRecord[]> {
  const here = new Set(
    (await tables.outputs.valuesAmong(outpoints)).map(({ outpoint }) => formatOutpoint(outpoint)),
  )
  const missing = outpoints.filter((outpoint) => !here.has(formatOutpoint(outpoint)))
  const txids = [...new Set(missing.map(({ txid }) => txid))]
  const held = await tables.transactions.held(txids.filter((txid) => !transactions.has(txid)))
  const silent = await tables.transactions.inactiveAmong(txids)
  const carriers: OutputRecord[] = []
  const byTransaction = groupBy(missing, ({ txid }) => txid)
  for (const [txid, coins] of byTransaction) {
    const raw = transactions.get(txid)
    // What is built on what does not count does not count either.
    if (silent.has(txid) || (raw === undefined && !held.has(txid))) continue
    const view = raw ? viewOf({ txid, raw }) : await storedTransaction(txid, tables.transactions)
    effort.add(view)
    if (view === undefined) continue
    carriers.push(...(await carriersIn(tables, view, coins)))
    await rest()
  }
  return carriers
}

async function carriersIn(
  tables: GraphTables,
  view: TransactionView,
  coins: Outpoint[],
): Promise<OutputRecord[]> {
  const { predecessors } = await storedFlow(tables.transactions, view)
  return coins.flatMap((outpoint): OutputRecord[] => {
    const output = outputOf(view, outpoint.vout)
    // One with content that is not here is none that this host takes: where the ordinal starts is not for it to say.
    if (output?.satoshis !== 1 || holdsOrdinal(output)) return []
    const predecessor = predecessors[outpoint.vout]
    const received = predecessor?.kind === 'input' ? view.inputs[predecessor.input] : undefined
    return [
      {
        outpoint,
        satoshis: 1,
        carrier: true,
        ...(received && { previous: { txid: received.txid, vout: received.vout } }),
        ...(predecessor?.kind === 'unknown' && { unsettled: true as const }),
      },
    ]
  })
}
