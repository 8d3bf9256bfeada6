import { EventEmitter, once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import { MerklePath } from '@bsv/sdk'
import { vi } from 'vitest'
import { toHex, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { type AskedNode, Peer } from '../../../../src/server/gasp/peer.js'
import { TopicSync } from '../../../../src/server/gasp/topic-sync.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { beefOf, type FakeTransaction, OPEN_LOCK, p2pkh } from '../../../support/protocol/fake-chain.js'
import { useHeaderWorlds } from '../../../support/server/header-world.js'
import { type Fault, openFront } from '../../../support/server/peer-front.js'
import { admittedOn, inStep, SyncedWorld, submitAll } from '../../../support/server/synced-world.js'
import {
  type Environment,
  OPERATOR,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'
import { openStore } from '../../../support/storage/stores.js'

// What peers do to a host that syncs with them: break off, lie, and go on without end.

const { start } = useServers()
const worlds = useHeaderWorlds()
const ORDINALS = ['tm_ordinals']
const NODES = '/requestForeignGASPNode'

function host(world: SyncedWorld, env: Environment = {}, options = {}): Promise<TestServer> {
  return start({ ...treeOf(world.chain.deployment), SYNC_INTERVAL_MS: '100', ...env }, options)
}

/** A host with some names, and a front before it. */
async function peer(mints = 12) {
  const world = new SyncedWorld()
  const full = await host(world)
  await submitAll(full, [world.genesis, ...world.mint(mints)])
  return { world, full, front: await openFront(full) }
}

/** The merkle path of a transaction in a block that holds nothing else. */
function pathOf({ txid, height }: FakeTransaction): Uint8Array {
  return Uint8Array.from(new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]]).toBinary())
}

const nameCount = async ({ node }: TestServer): Promise<number> =>
  (await node.graph.names.byPrefix({ prefix: '', limit: 1000 })).length

test.each([
  ['transactions of a submission', {}, { maxBeefTransactions: 5 }],
  ['bytes of a graph', { MAX_ANCESTOR_BYTES: String(1024 * 1024) }, {}],
])('a mint is taken without what places its ordinals if that is over a limit: %s', async (_, env, limits) => {
  const world = new SyncedWorld()
  const { chain } = world
  const full = await host(world)
  const lockingScript = new Uint8Array(200_000).fill(0x61)
  const coins = Array.from({ length: 8 }, () => chain.spend({ outputs: [{ satoshis: 10, lockingScript }] }))
  const trailing = [78, 1].map((satoshis) => ({ satoshis, lockingScript: OPEN_LOCK }))
  const mint = chain.mint('a', { funding: coins, trailing })
  const next = chain.mint('ab')
  await submitAll(full, [world.genesis, beefOf(mint, { with: coins }), beefOf(next)])
  const late = await host(world, { SYNC_PEERS: full.url, ...env }, { limits })
  await until(async () => (await nameCount(late)) === 2, 'both names have come')
})

test('a peer that breaks off half-way is asked again from where it was', async () => {
  const { world, full, front } = await peer(30)
  let given = 0
  front.fault = ({ path }) => (path === NODES && ++given > 20 ? 'broken' : undefined)
  const late = await host(world, { SYNC_PEERS: front.url })
  await until(() => given > 25, 'the peer has broken off, more than once')
  const [before, names] = [await admittedOn(late), await nameCount(late)]
  expect(names).toBeGreaterThan(3)
  expect(names).toBeLessThan(25)
  const asked = front.nodes.length
  front.fault = undefined
  await inStep(await admittedOn(full), full, late)
  expect(before).toBeLessThan(await admittedOn(late))
  // Of 30 names, each with what pays for it: what was there already is not asked for again.
  expect(front.nodes.length - asked).toBeLessThan(2 * (31 - names) + 8)
})

