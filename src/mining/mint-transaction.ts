import { LockingScript, Transaction } from '@bsv/sdk'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { checkMint, type Mint } from '../../backend/src/protocol/mint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { type MintPlan, type SolvedPlan, solvePlan } from './mint-plan.js'
import { NodeUnlock } from './node-unlock.js'

/** A mint that is ready to be sent. */
export interface SignedMint {
  mint: Mint
  /** With its sources, so that the SDK makes a BEEF of it. */
  transaction: Transaction
}

/** A transaction that spends the node of a plan into outputs 0 to 2; what pays for it is still to come. */
export function startMint(plan: SolvedPlan, source: Transaction): Transaction {
  const transaction = new Transaction()
  transaction.addInput({
    sourceTransaction: source,
    sourceOutputIndex: plan.node.outpoint.vout,
    unlockingScriptTemplate: new NodeUnlock(plan),
  })
  for (const { satoshis, lockingScript } of plan.outputs)
    transaction.addOutput({ satoshis, lockingScript: LockingScript.fromHex(toHex(lockingScript)) })
  return transaction
}

/**
 * Checks a mint as an indexer will, before it goes out.
 *
 * @param signed.input The index of the input that spends the node.
 * @throws MintError where it is none.
 */
export function finishMint(signed: {
  plan: SolvedPlan
  transaction: Transaction
  input: number
}): SignedMint {
  const { plan, transaction, input } = signed
  const { deployment, node } = plan
  const view = readTransaction(Uint8Array.from(transaction.toUint8Array()))
  return { transaction, mint: checkMint({ transaction: view, input, deployment, spent: node }) }
}

/**
 * A mint that nobody pays for yet. Inputs that do may be added and signed later, by anyone: the node is unlocked for all
 * of them (`ANYONECANPAY`), but for these outputs only.
 *
 * @throws MintError where the plan does not hold.
 */
export async function unpaidMint(draft: { plan: MintPlan; source: Transaction }): Promise<SignedMint> {
  const plan = solvePlan(draft.plan)
  const transaction = startMint(plan, draft.source)
  await transaction.sign()
  return finishMint({ plan, transaction, input: 0 })
}
