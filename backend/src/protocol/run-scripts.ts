import { LockingScript, OP, Spend, UnlockingScript } from '@bsv/sdk'
import { CodedError } from './coded-error.js'
import { ScriptWalk } from './script-walk.js'
import { readTransaction, type SpentOutput, type TransactionView } from './transaction.js'

/**
 * The remaining budget for running scripts, in units of what the interpreter takes to hash one byte, some ten nanoseconds.
 * Counted, not timed, so that every host refuses the same scripts.
 */
interface RunBudget {
  units: number
}

/** The default budget for all scripts of one submission, or of one proof: some seconds of a slow core. */
export const DEFAULT_SCRIPT_WORK = 300_000_000

/** Cost of the object that the interpreter makes of an opcode, run or not. */
const OPCODE_COST = 100
/** Some milliseconds of arithmetic on the curve. Hashing what is signed is counted separately. */
const SIGNATURE_COST = 250_000
/** Adding an input, or an output, to the bytes that are hashed. */
const INPUT_COST = 300
const OUTPUT_COST = 150

const SIGHASH_ALL = 1
const SIGHASH_CHRONICLE = 0x20
const SIGHASH_FORKID = 0x40
const SIGHASH_ANYONECANPAY = 0x80

/** Opcodes that read or write numbers: the interpreter converts them, in a time that grows with their square. */
const NUMERIC: ReadonlySet<number> = new Set([
  ...Array.from({ length: OP.OP_WITHIN - OP.OP_1ADD + 1 }, (_, i) => OP.OP_1ADD + i),
  OP.OP_LSHIFT,
  OP.OP_RSHIFT,
  OP.OP_LSHIFTNUM,
  OP.OP_RSHIFTNUM,
])
const ONE_SIGNATURE: ReadonlySet<number> = new Set([OP.OP_CHECKSIG, OP.OP_CHECKSIGVERIFY])
const MANY_SIGNATURES: ReadonlySet<number> = new Set([OP.OP_CHECKMULTISIG, OP.OP_CHECKMULTISIGVERIFY])

/** The most that the interpreter takes to parse scripts of so many opcodes and bytes. */
function readingCost(scripts: { opcodes: number; bytes: number }): number {
  return scripts.opcodes * OPCODE_COST + scripts.bytes
}

/** The cost of a transaction's signatures. All of its inputs use one object, as they share hashes. */
class SignatureCosts {
  /** The cost of hashing all inputs and outputs once. */
  private readonly hashing: number
  private isHashed = false

  constructor(transaction: { raw: Uint8Array; inputs: readonly unknown[]; outputs: readonly unknown[] }) {
    const { raw, inputs, outputs } = transaction
    this.hashing = 2 * raw.length + INPUT_COST * inputs.length + OUTPUT_COST * outputs.length
  }

  /**
   * The most that checking a signature costs; `scripts` are those of its input, which it commits to and which are searched for
   * it. BIP 143 hashes the inputs and the outputs once for all signatures of a transaction. The original digest serialises the
   * whole transaction again for each of them.
   */
  of(signature: readonly number[], scripts: { opcodes: number; bytes: number }): number {
    const scope = signature.at(-1) ?? 0
    const searching = SIGNATURE_COST + quadratic(scripts.opcodes) + OPCODE_COST * scripts.opcodes
    if ((scope & SIGHASH_FORKID) === 0 || (scope & SIGHASH_CHRONICLE) !== 0)
      return searching + 12 * scripts.bytes + 3 * this.hashing
    const hashing = this.isHashed ? 0 : this.hashing
    // This covers what the other kinds hash by themselves.
    if (signature.length > 0 && (scope & (SIGHASH_ANYONECANPAY | 0x1f)) === SIGHASH_ALL) this.isHashed = true
    return searching + 2 * scripts.bytes + hashing
  }
}

/**
 * The most that the next step costs, beside what was charged for its opcode.
 *
 * @param next.signatureCost The cost of a signature on the stack.
 */
function stepCost(
  run: Spend,
  next: { op: number; signatureCost: (signature: readonly number[]) => number },
): number {
  const { stack, ifStack } = run
  // Both are walked: by OP_ROLL, and to see whether a branch is taken.
  const depth = stack.length / 32 + ifStack.length / 4
  if (ifStack.includes(false) || run.returningFromConditional) return depth
  const { op, signatureCost } = next
  // No opcode reads more than three items of any length; its results are counted with the next step.
  const [top = [], second = [], third = []] = [stack.at(-1), stack.at(-2), stack.at(-3)]
  let bytes = top.length + second.length + third.length
  if (op === OP.OP_RIPEMD160) bytes += top.length
  // These make items of a length that a number gives. The first makes them at once, and has to stay below MAX_STACK_BYTES.
  if (op === OP.OP_NUM2BIN) bytes += 4 * magnitude(top)
  if (op === OP.OP_LSHIFT || op === OP.OP_LSHIFTNUM) bytes += magnitude(top) / 8
  if (ONE_SIGNATURE.has(op)) bytes += signatureCost(second)
  if (MANY_SIGNATURES.has(op)) bytes += multisigCost(stack, signatureCost)
  if (!NUMERIC.has(op)) return depth + bytes
  // One opcode reads all three as numbers; those up to OP_0NOTEQUAL read one, and the others two.
  const others = op === OP.OP_WITHIN ? 0 : third.length + (op <= OP.OP_0NOTEQUAL ? second.length : 0)
  return depth + bytes + quadratic(bytes - others)
}

