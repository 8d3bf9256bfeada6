import { vi } from 'vitest'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { startJungleBus } from '../../../support/follow/junglebus.js'
import { recordOf } from '../../../support/protocol/block.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import {
  type Environment,
  posted,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'
import { eventually, until } from '../../../support/server/waiting.js'

const servers = useServers()

const HEIGHT = 800_000
const coin = (satoshis: number) => ({ satoshis, lockingScript: OPEN_LOCK })
const chunk = (text: string, contentType: string) => ({
  satoshis: 1,
  lockingScript: inscriptionScript({ contentType, body: utf8(text), lock: OPEN_LOCK }),
})
const proven = (transaction: FakeTransaction) => recordOf(transaction, HEIGHT)

/**
 * An ordinal that was inscribed, and moved with a payment among the inputs before it. Where it went follows from the value of
 * the payment, in output 1. Output 0 is change.
 */
function movedOrdinal({ inscribesAgain = false }: { inscribesAgain?: boolean } = {}) {
  const chain = new FakeChain()
  const [purse, payment] = [9, 40].map((satoshis) =>
    chain.spend({ inputs: [chain.madeUpCoin()], outputs: [coin(satoshis)] }),
  ) as [FakeTransaction, FakeTransaction]
  const first = chain.spend({
    inputs: [{ transaction: purse, vout: 0 }],
    outputs: [chunk('first', 'text/plain')],
  })
  const moved = chain.spend({
    inputs: [
      { transaction: payment, vout: 0 },
      { transaction: first, vout: 0 },
    ],
    outputs: [coin(40), inscribesAgain ? chunk(' second', 'gw/stream') : coin(1)],
  })
  return { chain, purse, payment, first, moved, origin: first.outpoint(0), place: moved.outpoint(1) }
}

type World = ReturnType<typeof movedOrdinal>

/** A host with the ordinal and its move, whose source has the payment, but answers for it only when it is let. */
async function hostOf(world: World) {
  const { url, service } = await startJungleBus()
  service.know(proven(world.purse))
  let release: () => void = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let asked = 0
  service.onQuestion = async (path) => {
    if (!path.includes(world.payment.txid)) return
    asked++
    await released
  }
  const dataDir = await servers.folder()
  const start = (env: Environment = {}) =>
    servers.start({
      ...env,
      ...treeOf(world.chain.deployment),
      ...{ CHAIN_TRACKER: 'scripts-only', FOLLOW_ORDINALS: 'none', CHAIN_SOURCE_RATE: '10000' },
      ...{ CHAIN_SOURCES: url, DATA_DIR: dataDir },
    })
  return { service, release, isAsked: () => asked > 0, start }
}

/** Submitted alone, as wallets do once a transaction is mined. */
async function submit(server: TestServer, ...transactions: FakeTransaction[]): Promise<void> {
  for (const transaction of transactions)
    await server.take(beefOf(transaction, { height: HEIGHT }), ['tm_ordinals'])
}

/** The status of each answer, or its code. */
async function answers(server: TestServer, paths: string[]): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const path of paths) {
    const { status, headers, body } = await server.ask(path)
    const isPending = headers['retry-after'] !== undefined
    const { code } = status === 200 ? { code: 200 } : (JSON.parse(body.toString('utf8')) as { code: string })
    expect([path, isPending]).toEqual([path, code === 'ORIGIN_PENDING'])
    found[path] = code
  }
  return found
}

const all = (paths: string[], answer: unknown) => Object.fromEntries(paths.map((path) => [path, answer]))

/** What follows from where the ordinal went, and what does not. */
function pathsOf({ origin, place }: World) {
  const tip = [
    `/content/${origin}:-1`,
    `/svc/gateway/metadata/${origin}:-1`,
    `/svc/gateway/provenance/${origin}`,
    `/svc/gateway/stream/${origin}`,
  ]
  const later = [
    `/content/${origin}:1`,
    `/svc/gateway/metadata/${origin}:1`,
    `/content/${place}:-1`,
    `/content/${place}:0`,
    `/svc/gateway/metadata/${place}:0`,
    `/svc/gateway/provenance/${place}`,
  ]
  const known = [`/content/${origin}`, `/content/${origin}:0`, `/content/${origin}:-2`]
  return { tip, later, known }
}

