import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import type { Branch } from '../../../support/server/header-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../../../support/server/header-world.js'
import { type Answer, posted, treeOf, useServers } from '../../../support/server/test-server.js'

// What a transaction processor (ARC) tells of a transaction that was mined.

const worlds = useHeaderWorlds()
const servers = useServers()

/** A name that was admitted before it was mined, and what its mint is built on. */
async function admittedEarly(world: HeaderWorld): Promise<FakeTransaction> {
  const { chain, headers } = world
  const purse = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  headers.mine([purse])
  const mint = chain.mint('a', { funding: [purse] })
  const { status, body } = await world.submit(mint, [chain.genesis, purse])
  if (status !== 200) throw new Error(body.toString())
  return mint
}

function noticeOf({ txid }: { txid: string }, branch: Branch): Record<string, unknown> {
  const path = branch.path(txid)
  if (path === undefined) throw new Error(`${txid} was not mined`)
  return { txid, merklePath: path.toHex(), blockHeight: path.blockHeight }
}

const tell = ({ server }: HeaderWorld, notice: unknown): Promise<Answer> =>
  server.ask('/arc-ingest', posted(notice))

async function heightOf(world: HeaderWorld, name = 'a'): Promise<unknown> {
  return ((await world.name(name)).json as { height?: number }).height
}

test('the proof of a transaction that is known is kept, however often it comes', async () => {
  const world = await worlds.start()
  const mint = await admittedEarly(world)
  world.headers.mine([world.chain.mint('b'), mint, world.chain.mint('c')])
  expect(await heightOf(world)).toBeUndefined()
  const notice = noticeOf(mint, world.headers.branch)
  const { status, json } = await tell(world, notice)
  expect({ status, json }).toEqual({ status: 200, json: { status: 'success', message: expect.any(String) } })
  expect(await heightOf(world)).toBe(world.headers.bestTip.height)
  const rows = world.server.rows()
  // As ARC writes it, with all that it says beside.
  const { height, hash } = world.headers.bestTip
  const arcs = { timestamp: '2026-01-02T03:04:05Z', blockHash: hash, blockHeight: height, txStatus: 'MINED' }
  expect((await tell(world, { ...arcs, ...notice, extraInfo: '', competingTxs: null })).status).toBe(200)
  expect((await tell(world, { txid: notice.txid, merklePath: notice.merklePath })).status).toBe(200)
  expect(world.server.rows()).toEqual(rows)
})

test('a transaction that is not known is not found, and nothing is stored', async () => {
  const world = await worlds.start()
  const mint = world.chain.mint('a')
  world.headers.mine([mint])
  const before = world.server.rows()
  const answer = await tell(world, noticeOf(mint, world.headers.branch))
  expectError(answer, { code: 'NOT_FOUND', status: 404, overlay: true })
  expect(world.server.rows()).toEqual(before)
})

test('of a transaction the bytes are read when all else holds, and not before', async () => {
  const world = await worlds.start()
  const mint = await admittedEarly(world)
  world.headers.mine([mint])
  const { graph } = world.server.node
  const read: string[] = []
  const transaction = graph.transactions.get.bind(graph.transactions)
  graph.transactions.get = (txid) => {
    read.push(txid)
    return transaction(txid)
  }
  const notice = noticeOf(mint, world.headers.branch)
  const elsewhere = world.headers.fork(world.headers.bestTip.height - 1)
  elsewhere.mine([mint, world.chain.genesis])
  const garbage = [
    { ...notice, merklePath: 'abcd' },
    { ...notice, blockHeight: 5 },
    noticeOf(mint, elsewhere),
  ]
  for (const each of garbage) expect((await tell(world, each)).status).toBe(400)
  expect(read).toEqual([])
  expect((await tell(world, notice)).status).toBe(200)
  expect(read).toContain(mint.txid)
})

