import { vi } from 'vitest'
import { encodeBeef } from '../../../../backend/src/graph/write-beef.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import type { AncestorsWorkerOptions } from '../../../../src/chain/ancestors/ancestors-worker.js'
import { ChainSourceError } from '../../../../src/chain/sources/errors.js'
import { proven, workerOver } from '../../../support/follow/ancestors-world.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

const servers = useServers()
const SETTINGS = { CHAIN_TRACKER: 'scripts-only', FOLLOW_ORDINALS: 'none', CHAIN_SOURCES: 'none' }
const coin = (satoshis: number) => ({ satoshis, lockingScript: OPEN_LOCK })
const inscribed = {
  satoshis: 1,
  lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8('an ordinal'), lock: OPEN_LOCK }),
}

/** A transaction that inscribes ordinals behind coins of so many transactions. */
function behindCoins({ parents, ordinals = 1 }: { parents: number; ordinals?: number }) {
  const chain = new FakeChain()
  const coins = Array.from({ length: parents }, () =>
    chain.spend({ inputs: [chain.madeUpCoin()], outputs: [coin(10)] }),
  )
  const subject = chain.spend({
    inputs: coins.map((transaction) => ({ transaction, vout: 0 })),
    outputs: [coin(10 * parents - 1), ...Array.from({ length: ordinals }, () => inscribed)],
  })
  return { chain, coins, subject }
}

async function worldOf(
  { chain, subject }: { chain: FakeChain; subject: FakeTransaction },
  options: Partial<AncestorsWorkerOptions> = {},
) {
  const server = await servers.start({ ...treeOf(chain.deployment), ...SETTINGS })
  const world = await workerOver(server, options)
  const submit = async (...transactions: FakeTransaction[]) => {
    for (const each of transactions) await server.take(encodeBeef([proven(each)]), ['tm_ordinals'])
  }
  await submit(subject)
  const isPlaced = async () =>
    (await server.node.graph.ordinals.at({ txid: subject.txid, vout: 1 }, 0)) !== undefined
  return { ...world, server, submit, isPlaced }
}

test('an ordinal behind more coins than a submission may have transactions is placed, each fetched once', async () => {
  const made = behindCoins({ parents: 220 })
  const { know, create, asked, isPlaced } = await worldOf(made)
  know(...made.coins)
  const worker = create()
  worker.start()
  await until(async () => (await isPlaced()) || worker.status().holes > 0)
  await worker.stop()
  expect(await isPlaced()).toBe(true)
  expect(asked.length).toBe(220)
})

test('what was fetched is not fetched again if the source fails, or lacks one of the coins for a while', async () => {
  const made = behindCoins({ parents: 220 })
  const { know, create, asked, clock, hooks, isPlaced } = await worldOf(made)
  const [lacking, failing] = [made.coins[210], made.coins[40]]
  let failures = 0
  hooks.onQuestion = async (txid) => {
    if (txid === failing?.txid && failures++ < 3)
      throw new ChainSourceError('NO_ANSWER', 'the source is down')
  }
  know(...made.coins.filter((each) => each !== lacking))
  const worker = create()
  worker.start()
  await until(() => {
    // Each failure delays the next question, if nothing was found before it.
    if (failures <= 3) {
      clock.now += 600_000
      worker.notify()
    }
    return worker.status().holes > 0
  })
  know(...made.coins)
  clock.now += 5000
  worker.notify()
  await until(isPlaced)
  await worker.stop()
  expect(new Set(asked).size).toBe(220)
  expect(asked.length).toBe(220 + 3 + 1)
})

test('what is fetched in vain counts', async () => {
  const made = behindCoins({ parents: 350 })
  const { know, create, asked, clock } = await worldOf(made, {
    perOrdinal: { maxTransactions: 250, maxBytes: 1_000_000 },
    admit: async () => ({ kind: 'refused', why: 'the node does not want it' }),
  })
  know(...made.coins)
  const worker = create()
  worker.start()
  for (const total of [99, 198, 250, 250]) {
    await until(() => asked.length === total && worker.status().lastError?.at === clock.now)
    clock.now += 24 * 3_600_000
    worker.notify()
  }
  await worker.stop()
})

