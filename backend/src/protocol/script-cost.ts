import { OP, type Spend } from '@bsv/sdk'
import { ScriptWalk } from './script-walk.js'

/**
 * What running scripts may still cost, in units of what the interpreter takes to hash one byte, some ten nanoseconds.
 * Counted and not timed, so that every host draws the line at the same script.
 */
export interface RunBudget {
  units: number
}

/** Of what the interpreter makes of an opcode, run or not. */
const OPCODE_COST = 100
/** Some milliseconds: the hash that is signed is counted by itself. */
const SIGNATURE_COST = 100_000

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

/** What it costs at most to have the interpreter read a script of so many opcodes. */
export function readingCost(opcodes: number): number {
  return opcodes * OPCODE_COST
}

/** What it costs at most to check a signature of a transaction, in a script of so many opcodes. */
export function signatureCost(transaction: { raw: Uint8Array }, opcodes: number): number {
  return SIGNATURE_COST + 2 * transaction.raw.length + quadratic(opcodes)
}

/** What the next step costs at most, beside what its opcode did already. */
export function stepCost(run: Spend, next: { op: number; signatureCost: number }): number {
  const { stack, ifStack } = run
  // Both are gone through: by OP_ROLL, and to see whether a branch is taken.
  const depth = (stack.length + ifStack.length) / 32
  if (ifStack.includes(false) || run.returningFromConditional) return depth
  const { op, signatureCost } = next
  // No opcode reads more than three items of any length; what it makes of them is counted with the next.
  const [top = [], second = [], third = []] = [stack.at(-1), stack.at(-2), stack.at(-3)]
  let bytes = top.length + second.length + third.length
  // These make items as long as a number says. The first makes them at once, and is to stay below MAX_STACK_BYTES.
  if (op === OP.OP_NUM2BIN) bytes += 4 * magnitude(top)
  if (op === OP.OP_LSHIFT || op === OP.OP_LSHIFTNUM) bytes += magnitude(top) / 8
  if (ONE_SIGNATURE.has(op)) bytes += signatureCost
  // Every key may be tried; there are not more than items.
  if (MANY_SIGNATURES.has(op)) bytes += signatureCost * stack.length
  return depth + bytes + (NUMERIC.has(op) ? quadratic(bytes) : 0)
}

function quadratic(length: number): number {
  return length ** 2 / 32
}

/** A script number, its sign taken for a bit of it. Infinite for the longest. */
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
