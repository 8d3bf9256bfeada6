import { LockingScript, OP, Spend, UnlockingScript } from '@bsv/sdk'
import { MintError } from './mint-error.js'
import { type MintUnlocking, readMintUnlocking } from './mint-unlocking.js'
import { countOpcodes, type RunBudget, readingCost, SignatureCosts, stepCost } from './script-cost.js'
import type { TransactionView } from './transaction.js'

/**
 * A budget for one transaction: some tens of milliseconds, as it is spent while others wait. A mint that takes more is read
 * from its outputs.
 */
export function runBudget(): RunBudget {
  return { units: 3_000_000 }
}

/**
 * The five items that a covenant finds on top of its stack, whatever stands below them.
 *
 * Pushes are taken as they are. Other opcodes are run, alone, by the interpreter of the SDK, where the version of the
 * transaction is above 1: only then does the network take code in an unlocking script. What the script then leaves on
 * its stack is all that the locking script gets: the alt stack, an OP_RETURN and the place of an OP_CODESEPARATOR end
 * with it.
 *
 * @param unlocking.input The index of the input.
 * @param unlocking.satoshis What the output holds that it spends, for signatures that the script may check.
 * @param unlocking.budget Less of it is left afterwards, if the script was run.
 * @throws MintError `BAD_UNLOCKING` where the script has code and may not, fails, or leaves fewer than five items, and
 * `TOO_COSTLY` where the budget does not suffice to tell, or the stack grows beyond 8,000,000 bytes. Nothing is done
 * that the budget was not charged for.
 */
export function takeMintUnlocking(unlocking: {
  transaction: TransactionView
  input: number
  satoshis: number
  budget?: RunBudget
}): MintUnlocking<Uint8Array> {
  const { transaction, budget = runBudget() } = unlocking
  const script = transaction.inputs[unlocking.input]?.unlockingScript ?? new Uint8Array()
  const pushed = readMintUnlocking(script)
  if (pushed !== undefined) return pushed
  if (transaction.version <= PUSH_ONLY_VERSION) {
    throw new MintError('BAD_UNLOCKING', 'the unlocking script is not five pushes or more')
  }
  const [character, nonce, ownerLock, trailing, preimage] = runUnlocking({ ...unlocking, script, budget })
    .slice(-5)
    .map((item) => Uint8Array.from(item))
  if (!character || !nonce || !ownerLock || !trailing || !preimage) {
    throw new MintError('BAD_UNLOCKING', 'the unlocking script leaves fewer than five items')
  }
  return { character, nonce, ownerLock, trailing, preimage }
}

/** The last version whose unlocking scripts may only push. */
const PUSH_ONLY_VERSION = 1

/** Runs an unlocking script to its end, and returns its stack. */
function runUnlocking(unlocking: {
  script: Uint8Array
  transaction: TransactionView
  input: number
  satoshis: number
  budget: RunBudget
}): number[][] {
  const { script, transaction, budget } = unlocking
  const scripts = { opcodes: countOpcodes(script), bytes: script.length }
  // Before anything is made of the script: a million opcodes would be a million objects.
  charge(budget, readingCost(scripts) + transaction.raw.length)
  const run = interpreter(unlocking)
  const { chunks } = run.unlockingScript
  const signatures = new SignatureCosts(transaction)
  const signatureCost = (signature: readonly number[]): number => signatures.of(signature, scripts)
  while (run.programCounter < chunks.length) {
    charge(budget, stepCost(run, { op: chunks[run.programCounter]?.op ?? OP.OP_0, signatureCost }))
    if (run.stackMem + run.altStackMem > MAX_STACK_BYTES) throw tooCostly()
    try {
      run.step()
    } catch (cause) {
      throw new MintError('BAD_UNLOCKING', 'the unlocking script fails', { cause })
    }
  }
  if (run.ifStack.length > 0)
    throw new MintError('BAD_UNLOCKING', 'the unlocking script ends within an OP_IF')
  return run.stack
}

/** The interpreter about to run an unlocking script. It has no locking script to run after it. */
function interpreter(unlocking: {
  script: Uint8Array
  transaction: TransactionView
  input: number
  satoshis: number
}): Spend {
  const { script, transaction, satoshis } = unlocking
  const spender = transaction.inputs[unlocking.input]
  if (spender === undefined) throw new RangeError(`the transaction has no input ${unlocking.input}`)
  return new Spend({
    sourceTXID: spender.txid,
    sourceOutputIndex: spender.vout,
    sourceSatoshis: satoshis,
    lockingScript: new LockingScript(),
    transactionVersion: transaction.version,
    otherInputs: transaction.inputs
      .filter((_, index) => index !== unlocking.input)
      .map(({ txid, vout, sequence }) => ({ sourceTXID: txid, sourceOutputIndex: vout, sequence })),
    outputs: transaction.outputs.map((output) => ({
      satoshis: output.satoshis,
      lockingScript: new LockingScript([], output.lockingScript, undefined, false),
    })),
    inputIndex: unlocking.input,
    unlockingScript: new UnlockingScript([], script, undefined, false),
    inputSequence: spender.sequence,
    lockTime: transaction.lockTime,
  })
}

function charge(budget: RunBudget, cost: number): void {
  if (cost > budget.units) throw tooCostly()
  budget.units -= cost
}

function tooCostly(): MintError {
  return new MintError('TOO_COSTLY', 'the unlocking script takes too much to run')
}

/** The interpreter holds a byte in eight, and writes all of it into the error where a script fails. */
const MAX_STACK_BYTES = 8_000_000