test('large transactions are fetched one at a time', async () => {
  const chain = new FakeChain()
  const large = [1, 2, 3, 4].map((fill) =>
    chain.spend({
      inputs: [chain.madeUpCoin()],
      outputs: [coin(10), { satoshis: 0, lockingScript: new Uint8Array(5000).fill(fill) }],
    }),
  )
  const subjects = large.map((transaction) =>
    chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [coin(9), inscribed] }),
  )
  const [subject, ...others] = subjects
  if (subject === undefined) throw new Error('no ordinal')
  const { know, create, hooks, server, submit, isPlaced } = await worldOf({ chain, subject }, { small: 2000 })
  know(...large)
  await submit(...others)
  let [atOnce, most] = [0, 0]
  hooks.onQuestion = async (_, { maxBytes }) => {
    if (maxBytes <= 2000) return
    most = Math.max(most, ++atOnce)
    await loopTurns()
    atOnce--
  }
  const worker = create()
  worker.start()
  await until(isPlaced)
  await until(() => worker.status().fetched === 4)
  await worker.stop()
  for (const { txid } of subjects)
    expect(await server.node.graph.ordinals.at({ txid, vout: 1 }, 0)).toBeDefined()
  expect(most).toBe(1)
})

test('what comes after a flood does not wait for its end', async () => {
  const chain = new FakeChain()
  const lone = () => {
    const parent = chain.spend({ inputs: [chain.madeUpCoin()], outputs: [coin(10)] })
    const subject = chain.spend({ inputs: [{ transaction: parent, vout: 0 }], outputs: [coin(9), inscribed] })
    return { parent, subject }
  }
  const [first, ...flood] = Array.from({ length: 120 }, lone)
  const last = lone()
  if (first === undefined) throw new Error('no ordinal')
  const { know, create, asked, submit, clock } = await worldOf({ chain, subject: first.subject })
  for (const { subject } of flood) await submit(subject)
  await loopTurns()
  await submit(last.subject)
  know(first.parent, last.parent)
  const worker = create()
  worker.start()
  await until(() => worker.status().holes === flood.length)
  const places = [first, last].map(({ parent }) => asked.indexOf(parent.txid))
  expect(Math.max(...places)).toBeLessThan(20)
  await worker.stop()
  // Nor do new ones wait for what is tried again.
  const next = lone()
  clock.now += 5000
  await submit(next.subject)
  const before = asked.length
  const again = create()
  again.start()
  await until(() => asked.length === before + flood.length + 1)
  await again.stop()
  expect(asked.indexOf(next.parent.txid) - before).toBeLessThan(20)
})

test('a transaction that a source never answers for stops no other, and is asked for after growing delays', async () => {
  const { chain, subject, coins } = behindCoins({ parents: 1 })
  const { know, create, asked, submit, clock, hooks, server } = await worldOf(
    { chain, subject },
    { rest: 3_600_000 },
  )
  const parent = chain.spend({ inputs: [chain.madeUpCoin()], outputs: [coin(10)] })
  const other = chain.spend({ inputs: [{ transaction: parent, vout: 0 }], outputs: [coin(9), inscribed] })
  await submit(other)
  know(parent)
  hooks.onQuestion = async (txid) => {
    if (txid === coins[0]?.txid) throw new ChainSourceError('NO_ANSWER', 'the server has an internal error')
  }
  const worker = create()
  worker.start()
  const placeOf = () => server.node.graph.ordinals.at({ txid: other.txid, vout: 1 }, 0)
  await until(placeOf)
  await until(() => worker.status().waiting === 1)
  const times = () => asked.filter((txid) => txid === coins[0]?.txid).length
  expect(times()).toBe(1)
  expect(worker.status()).toMatchObject({
    holes: 0,
    lastError: { message: 'the server has an internal error' },
  })
  await worker.stop()
  for (const delay of [5000, 20_000, 80_000, 320_000, 600_000, 600_000]) {
    const before = times()
    for (const part of [delay - 1, 1]) {
      clock.now += part
      const again = create()
      again.start()
      if (part === 1) await until(() => times() === before + 1)
      await loopTurns()
      await again.stop()
      expect(times()).toBe(before + (part === 1 ? 1 : 0))
    }
  }
})

test('of ordinals that wait for one transaction, that is asked for once', async () => {
  const made = behindCoins({ parents: 10, ordinals: 200 })
  const { create, asked, clock, server } = await worldOf(made)
  const worker = create()
  // Each may have megabytes.
  const reads = vi.spyOn(server.node.graph.transactions, 'get')
  worker.start()
  for (let round = 1; round <= 4; round++) {
    await until(() => asked.length === round && worker.status().holes === 200)
    await loopTurns()
    clock.now += 600_000
    worker.notify()
  }
  await worker.stop()
  expect(asked.length).toBeLessThan(6)
  expect(reads.mock.calls.length).toBeLessThan(100)
})
