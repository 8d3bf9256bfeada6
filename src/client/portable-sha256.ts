import { addState, extendSchedule, INITIAL_STATE, runRounds } from './sha256-rounds.js'

const START = Int32Array.from(INITIAL_STATE)

const BLOCK = 64
/** Room for the bit that follows a message, and for its length. */
const PADDING = 9
/** The message schedule of the current block, and the state during its rounds. */
const words = new Int32Array(64)
const rounds = new Int32Array(8)

/**
 * SHA-256 for hosts without a synchronous one, such as browsers. About three times as fast as the SDK's, which matters because
 * hashing decides how long a check takes.
 */
export function portableSha256(bytes: Uint8Array): Uint8Array {
  const { length } = bytes
  const state = START.slice()
  const whole = length - (length % BLOCK)
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  for (let at = 0; at < whole; at += BLOCK) compress(state, view, at)
  const tail = new Uint8Array(length - whole + PADDING > BLOCK ? 2 * BLOCK : BLOCK)
  tail.set(bytes.subarray(whole))
  tail[length - whole] = 0x80
  const end = new DataView(tail.buffer)
  // The length in bits, as a number of 64 bits.
  end.setUint32(tail.length - 8, Math.floor(length / 2 ** 29))
  end.setUint32(tail.length - 4, length << 3)
  for (let at = 0; at < tail.length; at += BLOCK) compress(state, end, at)
  const digest = new DataView(new ArrayBuffer(32))
  for (let i = 0; i < 8; i++) digest.setInt32(4 * i, state[i] ?? 0)
  return new Uint8Array(digest.buffer)
}

/** Adds a block to a state (FIPS 180-4, 6.2.2). */
function compress(state: Int32Array, view: DataView, at: number): void {
  for (let t = 0; t < 16; t++) words[t] = view.getInt32(at + 4 * t)
  extendSchedule(words)
  rounds.set(state)
  runRounds({ state: rounds, words, from: 0, to: 64 })
  addState(state, rounds)
}