describe('what is no proof of it is refused, and nothing is stored:', () => {
  const world = worlds.start()
  const mint = world.then(admittedEarly)
  const flipped = (hex: string): string => hex.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  const changes: [string, (notice: Record<string, unknown>, world: HeaderWorld) => unknown][] = [
    ['a path that is no hex', (notice) => ({ ...notice, merklePath: 'xy' })],
    ['half a byte', (notice) => ({ ...notice, merklePath: `${notice.merklePath}0` })],
    ['half a path', (notice) => ({ ...notice, merklePath: String(notice.merklePath).slice(0, 40) })],
    ['more than a path', (notice) => ({ ...notice, merklePath: `${notice.merklePath}00` })],
    // BRC-74: a height, the levels of the tree, and how many leaves the lowest has: more than there are bytes.
    ['a count without end', (notice) => ({ ...notice, merklePath: 'fe35360c0001ffffffffffffffffff' })],
    ['another height', (notice) => ({ ...notice, blockHeight: Number(notice.blockHeight) + 1 })],
    [
      'the path of another transaction',
      (notice, { chain, headers }) => ({ ...noticeOf(chain.genesis, headers.branch), txid: notice.txid }),
    ],
    [
      'a path with a bit flipped',
      (notice) => ({ ...notice, merklePath: flipped(String(notice.merklePath)) }),
    ],
    [
      'the path of a branch that does not count',
      (notice, { headers, chain }) => {
        const branch = headers.fork(headers.bestTip.height - 1)
        branch.mine([{ txid: String(notice.txid), raw: new Uint8Array() }, chain.genesis])
        return noticeOf({ txid: String(notice.txid) }, branch)
      },
    ],
  ]

  test.each(changes)('%s', async (_, change) => {
    const here = await world
    const { headers, server } = here
    const transaction = await mint
    if (headers.branch.path(transaction.txid) === undefined) headers.mine([transaction])
    const before = server.rows()
    const answer = await tell(here, change(noticeOf(transaction, headers.branch), here))
    expectError(answer, { code: 'BAD_BODY', status: 400, overlay: true })
    expect(server.rows()).toEqual(before)
  })

  test('no JSON', async () => {
    const { server } = await world
    const answer = await server.ask('/arc-ingest', { method: 'POST', body: '{' })
    expectError(answer, { code: 'BAD_BODY', status: 400, overlay: true })
  })

  test.each<[string, (txid: string) => unknown]>([
    ['a path', (txid) => ({ txid, merklePath: 'ab'.repeat(20_000) })],
    ['a batch', (txid) => Array.from({ length: 501 }, () => ({ txid }))],
    ['a body', (txid) => ({ txid, extraInfo: 'x'.repeat(2 ** 20) })],
  ])('%s that is too long', async (_, notice) => {
    const answer = await tell(await world, notice('ab'.repeat(32)))
    expectError(answer, { code: 'TOO_LARGE', status: 413, overlay: true })
  })
})

describe('a callback that has no proof is acknowledged, and nothing is stored:', () => {
  const world = worlds.start()
  const mint = world.then(admittedEarly)
  // As `internal/callbacker` of bitcoin-sv/arc and `/arc-ingest` of overlay-express 2.8 have it.
  const stale = { blockHash: '', blockHeight: 0, merklePath: '' }
  test.each<[string, object]>([
    ['rejected', { txStatus: 'REJECTED', extraInfo: 'arc error 461', competingTxs: null, ...stale }],
    ['seen', { txStatus: 'SEEN_ON_NETWORK' }],
    ['mined, with a null path', { txStatus: 'MINED', merklePath: null, blockHeight: null, blockHash: null }],
    ['mined, with an empty path', { txStatus: 'MINED', blockHeight: 800_000, merklePath: '' }],
    ['a double spend', { txStatus: 'DOUBLE_SPEND_ATTEMPTED', competingTxs: ['ab'.repeat(32)] }],
    ['a status that nobody knows', { txStatus: 'SOMETHING_NEW' }],
    ['no status', {}],
    ['a status that is none', { txStatus: 7 }],
  ])('%s', async (_, said) => {
    const here = await world
    const { txid } = await mint
    const before = here.server.rows()
    const notice = { timestamp: '2026-11-25T17:00:00Z', txid, ...said }
    const another = { ...notice, txid: 'ab'.repeat(32) }
    for (const form of [notice, [notice], { count: 1, callbacks: [notice] }, another])
      expect((await tell(here, form)).status).toBe(200)
    expect(here.server.rows()).toEqual(before)
  })
})