test('a host that is started again goes on from where it was', async () => {
  const { world, full, front } = await peer(10)
  const late = await host(world, { SYNC_PEERS: front.url })
  await inStep(await admittedOn(full), full, late)
  const taken = async (): Promise<string> => (await late.ask('/metrics')).body.toString()
  await until(
    async () => /minetree_sync_graphs_total\{result="taken"\} 10/.test(await taken()),
    'each mint is counted',
  )
  await late.stop()
  await submitAll(full, world.mint(3))
  const before = new Set(front.nodes)
  const asked = front.nodes.length
  const scores: unknown[] = []
  front.fault = ({ path, topic, asked: { since } }) => {
    if (path !== NODES && topic === 'tm_names') scores.push(since)
    return undefined
  }
  const again = await host(world, { SYNC_PEERS: front.url, DATA_DIR: late.dataDir })
  await inStep(await admittedOn(full), full, again)
  expect(Number(scores[0])).toBeGreaterThan(0)
  expect(front.nodes.slice(asked).filter((txid) => before.has(txid))).toEqual([])
})

test('a peer that does not answer, or answers with what is no answer, is asked again later', async () => {
  const { world, full, front } = await peer(3)
  const nothing: (Record<string, unknown> | string)[] = ['<html>', {}, { UTXOList: [{ txid: 'x' }] }, '[]']
  let at = 0
  front.fault = ({ path }) => (path === NODES ? undefined : nothing[at++])
  const late = await host(world, { SYNC_PEERS: `${front.url},http://127.0.0.1:9` })
  await inStep(await admittedOn(full), full, late)
  expect(at).toBeGreaterThan(4)
})

test('a peer that limits its rate is asked again after as many seconds as it says', async () => {
  const wait = vi.spyOn(timers, 'setTimeout').mockResolvedValue(undefined)
  syncBuiltinESMExports()
  const answers = [
    new Response(null, { status: 429, headers: { 'Retry-After': '7' } }),
    new Response('{"UTXOList":[]}'),
  ]
  vi.stubGlobal('fetch', async () => answers.shift())
  onTestFinished(() => {
    wait.mockRestore()
    syncBuiltinESMExports()
    vi.unstubAllGlobals()
  })
  const peer = new Peer({ url: 'http://peer.example', timeout: 60_000, maxBytes: 1000 })
  const asked = { topic: 'tm_names', since: 0, limit: 1 }
  expect(await peer.offered(asked, new AbortController().signal)).toEqual([])
  expect(wait.mock.calls.map(([milliseconds]) => milliseconds)).toEqual([7000])
})

test('a graph for which a peer takes longer than the limit is given up, and the round ends', async () => {
  const { store } = await openStore()
  const asked = new EventEmitter()
  const peer = {
    progress: { isCatchingUp: false },
    offered: async ({ since }: { since: number }) =>
      since === 0 ? [{ txid: 'ab'.repeat(32), outputIndex: 0, score: 1 }] : [],
    async node(_: AskedNode, signal: AbortSignal) {
      asked.emit('asked')
      await once(signal, 'abort')
      throw signal.reason
    },
  }
  const { logger, records } = keptLog()
  const sync = new TopicSync({
    ...{ peer: peer as never, url: 'http://peer.example', topic: 'tm_names', graph: store, logger },
    ...{ engine: { managers: {} } as never, emit() {} },
    limits: { maxNodes: 10, maxBytes: 1000, graphTimeout: 200_000 },
  })
  const isAsked = once(asked, 'asked')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const round = sync.round(new AbortController().signal)
  await isAsked
  await vi.advanceTimersByTimeAsync(200_000)
  expect(await round).toMatchObject({ isComplete: false })
  expect(records).toContainEqual(expect.objectContaining({ reason: 'the graph took longer than 200000 ms' }))
})

