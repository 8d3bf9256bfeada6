import { LockingScript, Transaction } from '@bsv/sdk'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { checkMint, type Mint, type SpentOutput } from '../../backend/src/protocol/mint.js'
import { runScripts } from '../../backend/src/protocol/run-scripts.js'
import { readTransaction, type TransactionView } from '../../backend/src/protocol/transaction.js'
import { MiningError } from './mining-error.js'
import { type MintPlan, type SolvedPlan, solvePlan } from './mint-plan.js'
import { NodeUnlock } from './node-unlock.js'

/** A mint that is ready to be sent. */
export interface SignedMint {
  mint: Mint
  /** With its sources, so that `writeBeef` can put them beside it. */
  transaction: Transaction
}

/**
 * A transaction that spends the node of a plan into outputs 0 to 2; what pays for it is still to come. Its version is 1
 * and its lock time 0, as covenants of version 2 demand.
 */
export function startMint(plan: SolvedPlan, source: Transaction): Transaction {
  const transaction = new Transaction(1, [], [], 0)
  transaction.addInput({
    sourceTransaction: source,
    sourceOutputIndex: plan.node.outpoint.vout,
    unlockingScriptTemplate: new NodeUnlock(plan),
  })
  for (const { satoshis, lockingScript } of plan.outputs)
    transaction.addOutput({ satoshis, lockingScript: LockingScript.fromHex(toHex(lockingScript)) })
  return transaction
}

/** In the units of `RunBudget`: many times what a covenant takes, and less than a second. */
const MAX_SCRIPT_WORK = 30_000_000

/**
 * Checks a mint before it goes out: as an indexer will, and as miners will, who run the script of the node.
 *
 * @param signed.input The index of the input that spends the node.
 * @throws MintError where it is none; MiningError `OTHER_TREE` where the script refuses it: the tree was deployed with
 * other terms than those of the plan.
 */
export function finishMint(signed: {
  plan: SolvedPlan
  transaction: Transaction
  input: number
}): SignedMint {
  const { plan, transaction, input } = signed
  const { deployment, node } = plan
  const view = readTransaction(Uint8Array.from(transaction.toUint8Array()))
  const mint = checkMint({ transaction: view, input, deployment, spent: node })
  requireUnlocked(view, { input, node })
  return { transaction, mint }
}

function requireUnlocked(
  { txid, raw }: TransactionView,
  { input, node }: { input: number; node: SpentOutput },
): void {
  const spent: SpentOutput[] = []
  spent[input] = node
  try {
    for (const _ of runScripts([{ txid, raw, spent, input }], { maxWork: MAX_SCRIPT_WORK }));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new MiningError(
      'OTHER_TREE',
      `the script of the node refuses the mint: the tree has another covenant version, difficulty, marker or TLD (${reason})`,
      { cause },
    )
  }
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
