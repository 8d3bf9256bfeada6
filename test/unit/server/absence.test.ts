import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { EXIT_CODES } from '../../../src/cli/command.js'
import { failureOf } from '../../../src/cli/exit-codes.js'
import { LookupNameSource } from '../../../src/client/lookup-source.js'
import { HttpNameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { askLiveNode } from '../../../src/mining/server-answers.js'
import { builtPages } from '../../support/cli/built-package.js'
import { type FollowWorld, useFollowWorlds } from '../../support/follow/follow-world.js'
import { whileReplaced } from '../../support/gateway/faults.js'
import { OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { type Answer, type Environment, posted, type TestServer } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

// What a host answers about names that it does not have: nothing, until it has followed the tree to its end once.

const pages = await builtPages()
const { world, servers } = useFollowWorlds()

const FOLLOWS = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '100', HEADERS_POLL_MS: '100' }
const HTML = { headers: { Accept: 'text/html' } }
const NOBODY = `${'ab'.repeat(32)}_2`

const settings = ({ env, url }: FollowWorld, more: Environment = {}): Environment => ({
  ...{ ...env, ...FOLLOWS, CHAIN_SOURCES: url, GATEWAY_HOST: 'localhost' },
  ...more,
})

const lookup = (query: unknown) => posted({ service: 'ls_names', query })
const binary = (query: unknown) => {
  const { headers, ...asked } = lookup(query)
  const accept = { 'X-Aggregation': 'yes', Accept: 'application/octet-stream' }
  return { ...asked, headers: { ...headers, ...accept } }
}

type Absence = [what: string, ask: (server: TestServer) => Promise<Answer>, known: number]

/** Every way to be told that there is no name `zz`, with the answer of a host that knows. */
const ABSENCES: Absence[] = [
  ['origin', (server) => server.ask('/svc/names/origin/zz'), 404],
  ['record', (server) => server.ask('/svc/names/zz'), 404],
  ['mine', (server) => server.ask('/svc/names/mine/zz'), 200],
  ['proof', (server) => server.ask('/svc/names/proof/zz'), 404],
  ['what it takes', (server) => server.ask('/svc/names?available=zz'), 200],
  ['end of a list', (server) => server.ask('/svc/names?prefix=zz'), 200],
  ['origins', (server) => server.ask('/svc/names/origins', posted([NOBODY])), 200],
  ['tree', (server) => server.ask('/svc/gateway/tree/zz'), 404],
  ['search', (server) => server.ask('/svc/gateway/search?text=zz'), 200],
  ...['name', 'origin', 'domain', 'mine'].map(
    (form): Absence => [`ls_names ${form}`, (server) => server.ask('/lookup', lookup({ [form]: 'zz' })), 200],
  ),
  ['ls_names in binary', (server) => server.ask('/lookup', binary({ name: 'zz', history: true })), 200],
  ['ls_names node', (server) => server.ask('/lookup', lookup({ node: '' })), 200],
  ['ls_names event', (server) => server.ask('/lookup', lookup({ event: 'opns:zz' })), 200],
  ['ls_names event of a node', (server) => server.ask('/lookup', lookup({ event: 'mine:' })), 200],
  ['ls_names origins', (server) => server.ask('/lookup', lookup({ origins: [NOBODY] })), 200],
  ['ls_names prefix', (server) => server.ask('/lookup', lookup({ prefix: 'zz' })), 200],
  ['ls_names output', (server) => server.ask('/lookup', lookup({ outpoint: NOBODY })), 200],
  ['alias of wallets', (server) => server.ask('/svc/overlay/lookup', lookup({ name: 'zz' })), 200],
  ['page', (server) => server.ask('/name/zz', HTML), 200],
  ['page of the tree', (server) => server.ask('/tree?prefix=zz', HTML), 404],
  ['page of a search', (server) => server.ask('/search?q=zz', HTML), 303],
  ['host', (server) => onHost(server, 'zz', {}), 404],
  ['host as a page', (server) => onHost(server, 'zz', HTML.headers), 404],
]

function onHost(server: TestServer, name: string, headers: Record<string, string>): Promise<Answer> {
  return server.ask('/', { headers: { ...headers, Host: `${name}.localhost:${new URL(server.url).port}` } })
}

/** What the answers of a host are that does not have the name `zz`, by what was asked. */
async function absencesOf(server: TestServer): Promise<Record<string, number>> {
  const answers: Record<string, number> = {}
  for (const [what, ask] of ABSENCES) answers[what] = (await ask(server)).status
  return answers
}

const KNOWN = Object.fromEntries(ABSENCES.map(([what, , status]) => [what, status]))
const NOT_YET = Object.fromEntries(ABSENCES.map(([what]) => [what, 503]))

/** The block as of which it says where a name is. */
async function asOfOf(server: TestServer) {
  const { headers, json } = await server.ask('/svc/names/origin/a')
  const { asOf } = json as { asOf?: { height: number; hash: string } }
  const said = headers['x-as-of']
  expect(said === undefined ? undefined : JSON.parse(String(said))).toEqual(asOf)
  return asOf
}

async function untilCaughtUp(server: TestServer): Promise<void> {
  await until(async () => (await server.ask('/svc/names/zz')).status === 404, 'the host has caught up')
}

test('a host that has heard of nothing knows of no absence, and says when to ask again', async () => {
  const followed = await world()
  followed.service.fault = () => ({ kind: 'status', status: 500 })
  const server = await servers.start(settings(followed), { pages })
  const { height } = followed.tree.headers.bestTip
  await until(async () => ((await server.ask('/health')).json as { height?: number }).height === height)
  for (const [what, ask] of ABSENCES) {
    const { status, headers, body } = await ask(server)
    expect({ what, status }).toEqual({ what, status: 503 })
    expect(headers).toMatchObject({ 'retry-after': '30' })
    if (String(headers['content-type']).startsWith('text/html')) {
      expect(body.toString()).toMatch(/not found yet|not followed the tree/)
      expect(body.toString()).not.toMatch(/Mine it|Nobody has mined|\/mine\?name=/)
    } else
      expect(JSON.parse(body.toString())).toMatchObject({
        code: 'NOT_CAUGHT_UP',
        progress: { chainHeight: height },
      })
  }
  for (const path of ['/', '/names', '/mine', '/status']) {
    const page = (await server.ask(path, HTML)).body.toString()
    expect(page).toContain('This host is still following the tree of names')
    expect(page).not.toMatch(/id="start"|Mine one|Mine the first one/)
  }
  expect((await server.ask('/feeds/names.atom')).body.toString()).toContain('<subtitle>Incomplete')
  expect((await server.ask('/svc/gateway/counts')).json).toMatchObject({ names: 0, complete: false })
  // What is no name is here or not.
  expect((await server.ask(`/content/${NOBODY}`)).status).toBe(404)
  expect((await server.ask(`/svc/gateway/metadata/${NOBODY}`)).status).toBe(404)
})

test('what is found is answered meanwhile, and says that it is not all; then with the block', async () => {
  const followed = await world()
  const { tree, service } = followed
  // What spends the node of `b` is not told, so that all below `b` is missing.
  const held = tree.mintOf('b').outpoint(1)
  service.fault = (path) => (path.includes(held) ? { kind: 'status', status: 500 } : undefined)
  const server = await servers.start(settings(followed))
  await until(async () => (await server.ask('/svc/names/abc')).status === 200, 'a name is found')
  expect(await absencesOf(server)).toEqual(NOT_YET)
  const record = await server.ask('/svc/names/a')
  expect(record.headers).toMatchObject({ 'x-complete': 'false' })
  expect(record.json).toMatchObject({ name: 'a', complete: false })
  // Something may spend its node.
  expect(record.json).not.toHaveProperty('node')
  expect(record.json).not.toHaveProperty('asOf')
  // Mined is mined.
  expect((await server.ask('/svc/names/mine/a')).json).toMatchObject({ code: 'TAKEN' })
  expect((await server.ask('/lookup', lookup({ mine: 'a' }))).status).toBe(200)
  expect((await server.ask('/lookup', lookup({ node: 'a' }))).status).toBe(503)
  const origin = tree.mintOf('a').outpoint(2)
  expect((await server.ask('/svc/names/origins', posted([origin]))).json).toEqual({ [origin]: true })
  expect((await server.ask('/svc/names/origins', posted([origin, NOBODY]))).json).toMatchObject({
    code: 'NOT_CAUGHT_UP',
    origins: { [origin]: true },
  })
  expect((await server.ask('/lookup', lookup({ origins: [origin] }))).status).toBe(200)
  expect((await server.ask('/lookup', lookup({ origins: [origin, NOBODY] }))).status).toBe(503)
  // Nor would a host that follows the tree by this one take the node for live.
  expect((await server.ask(`/svc/txo/${held}/spend`)).json).toMatchObject({ code: 'NOT_CAUGHT_UP' })
  expect((await server.ask(`/svc/txo/${origin}/spend`)).status).toBe(200)
  // A list goes on as long as it is not known to end.
  const names: string[] = []
  for (let after = ''; ; ) {
    const page = await server.ask(`/svc/names?prefix=a&after=${after}&limit=2`)
    if (page.status === 503) break
    const list = page.json as { names: { name: string }[]; next: string; complete: false }
    expect(list.complete).toBe(false)
    names.push(...list.names.map(({ name }) => name))
    after = list.next
  }
  expect(names).toEqual(['a', 'ab', 'abc'])
  const node = (await server.ask('/svc/gateway/tree/a')).json
  expect(node).toMatchObject({ children: [{ domain: 'ab' }], complete: false })
  expect(JSON.stringify(node)).not.toMatch(/"outpoint"|"free"/)
  const page = (await server.ask('/name/a', HTML)).body.toString()
  expect(page).toContain('This host is still following')
  expect(page).not.toContain('/mine?name=')
  const search = (await server.ask('/svc/gateway/search?text=a')).json
  expect(search).toMatchObject({ results: [{ kind: 'name' }], complete: false })

  service.fault = () => undefined
  await untilCaughtUp(server)
  expect([await absencesOf(server), (await server.ask('/svc/names/bab')).status]).toEqual([KNOWN, 200])
  const { height, hash } = tree.headers.bestTip
  expect(await asOfOf(server)).toEqual({ height, hash })
  const after = await server.ask('/svc/names/a')
  expect(after.json).toMatchObject({ asOf: { height, hash }, node: expect.any(String) })
  expect(after.json).not.toHaveProperty('complete')
  expect(after.headers).not.toHaveProperty('x-complete')
  const clear = (await server.ask('/name/a', HTML)).body.toString()
  expect(clear).not.toContain('still following')
  expect(clear).toContain('/mine?name=a')
})

test('clients and commands take a host that catches up for one that does not know, and ask another', async () => {
  const followed = await world()
  const { tree, service } = followed
  service.fault = () => ({ kind: 'status', status: 500 })
  const behind = await servers.start(settings(followed))
  const { url } = behind
  const early = { code: 'NOT_CAUGHT_UP', message: expect.stringContaining('ask another server') }
  const sources = [
    new HttpNameSource({ url }),
    new LookupNameSource({ resolver: { networkPreset: 'local', hostOverrides: { ls_names: [url] } } }),
  ]
  for (const source of sources)
    expect(await source.ask('zz')).toMatchObject([{ index: url, kind: 'failed', error: early }])
  await expect(askLiveNode({ url, name: 'zz' })).rejects.toMatchObject(early)
  await expect(new HttpMineIndex({ url }).showNode('zz')).rejects.toMatchObject(early)
  const mining = await askLiveNode({ url, name: 'zz' }).catch((error: unknown) => error)
  expect(failureOf(mining)).toMatchObject({ isExpected: true, exitCode: EXIT_CODES.unavailable })

  const question = { deployment: tree.chain.deployment, chainTracker: 'scripts only' as const }
  const unknown = await resolveName({ ...question, name: 'zz', sources }).catch((error: unknown) => error)
  expect(unknown).toMatchObject({ code: 'NO_PROOF', message: expect.stringContaining('ask another server') })
  expect(failureOf(unknown)).toMatchObject({ exitCode: EXIT_CODES.unavailable })
  service.fault = () => undefined
  const other = await servers.start(settings(followed))
  await untilCaughtUp(other)
  service.fault = () => ({ kind: 'status', status: 500 })
  const empty = await servers.start(settings(followed))
  const both = [empty.url, other.url].map((each) => new HttpNameSource({ url: each }))
  expect(await resolveName({ ...question, name: 'bab', sources: both })).toMatchObject({ name: 'bab' })
  const none = resolveName({ ...question, name: 'zz', sources: both })
  await expect(none).rejects.toMatchObject({ code: 'NOT_CLAIMED' })
})

test('every answer about names says as of which block it is, from memory too, and no other one', async () => {
  const followed = await world()
  const { tree, service } = followed
  const server = await servers.start(settings(followed))
  await untilCaughtUp(server)
  const origin = tree.mintOf('a').outpoint(2)
  type Asked = [path: string, question?: object]
  const inBody: Asked[] = [
    ...['origin/a', 'a', 'mine/zz', '?prefix=a'].map(
      (path): Asked => [`/svc/names/${path}`.replace('/?', '?')],
    ),
    ...['counts', 'newest/names', 'tree/a', 'search?text=a'].map((path): Asked => [`/svc/gateway/${path}`]),
    ...[{ name: 'a' }, { name: 'a', history: true }, { name: 'zz' }].map(
      (query): Asked => ['/lookup', lookup(query)],
    ),
  ]
  const inHeader: Asked[] = [
    ['/svc/names/origins', posted([origin])],
    ['/svc/names/proof/a'],
    ['/lookup', binary({ name: 'a', history: true })],
    ...['/', '/names', '/name/a', '/tree', '/search?q=zz'].map((path): Asked => [path, HTML]),
  ]
  const expectAll = async (): Promise<void> => {
    const { height, hash } = tree.headers.bestTip
    await until(async () => (await asOfOf(server))?.height === height, 'the block is followed')
    // Once more from memory.
    for (const [path, question] of [...inBody, ...inHeader, ...inBody, ...inHeader]) {
      const { headers, body } = await server.ask(path, question)
      expect({ path, said: JSON.parse(String(headers['x-as-of'])) }).toEqual({ path, said: { height, hash } })
      expect(headers['content-length'] ?? String(body.length)).toBe(String(body.length))
    }
    for (const [path, question] of inBody)
      expect([path, (await server.ask(path, question)).json]).toMatchObject([
        path,
        { asOf: { height, hash } },
      ])
    for (const path of ['origin/zz', 'zz', 'mine/a', 'proof/zz'].map((each) => `/svc/names/${each}`)) {
      const answer = await server.ask(path)
      expect([path, answer.status, answer.json]).toMatchObject([path, 404, { asOf: { height, hash } }])
      expect(JSON.parse(String(answer.headers['x-as-of']))).toEqual({ height, hash })
    }
    for (const path of ['/content/', '/svc/gateway/metadata/', '/svc/gateway/stream/'])
      expect((await server.ask(path + origin)).headers).not.toHaveProperty('x-as-of')
    const page = (await server.ask('/name/a', HTML)).body.toString()
    expect(page).toContain(`Names as of block ${height.toLocaleString('en-GB')}`)
  }
  await expectAll()
  expect((await server.ask('/svc/names/origins', posted([origin]))).json).toEqual({ [origin]: true })
  // An entity tag that was valid before the block is not after it, as the body is another one.
  const tagged = '/svc/gateway/tree/a'
  const known = { headers: { 'If-None-Match': String((await server.ask(tagged)).headers.etag) } }
  expect((await server.ask(tagged, known)).status).toBe(304)
  const mint = tree.chain.mint('z')
  tree.headers.mine([mint])
  service.know(tree.record(mint))
  await expectAll()
  expect((await server.ask(tagged, known)).status).toBe(200)
})

test('once it has caught up, a host that loses its source only grows old, after a restart too', async () => {
  const followed = await world()
  const { tree, service } = followed
  const server = await servers.start(settings(followed))
  await untilCaughtUp(server)
  const asOf = await asOfOf(server)
  service.fault = () => ({ kind: 'status', status: 500 })
  tree.headers.mine([])
  await until(async () => ((await server.ask('/health')).json as { lag?: number }).lag === 1)
  expect([await absencesOf(server), await asOfOf(server)]).toEqual([KNOWN, asOf])
  await server.stop()
  const again = await servers.start(settings(followed, { DATA_DIR: server.dataDir }))
  expect([await absencesOf(again), await asOfOf(again)]).toEqual([KNOWN, asOf])
  await again.stop()
  // Nor does it matter that nothing is followed any more.
  const idle = await servers.start(settings(followed, { DATA_DIR: server.dataDir, CHAIN_SOURCES: 'none' }))
  expect([await absencesOf(idle), await asOfOf(idle)]).toEqual([KNOWN, asOf])
})

test('an answer of the time when no source was there does not come from memory once one is', async () => {
  const followed = await world()
  const { service, tree } = followed
  service.fault = () => ({ kind: 'status', status: 500 })
  const server = await servers.start(settings(followed, { DATA_DIR: await givenUp(followed) }))
  await server.take(encodeBeef([tree.record(tree.chain.genesis)]))
  for (let times = 0; times < 2; times++) {
    expect((await server.ask('/svc/names/mine/zz')).json).toMatchObject({ domain: '' })
    expect((await server.ask('/tree', HTML)).body.toString()).toContain('/mine?name=')
  }
  service.fault = (path) => (path.includes('/txo/spend/') ? { kind: 'status', status: 500 } : undefined)
  await until(async () => (await server.ask('/svc/names/mine/zz')).status === 503, 'the source answers')
  expect((await server.ask('/tree', HTML)).body.toString()).not.toContain('/mine?name=')
})

test('a host that syncs with a peer knows what is absent when the peer does, and as of the same block', async () => {
  const followed = await world()
  const { tree, service } = followed
  const held = tree.mintOf('b').outpoint(1)
  service.fault = (path) => (path.includes(held) ? { kind: 'status', status: 500 } : undefined)
  const first = await servers.start(settings(followed))
  await until(async () => (await first.ask('/svc/names/abc')).status === 200, 'a name is found')
  const sync = { CHAIN_SOURCES: 'none', SYNC_PEERS: first.url, SYNC_INTERVAL_MS: '20' }
  const second = await servers.start(settings(followed, sync))
  await until(async () => (await second.ask('/svc/names/abc')).status === 200, 'the peer has it as well')
  expect((await second.ask('/svc/names/zz')).status).toBe(503)
  service.fault = () => undefined
  await untilCaughtUp(first)
  await untilCaughtUp(second)
  expect((await second.ask('/svc/names/bab')).status).toBe(200)
  expect(await asOfOf(second)).toEqual(await asOfOf(first))
  // The names are there, and the end of the list is one.
  expect((await second.ask('/svc/names?prefix=b')).json).not.toHaveProperty('next')
})

const GIVEN_UP = JSON.stringify({ complete: false, unanswered: 600_000 })

/** The folder of a host that has given up: no source has answered it for ten minutes. */
async function givenUp(followed: FollowWorld): Promise<string> {
  const idle = await servers.start(settings(followed, { CHAIN_SOURCES: 'none' }))
  await idle.node.graph.settings.set('tree_followed', GIVEN_UP)
  await idle.stop()
  return idle.dataDir
}

/** Waits until a host was asked so many more times what it offers. */
async function afterRounds(peer: TestServer, rounds: number): Promise<void> {
  const count = async (): Promise<number> => {
    const counted = /^minetree_http_request_duration_seconds_count\{[^}]*requestSyncResponse[^}]*\} (\d+)/m
    return Number(counted.exec((await peer.ask('/metrics')).body.toString())?.[1] ?? 0)
  }
  const wanted = (await count()) + rounds
  await until(async () => (await count()) >= wanted, 'the peer is asked')
}

