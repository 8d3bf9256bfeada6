import { Transaction, type WalletInterface } from '@bsv/sdk'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { MiningError } from './mining-error.js'
import { type MintPlan, preimageView, type SolvedPlan, solvePlan, unlockNode } from './mint-plan.js'
import { finishMint, type SignedMint } from './mint-transaction.js'

/** What of a wallet (BRC-100) takes part in a mint. */
export type MintWallet = Pick<WalletInterface, 'createAction' | 'signAction' | 'abortAction'>

/**
 * A wallet has to be told how long an unlocking script will be before it says how many outputs of change it makes, and the
 * script holds them all. So many bytes are left for them: those of some thirty P2PKH outputs.
 */
const ROOM_FOR_CHANGE = 1024

/**
 * Mints with a wallet (BRC-100): it chooses the coins, pays the fee by its own rate, signs what is its own and sends the
 * transaction to the network. Nothing is sent before the mint was checked.
 *
 * @param options.source The transaction that holds the node, with its proof or ancestors.
 * @param options.basket Where the wallet is to keep the name, with what it needs to know to spend it; without it, the
 * name is kept by whoever holds the lock.
 * @throws MintError where the plan does not hold; MiningError `BAD_WALLET` where the wallet makes another transaction of
 * it than it was asked for; whatever the wallet throws.
 */
export async function fundWithWallet(options: {
  plan: MintPlan
  source: Transaction
  wallet: MintWallet
  basket?: { name: string; customInstructions: string }
}): Promise<SignedMint> {
  const { wallet, source, basket } = options
  const plan = solvePlan(options.plan)
  const { node, mint } = plan
  const descriptions = [
    `The node of ${mint.domain || 'the root'}`,
    `The node of ${mint.name}`,
    `The name ${mint.name}`,
  ]
  const { signableTransaction } = await wallet.createAction({
    description: described(`Mint the name ${mint.name}`),
    inputBEEF: source.toBEEF(true),
    inputs: [
      {
        outpoint: formatOutpoint(node.outpoint).replace('_', '.'),
        inputDescription: described(`The node to mine ${mint.name} from`),
        unlockingScriptLength: lengthWithoutChange(plan) + ROOM_FOR_CHANGE,
      },
    ],
    outputs: plan.outputs.map(({ satoshis, lockingScript }, vout) => ({
      satoshis,
      lockingScript: toHex(lockingScript),
      outputDescription: described(descriptions[vout] ?? ''),
      ...(vout === NAME_VOUT &&
        basket && { basket: basket.name, customInstructions: basket.customInstructions }),
    })),
    // Outputs 0 to 2 are told by where they stand; and a mint that no miner takes is not to be submitted anywhere.
    options: { randomizeOutputs: false, acceptDelayedBroadcast: false },
  })
  if (signableTransaction === undefined)
    throw new MiningError('BAD_WALLET', 'the wallet left nothing to unlock')
  const { tx, reference } = signableTransaction
  try {
    const drafted = Transaction.fromAtomicBEEF(tx)
    const input = inputOf(drafted, plan)
    requireOutputs(drafted, plan)
    const unlockingScript = unlockNode({ plan, transaction: preimageView(drafted), input })
    const signed = await wallet.signAction({
      reference,
      spends: { [input]: { unlockingScript: toHex(unlockingScript) } },
    })
    if (signed.tx === undefined) throw new MiningError('BAD_WALLET', 'the wallet gave no transaction back')
    return finishMint({ plan, transaction: Transaction.fromAtomicBEEF(signed.tx), input })
  } catch (error) {
    // The coins that were set aside are the wallet's again; of a transaction that was sent already it says no.
    await wallet.abortAction({ reference }).catch(() => {})
    throw error
  }
}

const NAME_VOUT = 2

/** BRC-100: descriptions have 5 to 50 bytes. */
function described(text: string): string {
  return text.length > 50 ? `${text.slice(0, 47)}...` : text
}

function lengthWithoutChange(plan: SolvedPlan): number {
  const { outpoint } = plan.node
  const transaction = {
    version: 1,
    lockTime: 0,
    inputs: [{ ...outpoint, sequence: 0 }],
    outputs: [],
  }
  return unlockNode({ plan, transaction, input: 0 }).length
}

function inputOf(transaction: Transaction, { node }: SolvedPlan): number {
  const { txid, vout } = node.outpoint
  const input = preimageView(transaction).inputs.findIndex((each) => each.txid === txid && each.vout === vout)
  if (input === -1) throw new MiningError('BAD_WALLET', 'the wallet left the node out of the transaction')
  return input
}

function requireOutputs(transaction: Transaction, { outputs }: SolvedPlan): void {
  for (const [vout, { satoshis, lockingScript }] of outputs.entries()) {
    const output = transaction.outputs[vout]
    if (output?.satoshis !== satoshis || output.lockingScript.toHex() !== toHex(lockingScript))
      throw new MiningError('BAD_WALLET', `the wallet put something else in output ${vout}`)
  }
}
