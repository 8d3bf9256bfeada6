import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { ownerOf } from '../../support/graph/owner-of.js'
import {
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../../support/server/header-world.js'
import { type Answer, type Environment, posted, submission } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

// Transactions that come before what they are built on, or without it: each is admitted once what it waits for is known, and
// never has to be sent again (`spec/overlay.md`, Order independence).

const BOTH = ['tm_names', 'tm_ordinals']
const SELLER = 1
const BUYER = 2
const NEXT = 3

const worlds = useHeaderWorlds()

const open = (satoshis: number): FakeOutput => ({ satoshis, lockingScript: OPEN_LOCK })
const owned = (owner: number): FakeOutput => ({ satoshis: 1, lockingScript: p2pkh(owner) })
const inscribed = (body: string): FakeOutput => ({
  satoshis: 1,
  lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(body), lock: OPEN_LOCK }),
})

/** A world with a mined transaction that pays for everything, which the server does not know. */
async function started(env: Environment = {}) {
  const world = await worlds.start(env)
  const { chain, headers } = world
  const purse = chain.spend({ inputs: [], outputs: Array.from({ length: 9 }, () => open(1000)) })
  headers.mine([purse])
  let paid = 0
  const coin = () => ({ transaction: purse, vout: paid++ })
  return { ...world, purse, coin }
}

/** Submits to both topics; whatever is mined comes with its path. */
async function submit(
  { server, headers }: HeaderWorld,
  transaction: FakeTransaction,
  ancestors: readonly FakeTransaction[] = [],
  topics = BOTH,
): Promise<Answer> {
  return await server.ask('/submit', submission(headers.branch.beef(transaction, ancestors), topics))
}

/** What the answer to a submission says is admitted. */
function admitted(answer: Answer): unknown {
  if (answer.status !== 200) throw new Error(`not taken: ${answer.body.toString()}`)
  const steak = answer.json as Record<string, { outputsToAdmit: number[] }>
  return Object.fromEntries(
    Object.entries(steak).map(([topic, { outputsToAdmit }]) => [topic, outputsToAdmit]),
  )
}

async function statuses({ server }: HeaderWorld, ...paths: string[]): Promise<number[]> {
  const found: number[] = []
  for (const path of paths) found.push((await server.ask(path)).status)
  return found
}

async function found({ server }: HeaderWorld, service: string, query: unknown): Promise<number> {
  const answer = await server.ask('/lookup', posted({ service, query }))
  return (answer.json as { outputs: unknown[] }).outputs.length
}

describe('the sale of a name that a stranger submits without the source of its first input', () => {
  async function sold() {
    const world = await started()
    const { chain, headers, purse, coin } = world
    const mint = chain.mint('a', { funding: [coin()], ownerLock: p2pkh(SELLER) })
    const money = chain.spend({ inputs: [coin()], outputs: [open(30), open(60)] })
    const sale = chain.spend({
      inputs: [{ transaction: money, vout: 0 }, { transaction: mint, vout: 2 }, coin()],
      outputs: [open(30), owned(BUYER), inscribed('receipt')],
    })
    const transfer = chain.spend({ inputs: [{ transaction: sale, vout: 1 }], outputs: [owned(NEXT)] })
    headers.mine([mint])
    headers.mine([money])
    headers.mine([sale])
    headers.mine([transfer])
    expect(admitted(await submit(world, mint, [purse]))).toEqual({ tm_names: [0, 1, 2], tm_ordinals: [2] })
    // Its receipt has content; who has the name now, nobody can tell.
    expect(admitted(await submit(world, sale))).toEqual({ tm_names: [], tm_ordinals: [2] })
    expect((await world.name('a')).json).toMatchObject({
      tip: { outpoint: mint.outpoint(2), spent: true },
      sequence: 0,
    })
    return { ...world, mint, money, sale, transfer }
  }

  const heldBy = (owner: number, sequence: number, tip: string) => ({
    tip: { outpoint: tip, owner: encodeAddress(ownerOf(owner), 'main'), spent: false },
    sequence,
  })

  test('is followed once the buyer submits it with its sources', async () => {
    const world = await sold()
    const { purse, mint, money, sale, transfer } = world
    expect(admitted(await submit(world, sale, [purse, mint, money]))).toEqual({
      tm_names: [],
      tm_ordinals: [1, 2],
    })
    expect((await world.name('a')).json).toMatchObject(heldBy(BUYER, 1, sale.outpoint(1)))
    expect(await found(world, 'ls_names', { name: 'a' })).toBe(1)
    const provenance = `/svc/gateway/provenance/${sale.outpoint(1)}`
    expect(await statuses(world, provenance, `/content/${mint.outpoint(2)}:1`)).toEqual([200, 200])
    expect(admitted(await submit(world, transfer))).toEqual({ tm_names: [], tm_ordinals: [0] })
    expect((await world.name('a')).json).toMatchObject(heldBy(NEXT, 2, transfer.outpoint(0)))
  })

  test('is followed once that source comes, and what was built on it meanwhile with it', async () => {
    const world = await sold()
    const { money, transfer } = world
    expect(admitted(await submit(world, transfer))).toEqual({ tm_names: [], tm_ordinals: [] })
    await submit(world, money)
    expect((await world.name('a')).json).toMatchObject(heldBy(NEXT, 2, transfer.outpoint(0)))
    const again = await world.restart()
    expect((await again.name('a')).json).toMatchObject(heldBy(NEXT, 2, transfer.outpoint(0)))
  })
})

