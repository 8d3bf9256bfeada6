import { ChainServices } from '../../../support/follow/chain-services.js'
import { type FakeTransaction, OPEN_LOCK, p2pkh } from '../../../support/protocol/fake-chain.js'
import { serving } from '../../../support/server/connections.js'
import { type HeaderWorld, useHeaderWorlds } from '../../../support/server/header-world.js'
import type { Answer, Environment } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// A strict mint costs a second of work and a coin that need never be spent: a squat. What the network has seen beats it.

const worlds = useHeaderWorlds()

type Sources = Pick<ChainServices, 'junglebus' | 'whatsonchain' | 'arc' | 'know'>

interface Contest {
  world: HeaderWorld
  /** Services that know the chain; the server follows it by the kinds that the settings name. */
  network: Sources
  purses: FakeTransaction[]
  /** A mint paid with a real coin, each with another one. */
  mint(name: string, owner: number, from?: ReturnType<HeaderWorld['chain']['node']>): FakeTransaction
  /** Submits a mint as nobody has mined it. */
  submit(mint: FakeTransaction, ...parents: FakeTransaction[]): Promise<Answer>
  /** The txid of the mint that a name is of; undefined if there is none. */
  owner(name: string): Promise<string | undefined>
}

/** @param kinds The sources that the server has; none: it has nobody to ask. */
async function contest(
  kinds: ('junglebus' | 'whatsonchain' | 'arc')[],
  env: Environment = {},
): Promise<Contest> {
  const names: string[] = []
  let network: ChainServices | undefined
  for (const kind of kinds) {
    const { url } = await serving((request, response) => {
      if (network === undefined) response.writeHead(404).end()
      else network.listener(kind)(request, response)
    })
    names.push(`${kind}=${url}`)
  }
  const sources = { CHAIN_SOURCES: names.join(',') || 'none', CHAIN_SOURCE_RATE: '10000' }
  const world = await worlds.start({ ...sources, FOLLOW_POLL_MS: '600000', ...env })
  network = new ChainServices(world.headers)
  const { chain, headers } = world
  network.know(chain.genesis)
  const purses = Array.from({ length: 6 }, () =>
    chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
  )
  headers.mine(purses)
  network.know(...purses)
  let next = 0
  return {
    ...{ world, network, purses },
    mint: (name, owner, from) =>
      chain.mint(name, {
        ...{ ownerLock: p2pkh(owner), funding: [purses[next++] as FakeTransaction] },
        ...(from && { from }),
      }),
    submit: (mint, ...parents) => world.submit(mint, [chain.genesis, ...purses, ...parents]),
    async owner(name) {
      const { status, json } = await world.server.ask(`/svc/names/origin/${name}`)
      return status === 200 ? (json as { outpoint: string }).outpoint.slice(0, 64) : undefined
    },
  }
}

test.each([[['junglebus']], [['whatsonchain']], [['arc', 'junglebus']]] as const)(
  'a mint that the network has beats a squat with one submission: %p',
  async (kinds) => {
    const { world, network, mint, submit, owner } = await contest([...kinds])
    const root = world.chain.node('')
    const squat = mint('a', 2, root)
    expect([(await submit(squat)).status, await owner('a')]).toEqual([200, squat.txid])
    const honest = mint('a', 3, root)
    network.know(honest)
    const { status, json } = await submit(honest)
    expect({ status, json }).toMatchObject({ status: 200, json: { tm_names: { outputsToAdmit: [0, 1, 2] } } })
    expect(await owner('a')).toBe(honest.txid)
    // Once more, and in the way of what is seen.
    expect((await submit(squat)).status).toBe(409)
    expect([(await submit(honest)).status, await owner('a')]).toEqual([200, honest.txid])
    const metrics = (await world.server.ask('/metrics')).body.toString()
    expect(metrics).toMatch(/^minetree_sightings_total\{status="seen"\} [1-9]/m)
    const again = await world.restart({ CHAIN_SOURCES: 'none' })
    const { json: origin } = await again.server.ask('/svc/names/origin/a')
    expect(origin).toMatchObject({ outpoint: honest.outpoint(2) })
  },
)

