import { P2PKH, SatoshisPerKilobyte } from '@bsv/sdk'
import { p2pkhLock } from '../../backend/src/protocol/address.js'
import { writeBeef } from '../../backend/src/protocol/beef-transaction.js'
import { DEFAULT_FEE_RATE } from '../../backend/src/protocol/mint-cost.js'
import type { PrivateKey, PublicKey, Transaction } from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from '../mining/mining-error.js'
import { type Payer, requireDrafted, requireFee, startTransaction } from './draft.js'

export function p2pkhLockOf(key: PublicKey): Uint8Array {
  return p2pkhLock(key.toHash('hex') as string)
}

/** A coin to pay with: an output of a transaction with its proof, or with its ancestors down to proven ones. */
export interface Coin {
  transaction: Transaction
  vout: number
  /** Whether a payment with it was rejected, perhaps because it is spent: then it is used last. */
  isDoubtful?: boolean
}

export { DEFAULT_FEE_RATE }

/**
 * Pays with P2PKH coins of one key, the largest first and no more than needed; the change goes back to the key.
 *
 * @param options.coins Coins of 1 satoshi are not spent: they may be ordinals. A function is called for each payment.
 * @param options.feeRate In satoshis per 1,000 bytes.
 */
export function payWithKey(options: {
  key: PrivateKey
  coins: readonly Coin[] | (() => readonly Coin[])
  feeRate?: number | undefined
  send?: Payer['send']
}): Payer {
  const { key, coins, feeRate = DEFAULT_FEE_RATE, send } = options
  return {
    send,
    async pay(draft, keep) {
      const transaction = startTransaction(draft)
      const change = { lockingScript: new P2PKH().lock(key.toAddress()), satoshis: 0 }
      transaction.addOutput(change)
      const model = new SatoshisPerKilobyte(feeRate)
      // Checked before coins are added: a fee that is too high is no lack of funds.
      requireFee(await model.computeFee(transaction), draft)
      const held = typeof coins === 'function' ? coins() : coins
      change.satoshis = await addCoins(transaction, { coins: held, key, model, what: draft.what })
      requireDrafted(transaction, draft)
      await transaction.sign()
      draft.checkSigned?.(transaction)
      const paid = { transaction, beef: writeBeef(transaction), fee: transaction.getFee() }
      await keep?.(paid)
      return paid
    },
  }
}

/**
 * Adds coins of a key to a transaction until they pay for it.
 *
 * @returns The change, in satoshis.
 * @throws MiningError `NO_FUNDS`, with the value that one more coin must have.
 */
async function addCoins(
  transaction: Transaction,
  options: { coins: readonly Coin[]; key: PrivateKey; model: SatoshisPerKilobyte; what: string },
): Promise<number> {
  const { coins, key, model, what } = options
  const usable = coins
    .map((coin) => ({ ...coin, satoshis: coin.transaction.outputs[coin.vout]?.satoshis ?? 0 }))
    .filter(({ satoshis }) => satoshis > 1)
    .sort((a, b) => Number(a.isDoubtful ?? false) - Number(b.isDoubtful ?? false) || b.satoshis - a.satoshis)
  const unlockingScriptTemplate = new P2PKH().unlock(key)
  let fee = await model.computeFee(transaction)
  let left = -fee - transaction.outputs.reduce((sum, { satoshis = 0 }) => sum + satoshis, 0)
  for (const { sourceTransaction, sourceOutputIndex } of transaction.inputs)
    left += sourceTransaction?.outputs[sourceOutputIndex]?.satoshis ?? 0
  for (const coin of usable) {
    // No change of 1 satoshi, because coins of that value are never spent.
    if (left > 1) break
    const { transaction: sourceTransaction, vout: sourceOutputIndex } = coin
    transaction.addInput({ sourceTransaction, sourceOutputIndex, unlockingScriptTemplate })
    const more = await model.computeFee(transaction)
    if (coin.satoshis > more - fee) {
      left += coin.satoshis - (more - fee)
      fee = more
      continue
    }
    // It does not pay for its own input.
    transaction.inputs.pop()
  }
  if (left > 0) return left
  const held = usable.reduce((sum, { satoshis }) => sum + satoshis, 0)
  transaction.addInput({ sourceTXID: '00'.repeat(32), sourceOutputIndex: 0, unlockingScriptTemplate })
  const more = (await model.computeFee(transaction)) - fee
  // A coin of 1 satoshi would not be spent.
  const missing = Math.max(2, 1 + more - left)
  throw new MiningError(
    'NO_FUNDS',
    `${held} satoshis are not enough for ${what}: add a coin of at least ${missing} more`,
  )
}
