import { encodeBeef } from '../../../../backend/src/graph/write-beef.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import type { AncestorsWorkerOptions } from '../../../../src/chain/ancestors/ancestors-worker.js'
import { HEIGHT, proven, workerOver } from '../../../support/follow/ancestors-world.js'
import { startJungleBus } from '../../../support/follow/junglebus.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { type Environment, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const servers = useServers()

const TOPICS = ['tm_ordinals']

/** An ordinal: the coin that pays for it, its inscription, and its transfers; `inscribed` ones are inscribed again. */
function ordinal(chain: FakeChain, steps: number, inscribed: (step: number) => boolean = () => false) {
  const coin = chain.spend({
    inputs: [chain.madeUpCoin()],
    outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }],
  })
  const transactions: FakeTransaction[] = []
  for (let step = 0; step < steps; step++) {
    const lockingScript =
      step === 0 || inscribed(step)
        ? inscriptionScript({ contentType: 'text/plain', body: utf8(`step ${step}`) })
        : p2pkh(step % 200)
    const inputs = [{ transaction: transactions[step - 1] ?? coin, vout: 0 }]
    transactions.push(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] }))
  }
  return { coin, transactions }
}

const SETTINGS = { CHAIN_TRACKER: 'scripts-only', FOLLOW_ORDINALS: 'none', CHAIN_SOURCE_RATE: '10000' }

async function follow(chain: FakeChain, env: Environment = {}) {
  const { url, service } = await startJungleBus()
  const server = await servers.start({
    ...treeOf(chain.deployment),
    ...{ ...SETTINGS, CHAIN_SOURCES: `junglebus=${url}` },
    ...env,
  })
  return { server, service }
}

const sequenceOf = async (server: TestServer, transaction: FakeTransaction, sequence: number) =>
  await server.ask(`/content/${transaction.outpoint(0)}:${sequence}`)

test('a tip brings its whole history of transfers and inscriptions, in batches', async () => {
  const chain = new FakeChain()
  const { server, service } = await follow(chain)
  const { coin, transactions } = ordinal(chain, 130, (step) => step === 129 || step % 7 === 0)
  const last = transactions[129]
  if (last === undefined) throw new Error('no ordinal')
  service.know(...[coin, ...transactions.slice(0, -1)].map(proven))
  await server.submit(beefOf(last, { height: HEIGHT }), TOPICS)
  const answer = await until(async () => {
    const found = await sequenceOf(server, last, -1)
    return found.status === 200 ? found : undefined
  })
  expect(answer.headers['x-ord-seq']).toBe('129')
  const own = new Set([coin, ...transactions].map(({ txid }) => txid))
  const asked = service.asked.filter(
    (path) => path.startsWith('/v1/transaction/get/') && own.has(path.split('/')[4] ?? ''),
  )
  expect(new Set(asked).size).toBe(asked.length)
  expect(asked.length).toBe(130)
})

test('without a source, what cannot be placed is not found', async () => {
  const chain = new FakeChain()
  const { server } = await follow(chain, { CHAIN_SOURCES: 'none' })
  const [origin] = ordinal(chain, 1).transactions
  if (origin === undefined) throw new Error('no ordinal')
  await server.submit(beefOf(origin, { height: HEIGHT }), TOPICS)
  const answer = await sequenceOf(server, origin, 0)
  expect(answer.json).toMatchObject({ code: 'NOT_FOUND' })
  expect(answer.headers['retry-after']).toBeUndefined()
})

/** A node that holds the tip of an ordinal, inscribed again, and nothing before it. */
async function withTip(steps: number, options: Partial<AncestorsWorkerOptions> = {}) {
  const chain = new FakeChain()
  const server = await servers.start({ ...treeOf(chain.deployment), ...SETTINGS, CHAIN_SOURCES: 'none' })
  const { coin, transactions } = ordinal(chain, steps, (step) => step === steps - 1)
  const last = transactions.at(-1)
  if (last === undefined) throw new Error('no ordinal')
  const world = await workerOver(server, options)
  const { graph } = server.node
  const submit = async (transaction: FakeTransaction) =>
    await server.submit(encodeBeef([proven(transaction)]), TOPICS)
  await submit(last)
  const isPlaced = async () => (await graph.ordinals.at({ txid: last.txid, vout: 0 }, -1)) !== undefined
  return { ...world, server, coin, transactions, last, submit, isPlaced }
}

test('a hole is asked about again after growing delays, and at once when something new is known', async () => {
  const { create, asked, clock, submit, know, coin, transactions, isPlaced } = await withTip(3)
  const [origin, second] = transactions
  if (origin === undefined || second === undefined) throw new Error('no ordinal')
  const worker = create()
  worker.start()
  await until(() => asked.length === 1 && worker.status().holes === 1)
  expect(asked).toEqual([second.txid])
  expect(worker.status()).toMatchObject({ waiting: 0, holes: 1, fetched: 0 })
  for (const [delay, times] of [
    [59_000, 1],
    [1000, 2],
    [239_000, 2],
    [1000, 3],
  ] as const) {
    const isAsked = times > asked.length
    clock.now += delay
    worker.notify()
    await until(() => asked.length === times)
    // The next delay begins when the answer is judged.
    if (isAsked) await until(() => worker.status().lastError?.at === clock.now)
  }
  know(origin, coin)
  await submit(second)
  worker.notify()
  await until(isPlaced)
  await until(() => worker.status().holes === 0)
  await worker.stop()
})

test('a worker that is stopped anywhere goes on where it was', async () => {
  const { create, asked, know, coin, transactions, isPlaced } = await withTip(230)
  know(coin, ...transactions.slice(0, -1))
  for (let stopAt = 150; !(await isPlaced()); stopAt = asked.length + 150) {
    const worker = create()
    worker.start()
    await until(async () => asked.length >= stopAt || (await isPlaced()))
    await worker.stop()
  }
  // What was fetched and not yet stored is fetched again: at most a batch each time.
  expect(asked.length).toBeLessThan(230 + 100 * 3)
})

test.each([
  ['transactions', { maxTransactions: 150, maxBytes: 1_000_000 }, /MAX_ANCESTORS/],
  ['bytes', { maxTransactions: 1000, maxBytes: 25_000 }, / is longer than \d+ bytes$/],
])('an ordinal with more ancestors than the limit is given up: %s', async (_, perOrdinal, why) => {
  const { create, asked, know, coin, transactions, isPlaced } = await withTip(180, { perOrdinal })
  know(coin, ...transactions.slice(0, -1))
  const worker = create()
  worker.start()
  await until(() => worker.status().holes === 1)
  expect(asked.length).toBeLessThanOrEqual(150)
  expect(asked.length).toBeGreaterThan(100)
  expect(await isPlaced()).toBe(false)
  expect(worker.status().lastError?.message).toMatch(why)
  await worker.stop()
})
