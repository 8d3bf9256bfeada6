import { type PrivateKey, Transaction } from '@bsv/sdk'
import { toHex } from '../../backend/src/protocol/bytes.js'
import type { Coin } from '../mining/fund-with-key.js'
import { keyLock } from '../mining/key-lock.js'
import { CommandError } from './command-error.js'
import { findTransactions } from './import-files.js'

/**
 * The transactions that files hold, each with its proof or with its ancestors.
 *
 * @param paths Files, or folders to search, with BEEF as bytes or as hex.
 * @throws ImportError where a path cannot be read; CommandError where a transaction has neither.
 */
export async function readTransactions(paths: string[]): Promise<Transaction[]> {
  const found = await findTransactions(paths)
  const read: Transaction[] = []
  for (const transaction of found.transactions) {
    const { txid } = transaction
    const { value: beef } = await found.beefsOf(transaction).next()
    if (!found.isInBeef(transaction) || !beef)
      throw new CommandError(`${txid} carries no proof: coins are to come in a BEEF`, { exit: 'usage' })
    read.push(Transaction.fromBEEF(Array.from(beef), txid))
  }
  return read
}

/** The outputs that a key unlocks (P2PKH) and that none of the transactions spends. */
export function coinsOf(key: PrivateKey, transactions: readonly Transaction[]): Coin[] {
  const lock = toHex(keyLock(key.toPublicKey()))
  const each = new Map(transactions.map((transaction) => [transaction.id('hex'), transaction]))
  const spent = new Set(
    [...each.values()].flatMap(({ inputs }) =>
      inputs.map(({ sourceTXID, sourceOutputIndex }) => `${sourceTXID}_${sourceOutputIndex}`),
    ),
  )
  return [...each].flatMap(([txid, transaction]) =>
    transaction.outputs.flatMap(({ lockingScript }, vout) =>
      lockingScript.toHex() === lock && !spent.has(`${txid}_${vout}`) ? [{ transaction, vout }] : [],
    ),
  )
}
