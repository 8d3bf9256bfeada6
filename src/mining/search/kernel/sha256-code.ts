import { INITIAL_STATE, ROUND_CONSTANTS } from '../sha256-constants.js'
import { always, type StagedCode, type Value, VECTOR_SIZE } from './staged-code.js'

/** Rounds in one turn of a loop. Few, so that the loop stays within what a processor keeps of decoded instructions. */
const ROUNDS_A_TURN = 2

/** Where the words of the schedule stand in the memory, 64 vectors, and those of all round constants. */
export interface Tables {
  words: number
  roundConstants: number
}
/** Bytes of such a table. */
export const TABLE_SIZE = 64 * VECTOR_SIZE

/** Leaves the round constants in the memory. */
export function storeRoundConstants(code: StagedCode, table: number): void {
  for (const [round, constant] of ROUND_CONSTANTS.entries()) {
    code.store(table + VECTOR_SIZE * round, always(constant))
  }
}

/**
 * Writes the compression of the one block of a message (FIPS 180-4, 6.2.2), before the last addition.
 *
 * @param block.words The 16 words of the block.
 * @param block.singly How many rounds are written one by one, 16 at least: worth it as long as some of their words are
 * known before the loop. Behind them stand loops, but for the last few that fill none.
 * @param block.rounds How many there are in all: 64, or fewer where not all of the state is wanted.
 * @returns the state, a to h.
 */
export function writeCompression(
  code: StagedCode,
  block: { words: readonly Value[]; singly: number; rounds: number; tables: Tables },
): readonly Value[] {
  const { singly, rounds, tables } = block
  const words = [...block.words]
  let state: readonly Value[] = initialState(code)
  for (let t = 0; t < singly; t++) {
    words[t] ??= code.keep(scheduled(code, (back) => at(words, t - back)))
    state = round(code, { state, word: at(words, t), constant: always(at(ROUND_CONSTANTS, t)) })
  }
  // All words that those to come are made of.
  for (let t = singly - 16; t < singly; t++) code.store(tables.words + VECTOR_SIZE * t, at(words, t))

  /** The round `t`, its word made of those in the memory; in a loop, the round `t` of its first turn. */
  const further = (t: number, before: readonly Value[], options: { inRepeat?: boolean }) => {
    const address = tables.words + VECTOR_SIZE * t
    const earlier = (back: number) => code.keep(code.load(address - VECTOR_SIZE * back, options))
    const word = code.keep(scheduled(code, earlier))
    code.store(address, word, options)
    const constant = code.load(tables.roundConstants + VECTOR_SIZE * t, options)
    return round(code, { state: before, word, constant })
  }
  const turns = Math.floor((rounds - singly) / ROUNDS_A_TURN)
  state = code.repeat({
    turns,
    stride: VECTOR_SIZE * ROUNDS_A_TURN,
    state,
    turn: (start) => {
      let turned = start
      for (let t = 0; t < ROUNDS_A_TURN; t++) turned = further(singly + t, turned, { inRepeat: true })
      return turned
    },
  })
  for (let t = singly + turns * ROUNDS_A_TURN; t < rounds; t++) state = further(t, state, {})
  return state.slice(0, 8)
}

/** a to h, and behind them b xor c, which every round has from the one before. */
function initialState(code: StagedCode): Value[] {
  const state = INITIAL_STATE.map(always)
  return [...state, code.xor(at(state, 1), at(state, 2))]
}

/** One round of the 64. */
function round(
  code: StagedCode,
  step: { state: readonly Value[]; word: Value; constant: Value },
): readonly Value[] {
  const [a, b, c, d, e, f, g, h, bXorC] = step.state as Nine
  const ch = code.xor(g, code.and(e, code.xor(f, g)))
  const t1 = code.keep(code.add(h, step.constant, step.word, ch, bigSigma1(code, e)))
  // Where a and b agree, the majority is theirs; elsewhere it is c's, and b xor c says whether that is b.
  const aXorB = code.keep(code.xor(a, b))
  const majority = code.xor(b, code.and(aXorB, bXorC))
  const nextA = code.keep(code.add(t1, majority, bigSigma0(code, a)))
  const nextE = code.keep(code.add(d, t1))
  return [nextA, a, b, c, nextE, e, f, g, aXorB]
}
type Nine = [Value, Value, Value, Value, Value, Value, Value, Value, Value]

/** A word of the schedule, of those that stand 16, 15, 7 and 2 places back. */
function scheduled(code: StagedCode, earlier: (back: number) => Value): Value {
  return code.add(earlier(16), earlier(7), sigma0(code, earlier(15)), sigma1(code, earlier(2)))
}

const bigSigma0 = (code: StagedCode, x: Value): Value =>
  code.xor(code.rotr(x, 2), code.rotr(x, 13), code.rotr(x, 22))
const bigSigma1 = (code: StagedCode, x: Value): Value =>
  code.xor(code.rotr(x, 6), code.rotr(x, 11), code.rotr(x, 25))
const sigma0 = (code: StagedCode, x: Value): Value =>
  code.xor(code.rotr(x, 7), code.rotr(x, 18), code.shr(x, 3))
const sigma1 = (code: StagedCode, x: Value): Value =>
  code.xor(code.rotr(x, 17), code.rotr(x, 19), code.shr(x, 10))

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index]
  if (item === undefined) throw new RangeError(`nothing at ${index}`)
  return item
}
