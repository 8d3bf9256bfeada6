import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { beefOf, FakeChain, inscriptionScript, p2pkh } from '../../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

// What is in memory is answered from there whatever a query says that changes nothing.

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start({ ...treeOf(chain.deployment), GATEWAY_HOST: 'localhost' })
await server.submit(beefOf(chain.genesis), ['tm_names', 'tm_ordinals'])
await server.submit(beefOf(chain.mint('a')), ['tm_names', 'tm_ordinals'])
const coin = chain.spend({ outputs: [{ satoshis: 100_000, lockingScript: p2pkh(0) }] })
const note = chain.move(coin, 0, inscriptionScript({ contentType: 'text/plain', body: utf8('note') }))
await server.submit(beefOf(note, { with: [coin] }), ['tm_ordinals'])
const outpoint = note.outpoint(0)

const PATHS = [
  ...['', ':-1'].flatMap((at) => [`/content/${outpoint}${at}`, `/svc/gateway/metadata/${outpoint}${at}`]),
  ...[`/content/${note.txid}`, `/svc/gateway/proof/${outpoint}`, '/svc/gateway/counts', '/svc/gateway/tree'],
  ...['/svc/names/origin/a', '/svc/names/mine/ab', '/svc/names/a', '/svc/gateway/tree/a'],
  ...['/svc/gateway/newest/names', '/svc/gateway/newest/inscriptions', `/svc/gateway/history/${outpoint}`],
  ...[`/svc/gateway/transactions/${note.txid}`, '/names', '/inscriptions', '/tree', '/charts', '/name/a'],
  ...[`/ordinal/${outpoint}`, `/tx/${note.txid}`],
]

/** None of these is known to any of the routes. */
const HARMLESS = ['?', '?utm_source=a', '?%', '?a=1&b=2&a=3', '?Map=true&RAW', '?x[y]=z', '?__proto__=1']

const misses = (): number => server.node.caches.answers.misses

test.each(PATHS)('%s is in memory for every query that changes nothing', async (path) => {
  const { status, body, headers } = await server.ask(path)
  expect(status).toBe(200)
  const before = misses()
  for (const query of HARMLESS) {
    const answer = await server.ask(path + query)
    expect([query, answer.status, answer.body.equals(body)]).toEqual([query, status, true])
    expect(answer.headers.etag).toBe(headers.etag)
  }
  expect(misses()).toBe(before)
})

test.each([
  [`/content/${outpoint}`, ['?map=true', '?raw', '?framed', '?map=true&raw=1']],
  [`/content/${outpoint}:-1`, ['?map=true', '?map=false', '?map=true&utm_source=a']],
])('what changes the answer of %s is in memory as well', async (path, queries) => {
  for (const query of queries) await server.ask(path + query)
  const before = misses()
  for (const query of queries) expect((await server.ask(`${path}${query}&z=1`)).status).toBe(200)
  expect(misses()).toBe(before)
})

test('another spelling of a path is answered alike, and takes no memory', async () => {
  const path = `/content/${outpoint}`
  const { body, headers } = await server.ask(path)
  const capitals = `/content/${note.txid.toUpperCase()}_0`
  const spellings = [capitals, `/content/${note.txid.toUpperCase()}`, path.replace(/0$/, '%30')]
  const { answers } = server.node.caches
  const before = { ...answers }
  for (const spelling of [...spellings, ...spellings]) {
    const answer = await server.ask(spelling)
    expect([answer.status, answer.body, answer.headers.etag]).toEqual([200, body, headers.etag])
    expect([spelling, answers]).toEqual([spelling, before])
  }
})

test('on a host that shows content, a query that changes nothing is answered from memory', async () => {
  const { port } = new URL(server.url)
  await server.submit(beefOf(chain.mint('b')), ['tm_names', 'tm_ordinals'])
  const at = { headers: { Host: `b.localhost:${port}` } }
  const first = await server.ask('/', at)
  const before = misses()
  for (const query of HARMLESS) expect((await server.ask(`/${query}`, at)).status).toBe(first.status)
  expect(misses()).toBe(before)
})
