import { hash } from 'node:crypto'
import { Hash } from '@bsv/sdk'
import { type SearchOptions, searchNonce } from '../src/mining/search/search-nonce.js'
import { median, timed } from './support.js'

const ROUNDS = 7
/**
 * How long a search is not measured, until its workers have started and their code is compiled, and how long it is, in
 * milliseconds.
 */
const WARM_UP = 1000
const MEASURED = 1500
const LOOP = { node: 300_000, sdk: 60_000 }
/** The difficulty of the live tree. */
const DIFFICULTY = 22

/**
 * Hashes a second of a search in one worker, alternating with loops over messages of the same length: with Node's own
 * `crypto.hash`, twice, and with the SDK's `Hash.hash256`. Then two workers compared with one, and the plain kernel.
 */
export async function* search(): AsyncGenerator<string> {
  const rates = { one: [], two: [], plain: [], node: [], sdk: [] } as Record<string, number[]>
  const ratios = { node: [], sdk: [], two: [] } as Record<string, number[]>
  for (let round = 0; round < ROUNDS; round++) {
    const one = await rateOfSearch({ workers: 1 })
    const two = await rateOfSearch({ workers: 2 })
    const plain = await rateOfSearch({ workers: 1, kernel: 'plain' })
    // Node's quickest way: the first hash as bytes, the second as text.
    const node = await rateOfLoop(LOOP.node, (message) => hash('sha256', hash('sha256', message, 'buffer')))
    const sdk = await rateOfLoop(LOOP.sdk, (message) => Hash.hash256(message))
    for (const [name, rate] of Object.entries({ one, two, plain, node, sdk })) rates[name]?.push(rate)
    for (const [name, ratio] of Object.entries({ node: one / node, sdk: one / sdk, two: two / one })) {
      ratios[name]?.push(ratio)
    }
  }
  const rate = (name: string): number => median(rates[name] ?? [])
  const ratio = (name: string): string => median(ratios[name] ?? []).toFixed(1)
  const million = (name: string): string => (rate(name) / 1e6).toFixed(2)
  yield `one worker ${million('one')} million hashes a second, crypto.hash twice ${million('node')}, Hash.hash256 ${million('sdk')} (medians of ${ROUNDS})`
  yield `to crypto.hash twice: ratio ${ratio('node')} (wanted: at least 10)`
  yield `to Hash.hash256: ratio ${ratio('sdk')} (wanted: at least 50)`
  yield `two workers ${million('two')} million: ratio ${median(ratios.two ?? []).toFixed(2)} to one (wanted: at least 1.8)`
  yield `the plain kernel ${million('plain')} million: ratio ${(rate('plain') / rate('node')).toFixed(2)} to crypto.hash twice`
  yield 'nonces start with 8 given bytes, as in a tree of version 2; in one of version 1 those are random, and the work is the same'
  yield `${DIFFICULTY} bits take one worker ${(2 ** DIFFICULTY / rate('one')).toFixed(1)} s on average, two ${(2 ** DIFFICULTY / rate('two')).toFixed(1)} s`
}

/** The rate of a search that finds nothing until it is cancelled. */
async function rateOfSearch(options: Pick<SearchOptions, 'workers' | 'kernel'>): Promise<number> {
  const controller = new AbortController()
  const start = performance.now()
  let from: { time: number; hashes: number } | undefined
  let rate = Number.NaN
  const onProgress = ({ hashes }: { hashes: number }): void => {
    const time = performance.now()
    if (time - start < WARM_UP) return
    from ??= { time, hashes }
    if (time - from.time < MEASURED) return
    rate = ((hashes - from.hashes) / (time - from.time)) * 1000
    controller.abort()
  }
  const { signal } = controller
  // As in a tree that binds work to its owner: the nonces start with eight given bytes.
  const noncePrefix = new Uint8Array(8).fill(0xa5)
  const task = { seed: new Uint8Array(32), character: 'a', difficulty: 64, noncePrefix }
  await searchNonce({ ...task, ...options, signal, onProgress }).catch((cause: unknown) => {
    if (!signal.aborted) throw cause
  })
  return rate
}

async function rateOfLoop(count: number, work: (message: Uint8Array) => unknown): Promise<number> {
  const message = new Uint8Array(55)
  const counter = new DataView(message.buffer, 51)
  const time = await timed(() => {
    for (let nonce = 0; nonce < count; nonce++) {
      counter.setUint32(0, nonce)
      work(message)
    }
  })
  return (count / time) * 1000
}
