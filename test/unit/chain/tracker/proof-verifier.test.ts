import { Beef } from '@bsv/sdk'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { type FakeTransaction, inscriptionScript, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../../../support/server/header-world.js'

// Which proofs of a BEEF are stored, and that each is checked against the chain (docs/spec/overlay.md).

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

/** An inscription that was mined, and the mined transaction that its ordinal came from. */
function inscription({ chain, headers }: HeaderWorld): { funding: FakeTransaction; note: FakeTransaction } {
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 3, lockingScript: OPEN_LOCK }] })
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('a note') })
  const note = chain.move(funding, 0, lockingScript)
  headers.mine([funding])
  headers.mine([note])
  return { funding, note }
}

async function heights(world: HeaderWorld): Promise<unknown[]> {
  return await Promise.all(
    ['a', 'ab'].map(async (name) => ((await world.name(name)).json as { height?: number }).height),
  )
}

const heightIn = async ({ server }: HeaderWorld, { txid }: FakeTransaction): Promise<number | undefined> =>
  await server.node.graph.transactions.heightOf(txid)

describe('a BEEF that repeats what is known', () => {
  test('proves ancestors of it, where verification ended', async () => {
    const world = await worlds.start()
    const { mints, purse } = await admittedEarly(world)
    const [first, second] = mints as [FakeTransaction, FakeTransaction]
    world.headers.mine([first])
    const { height } = world.headers.bestTip
    expect((await world.submit(second, [purse, first])).json).toMatchObject({
      tm_names: { outputsToAdmit: [0, 1, 2] },
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
    // Verification ended at the second; the path of the first was looked at for its own sake.
    expect(await heights(world)).toEqual([height, height])
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

  test('admits nothing of what nothing here is built on, and keeps it as pending', async () => {
    const world = await worlds.start()
    const { chain, headers, server } = world
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
    const payment = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs: [] })
    headers.mine([coin, payment])
    const before = server.rows()
    expect((await world.submit(payment, [coin])).status).toBe(200)
    const after = server.rows()
    expect(after.admissions).toEqual(before.admissions)
    // Two transactions, and a proof of each.
    expect(after.pending).toHaveLength(4)
  })
})

describe('what places an ordinal', () => {
  const submit = ({ server, headers }: HeaderWorld, note: FakeTransaction, funding: FakeTransaction) =>
    server.submit(headers.branch.beef(note, [funding]), ['tm_ordinals'])

  const provenance = async ({ server }: HeaderWorld, note: FakeTransaction): Promise<Beef> => {
    const { body } = await server.ask(`/svc/gateway/provenance/${note.outpoint(0)}`)
    return Beef.fromBinary(Array.from(body.subarray(40)))
  }

  test('is kept with its path, once the tracker was asked about it', async () => {
    const world = await worlds.start()
    const { funding, note } = inscription(world)
    const { height } = world.headers.bestTip
    expect((await submit(world, note, funding)).status).toBe(200)
    expect(await heightIn(world, funding)).toBe(height - 1)
    expect(world.tracker.asked).toContain(`${height - 1} ${world.headers.rootAt(height - 1)}`)
    expect((await provenance(world, note)).isValid()).toBe(true)
  })

  test('is kept without a path that leads nowhere, and refuses nothing', async () => {
    const world = await worlds.start()
    const { funding, note } = inscription(world)
    // The tracker has left the branch in which the funding was mined; the note stands in both.
    const { headers } = world
    const before = headers.branch
    const branch = headers.fork(headers.bestTip.height - 2)
    branch.mine()
    branch.mine([note])
    branch.mine()
    headers.reorg(branch)
    const beef = new Beef()
    for (const [transaction, line] of [
      [funding, before],
      [note, branch],
    ] as const) {
      const path = line.path(transaction.txid)
      beef.mergeRawTx(Array.from(transaction.raw), path && beef.mergeBump(path))
    }
    const sent = Uint8Array.from(beef.toBinary())
    expect((await world.server.submit(sent, ['tm_ordinals'])).status).toBe(200)
    expect(await heightIn(world, note)).toBe(headers.bestTip.height - 1)
    expect(await heightIn(world, funding)).toBeUndefined()
    expect((await provenance(world, note)).txs.map(({ bumpIndex }) => bumpIndex === undefined)).toEqual([
      true,
      false,
    ])
  })

  test('may come again once the tracker that stopped answering is back', async () => {
    const world = await worlds.start()
    const { funding, note } = inscription(world)
    const { height } = world.headers.bestTip
    const before = world.server.rows()
    world.tracker.onQuestion = (question) => {
      if (question.startsWith(`${height - 1} `)) world.tracker.mood = 'fails'
    }
    expect((await submit(world, note, funding)).status).toBe(503)
    expect(world.server.rows()).toEqual(before)
    world.tracker.onQuestion = undefined
    world.tracker.mood = 'answers'
    expect((await submit(world, note, funding)).status).toBe(200)
    expect(await heightIn(world, funding)).toBe(height - 1)
  })
})
