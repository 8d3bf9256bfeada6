import { hash256, minimalPush, push, sha256 } from './hand-written-mint.js'

/** What a formula works on: bytes, or a number such as the length of some. */
type Value = Buffer | number

const FUNCTIONS: Record<string, (...given: Value[]) => Value> = {
  sha256: (x) => sha256(bytes(x)),
  hash256: (x) => hash256(bytes(x)),
  push: (x) => push(bytes(x)),
  minimalPush: (x) => minimalPush(bytes(x)),
  first: (n, x) => bytes(x).subarray(0, Number(n)),
  length: (x) => bytes(x).length,
  u32: (n) => {
    const written = Buffer.alloc(4)
    written.writeUInt32LE(Number(n))
    return written
  },
  number: (n) => {
    const written: number[] = []
    for (let left = Number(n); left > 0; left >>= 8) written.push(left & 0xff)
    return Buffer.from((written.at(-1) ?? 0) < 0x80 ? written : [...written, 0])
  },
}

function bytes(value: Value | undefined): Buffer {
  if (!Buffer.isBuffer(value)) throw new Error(`not bytes: ${value}`)
  return value
}

/** Computes a formula of `/deployment.json`, in the notation that it explains there. */
export function compute(formula: string, values: Readonly<Record<string, Buffer>>): Buffer {
  const words = formula.match(/\|\||0x[0-9a-f]{2}|"[^"]*"|[A-Za-z_]\w*|\d+|[(),]/g) ?? []
  if (words.join('') !== formula.replaceAll(' ', '')) throw new Error(`cannot read ${formula}`)
  let at = 0
  const take = (expected: string): void => {
    if (words[at++] !== expected) throw new Error(`expected ${expected} in ${formula}`)
  }
  const all = (): Value => {
    let value = one()
    while (words[at] === '||') {
      at++
      value = Buffer.concat([bytes(value), bytes(one())])
    }
    return value
  }
  const one = (): Value => {
    const word = words[at++] ?? ''
    if (word.startsWith('0x')) return Buffer.from(word.slice(2), 'hex')
    if (word.startsWith('"')) return Buffer.from(word.slice(1, -1))
    if (/^\d/.test(word)) return Number(word)
    if (words[at] !== '(') return bytes(values[word])
    take('(')
    const given = [all()]
    while (words[at] === ',') {
      at++
      given.push(all())
    }
    take(')')
    const run = FUNCTIONS[word]
    if (run === undefined) throw new Error(`no function ${word}`)
    return run(...given)
  }
  const value = bytes(all())
  if (at !== words.length) throw new Error(`more than a formula: ${formula}`)
  return value
}
