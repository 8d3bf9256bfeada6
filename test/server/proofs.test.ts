import { type FakeTransaction, OPEN_LOCK } from '../support/fake-chain.js'
import { HeaderChain } from '../support/header-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../support/header-world.js'

// Which proofs of a BEEF are kept, and that each was held against the chain (docs/proofs.md).

const worlds = useHeaderWorlds()

/** Two names that are not mined, the second built on the first, and the coins that paid for them. */
async function admittedEarly(
  world: HeaderWorld,
): Promise<{ mints: FakeTransaction[]; purse: FakeTransaction }> {
  const { chain, headers } = world
  const outputs = [0, 1, 2].map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ inputs: [], outputs })
  headers.mine([purse])
  const mints = ['a', 'ab'].map((name, vout) => chain.mint(name, { funding: [{ transaction: purse, vout }] }))
  for (const [at, mint] of mints.entries())
    expect((await world.submit(mint, [chain.genesis, purse, ...mints.slice(0, at)])).status).toBe(200)
  return { mints, purse }
}

async function heights(world: HeaderWorld): Promise<unknown[]> {
  return await Promise.all(
    ['a', 'ab'].map(async (name) => ((await world.name(name)).json as { height?: number }).height),
  )
}

describe('a BEEF that repeats what is known', () => {
  test('proves its subject', async () => {
    const world = await worlds.start()
    const [, second] = (await admittedEarly(world)).mints as [FakeTransaction, FakeTransaction]
    world.headers.mine([second])
    expect((await world.submit(second)).json).toMatchObject({ tm_names: { outputsToAdmit: [] } })
    expect(await heights(world)).toEqual([undefined, world.headers.bestTip.height])
  })

  test('proves ancestors of it, where verification ended', async () => {
    const world = await worlds.start()
    const { mints, purse } = await admittedEarly(world)
    const [first, second] = mints as [FakeTransaction, FakeTransaction]
    world.headers.mine([first])
    const { height } = world.headers.bestTip
    expect((await world.submit(second, [purse, first])).json).toMatchObject({
      tm_names: { outputsToAdmit: [] },
    })
    expect(await heights(world)).toEqual([height, undefined])
  })

  test('proves ancestors of a new transaction, too', async () => {
    const world = await worlds.start()
    const { mints, purse } = await admittedEarly(world)
    world.headers.mine(mints)
    const { height } = world.headers.bestTip
    const third = world.chain.mint('abc', { funding: [{ transaction: purse, vout: 2 }] })
    expect((await world.submit(third, [purse, ...mints])).json).toMatchObject({
      tm_names: { outputsToAdmit: [0, 1, 2] },
    })
    // Verification ended at the second: nobody looked at the path of the first.
    expect(await heights(world)).toEqual([undefined, height])
  })

  test('brings the newer word of the chain', async () => {
    const world = await worlds.start()
    const { mints } = await admittedEarly(world)
    const { headers } = world
    const branch = headers.fork(headers.bestTip.height)
    headers.mine(mints)
    const last = mints[1] as FakeTransaction
    expect((await world.submit(last)).status).toBe(200)
    branch.mine()
    branch.mine(mints)
    headers.reorg(branch)
    expect((await world.submit(last)).status).toBe(200)
    expect(await heights(world)).toEqual([undefined, headers.bestTip.height])
  })

  test('proves nothing where its path leads to no block of the chain', async () => {
    const world = await worlds.start()
    const [, second] = (await admittedEarly(world)).mints as [FakeTransaction, FakeTransaction]
    const elsewhere = new HeaderChain(world.headers.bestTip.height - 1)
    elsewhere.mine([second])
    const before = world.server.rows()
    expect((await world.server.submit(elsewhere.branch.beef(second))).status).toBe(400)
    expect(world.server.rows()).toEqual(before)
  })

  test('adds no transaction that nothing here was built on', async () => {
    const world = await worlds.start()
    const { chain, headers, server } = world
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
    const payment = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs: [] })
    headers.mine([coin, payment])
    const before = server.rows()
    expect((await world.submit(payment, [coin])).status).toBe(200)
    expect(server.rows()).toEqual(before)
  })
})
