import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { expectError } from '../../support/gateway/expect-error.js'
import { directory, publisher, text } from '../../support/gateway/site.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'
import { posted, treeOf, useServers } from '../../support/server/test-server.js'

// Every literal that the specification fixes: paths, types, headers, field names, the message, limits. Clients compare them, so a
// rewording breaks them. Asked over HTTP, each as it is written there.

const chain = new FakeChain()
const server = await useServers().start(treeOf(chain.deployment))
const published = publisher({ server, chain })
for (const transaction of [chain.genesis, chain.mint('a')])
  await server.submit(beefOf(transaction), ['tm_names'])

const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
const first = chain.spend({
  inputs: [{ transaction: funding, vout: 0 }],
  outputs: [
    {
      satoshis: 1,
      lockingScript: inscriptionScript({
        ...{ contentType: 'video/mp4;stream=gw', body: utf8('one ') },
        parent: { txid: funding.txid, vout: 0 },
        suffix: mapTail({ app: 'x' }),
      }),
    },
  ],
})
const second = chain.spend({
  inputs: [{ transaction: first, vout: 0 }],
  outputs: [
    { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'gw/stream', body: utf8('two') }) },
  ],
})
await server.submit(beefOf(first, { with: [funding] }), ['tm_ordinals'])
await server.submit(beefOf(second, { with: [first] }), ['tm_ordinals'])
const [at, next] = [first.outpoint(0), second.outpoint(0)]

test('the constants of section 2', () => {
  expect(PROFILES.local).toMatchObject({
    directoryContentTypes: expect.arrayContaining(['gw-fs/json']),
    streamChunkContentTypes: expect.arrayContaining(['gw/stream']),
    streamMarker: 'stream=gw',
    nameContentType: 'application/name-claim',
    difficulty: 22,
    gatewayPrefixes: ['/svc/gateway'],
    namesPrefixes: ['/svc/names'],
  })
  expect(PROFILES.mainnet.difficulty).toBe(22)
  expect([...NAME_CHARACTERS].sort().join('')).toBe('-0123456789abcdefghijklmnopqrstuvwxyz')
})

test('the headers of content and sequences -2, -1, 0 (3.1, 4.1)', async () => {
  const plain = await server.ask(`/content/${at}`)
  expect(plain.headers).toMatchObject({
    'x-outpoint': at,
    'x-map': '{"app":"x"}',
    'x-parent': `${funding.txid}_0`,
    'content-type': 'video/mp4;stream=gw',
  })
  for (const [sequence, step] of [
    ['-2', '0'],
    ['0', '0'],
    ['1', '1'],
    ['-1', '1'],
  ] as const) {
    const { headers } = await server.ask(`/content/${at}:${sequence}`)
    expect(headers).toMatchObject({
      'x-origin': at,
      'x-ord-seq': step,
      'x-outpoint': step === '0' ? at : next,
    })
  }
})

test('a stream has the bytes in order and the type of its first chunk (4.3)', async () => {
  const whole = await server.ask(`/svc/gateway/stream/${at}`)
  expect([whole.body.toString(), whole.headers['content-type']]).toEqual(['one two', 'video/mp4;stream=gw'])
  const { status, body } = await server.ask(`/svc/gateway/stream/${at}`, { headers: { Range: 'bytes=4-6' } })
  expect([status, body.toString()]).toEqual([206, 'two'])
})

test('every path of section 4 is there', async () => {
  for (const [path, question] of [
    [`/content/${at}`],
    [`/svc/gateway/metadata/${at}`],
    [`/svc/gateway/metadata/${at}:1`],
    ['/svc/gateway/metadata', posted([at])],
    [`/svc/gateway/stream/${at}`],
    [`/svc/gateway/preview/${Buffer.from('<p>').toString('base64url')}`],
    ['/svc/gateway/preview', { method: 'POST', headers: { 'Content-Type': 'text/html' }, body: '<p>' }],
    ['/svc/names/origin/a'],
    ['/svc/names/mine/ab'],
    ['/svc/names/origins', posted([at])],
  ] as const)
    expect({ path, status: (await server.ask(path, question)).status }).toEqual({ path, status: 200 })
})

test('directories have the entries `.` and `index.html`, pointers of every form, and `raw` (2.1, 2.4, 4.2)', async () => {
  const map = directory({
    ...{ '.': '_1', 'index.html': `ord://${at}` },
    ...{ dotted: at.replace('_', '.'), txid: first.txid },
  })
  const site = await published(map, text('default'))
  const path = `/content/${site.outpoint(0)}`
  expect((await server.ask(path)).body.toString()).toBe('default')
  for (const entry of ['index.html', 'dotted', 'txid', 'missing'])
    expect((await server.ask(`${path}/${entry}`)).body.toString()).toBe('one ')
  const raw = await server.ask(`${path}?raw`)
  expect([raw.headers['content-type'], raw.body.equals(map.body)]).toEqual(['gw-fs/json', true])
  const indexed = await published(directory({ 'index.html': '_1' }), text('index'))
  const { status, headers } = await server.ask(`/content/${indexed.outpoint(0)}`)
  expect([status, headers.location]).toEqual([302, `/content/${indexed.outpoint(0)}/index.html`])
})

test('more than 8 directories are `directory nesting too deep` (7, 8)', async () => {
  const loop = await published(directory({ a: '_0', '.': '_1' }), text('end'))
  const path = (levels: number): string => `/content/${loop.outpoint(0)}${'/a'.repeat(levels - 1)}/.`
  expect((await server.ask(path(8))).body.toString()).toBe('end')
  expectError(await server.ask(path(9)), {
    ...{ status: 400, code: 'NESTING_TOO_DEEP' },
    error: 'directory nesting too deep',
  })
})
