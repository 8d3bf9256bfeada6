/** The initial state of SHA-256: 32 bits of the fractional parts of the square roots of the first 8 primes (FIPS 180-4, 5.3.3). */
export const INITIAL_STATE = fractions(8, Math.sqrt)

/** The round constants: the same for the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
export const ROUND_CONSTANTS = fractions(64, Math.cbrt)

const K = Int32Array.from(ROUND_CONSTANTS)

/** Computes words 16 to 63 of a message schedule (FIPS 180-4, 6.2.2, step 1). */
export function extendSchedule(words: Int32Array): void {
  for (let t = 16; t < 64; t++) {
    const w2 = words[t - 2] as number
    const w15 = words[t - 15] as number
    const sigma1 = rotr(w2, 17) ^ rotr(w2, 19) ^ (w2 >>> 10)
    const sigma0 = rotr(w15, 7) ^ rotr(w15, 18) ^ (w15 >>> 3)
    words[t] = (sigma1 + (words[t - 7] as number) + sigma0 + (words[t - 16] as number)) | 0
  }
}

/** Runs some of the rounds on the first eight numbers of `state` (FIPS 180-4, 6.2.2, step 3). */
export function runRounds(rounds: { state: Int32Array; words: Int32Array; from: number; to: number }): void {
  const { state, words, from, to } = rounds
  let a = state[0] as number
  let b = state[1] as number
  let c = state[2] as number
  let d = state[3] as number
  let e = state[4] as number
  let f = state[5] as number
  let g = state[6] as number
  let h = state[7] as number
  for (let t = from; t < to; t++) {
    const sum1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)
    const t1 = (h + sum1 + (g ^ (e & (f ^ g))) + (K[t] as number) + (words[t] as number)) | 0
    const sum0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)
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
  state[0] = a
  state[1] = b
  state[2] = c
  state[3] = d
  state[4] = e
  state[5] = f
  state[6] = g
  state[7] = h
}

/** Completes a compression (FIPS 180-4, 6.2.2, step 4). */
export function addState(state: Int32Array, before: Int32Array): void {
  for (let i = 0; i < 8; i++) state[i] = (state[i] as number) + (before[i] as number)
}

function rotr(x: number, count: number): number {
  return (x >>> count) | (x << (32 - count))
}

function fractions(count: number, root: (prime: number) => number): readonly number[] {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  return primes.map((prime) => Math.floor((root(prime) % 1) * 2 ** 32))
}
