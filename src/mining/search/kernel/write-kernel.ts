import { INITIAL_STATE } from '../sha256-constants.js'
import { storeRoundConstants, TABLE_SIZE, writeCompression } from './sha256-code.js'
import { always, StagedCode, type Value } from './staged-code.js'
import {
  block,
  branchIf,
  type Code,
  I32,
  I32X4,
  i32Const,
  localGet,
  localSet,
  loop,
  v128Const,
} from './wasm-code.js'
import { encodeModule } from './wasm-module.js'

/** How many nonces the kernel looks at together. */
export const LANES = 4

/** Words of the message's block that hold for all nonces of a scan; the counter stands in the word behind them. */
export const FIXED_WORDS = 13

/** The bits of a message of 55 bytes: the longest that leaves room in its block for the padding. */
const MESSAGE_BITS = 55 * 8
const DIGEST_BITS = 256
/** The padding starts with a bit that is set. */
const PADDING = 0x80000000

/** In the memory: what the caller gives, then what `prepare` leaves, then tables. */
export const MEMORY = { fixedWords: 0, mask: 4 * FIXED_WORDS } as const
const FREE = 64
const TABLES = 16 * 1024
const [ROUND_CONSTANTS, FIRST_WORDS, SECOND_WORDS] = [TABLES, TABLES + TABLE_SIZE, TABLES + 2 * TABLE_SIZE]

/** Locals of `scan`: its two parameters, then one number more, then vectors. */
const SCAN = { counter: 0, end: 1, loopCounter: 2, counterWord: 3 } as const

/**
 * Writes the kernel: a module of WebAssembly with the functions
 *
 * - `prepare()`: works out what follows from the 13 words at {@link MEMORY}`.fixedWords` alone. To be called when they,
 *   or the mask, have changed;
 * - `scan(counter, end)`: hashes the messages with the counters from `counter` to `end`, both multiples of
 *   {@link LANES}, and gives the first of four counters where one of the hashes has no bit of {@link MEMORY}`.mask` in
 *   its last word; or `end`.
 *
 * A counter has 24 bits: three bytes of the word behind the fixed ones, whose fourth is the start of the padding.
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

/** Both hashes of four messages, and code for whether one of them may do. */
function writeHashes(code: StagedCode): Code {
  storeRoundConstants(code, ROUND_CONSTANTS)
  const fixed = Array.from({ length: FIXED_WORDS }, (_, index) => code.given(MEMORY.fixedWords + 4 * index))
  const counterWord: Value = { known: 'scan', code: localGet(SCAN.counterWord) }
  const first = writeCompression(code, {
    words: [...fixed, counterWord, always(0), always(MESSAGE_BITS)],
    // Words up to the 32nd are made of fixed ones, at least in part.
    singly: 32,
    rounds: 64,
    tables: { words: FIRST_WORDS, roundConstants: ROUND_CONSTANTS },
  })
  const digest = first.map((word, index) => code.keep(code.add(word, always(INITIAL_STATE[index] ?? 0))))
  const zeros = Array.from({ length: 6 }, () => always(0))
  // The last word of the second digest is h after 64 rounds: e after 61, moved on three times.
  const [, , , , e = always(0)] = writeCompression(code, {
    words: [...digest, always(PADDING), ...zeros, always(DIGEST_BITS)],
    singly: 16,
    rounds: 61,
    tables: { words: SECOND_WORDS, roundConstants: ROUND_CONSTANTS },
  })
  const lastWord = code.add(e, always(INITIAL_STATE[7] ?? 0))
  const refused = code.keep(code.and(lastWord, code.given(MEMORY.mask)))
  return refused.known === 'scan' ? [refused.code, I32X4.allTrue, I32.isZero] : []
}

/** The word of four messages that holds the counter, from the first of them. */
function setCounterWord(): Code {
  const counters = [localGet(SCAN.counter), I32X4.splat, v128Const(0, 1, 2, 3), I32X4.add]
  const padding = PADDING >>> 24
  return [
    [counters, i32Const(8), I32X4.shl],
    [v128Const(padding, padding, padding, padding), I32X4.or],
    localSet(SCAN.counterWord),
  ]
}

/** Moves on by four counters, and leaves whether there are any left. */
function nextFour(): Code {
  const step = LANES << 8
  return [
    [localGet(SCAN.counterWord), v128Const(step, step, step, step), I32X4.add, localSet(SCAN.counterWord)],
    [localGet(SCAN.counter), i32Const(LANES), I32.add, localSet(SCAN.counter)],
    [localGet(SCAN.counter), localGet(SCAN.end), I32.isBelow],
  ]
}
