import { LockingScript, OP, Spend, UnlockingScript } from '@bsv/sdk'
import { CodedError } from './coded-error.js'
import {
  countOpcodes,
  type RunBudget,
  readingCost,
  SignatureCosts,
  scriptPrice,
  stepCost,
} from './script-cost.js'
import { readTransaction, type SpentOutput, type TransactionView } from './transaction.js'

/** Scripts that cost more than the budget has left, valid or not. */
export class TooCostlyError extends CodedError {
  override readonly name = 'TooCostlyError'
  readonly code = 'TOO_COSTLY'

  constructor() {
    super('the scripts are too expensive to run')
  }
}

/** What one step may cost at most, some tenths of a second: nothing else is answered within it. */
const LONGEST_STEP = 32_000_000
/** What taking any step is about worth, in units, and how much several steps may be worth that count as one: half a millisecond. */
const STEP_UNITS = 20
const UNITS_AT_ONCE = 50_000
/** A step that takes more memory, in bytes, counts alone. */
const BYTES_AT_ONCE = 128 * 1024
/** The interpreter holds a byte in eight. Above this its own limit lies. */
const MAX_STACK_BYTES = 8_000_000
/** What the interpreter makes of an opcode takes as much memory as so many bytes on its stack. */
const BYTES_OF_OPCODE = 12
/** And an input or an output, which are no shorter than that in a transaction. */
const BYTES_OF_PART = 40

/** An unproven transaction whose scripts are to be run. Can be posted to another thread. */
export interface ScriptSpender {
  txid: string
  raw: Uint8Array
  /** What its inputs spend, in their order. */
  spent: SpentOutput[]
  /** The index of the only input to run; unset, all of them are run. */
  input?: number
}

/** What the next step will cost, and cheap ones before it that were taken without asking. */
export interface StepDemand {
  /** In the units of `RunBudget`. */
  units: number
  /** How many bytes the interpreter holds then, at most; of its memory, each takes eight. */
  bytes: number
}

/** What `Spend.validate` asks of the interpreter around the steps; the SDK's types keep it to themselves. */
interface Judgements {
  shouldEnforceSigPushOnly(): boolean
  shouldEnforceCleanStack(): boolean
  requireTruthyTopStack(): void
  scriptEvaluationError(reason: string): never
  sigHashCache: unknown
}

/**
 * Runs the scripts of transactions, the unlocking and the locking script of every input, as `Spend.validate` of the SDK
 * does, but step by step, each charged before it is taken: a stranger's script ends with the budget. A test holds that the
 * result is the SDK's.
 *
 * @param options.maxWork What all scripts may cost in total (`RunBudget`).
 * @returns Steps, each yielded with its cost before it is taken, so that the caller can pause; cheap ones together, as asking
 * takes as long as many of them. The object is the same each time.
 * @throws TooCostlyError if the budget does not suffice; Error if scripts do not let an input spend.
 */
export function* runScripts(
  spenders: Iterable<ScriptSpender>,
  { maxWork }: { maxWork: number },
): Generator<Readonly<StepDemand>, void> {
  const budget: RunBudget = { units: maxWork }
  const demand: StepDemand = { units: 0, bytes: 0 }
  let unreported = 0
  let steps = 0
  /** Charges a step. @returns Whether the caller is to be asked before it is taken. */
  const charge = (units: number, bytes: number): boolean => {
    if (units > budget.units) throw new TooCostlyError()
    budget.units -= units
    unreported += units
    steps++
    if (unreported + steps * STEP_UNITS < UNITS_AT_ONCE && bytes < BYTES_AT_ONCE) return false
    demand.units = unreported
    demand.bytes = bytes
    unreported = 0
    steps = 0
    return true
  }
  for (const { txid, raw, spent, input: only } of spenders) {
    if (charge(raw.length, raw.length)) yield demand
    const transaction = readTransaction(raw, { txid })
    const parts = BYTES_OF_PART * (transaction.inputs.length + transaction.outputs.length)
    const interpreters = new Interpreters(transaction)
    const signatures = new SignatureCosts(transaction)
    for (const [input, { unlockingScript }] of transaction.inputs.entries()) {
      if (only !== undefined && input !== only) continue
      const source = spent[input]
      if (source === undefined)
        throw new RangeError(`the output that input ${input} of ${txid} spends is missing`)
      const scripts = scriptsOf(unlockingScript, source)
      const held = parts + scripts.bytes + BYTES_OF_OPCODE * scripts.opcodes
      if (charge(readingCost(scripts) + transaction.inputs.length, held)) yield demand
      const run = interpreters.open(input, source)
      const judge = run as unknown as Judgements
      if (judge.shouldEnforceSigPushOnly() && !run.unlockingScript.isPushOnly())
        throw new Error('the unlocking script has opcodes other than pushes')
      const signatureCost = (signature: readonly number[]): number => signatures.of(signature, scripts)
      do {
        const units = stepCost(run, { op: nextOpcode(run), signatureCost }) + 1
        const stack = run.stackMem + run.altStackMem
        if (units > LONGEST_STEP || stack > MAX_STACK_BYTES) throw new TooCostlyError()
        // What does not exist yet is charged when it is made, or with the next step.
        if (charge(units, held + 2 * stack)) yield demand
      } while (run.step())
      if (run.ifStack.length > 0) throw new Error('the locking script ends inside an OP_IF')
      judge.requireTruthyTopStack()
      if (judge.shouldEnforceCleanStack() && run.stack.length !== 1)
        throw new Error('the scripts leave more than one item on the stack')
    }
  }
  if (unreported === 0) return
  demand.units = unreported
  demand.bytes = 0
  yield demand
}

