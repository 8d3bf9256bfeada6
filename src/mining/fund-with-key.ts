import { P2PKH, SatoshisPerKilobyte } from '@bsv/sdk'
import { p2pkhLock } from '../../backend/src/protocol/address.js'
import type { PrivateKey, PublicKey, Transaction } from '../../backend/src/protocol/sdk-types.js'
import { requireFee } from './budget.js'
import { MiningError } from './mining-error.js'
import { finishMint, type MintPlan, type SignedMint, solvePlan, startMint } from './mint-transaction.js'

/** The P2PKH lock of a key. */
export function p2pkhLockOf(key: PublicKey): Uint8Array {
  return p2pkhLock(key.toHash('hex') as string)
}

/** A coin to pay with: an output of a transaction that comes with its proof, or with its ancestors down to proven ones. */
export interface Coin {
  transaction: Transaction
  vout: number
}

/** The default fee in satoshis per 1,000 bytes: the SDK's own if it cannot ask miners (`LivePolicy`). */
export const DEFAULT_FEE_RATE = 100

/**
 * Mints with P2PKH coins of one key, the largest first and no more than needed; the change goes back to the key.
 *
 * @param options.source The transaction that holds the node, with its proof or ancestors.
 * @param options.coins Coins of 1 satoshi are not spent: they may be ordinals.
 * @param options.feeRate In satoshis per 1,000 bytes.
 * @param options.maxFee In satoshis.
 * @throws MintError if the plan does not hold; MiningError `NO_FUNDS`, `OVER_BUDGET`.
 */
export async function fundWithKey(options: {
  plan: MintPlan
  source: Transaction
  coins: readonly Coin[]
  key: PrivateKey
  feeRate?: number
  maxFee?: number
}): Promise<SignedMint> {
  const { coins, key, feeRate = DEFAULT_FEE_RATE, maxFee = Number.POSITIVE_INFINITY } = options
  const plan = solvePlan(options.plan)
  const transaction = startMint(plan, options.source)
  const change = { lockingScript: new P2PKH().lock(key.toAddress()), satoshis: 0 }
  transaction.addOutput(change)
  const { name } = plan.mint
  // Checked before any coin: a node that is too large is not a lack of funds.
  requireFee({ name, fee: await new SatoshisPerKilobyte(feeRate).computeFee(transaction), maxFee })
  change.satoshis = await addCoins(transaction, { coins, key, feeRate, missing: FROM_NODE, what: 'the mint' })
  requireFee({ name, fee: transaction.getFee(), maxFee })
  await transaction.sign()
  return finishMint({ plan, transaction, input: 0 })
}

/** Outputs 0 to 2 take one satoshi each, and the node supplies one. */
const FROM_NODE = 2

/**
 * Adds coins of a key to a transaction until they pay for it, the largest first.
 *
 * @param options.missing What the other inputs lack for the outputs, in satoshis.
 * @param options.what What is paid for, in an error message.
 * @returns What is left over, in satoshis.
 * @throws MiningError `NO_FUNDS`.
 */
export async function addCoins(
  transaction: Transaction,
  options: { coins: readonly Coin[]; key: PrivateKey; feeRate: number; missing: number; what: string },
): Promise<number> {
  const { coins, key, feeRate, missing, what } = options
  const model = new SatoshisPerKilobyte(feeRate)
  const usable = coins
    .map((coin) => ({ ...coin, satoshis: satoshisOf(coin) }))
    .filter(({ satoshis }) => satoshis > 1)
    .sort((a, b) => b.satoshis - a.satoshis)
  let left = -(await model.computeFee(transaction)) - missing
  for (const { transaction: sourceTransaction, vout, satoshis } of usable) {
    // No change of 1 satoshi, because coins of that value are never spent.
    if (left > 1) break
    const before = await model.computeFee(transaction)
    transaction.addInput({
      sourceTransaction,
      sourceOutputIndex: vout,
      unlockingScriptTemplate: new P2PKH().unlock(key),
    })
    left += satoshis + before - (await model.computeFee(transaction))
  }
  if (left > 0) return left
  const held = usable.reduce((sum, { satoshis }) => sum + satoshis, 0)
  throw new MiningError(
    'NO_FUNDS',
    `${held} satoshis do not pay for ${what}: add coins with at least ${1 - left} more`,
  )
}

function satoshisOf({ transaction, vout }: Coin): number {
  return transaction.outputs[vout]?.satoshis ?? 0
}