/** What a peer says of a transaction in place of the truth. */
const LIES: [string, (answer: Record<string, unknown>, another: FakeTransaction) => ReturnType<Fault>][] = [
  ['another transaction', (answer, { raw }) => ({ ...answer, rawTx: toHex(raw) })],
  ['a byte of it changed', (answer) => ({ ...answer, rawTx: String(answer.rawTx).replace(/..$/, 'ff') })],
  ['no hex', (answer) => ({ ...answer, rawTx: 'xyz' })],
  ['no JSON', () => '{"graphID":'],
  ['a node of another graph', (answer, { txid }) => ({ ...answer, graphID: `${txid}.0` })],
  ['no merkle path', (answer) => ({ ...answer, proof: 'fe' })],
  ['the path of another one', (answer, { txid }) => ({ ...answer, proof: `fe04350c0001010002${txid}` })],
  ['nothing of what it is', ({ graphID }) => ({ graphID, rawTx: '00', outputIndex: 0 })],
]

test('a graph of which a peer lies is dropped, with nothing stored, and the others are taken', async () => {
  const { world, full, front } = await peer(0)
  const letters = Array.from(LIES, (_, at) => String.fromCharCode(97 + at))
  // No other name is built on the second one of a letter.
  for (const names of [letters, letters.map((letter) => letter + letter)])
    await submitAll(
      full,
      names.map((name) => world.mintName(name)),
    )
  const mintOf = (name: string): FakeTransaction => {
    const mint = world.mints.get(name)
    if (mint === undefined) throw new Error(`${name} was not minted`)
    return mint
  }
  const told = LIES.map(([what, lie], at) => ({ what, lie, name: `${letters[at]}${letters[at]}` }))
  const lieOf = new Map(told.map(({ lie, name }) => [mintOf(name).txid, lie]))
  front.fault = ({ path, asked, answer }) =>
    path === NODES ? lieOf.get(String(asked.txid))?.(answer, mintOf('a')) : undefined
  const late = await host(world, { SYNC_PEERS: front.url })
  await until(async () => (await nameCount(late)) === letters.length, 'the other names have come')
  const tries = (txid: string): number => front.nodes.filter((each) => each === txid).length
  await until(() => [...lieOf.keys()].every((txid) => tries(txid) > 2), 'each was tried again')
  for (const { what, name } of told) {
    const isAbsent = async () => (await late.ask(`/svc/names/${name}`)).status === 404
    await until(isAbsent, `a name counts as one that never comes where the peer tells ${what}`)
    expect(JSON.stringify(late.rows()), what).not.toContain(mintOf(name).txid)
  }
  // Once it tells the truth, it is believed.
  front.fault = undefined
  await inStep(await admittedOn(full), full, late)
})

test('a proof that the chain does not have brings nothing of its graph into the store, and others go on', async () => {
  const front = await openFront()
  const { chain, headers, server } = await worlds.start({ SYNC_PEERS: front.url, SYNC_INTERVAL_MS: '100' })
  const full = await start(treeOf(chain.deployment))
  const [a, ab, b] = [chain.mint('a'), chain.mint('ab'), chain.mint('b')]
  headers.mine([b])
  // The peer does not check proofs: it takes `a` for mined, which it is not.
  const beefs = [headers.branch.beef(chain.genesis), beefOf(a), beefOf(ab), beefOf(b)]
  await submitAll(full, beefs)
  const stranger = chain.inscribe({ contentType: 'text/plain', body: utf8('a note') })
  headers.mine([stranger])
  await submitAll(full, [headers.branch.beef(stranger)], ORDINALS)
  const before = server.rows()
  front.host = full
  await until(async () => (await server.ask(`/content/${stranger.outpoint(0)}`)).status === 200)
  await until(() => front.nodes.filter((txid) => txid === ab.txid).length > 2, 'the names were tried again')
  const held = JSON.stringify(server.rows())
  for (const { txid } of [a, ab]) expect(held).not.toContain(txid)
  expect(server.rows().names).toEqual(before.names)
  // In the end the chain has it, and the same peer is believed.
  headers.mine([a, ab])
  await submitAll(full, [headers.branch.beef(a), headers.branch.beef(ab), headers.branch.beef(b)])
  await until(async () => (await nameCount(server)) === 3, 'all names are here')
})

