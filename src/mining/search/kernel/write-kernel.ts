import { INITIAL_STATE, ROUND_CONSTANTS } from '../../../client/sha256-rounds.js'
import { FIXED_WORDS } from '../plain-kernel.js'
import { always, StagedCode, type StagedValue, VECTOR_SIZE } from './staged-code.js'
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
} from './wasm-code.js'

/** How many nonces the kernel tries at once. */
export const LANES = 4

/** The bits of a message of 55 bytes, the longest that leaves room for the padding in one block. */
const MESSAGE_BITS = 55 * 8
const DIGEST_BITS = 256
/** The first bit of the padding is set. */
const PADDING = 0x80000000

/** The memory layout: what the caller provides, then what `prepare` computes, then tables. */
export const MEMORY = { fixedWords: 0, mask: 4 * FIXED_WORDS } as const
const FREE = 64
const TABLES = 16 * 1024
/** Bytes of a table of 64 vectors. */
const TABLE_SIZE = 64 * VECTOR_SIZE
const CONSTANTS_TABLE = TABLES
const FIRST_WORDS = TABLES + TABLE_SIZE
const SECOND_WORDS = TABLES + 2 * TABLE_SIZE

/** Locals of `scan`: its two parameters, then one more number, then vectors. */
const SCAN = { counter: 0, end: 1, loopCounter: 2, counterWord: 3 } as const

/**
 * Writes the kernel: a WebAssembly module with the functions
 *
 * - `prepare()`: precomputes what depends only on the 13 words at {@link MEMORY}`.fixedWords`. Call it when they, or the
 *   mask, have changed;
 * - `scan(counter, end)`: hashes the messages with the counters from `counter` to `end`, both multiples of {@link LANES},
 *   and returns the first of four counters for which one of the hashes has no bit of {@link MEMORY}`.mask` in its last
 *   word; or `end`.
 *
 * A counter has 24 bits: three bytes of the word after the fixed ones, whose fourth byte is the start of the padding.
 */
export function writeKernel(): Uint8Array<ArrayBuffer> {
  const code = new StagedCode({
    locals: { prepare: 0, scan: SCAN.counterWord + 1 },
    loopCounter: SCAN.loopCounter,
    free: FREE,
  })
  const isCandidate = writeHashes(code)
  const { prepare, scan } = code.statements
  const locals = code.locals
  return encodeModule([
    { name: 'prepare', parameters: 0, results: 0, locals: { i32: locals.prepare, v128: 0 }, body: prepare },
    {
      name: 'scan',
      parameters: 2,
      results: 1,
      locals: { i32: 1, v128: locals.scan - SCAN.counterWord },
      body: [
        setCounterWord(),
        block(loop([scan, isCandidate, branchIf(1), nextFour(), branchIf(0)])),
        localGet(SCAN.counter),
      ],
    },
  ])
}

/** Both hashes of four messages, and code that checks whether one of them is a candidate. */
function writeHashes(code: StagedCode): Code {
  storeRoundConstants(code, CONSTANTS_TABLE)
  const fixed = Array.from({ length: FIXED_WORDS }, (_, index) => code.given(MEMORY.fixedWords + 4 * index))
  const counterWord: StagedValue = { known: 'scan', code: localGet(SCAN.counterWord) }
  const first = writeCompression(code, {
    words: [...fixed, counterWord, always(0), always(MESSAGE_BITS)],
    // Words up to the 32nd depend at least in part on fixed ones.
    singly: 32,
    rounds: 64,
    tables: { words: FIRST_WORDS, roundConstants: CONSTANTS_TABLE },
  })
  const digest = first.map((word, index) => code.keep(code.add(word, always(INITIAL_STATE[index] ?? 0))))
  const zeros = Array.from({ length: 6 }, () => always(0))
  // The last word of the second digest is h after 64 rounds: e after 61, shifted three times.
  const [, , , , e = always(0)] = writeCompression(code, {
    words: [...digest, always(PADDING), ...zeros, always(DIGEST_BITS)],
    singly: 16,
    rounds: 61,
    tables: { words: SECOND_WORDS, roundConstants: CONSTANTS_TABLE },
  })
  const lastWord = code.add(e, always(INITIAL_STATE[7] ?? 0))
  const refused = code.keep(code.and(lastWord, code.given(MEMORY.mask)))
  return refused.known === 'scan' ? [refused.code, I32X4.allTrue, I32.isZero] : []
}

/** Sets the counter word of four messages, starting with the counter of the first. */
function setCounterWord(): Code {
  const counters = [localGet(SCAN.counter), I32X4.splat, v128Const(0, 1, 2, 3), I32X4.add]
  const padding = PADDING >>> 24
  return [
    [counters, i32Const(8), I32X4.shl],
    [v128Const(padding, padding, padding, padding), I32X4.or],
    localSet(SCAN.counterWord),
  ]
}

/** Advances by four counters, and leaves whether any are left. */
function nextFour(): Code {
  const step = LANES << 8
  return [
    [localGet(SCAN.counterWord), v128Const(step, step, step, step), I32X4.add, localSet(SCAN.counterWord)],
    [localGet(SCAN.counter), i32Const(LANES), I32.add, localSet(SCAN.counter)],
    [localGet(SCAN.counter), localGet(SCAN.end), I32.isBelow],
  ]
}