describe('a child that comes before its parent', () => {
  test('is the next step of an ordinal once the inscription comes', async () => {
    const world = await started()
    const { chain, headers, coin, purse } = world
    const first = chain.spend({ inputs: [coin()], outputs: [inscribed('first')] })
    const steps = [first]
    for (let step = 1; step <= 3; step++) {
      const before = { transaction: steps[step - 1] ?? first, vout: 0 }
      steps.push(chain.spend({ inputs: [before], outputs: [owned(step)] }))
    }
    for (const each of steps) headers.mine([each])
    for (const each of steps.slice(1).reverse())
      expect(admitted(await submit(world, each))).toEqual({ tm_names: [], tm_ordinals: [] })
    await submit(world, first, [purse])
    const { json } = await world.server.ask(`/svc/gateway/metadata/${first.outpoint(0)}:-1`)
    expect(json).toMatchObject({ outpoint: steps[3]?.outpoint(0), sequence: 3, origin: first.outpoint(0) })
  })

  test('is a name once the mint comes that leaves its node', async () => {
    const world = await started()
    const { chain, headers, coin } = world
    const mints = ['a', 'ab', 'abc'].map((name) => chain.mint(name, { funding: [coin()] }))
    for (const each of mints) headers.mine([each])
    const [a, ab, abc] = mints as [FakeTransaction, FakeTransaction, FakeTransaction]
    // Their inscriptions have content, no matter who made them.
    expect(admitted(await submit(world, abc))).toEqual({ tm_names: [], tm_ordinals: [2] })
    expect(admitted(await submit(world, ab, [], ['tm_ordinals']))).toEqual({ tm_ordinals: [2] })
    expect(await statuses(world, '/svc/names/origin/ab')).toEqual([404])
    await submit(world, a)
    expect((await world.server.ask('/svc/names')).json).toEqual({
      names: ['a', 'ab', 'abc'].map((name, i) => ({ name, outpoint: mints[i]?.outpoint(2) })),
    })
    expect(await statuses(world, `/content/${abc.outpoint(2)}:0`)).toEqual([200])
    // Sent again, it is what it is by now.
    expect(admitted(await submit(world, abc))).toEqual({ tm_names: [0, 1, 2], tm_ordinals: [2] })
  })

  test('is admitted beside an inscription of its own, for which it was admitted before', async () => {
    const world = await started()
    const { chain, headers, coin, purse } = world
    const source = chain.spend({ inputs: [coin()], outputs: [inscribed('one'), inscribed('two')] })
    const child = chain.spend({
      inputs: [{ transaction: source, vout: 0 }, { transaction: source, vout: 1 }, coin()],
      outputs: [owned(1), owned(2), inscribed('three')],
    })
    headers.mine([source])
    headers.mine([child])
    expect(admitted(await submit(world, child))).toEqual({ tm_names: [], tm_ordinals: [2] })
    await submit(world, source, [purse])
    expect(admitted(await submit(world, child))).toEqual({ tm_names: [], tm_ordinals: [0, 1, 2] })
    for (const [vout, body] of ['one', 'two'].entries()) {
      const answer = await world.server.ask(`/content/${child.outpoint(vout)}:1`)
      expect({ status: answer.status, body: answer.body.toString() }).toEqual({ status: 200, body })
    }
  })
})

