import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { concatBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, p2pkh } from '../test/support/protocol/fake-chain.js'
import { memoryOf, withProcess } from './load.js'
import { configFor, SILENT } from './support.js'

const REQUESTS = 1_000_000
const ROUNDS = 10
const CONNECTIONS = 16

const TRANSACTIONS = 100
const OUTPUTS = 1000

/**
 * The memory of a server while it answers a million requests for content and metadata of 100,000 ordinals: after every
 * tenth of them, and the last against the second, when what is kept in memory is full.
 */
export async function* memory(): AsyncGenerator<string> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  try {
    const outpoints = await fill(folder)
    yield* withProcess('./memory-server.js', [folder], async function* (url: string, server) {
      const sizes: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        await ask(url, { outpoints, round })
        sizes.push(await memoryOf(server))
      }
      const shown = sizes.map((size) => (size / 2 ** 20).toFixed(0)).join(', ')
      yield `memory after every ${REQUESTS / ROUNDS} requests over ${outpoints.length} outpoints: ${shown} MiB`
      const [, early = Number.NaN] = sizes
      yield `the last is ${((sizes.at(-1) ?? Number.NaN) / early).toFixed(2)} times the second (wanted: flat, so about 1.0)`
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Fills a store with 100,000 ordinals, and gives their outpoints.
 *
 * @param isShort Whether they have a few bytes of content and no MAP, which takes a quarter of the time.
 */
export async function fill(folder: string, { isShort = false } = {}): Promise<string[]> {
  const chain = new FakeChain()
  const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
  const outpoints: string[] = []
  for (let index = 0; index < TRANSACTIONS; index++) {
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: OUTPUTS, lockingScript: p2pkh(0) }] })
    const outputs = Array.from({ length: OUTPUTS }, (_, vout) => {
      const body = utf8(`${index} ${vout} `.repeat(isShort ? 1 : 100))
      const inscription = inscriptionScript({ contentType: 'text/plain', body })
      const map = { collection: String(index), number: String(vout) }
      const lockingScript = isShort ? inscription : concatBytes(inscription, mapTail(map))
      return { satoshis: 1, lockingScript }
    })
    const transaction = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
    const beef = beefOf(transaction, { with: [coin] })
    await node.overlay.engine.submit({ beef, topics: [TOPICS.ordinals] })
    for (let vout = 0; vout < OUTPUTS; vout++) outpoints.push(transaction.outpoint(vout))
  }
  await node.close()
  return outpoints
}

/** A tenth of the requests: every outpoint once, each by one of four paths, another one in the next round. */
async function ask(url: string, { outpoints, round }: { outpoints: string[]; round: number }): Promise<void> {
  let asked = 0
  const next = (): string => {
    const outpoint = outpoints[asked % outpoints.length]
    const forms = [
      `/content/${outpoint}`,
      `/content/${outpoint}:-1`,
      `/svc/gateway/metadata/${outpoint}`,
      `/svc/gateway/metadata/${outpoint}:0`,
    ]
    return forms[(asked++ + round) % forms.length] ?? '/'
  }
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    amount: REQUESTS / ROUNDS,
    requests: [{ setupRequest: (request) => ({ ...request, path: next() }) }],
  })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${result.non2xx} wrong answers, ${result.errors} errors`)
}