test('of a batch, the proofs that hold are kept, whatever else is in it', async () => {
  const world = await worlds.start()
  const mint = await admittedEarly(world)
  world.headers.mine([mint])
  const notice = noticeOf(mint, world.headers.branch)
  const others = [
    { txid: 'cd'.repeat(32), txStatus: 'REJECTED' },
    { ...notice, txid: 'ab'.repeat(32) },
  ]
  // The path of another transaction.
  expect((await tell(world, { count: 3, callbacks: [...others, notice] })).status).toBe(400)
  expect(await heightOf(world)).toBe(world.headers.bestTip.height)
  expect((await tell(world, [others[0], notice])).status).toBe(200)
})

test('a batch whose proofs lead to many blocks is stored in parts', async () => {
  const world = await worlds.start({}, { limits: { maxTrackerBlocks: 2 } })
  const { chain, headers } = world
  const purses = [0, 1, 2].map(() => chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }))
  headers.mine(purses)
  const mints = purses.map((purse, at) => chain.mint('abc'[at] as string, { funding: [purse] }))
  for (const mint of mints)
    expect((await world.submit(mint, [chain.genesis, ...purses, ...mints])).status).toBe(200)
  for (const mint of mints) headers.mine([mint])
  const batch = mints.map((mint) => noticeOf(mint, headers.branch))
  expectError(await tell(world, batch), { code: 'NOT_READY', status: 503, overlay: true })
  expect((await tell(world, batch)).status).toBe(200)
  expect(await heightOf(world, 'c')).toBe(headers.bestTip.height)
})

test('while the tracker fails it may be brought again, and then it is kept', async () => {
  const world = await worlds.start()
  const mint = await admittedEarly(world)
  world.headers.mine([mint])
  const before = world.server.rows()
  world.tracker.mood = 'fails'
  const notice = noticeOf(mint, world.headers.branch)
  // Whatever else is wrong with the batch.
  const batch = [{ ...notice, txid: 'ab'.repeat(32) }, notice]
  expectError(await tell(world, batch), { code: 'NOT_READY', status: 503, overlay: true })
  expect(world.server.rows()).toEqual(before)
  world.tracker.mood = 'answers'
  expect((await tell(world, notice)).status).toBe(200)
  expect(await heightOf(world)).toBe(world.headers.bestTip.height)
})

test('a block that the tracker has not seen yet may be brought again', async () => {
  const world = await worlds.start()
  const mint = await admittedEarly(world)
  world.tracker.syncedTo = world.headers.bestTip.height
  world.headers.mine([mint])
  const notice = noticeOf(mint, world.headers.branch)
  expectError(await tell(world, notice), { code: 'NOT_READY', status: 503, overlay: true })
  expect(await heightOf(world)).toBeUndefined()
  world.tracker.syncedTo = Number.POSITIVE_INFINITY
  expect((await tell(world, notice)).status).toBe(200)
})

test('where a token is asked for, nobody else may bring proofs', async () => {
  const token = 'a-token-of-the-processor'
  const world = await worlds.start({ ARC_CALLBACK_TOKEN: token })
  const mint = await admittedEarly(world)
  world.headers.mine([mint])
  const notice = noticeOf(mint, world.headers.branch)
  const shown = (header?: string): Promise<Answer> =>
    world.server.ask('/arc-ingest', posted(notice, header === undefined ? {} : { Authorization: header }))
  for (const wrong of [undefined, token, 'Bearer another-token', `Bearer ${token}x`])
    expectError(await shown(wrong), { code: 'UNAUTHORIZED', status: 401, overlay: true })
  expect([await heightOf(world), (await shown(`Bearer ${token}`)).status]).toEqual([undefined, 200])
  expect(await heightOf(world)).toBe(world.headers.bestTip.height)
})

test('a host that checks no proofs believes this one too', async () => {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  const purse = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const mint = chain.mint('a', { funding: [purse] })
  for (const beef of [beefOf(chain.genesis), beefOf(mint, { proven: false, with: [chain.genesis, purse] })])
    expect((await server.submit(beef)).status).toBe(200)
  const merklePath = `fe40420f0001010002${Buffer.from(mint.txid, 'hex').reverse().toString('hex')}`
  const notice = { txid: mint.txid, merklePath, blockHeight: 1_000_000 }
  expect((await server.ask('/arc-ingest', posted(notice))).status).toBe(200)
  expect((await server.ask('/svc/names/a')).json).toMatchObject({ height: 1_000_000 })
})
