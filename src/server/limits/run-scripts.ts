import { LockingScript, OP, Spend, UnlockingScript } from '@bsv/sdk'
import {
  countOpcodes,
  type RunBudget,
  readingCost,
  signatureCost,
  stepCost,
} from '../../../backend/src/protocol/script-cost.js'
import type { TransactionOutput, TransactionView } from '../../../backend/src/protocol/transaction.js'
import type { Slices } from '../../gateway/slices.js'

/** Scripts that take more to run than is left, whether they would hold or not. */
export class TooCostlyError extends Error {
  override readonly name = 'TooCostlyError'

  constructor() {
    super('its scripts take too much to run')
  }
}

/** What one step may cost at most, some tenths of a second: others cannot be answered within it. */
const LONGEST_STEP = 32_000_000
/** The interpreter holds a byte in eight. Above this its own limit lies. */
const MAX_STACK_BYTES = 8_000_000

/** What `Spend.validate` asks of the interpreter around the steps; the SDK's types keep it to themselves. */
interface Judgements {
  shouldEnforceSigPushOnly(): boolean
  shouldEnforceCleanStack(): boolean
  requireTruthyTopStack(): void
}

interface Input {
  transaction: TransactionView
  /** The index of the input. */
  input: number
  /** What it spends. */
  spent: TransactionOutput
  /** Less of it is left afterwards. */
  budget: RunBudget
  slices: Slices
}

/**
 * Runs the unlocking and locking script of an input, as `Spend.validate` of the SDK does, but step by step, each charged
 * for before it is taken: what a stranger wrote ends with the budget, and others have their turn meanwhile. That says
 * yes or no as the SDK does is for a test to hold.
 *
 * @throws TooCostlyError where the budget does not suffice to tell; what the interpreter throws where the scripts do not
 * let the input spend.
 */
export async function runScripts({ transaction, input, spent, budget, slices }: Input): Promise<void> {
  const unlocking = transaction.inputs[input]?.unlockingScript ?? new Uint8Array()
  const opcodes = countOpcodes(unlocking) + countOpcodes(spent.lockingScript)
  charge(budget, readingCost(opcodes) + transaction.inputs.length + transaction.outputs.length)
  const run = interpreter({ transaction, input, spent, unlocking })
  const judge = run as unknown as Judgements
  if (judge.shouldEnforceSigPushOnly() && !run.unlockingScript.isPushOnly())
    throw new Error('the unlocking script has more than pushes')
  const aSignature = signatureCost(transaction, opcodes)
  do {
    const cost = stepCost(run, { op: nextOpcode(run), signatureCost: aSignature })
    if (cost > LONGEST_STEP || run.stackMem + run.altStackMem > MAX_STACK_BYTES) throw new TooCostlyError()
    charge(budget, cost + 1)
    if (slices.isOver) await slices.rest()
  } while (run.step())
  if (run.ifStack.length > 0) throw new Error('the locking script ends within an OP_IF')
  judge.requireTruthyTopStack()
  if (judge.shouldEnforceCleanStack() && run.stack.length !== 1)
    throw new Error('the scripts leave more than one item')
}

/** At the end of the unlocking script, a step is the first of the locking script. */
function nextOpcode({ context, programCounter, unlockingScript, lockingScript }: Spend): number {
  const inUnlocking = context === 'UnlockingScript' && programCounter < unlockingScript.chunks.length
  const at = context === 'UnlockingScript' && !inUnlocking ? 0 : programCounter
  return (inUnlocking ? unlockingScript : lockingScript).chunks[at]?.op ?? OP.OP_0
}

function charge(budget: RunBudget, cost: number): void {
  if (cost > budget.units) throw new TooCostlyError()
  budget.units -= cost
}

function interpreter({
  transaction,
  input,
  spent,
  unlocking,
}: {
  transaction: TransactionView
  input: number
  spent: TransactionOutput
  unlocking: Uint8Array
}): Spend {
  const spender = transaction.inputs[input]
  if (spender === undefined) throw new RangeError(`the transaction has no input ${input}`)
  return new Spend({
    sourceTXID: spender.txid,
    sourceOutputIndex: spender.vout,
    sourceSatoshis: spent.satoshis,
    lockingScript: new LockingScript([], spent.lockingScript, undefined, false),
    transactionVersion: transaction.version,
    otherInputs: transaction.inputs
      .filter((_, index) => index !== input)
      .map(({ txid, vout, sequence }) => ({ sourceTXID: txid, sourceOutputIndex: vout, sequence })),
    outputs: transaction.outputs.map((output) => ({
      satoshis: output.satoshis,
      lockingScript: new LockingScript([], output.lockingScript, undefined, false),
    })),
    inputIndex: input,
    unlockingScript: new UnlockingScript([], unlocking, undefined, false),
    inputSequence: spender.sequence,
    lockTime: transaction.lockTime,
  })
}
