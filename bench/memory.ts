import autocannon from 'autocannon'
import { concatBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, p2pkh } from '../test/support/protocol/fake-chain.js'
import { usageOf, withProcess } from './load.js'
import { configFor, inFolder, LIVE_CODE_SIZE, SILENT } from './support.js'

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
  yield* inFolder(async function* (folder) {
    const outpoints = await fill(folder)
    yield* withProcess('./started-server.js', [folder], async function* (url: string, server) {
      const sizes: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        await ask(url, { outpoints, round })
        sizes.push((await usageOf(server)).memory)
      }
      const shown = sizes.map((size) => (size / 2 ** 20).toFixed(0)).join(', ')
      yield `memory after every ${REQUESTS / ROUNDS} requests over ${outpoints.length} outpoints: ${shown} MiB`
      const [, early = Number.NaN] = sizes
      yield `the last is ${((sizes.at(-1) ?? Number.NaN) / early).toFixed(2)} times the second (wanted: flat, so about 1.0)`
    })
  })
}

/** Fills a store with 100,000 ordinals, and gives their outpoints. */
async function fill(folder: string): Promise<string[]> {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
  const outpoints: string[] = []
  for (let index = 0; index < TRANSACTIONS; index++) {
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: OUTPUTS, lockingScript: p2pkh(0) }] })
    const outputs = Array.from({ length: OUTPUTS }, (_, vout) => {
      const body = utf8(`${index} ${vout} `.repeat(100))
      const inscription = inscriptionScript({ contentType: 'text/plain', body })
      const map = { collection: String(index), number: String(vout) }
      return { satoshis: 1, lockingScript: concatBytes(inscription, mapTail(map)) }
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