describe('while it is fetched where an ordinal went', () => {
  test.each([
    ['a transfer', false, [0, 1]],
    ['a reinscription that comes first', true, [1, 0]],
  ])('its tip and what comes after are pending: %s', async (_, inscribesAgain, order) => {
    const world = movedOrdinal({ inscribesAgain })
    const host = await hostOf(world)
    const { tip, later, known } = pathsOf(world)
    let server = await host.start()
    for (const at of order) await submit(server, at === 0 ? world.first : world.moved)
    await until(host.isAsked)
    for (let starts = 0; starts < 2; starts++) {
      await eventually(async () => {
        expect(await answers(server, known)).toEqual(all(known, 200))
      })
      expect(await answers(server, [...tip, ...later])).toEqual(all([...tip, ...later], 'ORIGIN_PENDING'))
      // Neither change nor an output that does not exist may be the ordinal.
      const others = [0, 2].map((vout) => `/content/${world.moved.outpoint(vout)}:-1`)
      expect(await answers(server, others)).toEqual(all(others, 'NOT_FOUND'))
      const pointers = [`${world.origin}:-1`, `${world.origin}:0`]
      const many = await server.ask('/svc/gateway/metadata', posted(pointers))
      expect(many.json).toMatchObject({
        [`${world.origin}:-1`]: null,
        [`${world.origin}:0`]: { sequence: 0 },
      })
      if (starts > 0) break
      await server.stop()
      // What was broken off is asked for again some seconds later.
      const now = performance.now.bind(performance)
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000)
      onTestFinished(() => void vi.restoreAllMocks())
      server = await host.start()
    }
    host.service.know(proven(world.payment))
    host.release()
    await eventually(async () => {
      const answer = await server.ask(`/content/${world.origin}:-1`)
      expect([answer.status, answer.headers['x-outpoint']]).toEqual([200, world.place])
    })
    expect(await answers(server, [...tip, ...later])).toEqual(all([...tip, ...later], 200))
    const stream = await server.ask(`/svc/gateway/stream/${world.origin}`)
    expect(stream.body.toString()).toBe(inscribesAgain ? 'first second' : 'first')
  })

  test('a name keeps its record, with a tip that is spent', async () => {
    const world = movedOrdinal()
    const { chain } = world
    const mint = chain.mint('a', { ownerLock: OPEN_LOCK })
    const name = { ...world, first: mint, origin: mint.outpoint(2) }
    const moved = chain.spend({
      inputs: [
        { transaction: world.payment, vout: 0 },
        { transaction: mint, vout: 2 },
      ],
      outputs: [coin(40), coin(1)],
    })
    const host = await hostOf(name)
    const server = await host.start()
    await server.submit(beefOf(chain.genesis, { height: HEIGHT }))
    await server.submit(beefOf(mint, { height: HEIGHT }))
    await submit(server, moved)
    await until(host.isAsked)
    const { json } = await server.ask('/svc/names/a')
    expect(json).toMatchObject({ name: 'a', tip: { outpoint: name.origin, spent: true } })
    const tip = [`/content/${name.origin}:-1`]
    expect(await answers(server, tip)).toEqual(all(tip, 'ORIGIN_PENDING'))
    host.service.know(proven(world.payment))
    host.release()
    await eventually(async () => {
      const { json } = await server.ask('/svc/names/a')
      expect(json).toMatchObject({ tip: { outpoint: moved.outpoint(1), spent: false } })
    })
  })
})

test('the last known place of an ordinal stays its tip if no source knows where it went', async () => {
  const world = movedOrdinal()
  const host = await hostOf(world)
  const server = await host.start()
  await submit(server, world.first, world.moved)
  await until(host.isAsked)
  host.release()
  const { tip, later, known } = pathsOf(world)
  const expected = { ...all([...tip, ...known], 200), ...all(later, 'NOT_FOUND') }
  await eventually(async () => {
    expect(await answers(server, Object.keys(expected))).toEqual(expected)
  })
  const record = await server.ask(`/svc/gateway/metadata/${world.origin}:-1`)
  expect(record.json).toMatchObject({ outpoint: world.origin, spent: true })
})
