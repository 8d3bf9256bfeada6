import { INITIAL_STATE } from '../../../client/sha256-rounds.js'
import { FIXED_WORDS, PADDING } from '../plain-kernel.js'
import {
  block,
  branchIf,
  type Code,
  encodeModule,
  I32,
  I32X4,
  i32Const,
  localGet,
  localSet,
  loop,
  v128Const,
  v128Load,
  v128Store,
} from './wasm-code.js'

/** How many nonces the kernel tries at once. */
export const LANES = 4

/**
 * The vectors in memory, by their index: the round constants; the schedules of both hashes; the state of the first hash after the
 * rounds with fixed words; and the mask. The caller fills in what does not depend on the counter.
 */
export const MEMORY = { constants: 0, first: 64, second: 128, fixedState: 192, mask: 200 } as const

/** Locals of `scan`: its two parameters, an offset in memory, and vectors, the last of them the eight words of the state. */
const SCAN = { counter: 0, end: 1, offset: 2, counterWord: 3, term: 4, state: 5 } as const
const STATE = INITIAL_STATE.map((_, index) => SCAN.state + index)

/**
 * Writes the kernel: a WebAssembly module with the function `scan(counter, end)`, which hashes the messages with the counters from
 * `counter` to `end`, both multiples of {@link LANES}. It returns the first of four counters for which one of the hashes has no
 * bit of the mask in its last word; or `end`.
 *
 * A counter has 24 bits: three bytes of the word after the fixed ones, whose fourth byte is the start of the padding.
 */
export function writeKernel(): Uint8Array<ArrayBuffer> {
  return encodeModule({
    name: 'scan',
    parameters: 2,
    locals: { i32: 1, v128: SCAN.state + STATE.length - SCAN.counterWord },
    body: [
      setCounterWord(),
      block(loop([hashes(), isCandidate(), branchIf(1), nextFour(), branchIf(0)])),
      localGet(SCAN.counter),
    ],
  })
}

/** The last word of the second hash is h after 64 rounds: e after 61, shifted three times. */
const LAST_ROUND = 61

/** Both hashes of four messages. */
function hashes(): Code {
  const initial = INITIAL_STATE.map(splat)
  return [
    v128Store(at(MEMORY.first + FIXED_WORDS), localGet(SCAN.counterWord)),
    schedule(MEMORY.first, 64),
    STATE.map((local, index) => [v128Load(at(MEMORY.fixedState + index)), localSet(local)]),
    rounds(MEMORY.first, { from: FIXED_WORDS, to: 64 }),
    rolesAfter(64 - FIXED_WORDS).map((local, index) =>
      v128Store(at(MEMORY.second + index), [localGet(local), initial[index] ?? 0, I32X4.add]),
    ),
    schedule(MEMORY.second, LAST_ROUND),
    STATE.map((local, index) => [initial[index] ?? 0, localSet(local)]),
    rounds(MEMORY.second, { from: 0, to: LAST_ROUND }),
  ]
}

function isCandidate(): Code {
  const [, , , , e = 0] = rolesAfter(LAST_ROUND)
  const lastWord = [localGet(e), splat(INITIAL_STATE[7] ?? 0), I32X4.add]
  return [lastWord, v128Load(at(MEMORY.mask)), I32X4.and, I32X4.allTrue, I32.isZero]
}

/** Sets the counter word of four messages, starting with the counter of the first. */
function setCounterWord(): Code {
  const counters = [localGet(SCAN.counter), I32X4.splat, v128Const(0, 1, 2, 3), I32X4.add]
  return [counters, i32Const(8), I32X4.shl, splat(PADDING >>> 24), I32X4.or, localSet(SCAN.counterWord)]
}

/** Advances by four counters, and leaves whether any are left. */
function nextFour(): Code {
  return [
    [localGet(SCAN.counterWord), splat(LANES << 8), I32X4.add, localSet(SCAN.counterWord)],
    [localGet(SCAN.counter), i32Const(LANES), I32.add, localSet(SCAN.counter)],
    [localGet(SCAN.counter), localGet(SCAN.end), I32.isBelow],
  ]
}