test('a peer that follows nothing makes no host complete that has a source of its own', async () => {
  const followed = await world()
  const held = followed.tree.mintOf('b').outpoint(1)
  followed.service.fault = (path) => (path.includes(held) ? { kind: 'status', status: 500 } : undefined)
  const peer = await servers.start(settings(followed, { CHAIN_SOURCES: 'none' }))
  const sync = { SYNC_PEERS: peer.url, SYNC_INTERVAL_MS: '20' }
  const server = await servers.start(settings(followed, sync))
  await until(async () => (await server.ask('/svc/names/abc')).status === 200, 'a name is found')
  await afterRounds(peer, 6)
  expect((await server.ask('/svc/names/bab')).status).toBe(503)
  followed.service.fault = () => undefined
  await untilCaughtUp(server)
  expect((await server.ask('/svc/names/bab')).status).toBe(200)
})

test.each(['has nothing of the tree', 'has given up'])(
  'a peer that %s makes no host complete',
  async (kind) => {
    const followed = await world()
    followed.service.fault = () => ({ kind: 'status', status: 500 })
    const own: Environment =
      kind === 'has given up' ? { DATA_DIR: await givenUp(followed) } : { CHAIN_SOURCES: 'none' }
    const peer = await servers.start(settings(followed, own))
    expect((await peer.ask('/svc/names/zz')).status).toBe(404)
    const sync = { CHAIN_SOURCES: 'none', SYNC_PEERS: peer.url, SYNC_INTERVAL_MS: '20' }
    const server = await servers.start(settings(followed, sync))
    await afterRounds(peer, 6)
    expect((await server.ask('/svc/names/zz')).status).toBe(503)
  },
)