/**
 * The likely cost of running the scripts of transactions, as far as it shows without running them.
 *
 * @throws TooCostlyError if it costs too much in any case.
 */
export function likelyWork(
  spenders: Iterable<ScriptSpender & { unlockingScripts: Uint8Array[] }>,
  { maxWork }: { maxWork: number },
): number {
  let least = 0
  let likely = 0
  for (const { raw, spent, unlockingScripts } of spenders) {
    least += raw.length
    for (const script of [...unlockingScripts, ...spent.map(({ lockingScript }) => lockingScript)]) {
      const price = scriptPrice(script, maxWork - least)
      least += price.least
      likely += price.likely
      if (least > maxWork) throw new TooCostlyError()
    }
  }
  return likely
}

function scriptsOf(
  unlockingScript: Uint8Array,
  { lockingScript }: SpentOutput,
): { opcodes: number; bytes: number } {
  return {
    opcodes: countOpcodes(unlockingScript) + countOpcodes(lockingScript),
    bytes: unlockingScript.length + lockingScript.length,
  }
}

/** At the end of the unlocking script, a step is the first of the locking script. */
function nextOpcode({ context, programCounter, unlockingScript, lockingScript }: Spend): number {
  const inUnlocking = context === 'UnlockingScript' && programCounter < unlockingScript.chunks.length
  const at = context === 'UnlockingScript' && !inUnlocking ? 0 : programCounter
  return (inUnlocking ? unlockingScript : lockingScript).chunks[at]?.op ?? OP.OP_0
}

/** Interpreters for the inputs of a transaction. They share its common parts and their hashes. */
class Interpreters {
  private readonly inputs: { sourceTXID: string; sourceOutputIndex: number; sequence: number }[]
  private readonly outputs: { satoshis: number; lockingScript: LockingScript }[]
  private readonly hashes = { hashOutputsSingle: new Map() }

  constructor(private readonly transaction: TransactionView) {
    this.inputs = transaction.inputs.map(({ txid, vout, sequence }) => ({
      ...{ sourceTXID: txid, sourceOutputIndex: vout, sequence },
    }))
    this.outputs = transaction.outputs.map(({ satoshis, lockingScript }) => ({
      satoshis,
      lockingScript: new LockingScript([], lockingScript, undefined, false),
    }))
  }

  open(input: number, spent: SpentOutput): Spend {
    const { transaction } = this
    const spender = transaction.inputs[input]
    if (spender === undefined) throw new RangeError(`the transaction has no input ${input}`)
    const run = new Spend({
      sourceTXID: spender.txid,
      sourceOutputIndex: spender.vout,
      sourceSatoshis: spent.satoshis,
      lockingScript: new LockingScript([], spent.lockingScript, undefined, false),
      transactionVersion: transaction.version,
      otherInputs: this.inputs.filter((_, index) => index !== input),
      outputs: this.outputs,
      inputIndex: input,
      unlockingScript: new UnlockingScript([], spender.unlockingScript, undefined, false),
      inputSequence: spender.sequence,
      lockTime: transaction.lockTime,
    })
    const judge = run as unknown as Judgements
    judge.sigHashCache = this.hashes
    // The SDK's error message has all stacks in hex, which a stranger may have made long.
    judge.scriptEvaluationError = (reason) => {
      throw new Error(reason)
    }
    return run
  }
}