describe('an inscription on a 1-sat coin that has no content', () => {
  async function inscribedOnCoin(isMined: boolean) {
    const world = await started()
    const { chain, headers, coin } = world
    const coins = chain.spend({ inputs: [coin()], outputs: [open(1), open(1)] })
    const moved = chain.spend({ inputs: [{ transaction: coins, vout: 1 }], outputs: [open(1)] })
    const inscription = chain.spend({
      inputs: [{ transaction: moved, vout: 0 }],
      outputs: [inscribed('text')],
    })
    if (isMined) for (const each of [coins, moved, inscription]) headers.mine([each])
    return { ...world, coins, moved, inscription }
  }
  const paths = ({ outpoint }: FakeTransaction): string[] => [
    ...['', ':0', ':-1', ':-2'].map((sequence) => `/content/${outpoint(0)}${sequence}`),
    `/svc/gateway/provenance/${outpoint(0)}`,
  ]

  test.each([
    ['proven', true],
    ['unproven', false],
  ])('has its origin where a %s one brings its whole ancestry', async (_, isMined) => {
    const world = await inscribedOnCoin(isMined)
    const { purse, coins, moved, inscription } = world
    await submit(world, inscription, [purse, coins, moved])
    expect(await statuses(world, ...paths(inscription))).toEqual([200, 200, 200, 200, 200])
    const { json } = await world.server.ask(`/svc/gateway/metadata/${inscription.outpoint(0)}:0`)
    expect(json).toMatchObject({ origin: inscription.outpoint(0), sequence: 0, tip: true })
  })

  test('has none before its lineage is known back to its start, and then it has', async () => {
    const world = await inscribedOnCoin(true)
    const { purse, coins, moved, inscription } = world
    await submit(world, inscription, [moved])
    expect(await statuses(world, ...paths(inscription))).toEqual([200, 404, 404, 404, 404])
    await submit(world, coins)
    expect(await statuses(world, ...paths(inscription))).toEqual([200, 404, 404, 404, 404])
    await submit(world, purse)
    expect(await statuses(world, ...paths(inscription))).toEqual([200, 200, 200, 200, 200])
  })
})

describe('coins that come in one submission, and ordinals in another', () => {
  test.each([
    ['coins first', ['coins', 'ordinals']],
    ['ordinals first', ['ordinals', 'coins']],
  ])('%s', async (_, order) => {
    const world = await started()
    const { chain, headers, coin, purse } = world
    const coins = chain.spend({ inputs: [coin()], outputs: [open(7), open(5)] })
    const first = chain.spend({
      inputs: [{ transaction: coins, vout: 0 }],
      outputs: [inscribed('x')],
    })
    const transfer = chain.spend({
      inputs: [
        { transaction: coins, vout: 1 },
        { transaction: first, vout: 0 },
      ],
      outputs: [open(5), { satoshis: 1, lockingScript: Uint8Array.of(...OPEN_LOCK, ...mapTail({ k: 'v' })) }],
    })
    for (const each of [coins, first, transfer]) headers.mine([each])
    const submissions: Record<string, () => Promise<unknown>> = {
      coins: () => submit(world, coins, [purse]),
      async ordinals() {
        await submit(world, first)
        await submit(world, transfer, [first])
      },
    }
    for (const each of order) await submissions[each]?.()
    const { json } = await world.server.ask(`/svc/gateway/metadata/${first.outpoint(0)}:-1`)
    expect(json).toMatchObject({ outpoint: transfer.outpoint(1), sequence: 1, map: { k: 'v' } })
    expect(admitted(await submit(world, transfer))).toEqual({ tm_names: [], tm_ordinals: [1] })
  })
})