test.each([
  ['junglebus', { kind: 'status', status: 404 }],
  ['whatsonchain', { kind: 'status', status: 404 }],
  ['whatsonchain', { kind: 'body', body: new Uint8Array() }],
  ['whatsonchain', 'half'],
] as const)('a %s that knows nothing is no source to wait for: %p', async (kind, fault) => {
  const followed = await world()
  const { service } = followed
  service.fault = () => fault
  const asks = { DATA_DIR: await givenUp(followed), CHAIN_SOURCES: `${kind}=${followed.url}` }
  const server = await servers.start(settings(followed, asks))
  await until(async () => service.asked.length >= 4, 'it is asked again')
  expect((await server.ask('/svc/names/zz')).status).toBe(404)
})

test('mining goes on from what is proven or seen, and answers say which', async () => {
  const followed = await world()
  const { tree, service } = followed
  const server = await servers.start(settings(followed))
  await untilCaughtUp(server)
  const before = (await server.ask('/svc/names/mine/cz')).json as { outpoint: string }
  expect(before).toMatchObject({ domain: 'c' })
  expect(before).not.toHaveProperty('proven')
  const parent = tree.mintOf('c')
  const funding = [{ transaction: tree.purse, vout: 19 }]
  const mint = tree.chain.mint('cq', { funding, ownerLock: OPEN_LOCK })
  const beef = encodeBeef([tree.record(tree.purse), tree.record(parent), { txid: mint.txid, raw: mint.raw }])
  expect((await server.submit(beef)).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
  const unseen = { proven: false, seen: false }
  expect((await server.ask('/svc/names/origin/cq')).json).toMatchObject(unseen)
  expect((await server.ask('/svc/names/cq')).json).toMatchObject({ ...unseen, tip: unseen })
  for (let times = 0; times < 2; times++) {
    // A stranger's mint that the network does not have is no place to mine from, nor in the way of one.
    expect((await server.ask('/svc/names/mine/cz')).json).toMatchObject(before)
    expect((await server.ask('/svc/names/mine/cq')).json).toMatchObject(before)
    // Whoever has made it goes on from it.
    const own = { domain: 'c', outpoint: mint.outpoint(0), ...unseen }
    expect((await server.ask('/svc/names/mine/cz?unseen=true')).json).toMatchObject(own)
  }
  const { json } = await server.ask('/lookup', lookup({ mine: 'cz' }))
  const found = json as { outputs: { beef: number[] }[] }
  expect(Buffer.from(found.outputs[0]?.beef ?? []).includes(Buffer.from(mint.raw))).toBe(false)
  service.know({ txid: mint.txid, raw: mint.raw })
  tree.headers.mine([])
  const { now } = performance
  await whileReplaced(performance, 'now', {
    // What nobody knew is asked about again a minute later.
    by: () => now.call(performance) + 60_000,
    during: () =>
      until(
        async () => ((await server.ask('/svc/names/origin/cq')).json as { seen?: boolean }).seen === true,
      ),
  })
  const seen = { domain: 'c', outpoint: mint.outpoint(0), proven: false, seen: true }
  expect((await server.ask('/svc/names/mine/cz')).json).toMatchObject(seen)
})
