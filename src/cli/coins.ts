import type { PrivateKey, Transaction } from '@bsv/sdk'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import type { Coin } from '../mining/fund-with-key.js'
import { keyLock } from '../mining/key-lock.js'
import { CommandError } from './command-error.js'
import { findTransactions } from './import-files.js'
import type { StoredMint } from './mint-folder.js'

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
    read.push(readBeefTransaction(beef, { txid, hash: nativeHash256 }))
  }
  return read
}

/**
 * The outputs that a key unlocks (P2PKH) and that nothing here spends. A mint that is not lost keeps what it spends; its
 * change is there to spend once the network or an index has taken it.
 */
export function coinsOf(
  key: PrivateKey,
  { coins, mints }: { coins: readonly Transaction[]; mints: readonly StoredMint[] },
): Coin[] {
  const lock = toHex(keyLock(key.toPublicKey()))
  const kept = mints.filter(({ state }) => state !== 'lost')
  const taken = kept.filter(({ state }) => state !== 'pending')
  const transactionsOf = (stored: StoredMint[]): Transaction[] => stored.map((mint) => mint.transaction)
  const spent = new Set(
    [...coins, ...transactionsOf(kept)].flatMap(({ inputs }) =>
      inputs.map(
        (input) => `${input.sourceTXID ?? input.sourceTransaction?.id('hex')}_${input.sourceOutputIndex}`,
      ),
    ),
  )
  const each = new Map([...coins, ...transactionsOf(taken)].map((found) => [found.id('hex'), found]))
  return [...each].flatMap(([txid, transaction]) =>
    transaction.outputs.flatMap(({ lockingScript }, vout) =>
      lockingScript.toHex() === lock && !spent.has(`${txid}_${vout}`) ? [{ transaction, vout }] : [],
    ),
  )
}