/** Every key may be tried, each with one of the signatures: the most expensive one counts. */
function multisigCost(
  stack: readonly number[][],
  signatureCost: (signature: readonly number[]) => number,
): number {
  const keys = Math.min(magnitude(stack.at(-1) ?? []), stack.length)
  const count = Math.min(magnitude(stack.at(-2 - keys) ?? []), stack.length)
  let dearest = 0
  for (let at = 0; at < count; at++)
    dearest = Math.max(dearest, signatureCost(stack.at(-3 - keys - at) ?? []))
  return keys * dearest
}

function quadratic(length: number): number {
  return length ** 2 / 32
}

/** A script number, with its sign bit read as part of it. Infinite for the longest numbers. */
function magnitude(item: readonly number[]): number {
  return item.reduceRight((value, byte) => value * 256 + byte, 0)
}

/**
 * What a script has. Opcodes after an OP_RETURN are counted too, though they are not run.
 *
 * @param limit Once reading it costs more than this, no more of it is counted.
 */
function contentsOf(
  script: Uint8Array,
  limit = Number.POSITIVE_INFINITY,
): { bytes: number; opcodes: number; signatures: number } {
  const walk = new ScriptWalk(script)
  const found = { bytes: script.length, opcodes: 0, signatures: 0 }
  while (readingCost(found) <= limit && walk.next()) {
    found.opcodes++
    if (ONE_SIGNATURE.has(walk.op) || MANY_SIGNATURES.has(walk.op)) found.signatures++
  }
  return found
}

/** The scripts cost more than is left of the budget, valid or not. */
export class TooCostlyError extends CodedError {
  override readonly name = 'TooCostlyError'
  readonly code = 'TOO_COSTLY'

  constructor() {
    super('the scripts are too expensive to run')
  }
}

/** The most that one step may cost, some tenths of a second: nothing else is answered meanwhile. */
const LONGEST_STEP = 32_000_000
/** The approximate cost of taking any step, and the most that steps may cost which are yielded as one: half a millisecond. */
const STEP_UNITS = 20
const UNITS_AT_ONCE = 50_000
/** A step that takes more memory than this, in bytes, is yielded by itself. */
const BYTES_AT_ONCE = 128 * 1024
/** The interpreter holds a byte in eight. Its own limit is above this. */
const MAX_STACK_BYTES = 8_000_000
/** An opcode in the interpreter takes as much memory as this many bytes on its stack. */
const BYTES_OF_OPCODE = 12
/** The same for an input or an output. */
const BYTES_OF_PART = 40

/** An unproven transaction whose scripts are to be run. Can be posted to another thread. */
export interface ScriptSpender {
  txid: string
  raw: Uint8Array
  /** The outputs that its inputs spend, in their order. */
  spent: SpentOutput[]
  /** The index of the only input to run; unset, all of them are run. */
  input?: number
}

/** A spender with the scripts from which {@link likelyWork} estimates its cost. */
export interface PricedSpender extends ScriptSpender {
  unlockingScripts: Uint8Array[]
}

/** The cost of the next step, and of cheap ones before it that were taken without asking. */
export interface StepDemand {
  /** In the units of `RunBudget`. */
  units: number
  /** The most bytes that the interpreter holds then; each takes eight bytes of memory. */
  bytes: number
}

/** The checks of `Spend.validate` around the steps; the SDK's types hide them. */
interface Judgements {
  shouldEnforceSigPushOnly(): boolean
  shouldEnforceCleanStack(): boolean
  requireTruthyTopStack(): void
  scriptEvaluationError(reason: string): never
  sigHashCache: unknown
}

/**
 * Runs the scripts of transactions, the unlocking and the locking script of every input, as `Spend.validate` of the SDK does, but step
 * by step, each charged before it is taken, so that a script ends with the budget. A test checks that the result is the SDK's.
 *
 * @param options.maxWork What all scripts may cost in total (`RunBudget`).
 * @returns Steps, each yielded with its cost before it is taken, so that the caller can pause; cheap ones together, as asking takes as
 * long as many of them. The object is the same each time.
 * @throws TooCostlyError if the budget does not suffice; Error if the scripts of an input fail.
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
        // Items that do not exist yet are charged when they are made, or with the next step.
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
export function likelyWork(spenders: Iterable<PricedSpender>, { maxWork }: { maxWork: number }): number {
  let least = 0
  let likely = 0
  for (const { raw, spent, unlockingScripts } of spenders) {
    least += raw.length
    for (const script of [...unlockingScripts, ...spent.map(({ lockingScript }) => lockingScript)]) {
      const found = contentsOf(script, maxWork - least)
      least += readingCost(found)
      // With all of its signatures: a guess, and no bound.
      likely += readingCost(found) + found.signatures * SIGNATURE_COST
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
    opcodes: contentsOf(unlockingScript).opcodes + contentsOf(lockingScript).opcodes,
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
    // The SDK's error message has all stacks in hex, which may be long.
    judge.scriptEvaluationError = (reason) => {
      throw new Error(reason)
    }
    return run
  }
}
