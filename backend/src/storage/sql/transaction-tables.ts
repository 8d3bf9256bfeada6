import { hashColumn, hexOf, inParts } from '../rows/columns.js'
import { SPENDS } from '../rows/rows.js'
import { TransactionTables, type TransactionTablesOptions } from '../write/transaction-tables.js'
import { anyOf, type SqlWriter } from './database.js'

/** The setting that counts reorganisations: reads belong to one state if there was none between them. */
export const REORG_COUNT = { name: 'turns' }

/** The inactive and the rejected ones of transactions, the spenders of inactive ones, and those that spend what others spend, too. */
const QUESTIONABLE = [
  'select txid as found from graph_transactions where txid in (:txids) and (silent = 1 or rejected = 1)',
  ...SPENDS.map(
    (spends) => `select spends.spender as found from ${spends} as spends
      join graph_transactions as parents on parents.txid = spends.txid and parents.silent = 1
      where spends.spender in (:txids)`,
  ),
  ...SPENDS.flatMap((own) =>
    SPENDS.map(
      (other) => `select own.spender as found from ${own} as own join ${other} as other
        on other.txid = own.txid and other.vout = own.vout and other.spender <> own.spender
        where own.spender in (:txids)`,
    ),
  ),
].join(' union ')

const SPENDING_ADMITTED = SPENDS.map(
  (spends) => `select distinct spends.spender as found from ${spends} as spends
    join graph_admissions as spent on spent.txid = spends.txid and spent.vout = spends.vout
    where spends.spender in (:txids)`,
).join(' union ')

/** See {@link TransactionTables}. */
export class SqlTransactionTables extends TransactionTables {
  private readonly writer: SqlWriter

  constructor({ writer, ...options }: TransactionTablesOptions & { writer: SqlWriter }) {
    super(options)
    this.writer = writer
  }

  spendingAdmitted(txids: string[]): Promise<string[]> {
    return this.found(SPENDING_ADMITTED, txids)
  }

  questionable(txids: string[]): Promise<string[]> {
    return this.found(QUESTIONABLE, [...new Set(txids)])
  }

  async countReorg(): Promise<void> {
    const row = await this.rows.first('graph_settings', REORG_COUNT)
    await this.rows.put('graph_settings', { ...REORG_COUNT, value: String(Number(row?.value ?? 0) + 1) })
  }

  private found(select: string, txids: string[]): Promise<string[]> {
    const [first = '', ...others] = select.split(':txids')
    return inParts(txids, async (part) => {
      const hashes = part.map(hashColumn)
      const rows = await this.writer.all(
        [first, ...others].join(anyOf(part)),
        others.flatMap(() => hashes),
      )
      return rows.map(({ found }) => hexOf(found))
    })
  }
}
