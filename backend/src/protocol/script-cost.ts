import { OP } from '@bsv/sdk'
import { ScriptWalk } from './script-walk.js'
import type { Spend } from './sdk-types.js'

/**
 * What running scripts may still cost, in units of what the interpreter takes to hash one byte, some ten nanoseconds.
 * Counted and not timed, so that every host draws the line at the same script.
 */
export interface RunBudget {
  units: number
}

/** The default budget for all scripts of one submission, or of one proof: some seconds of a slow core. */
export const DEFAULT_SCRIPT_WORK = 300_000_000

/** Of what the interpreter makes of an opcode, run or not. */
const OPCODE_COST = 100
/** Some milliseconds of arithmetic on the curve: the hash that is signed is counted by itself. */
const SIGNATURE_COST = 250_000
/** Putting an input, or an output, into what is hashed. */
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
export function readingCost(scripts: { opcodes: number; bytes: number }): number {
  return scripts.opcodes * OPCODE_COST + scripts.bytes
}

/** What signatures of a transaction cost. Of one object for all of its inputs, which share what was hashed of it. */
export class SignatureCosts {
  /** What it costs to hash all inputs and outputs once. */
  private readonly hashing: number
  private isHashed = false

  constructor(transaction: { raw: Uint8Array; inputs: readonly unknown[]; outputs: readonly unknown[] }) {
    const { raw, inputs, outputs } = transaction
    this.hashing = 2 * raw.length + INPUT_COST * inputs.length + OUTPUT_COST * outputs.length
  }

  /**
   * What it costs at most to check a signature; `scripts` are those of its input, which it commits to and which are
   * searched for it. BIP 143 hashes the inputs and the outputs once for all signatures of a transaction. The original
   * digest serialises the whole transaction again for each of them.
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
 * What the next step costs at most, beside what its opcode did already.
 *
 * @param next.signatureCost Of a signature on the stack.
 */
export function stepCost(
  run: Spend,
  next: { op: number; signatureCost: (signature: readonly number[]) => number },
): number {
  const { stack, ifStack } = run
  // Both are gone through: by OP_ROLL, and to see whether a branch is taken.
  const depth = stack.length / 32 + ifStack.length / 4
  if (ifStack.includes(false) || run.returningFromConditional) return depth
  const { op, signatureCost } = next
  // No opcode reads more than three items of any length; what it makes of them is counted with the next.
  const [top = [], second = [], third = []] = [stack.at(-1), stack.at(-2), stack.at(-3)]
  let bytes = top.length + second.length + third.length
  if (op === OP.OP_RIPEMD160) bytes += top.length
  // These make items as long as a number says. The first makes them at once, and is to stay below MAX_STACK_BYTES.
  if (op === OP.OP_NUM2BIN) bytes += 4 * magnitude(top)
  if (op === OP.OP_LSHIFT || op === OP.OP_LSHIFTNUM) bytes += magnitude(top) / 8
  if (ONE_SIGNATURE.has(op)) bytes += signatureCost(second)
  if (MANY_SIGNATURES.has(op)) bytes += multisigCost(stack, signatureCost)
  if (!NUMERIC.has(op)) return depth + bytes
  // Of the three, one opcode reads all as numbers; those up to OP_0NOTEQUAL read one, and the others two.
  const others = op === OP.OP_WITHIN ? 0 : third.length + (op <= OP.OP_0NOTEQUAL ? second.length : 0)
  return depth + bytes + quadratic(bytes - others)
}

/** Every key may be tried, and is tried with one of the signatures: the dearest counts. */
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

/** A script number, its sign taken for a bit of it. Infinite for the longest numbers. */
function magnitude(item: readonly number[]): number {
  return item.reduceRight((value, byte) => value * 256 + byte, 0)
}

/** How many opcodes a script has. Those after an OP_RETURN are counted too, though they are not run. */
export function countOpcodes(script: Uint8Array): number {
  const walk = new ScriptWalk(script)
  let opcodes = 0
  while (walk.next()) opcodes++
  return opcodes
}

/** What running a script costs, as far as it shows without being run. */
export interface ScriptPrice {
  /** What it costs at least. */
  least: number
  /** That, and what its signatures cost if all of them are checked: a guess, and no bound. */
  likely: number
}

/** @param limit Where it costs more than that at least, no more of it is read. */
export function scriptPrice(script: Uint8Array, limit: number): ScriptPrice {
  const walk = new ScriptWalk(script)
  let least = script.length
  let signatures = 0
  while (least <= limit && walk.next()) {
    least += OPCODE_COST
    if (ONE_SIGNATURE.has(walk.op) || MANY_SIGNATURES.has(walk.op)) signatures++
  }
  return { least, likely: least + signatures * SIGNATURE_COST }
}