test('one that lost wins once the network has it, without being sent again', async () => {
  const { world, network, mint, submit, owner } = await contest(['whatsonchain', 'arc'])
  const root = world.chain.node('')
  const squat = mint('a', 2, root)
  const honest = mint('a', 3, root)
  expect([(await submit(squat)).status, (await submit(honest)).status]).toEqual([200, 409])
  network.know(honest)
  world.headers.mine([])
  await world.tell()
  await until(async () => (await owner('a')) === honest.txid, 'the one that waited counts')
})

test('where no source has seen either, the first one stands', async () => {
  const { world, network, mint, submit, owner } = await contest(['whatsonchain', 'arc'])
  const root = world.chain.node('')
  const [first, second] = [mint('a', 2, root), mint('a', 3, root)]
  expect([(await submit(first)).status, (await submit(second)).status]).toEqual([200, 409])
  expect(await owner('a')).toBe(first.txid)
  expect(network.whatsonchain.asked.filter((path) => path.endsWith('/txs/status')).length).toBeGreaterThan(0)
  // What both are known to, is of the first.
  network.know(first)
  expect([(await submit(second)).status, await owner('a')]).toEqual([409, first.txid])
})

test.each([
  ['fails', { kind: 'status', status: 500 }],
  ['answers something else', { kind: 'body', body: Buffer.from('[]{') }],
] as const)('a source that %s decides nothing', async (_, fault) => {
  const { world, network, mint, submit, owner } = await contest(['arc', 'whatsonchain'])
  const root = world.chain.node('')
  const squat = mint('a', 2, root)
  expect((await submit(squat)).status).toBe(200)
  const honest = mint('a', 3, root)
  network.know(honest)
  network.arc.fault = () => fault
  network.whatsonchain.fault = () => fault
  expect([(await submit(honest)).status, await owner('a')]).toEqual([409, squat.txid])
})

test('an ARC that is a source says that a squat was rejected, and the one that lost to it wins', async () => {
  const { world, network, mint, submit, owner } = await contest(['arc'])
  const root = world.chain.node('')
  const squat = mint('a', 2, root)
  expect((await submit(squat)).status).toBe(200)
  network.arc.sayStatus(squat.txid, 'REJECTED')
  const honest = mint('a', 3, root)
  expect([(await submit(honest)).status, await owner('a')]).toEqual([200, honest.txid])
})

test('what is submitted is asked about in the background, and nothing that is proven', async () => {
  const { world, network, mint, submit, owner } = await contest(['whatsonchain'])
  const proven = mint('b', 4)
  world.headers.mine([proven])
  network.know(proven)
  expect((await world.submit(proven)).status).toBe(200)
  const unproven = mint('a', 2)
  network.know(unproven)
  expect((await submit(unproven, proven)).status).toBe(200)
  const counted = /^minetree_sightings_total\{status="seen"\} 1$/m
  await until(async () => counted.test((await world.server.ask('/metrics')).body.toString()))
  expect(await owner('a')).toBe(unproven.txid)
  expect(await world.server.node.graph.sightings.of([unproven.txid, proven.txid])).toEqual(
    new Map([[unproven.txid, 'seen']]),
  )
})

test('the spend of a node that is in the mempool is found behind a squat, though nobody submits it', async () => {
  const { world, network, mint, submit, owner } = await contest(['whatsonchain'])
  const root = world.chain.node('')
  const squat = mint('a', 2, root)
  expect((await submit(squat)).status).toBe(200)
  const honest = mint('a', 3, root)
  network.know(honest)
  world.headers.mine([])
  await world.tell()
  await until(async () => (await owner('a')) === honest.txid, 'the mint of the mempool counts')
})