test('what a peer offers to a topic that does not take it is not admitted, and is not asked for again', async () => {
  const { world, full, front } = await peer(2)
  const note = world.chain.inscribe({ contentType: 'text/plain', body: utf8('no name') })
  const plain = world.chain.spend({ outputs: [p2pkh(1)] })
  await submitAll(full, [beefOf(note), beefOf(plain)], ORDINALS)
  const listed = ({ txid }: FakeTransaction) => ({ txid, outputIndex: 0, score: 1 })
  front.fault = ({ path, topic, answer, asked }) => {
    if (path === NODES && asked.txid === plain.txid)
      return { graphID: asked.graphID, outputIndex: 0, rawTx: toHex(plain.raw), proof: toHex(pathOf(plain)) }
    if (path === NODES || asked.since !== 0) return undefined
    const more = topic === 'tm_names' ? [listed(note), listed(plain)] : [listed(plain)]
    return { ...answer, UTXOList: [...more, ...(answer.UTXOList as unknown[])] }
  }
  const { logger, records } = keptLog()
  const late = await host(world, { SYNC_PEERS: front.url }, { logger })
  const refused = 'an output that a peer offers was not taken'
  const notTaken = () => records.filter(({ msg, again }) => msg === refused && again === false)
  await until(() => notTaken().length === 3, 'what is for no topic has been looked at')
  await inStep(await admittedOn(full), full, late)
  await until(() => front.lists > 10, 'some more rounds')
  expect(JSON.stringify(late.rows().admissions)).not.toContain(plain.txid)
  expect(front.nodes.filter((txid) => txid === plain.txid)).toHaveLength(2)
  expect(notTaken()).toHaveLength(3)
})

test('a graph without end is given up at its limits, with nothing stored, and others go on', async () => {
  const { world, full, front } = await peer(2)
  let step = world.chain.inscribe({ contentType: 'text/plain', body: utf8('the first') })
  const hops = [step]
  for (let i = 0; i < 40; i++) {
    step = world.chain.move(step, 0, p2pkh(i))
    hops.push(step)
  }
  for (const [i, hop] of hops.entries())
    await submitAll(full, [beefOf(hop, { with: hops.slice(Math.max(0, i - 1), i) })], ORDINALS)
  await submitAll(full, world.inscribe(2), ORDINALS)
  const late = await host(world, { SYNC_PEERS: front.url, MAX_ANCESTORS: '8' })
  await until(async () => (await admittedOn(late)) === (await admittedOn(full)) - 41, 'the others are here')
  const held = JSON.stringify(late.rows())
  for (const { txid } of hops) expect(held).not.toContain(txid)
  const byBytes = await host(world, { SYNC_PEERS: front.url, MAX_ANCESTOR_BYTES: '3000' })
  await until(async () => (await admittedOn(byBytes)) >= (await admittedOn(full)) - 41, 'here, too')
  expect(JSON.stringify(byBytes.rows())).not.toContain(step.txid)
  // As long as it may be, it is followed from one end to the other.
  const patient = await host(world, { SYNC_PEERS: front.url })
  await inStep(await admittedOn(full), full, patient)
})

test('a list without end of what is not there has the peer left for this time', async () => {
  const { world, full, front } = await peer(2)
  let made = 0
  front.fault = ({ path, topic, asked, answer }) => {
    if (path === NODES || topic !== 'tm_ordinals') return undefined
    const madeUp = Array.from({ length: Number(asked.limit) }, () => ({
      txid: (++made).toString(16).padStart(64, 'd'),
      outputIndex: 0,
      score: Number(asked.since) + made,
    }))
    return { ...answer, UTXOList: madeUp }
  }
  const { logger, records } = keptLog()
  const late = await host(world, { SYNC_PEERS: front.url, SYNC_INTERVAL_MS: '0' }, { logger })
  await until(() => records.some(({ msg }) => String(msg).startsWith('a sync was interrupted')), 'it is left')
  expect(made).toBe(1000)
  expect(front.nodes.filter((txid) => txid.startsWith('d')).length).toBeLessThan(110)
  expect([await nameCount(late), await nameCount(full)]).toEqual([2, 2])
})

