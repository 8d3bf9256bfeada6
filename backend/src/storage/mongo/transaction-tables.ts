import { formatOutpoint } from '../../protocol/outpoint.js'
import { spendOf } from '../read/transaction-status.js'
import { inParts, unique } from '../rows/columns.js'
import { anyOf, SPENDS } from '../rows/rows.js'
import { TransactionTables } from '../write/transaction-tables.js'

/** See {@link TransactionTables}. */
export class MongoTransactionTables extends TransactionTables {
  async spendingAdmitted(txids: string[]): Promise<string[]> {
    const fields = ['txid', 'vout', 'spender']
    const docs = await inParts(txids, (part) => this.rows.all(SPENDS, { spender: anyOf(part) }, { fields }))
    const spends = docs.map(spendOf)
    const spent = unique(
      spends.map(({ outpoint }) => outpoint),
      formatOutpoint,
    )
    const admitted = await this.admissionsAmong(spent)
    const found = new Set(admitted.map(({ outpoint }) => formatOutpoint(outpoint)))
    const spending = spends.filter(({ outpoint }) => found.has(formatOutpoint(outpoint)))
    return [...new Set(spending.map(({ spender }) => spender))]
  }

  /** To filter them takes about as long as to decide them, as both read the same documents. */
  async questionable(txids: string[]): Promise<string[]> {
    return txids
  }

  /** The journal counts them. */
  async countReorg(): Promise<void> {}
}