describe('what waits', () => {
  test('takes its proof while it waits', async () => {
    const world = await started()
    const { chain, headers, coin, purse, server } = world
    const first = chain.spend({ inputs: [coin()], outputs: [inscribed('first')] })
    const transfer = chain.spend({ inputs: [{ transaction: first, vout: 0 }], outputs: [owned(1)] })
    headers.mine([first])
    const { height } = headers.mine([transfer]).header
    const merklePath = headers.branch.path(transfer.txid)?.toHex()
    await submit(world, transfer)
    const taken = await server.ask('/arc-ingest', posted({ txid: transfer.txid, merklePath }))
    expect(taken.status).toBe(200)
    await submit(world, first, [purse])
    expect((await server.ask(`/svc/gateway/metadata/${first.outpoint(0)}:-1`)).json).toMatchObject({ height })
  })

  test('of two that spend the same, one that is proven wins over one that was here first', async () => {
    const world = await started()
    const { chain, headers, coin, purse } = world
    const money = coin()
    const [one, other, third] = ['one', 'other', 'third'].map((body) =>
      chain.spend({ inputs: [money], outputs: [inscribed(body)] }),
    ) as [FakeTransaction, FakeTransaction, FakeTransaction]
    expect(admitted(await submit(world, one, [purse]))).toEqual({ tm_names: [], tm_ordinals: [0] })
    const lost = await submit(world, third, [purse])
    expect(lost).toMatchObject({ status: 409, json: { txid: one.txid } })
    headers.mine([other])
    expect(admitted(await submit(world, other))).toEqual({ tm_names: [], tm_ordinals: [0] })
    const contents = [one, other, third].map((each) => `/content/${each.outpoint(0)}`)
    expect(await statuses(world, ...contents)).toEqual([404, 200, 404])
  })

  test('for a lock time is admitted when that has come, though two of its ancestors are built on a third', async () => {
    const world = await started()
    const { chain, headers, coin, purse } = world
    const open = (satoshis: number) => ({ satoshis, lockingScript: OPEN_LOCK })
    const base = chain.spend({ inputs: [coin()], outputs: [open(10), open(10)] })
    const near = chain.spend({ inputs: [{ transaction: base, vout: 0 }], outputs: [open(9)] })
    const far = chain.spend({ inputs: [{ transaction: near, vout: 0 }], outputs: [open(8)] })
    const { height } = headers.bestTip
    const late = chain.spend({
      inputs: [
        { transaction: far, vout: 0 },
        { transaction: base, vout: 1 },
      ],
      outputs: [inscribed('late')],
      lockTime: height + 1,
      sequence: 0,
    })
    const nothing = { tm_names: [], tm_ordinals: [] }
    expect(admitted(await submit(world, late, [purse, base, near, far]))).toEqual(nothing)
    headers.grow(1)
    const again = await world.restart()
    await until(async () => (await statuses(again, `/content/${late.outpoint(0)}`))[0] === 200)
  })

  test('for its lock time is admitted when that has come', async () => {
    // A covenant of version 2 takes no lock time.
    const world = await started({ COVENANT_VERSION: '1' })
    const { chain, headers, coin, purse, server } = world
    const { height } = headers.bestTip
    const early = chain.mint('a', { funding: [coin()], lockTime: height + 5, sequence: 0 })
    expect(admitted(await submit(world, early, [chain.genesis, purse]))).toEqual({
      tm_names: [],
      tm_ordinals: [],
    })
    const paths = ['/svc/names/origin/a', `/content/${early.outpoint(2)}`]
    expect(await statuses(world, ...paths)).toEqual([404, 404])
    // What came with it and is in a block is known all the same.
    expect(server.rows().transactions?.join()).toContain(purse.txid)
    expect((await server.ask('/svc/names/mine/ab')).json).toMatchObject({ domain: '' })
    headers.grow(5)
    // A host that starts looks at once; one that runs, every half a minute.
    const again = await world.restart()
    await until(async () => (await statuses(again, '/svc/names/origin/a'))[0] === 200)
    expect(await statuses(again, ...paths)).toEqual([200, 200])
  })
})