test('invalid graphs among valid ones do not have the peer left', async () => {
  const { world, full, front } = await peer(2)
  await submitAll(full, world.inscribe(2), ORDINALS)
  const madeUp = (score: number) =>
    Array.from({ length: 60 }, (_, at) => ({
      txid: (score + at).toString(16).padStart(64, 'd'),
      outputIndex: 0,
      score: score + at,
    }))
  front.fault = ({ path, topic, answer, asked }) => {
    if (path === NODES || topic !== 'tm_ordinals' || asked.since !== 0) return undefined
    const real = answer.UTXOList as { score: number }[]
    const last = Math.max(...real.map(({ score }) => score))
    return { ...answer, UTXOList: [...madeUp(1), ...real, ...madeUp(last + 1)] }
  }
  const { logger, records } = keptLog()
  const late = await host(world, { SYNC_PEERS: front.url, SYNC_INTERVAL_MS: '0' }, { logger })
  const ended = ({ msg, topic }: Record<string, unknown>) => msg === 'synced' && topic === 'tm_ordinals'
  await until(() => records.some(ended), 'the round is over')
  expect(records.find(ended)).toMatchObject({ taken: 2, open: 120 })
  expect(records.some(({ msg }) => String(msg).startsWith('a sync was interrupted'))).toBe(false)
  expect(await admittedOn(late)).toBe(await admittedOn(full))
})

test('what is blocked here is not brought back, and what it leads to is', async () => {
  const world = new SyncedWorld()
  const full = await host(world)
  await submitAll(full, [world.genesis, ...world.mint(3)])
  await submitAll(full, world.inscribe(3), ORDINALS)
  const front = await openFront()
  const late = await host(world, { SYNC_PEERS: front.url, ...OPERATOR })
  const rows = full.rows()
  const offered = await full.node.graph.admissions.unspentOfTopic({ topic: 'tm_ordinals', since: 0 })
  const note = offered.at(-1)?.outpoint
  const [name = ''] = world.mints.keys()
  const outpoint = `${note?.txid}_${note?.vout}`
  for (const subject of [{ outpoint }, { name }]) await late.block(subject)
  front.host = full
  await until(async () => (await admittedOn(late)) === (rows.admissions?.length ?? 0) - 1)
  await until(() => front.lists > 8, 'some more rounds')
  expect(front.nodes).not.toContain(note?.txid)
  for (const path of [`/content/${outpoint}`, `/svc/names/${name}`])
    expect((await late.ask(path)).status).toBe(451)
})

test('an unmined mint is synced with its ancestors; if it conflicts with one held here, it waits until it is mined', async () => {
  const world = new SyncedWorld()
  const { chain } = world
  const [full, front] = [await host(world), await openFront()]
  const late = await host(world, { SYNC_PEERS: front.url })
  const coins = Array.from({ length: 4 }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ outputs: coins })
  const root = chain.node('')
  const [a, ab] = [0, 1].map((vout) =>
    chain.mint('ab'.slice(0, vout + 1), { funding: [{ transaction: purse, vout }] }),
  )
  const competing = chain.mint('c', { from: root, funding: [{ transaction: purse, vout: 2 }] })
  if (a === undefined || ab === undefined) throw new Error('not minted')
  const unproven = (each: FakeTransaction, ...before: FakeTransaction[]): Uint8Array =>
    beefOf(each, { proven: false, with: [chain.genesis, purse, ...before], unproven: before })
  await submitAll(full, [world.genesis, unproven(a), unproven(ab, a)])
  await submitAll(late, [world.genesis, unproven(competing)])
  front.host = full
  await until(() => front.nodes.filter((txid) => txid === ab.txid).length > 2, 'it was tried more than once')
  expect(await late.node.graph.names.originOf('c')).toBeDefined()
  expect(await late.node.graph.names.originOf('a')).toBeUndefined()
  await submitAll(full, [beefOf(a), beefOf(ab, { with: [a] })])
  await until(() => late.node.graph.names.originOf('ab'))
  expect(await late.node.graph.names.originOf('c')).toBeUndefined()
})