/** Rounds in one loop iteration. Few, so that the loop fits in a processor's cache of decoded instructions. */
const ROUNDS_PER_ITERATION = 2

/** Addresses of the schedule's words, 64 vectors, and of the round constants. */
interface Tables {
  words: number
  roundConstants: number
}

function storeRoundConstants(code: StagedCode, table: number): void {
  for (const [round, constant] of ROUND_CONSTANTS.entries()) {
    code.store(table + VECTOR_SIZE * round, always(constant))
  }
}

/**
 * Writes the compression of a message's only block (FIPS 180-4, 6.2.2), without the last addition.
 *
 * @param block.words The 16 words of the block.
 * @param block.singly How many rounds are unrolled, at least 16: worthwhile as long as some of their words are known before the
 * loop. The other rounds are in loops, except the last few that do not fill one.
 * @param block.rounds The number of rounds: 64, or fewer if only part of the state is needed.
 * @returns the state, a to h.
 */
function writeCompression(
  code: StagedCode,
  block: { words: readonly StagedValue[]; singly: number; rounds: number; tables: Tables },
): readonly StagedValue[] {
  const { singly, rounds, tables } = block
  const words = [...block.words]
  let state: readonly StagedValue[] = initialState(code)
  for (let t = 0; t < singly; t++) {
    words[t] ??= code.keep(scheduled(code, (back) => at(words, t - back)))
    state = round(code, { state, word: at(words, t), constant: always(at(ROUND_CONSTANTS, t)) })
  }
  // The later words depend on these.
  for (let t = singly - 16; t < singly; t++) code.store(tables.words + VECTOR_SIZE * t, at(words, t))

  /** Round `t`; its word is computed from words in memory. In a loop, `t` is that of the first iteration. */
  const further = (t: number, before: readonly StagedValue[], options: { inRepeat?: boolean }) => {
    const address = tables.words + VECTOR_SIZE * t
    const earlier = (back: number) => code.keep(code.load(address - VECTOR_SIZE * back, options))
    const word = code.keep(scheduled(code, earlier))
    code.store(address, word, options)
    const constant = code.load(tables.roundConstants + VECTOR_SIZE * t, options)
    return round(code, { state: before, word, constant })
  }
  const times = Math.floor((rounds - singly) / ROUNDS_PER_ITERATION)
  state = code.repeat({
    times,
    stride: VECTOR_SIZE * ROUNDS_PER_ITERATION,
    state,
    body: (start) => {
      let after = start
      for (let t = 0; t < ROUNDS_PER_ITERATION; t++) after = further(singly + t, after, { inRepeat: true })
      return after
    },
  })
  for (let t = singly + times * ROUNDS_PER_ITERATION; t < rounds; t++) state = further(t, state, {})
  return state.slice(0, 8)
}

/** a to h, followed by b xor c, which each round gets from the previous one. */
function initialState(code: StagedCode): StagedValue[] {
  const state = INITIAL_STATE.map(always)
  return [...state, code.xor(at(state, 1), at(state, 2))]
}

/** One round of the 64. */
function round(
  code: StagedCode,
  step: { state: readonly StagedValue[]; word: StagedValue; constant: StagedValue },
): readonly StagedValue[] {
  const [a, b, c, d, e, f, g, h, bXorC] = step.state as Nine
  const ch = code.xor(g, code.and(e, code.xor(f, g)))
  const t1 = code.keep(code.add(h, step.constant, step.word, ch, bigSigma1(code, e)))
  // Where a and b agree, that is the majority; elsewhere it is c, and b xor c says whether that equals b.
  const aXorB = code.keep(code.xor(a, b))
  const majority = code.xor(b, code.and(aXorB, bXorC))
  const nextA = code.keep(code.add(t1, majority, bigSigma0(code, a)))
  const nextE = code.keep(code.add(d, t1))
  return [nextA, a, b, c, nextE, e, f, g, aXorB]
}
type Nine = [
  StagedValue,
  StagedValue,
  StagedValue,
  StagedValue,
  StagedValue,
  StagedValue,
  StagedValue,
  StagedValue,
  StagedValue,
]

/** A word of the schedule, from those 16, 15, 7 and 2 places back. */
function scheduled(code: StagedCode, earlier: (back: number) => StagedValue): StagedValue {
  return code.add(earlier(16), earlier(7), sigma0(code, earlier(15)), sigma1(code, earlier(2)))
}

const bigSigma0 = (code: StagedCode, x: StagedValue): StagedValue =>
  code.xor(code.rotr(x, 2), code.rotr(x, 13), code.rotr(x, 22))
const bigSigma1 = (code: StagedCode, x: StagedValue): StagedValue =>
  code.xor(code.rotr(x, 6), code.rotr(x, 11), code.rotr(x, 25))
const sigma0 = (code: StagedCode, x: StagedValue): StagedValue =>
  code.xor(code.rotr(x, 7), code.rotr(x, 18), code.shr(x, 3))
const sigma1 = (code: StagedCode, x: StagedValue): StagedValue =>
  code.xor(code.rotr(x, 17), code.rotr(x, 19), code.shr(x, 10))

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index]
  if (item === undefined) throw new RangeError(`nothing at ${index}`)
  return item
}