/** Computes the words of a schedule from the 16th up to, and excluding, `to` (FIPS 180-4, 6.2.2, step 1). */
function schedule(words: number, to: number): Code {
  const load = (word: number): Code => v128Load(at(words + word), SCAN.offset)
  const term = localGet(SCAN.term)
  const sigma1 = [load(14), localSet(SCAN.term), xor(rotr(term, 17), rotr(term, 19), shr(term, 10))]
  const sigma0 = [load(1), localSet(SCAN.term), xor(rotr(term, 7), rotr(term, 18), shr(term, 3))]
  const word = [sigma1, sigma0, I32X4.add, load(9), I32X4.add, load(0), I32X4.add]
  return repeated(to - 16, 1, v128Store(at(words + 16), word, SCAN.offset))
}

/** Runs rounds of a compression on the locals of the state, without the last addition. */
function rounds(words: number, { from, to }: { from: number; to: number }): Code {
  const singly = (to - from) % STATE.length
  const run = (start: number, count: number, offset?: number): Code =>
    Array.from({ length: count }, (_, index) =>
      round(rolesAfter(start - from + index), {
        word: v128Load(at(words + start + index), offset),
        constant: v128Load(at(MEMORY.constants + start + index), offset),
      }),
    )
  // After eight rounds, each local has its first role again.
  const body = run(from + singly, STATE.length, SCAN.offset)
  return [run(from, singly), repeated(to - from - singly, STATE.length, body)]
}

/** The locals of a to h after a number of rounds: a round changes two of them, and shifts all roles. */
function rolesAfter(count: number): number[] {
  const shift = STATE.length - (count % STATE.length)
  return [...STATE.slice(shift), ...STATE.slice(0, shift)]
}

/** One round of the 64 (FIPS 180-4, 6.2.2, step 3): the locals of d and h become those of e and a. */
function round(roles: readonly number[], { word, constant }: { word: Code; constant: Code }): Code {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = roles.map(localGet)
  const ch = xor(g, [e, xor(f, g), I32X4.and])
  const majority = xor([a, b, I32X4.and], [c, xor(a, b), I32X4.and])
  const term = localGet(SCAN.term)
  return [
    [sum(h, constant, word, ch, xor(rotr(e, 6), rotr(e, 11), rotr(e, 25))), localSet(SCAN.term)],
    [sum(d, term), localSet(roles[3] ?? 0)],
    [sum(term, majority, xor(rotr(a, 2), rotr(a, 13), rotr(a, 22))), localSet(roles[7] ?? 0)],
  ]
}

/** Runs a body with the offset advanced by `step` vectors each time, until `count` vectors are passed. */
function repeated(count: number, step: number, body: Code): Code {
  const offset = localGet(SCAN.offset)
  return [
    [i32Const(0), localSet(SCAN.offset)],
    loop([
      body,
      [offset, i32Const(at(step)), I32.add, localSet(SCAN.offset)],
      [offset, i32Const(at(count)), I32.isBelow, branchIf(0)],
    ]),
  ]
}

/** The address of a vector. */
const at = (vector: number): number => 4 * LANES * vector

const splat = (value: number): Code => v128Const(value, value, value, value)
const joined = (parts: readonly Code[], operation: Code): Code =>
  parts.reduce((before, part) => [before, part, operation])
const xor = (...parts: Code[]): Code => joined(parts, I32X4.xor)
const sum = (...parts: Code[]): Code => joined(parts, I32X4.add)
const shr = (value: Code, count: number): Code => [value, i32Const(count), I32X4.shr]
/** Rotated right, by two shifts: vectors have no such instruction. */
const rotr = (value: Code, count: number): Code => [
  shr(value, count),
  [value, i32Const(32 - count), I32X4.shl],
  I32X4.or,
]
