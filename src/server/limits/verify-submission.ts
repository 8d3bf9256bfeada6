import { type ChainTracker, MerklePath, Utils } from '@bsv/sdk'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { transactionRecords } from '../../../backend/src/graph/transaction-records.js'
import type { RunBudget } from '../../../backend/src/protocol/script-cost.js'
import type { TransactionView } from '../../../backend/src/protocol/transaction.js'
import { Slices } from '../../gateway/slices.js'
import { runScripts } from './run-scripts.js'

/**
 * Verifies the subject of a BEEF: its merkle path, or the scripts of it and of its unproven ancestors and the merkle paths
 * of what these rest on. What `Transaction.verify` of the SDK does, but without its recursion, which a long chain makes
 * overflow and a dense one makes endless, each transaction once, and with an end to what scripts may cost.
 *
 * @param options.tracker Without one, merkle paths are believed.
 * @param options.maxScriptWork What all scripts may cost together (`RunBudget`).
 * @throws what the tracker throws, and Error where something does not hold, in words that may quote a stranger.
 */
export async function verifySubmission({
  beef,
  tracker,
  maxScriptWork,
}: {
  beef: BeefContents
  tracker: ChainTracker | undefined
  maxScriptWork: number
}): Promise<void> {
  const budget: RunBudget = { units: maxScriptWork }
  const slices = new Slices()
  for (const { txid, proof } of transactionRecords(beef).transactions) {
    await slices.rest()
    const transaction = beef.transaction(txid)
    if (proof === undefined && transaction !== undefined)
      await requireSpends({ transaction, beef, budget, slices })
    else if (proof !== undefined && tracker !== undefined) await requireProof(txid, { proof, tracker })
  }
}

async function requireProof(
  txid: string,
  { proof, tracker }: { proof: Proof; tracker: ChainTracker },
): Promise<void> {
  const path = MerklePath.fromReader(new Utils.ReaderUint8Array(proof.merklePath), false)
  if (!(await path.verify(txid, tracker))) throw new Error(`the merkle path of ${txid} does not hold`)
}

async function requireSpends(told: {
  transaction: TransactionView
  beef: BeefContents
  budget: RunBudget
  slices: Slices
}): Promise<void> {
  const { transaction, beef, budget, slices } = told
  const { txid, inputs, outputs } = transaction
  let left = 0
  for (const [input, { txid: source, vout }] of inputs.entries()) {
    const spent = beef.transaction(source)?.outputs[vout]
    if (spent === undefined)
      throw new Error(`${txid} is not proven, and the BEEF does not hold ${source}_${vout}, which it spends`)
    await runScripts({ transaction, input, spent, budget, slices })
    left += spent.satoshis
  }
  for (const { satoshis } of outputs) left -= satoshis
  if (left < 0) throw new Error(`${txid} has more in its outputs than in its inputs`)
}
