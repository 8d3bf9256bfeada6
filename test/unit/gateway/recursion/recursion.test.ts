import { decode } from '@ipld/dag-cbor'
import { nativeHash256 } from '../../../../backend/src/graph/native-hash.js'
import { encodeHeader } from '../../../../backend/src/protocol/block-header.js'
import { concatBytes, joinBytes, reversed, toHex } from '../../../../backend/src/protocol/bytes.js'
import { outpointLabel } from '../../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { blockInfo } from '../../../../src/gateway/recursion/recursion-records.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, text } from '../../../support/gateway/site.js'
import {
  beefOf,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { OPERATOR, treeOf, useServers } from '../../../support/server/test-server.js'

/** Shapes are those of ord's documentation (docs.ordinals.com/inscriptions/recursion.html). */

describe('what a header tells is what ord answers', () => {
  const GENESIS = {
    hash: '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f',
    merkle_root: '4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b',
    ...{ version: 1, timestamp: 1231006505, bits: 486604799, nonce: 2083236893 },
  }
  const HALVING = {
    previous_block: '0000000000000000000172014ba58d66455762add0512355ad651207918494ab',
    merkle_root: '031b417c3a1828ddf3d6527fc210daafcc9218e81f98257f88d4d43bd7a5894f',
    ...{ version: 710926336, timestamp: 1713571767, bits: 386089497, nonce: 3932395645 },
  }
  const headerOf = ({
    merkle_root: root,
    timestamp: time,
    ...rest
  }: typeof GENESIS | typeof HALVING): Uint8Array =>
    encodeHeader({
      ...rest,
      root,
      time,
      previous: 'previous_block' in rest ? rest.previous_block : '00'.repeat(32),
    })
  const first = encodeHeader({
    ...{ version: 1, time: 1231469665, bits: 486604799, nonce: 2573394689, previous: GENESIS.hash },
    root: '0e3e2357e806b6cdb1f70b54c3a3a17b6714ee1f0e68bebb44a74b1efd512098',
  })
  test.each([
    [
      { headers: concatBytes(headerOf(GENESIS), first), height: 0, tip: 866395 },
      {
        ...{ ...GENESIS, confirmations: 866396, difficulty: 1.0, height: 0, median_time: 1231006505 },
        next_block: '00000000839a8e6886ab5951d76f411475428afc90947ee320161bbf18eb6048',
        previous_block: null,
        target: '00000000ffff0000000000000000000000000000000000000000000000000000',
      },
    ],
    [
      { headers: headerOf(HALVING), height: 840000, tip: 866396 },
      {
        // The median is of eleven headers, which are not here.
        ...{ ...HALVING, confirmations: 26397, height: 840000, median_time: null, next_block: null },
        difficulty: 86388558925171.02,
        hash: '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5',
        target: '0000000000000000000342190000000000000000000000000000000000000000',
      },
    ],
  ])('%#', ({ headers, height, tip }, expected) => {
    expect(blockInfo(headers, { index: 0, height, tip })).toEqual(expected)
  })
})

const servers = useServers()
const hosted = await hostedServer(servers, OPERATOR)
const { server, chain, on, named, show } = hosted

/** Around all that the fake chain mines, each with a time of its own, out of order. */
const FROM = 799_990
const HEADERS = 60
const timeAt = (height: number): number =>
  1_700_000_000 + 600 * (height - FROM) + (height % 2 === 0 ? 0 : 700)
const headers: Uint8Array[] = []
const hashAt = (height: number): string =>
  toHex(reversed(nativeHash256(headers[height - FROM] ?? new Uint8Array(0))))
for (let height = FROM; height < FROM + HEADERS; height++)
  headers.push(
    encodeHeader({
      ...{ version: 1, root: height.toString(16).padStart(64, '0'), bits: 0x207fffff, nonce: 7 },
      ...{ previous: height === FROM ? 'ee'.repeat(32) : hashAt(height - 1), time: timeAt(height) },
    }),
  )
const TIP = FROM + HEADERS - 1
await server.node.graph.headers.replaceFrom({ height: FROM, headers: joinBytes(headers), tip: undefined })

async function admitted(
  transaction: FakeTransaction,
  ...before: FakeTransaction[]
): Promise<FakeTransaction> {
  await server.take(beefOf(transaction, { with: before }), ['tm_ordinals'])
  return transaction
}
const MAP = { title: 'a "title"', app: 'ü' }
const funding = chain.spend({ outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
const origin = inscriptionScript({ ...text('the parent'), suffix: mapTail(MAP) })
const parent = await admitted(chain.move(funding, 0, origin), funding)
const PARENT = `${parent.txid}i0`
const childOf = (body: string, type?: string) =>
  inscriptionScript({ ...text(body, type), parent: parseOutpoint(parent.outpoint(0)) })
const children = Array.from({ length: 205 }, (_, at) => childOf(`child ${at}`))
const family = await admitted(chain.spend({ inputs: [parent], outputs: [p2pkh(2), ...children] }), parent)
/** It names a parent that it does not spend, so that is none. */
const stranger = await admitted(chain.spend({ outputs: [childOf('a claim')] }))
/** A child of a later block, which moved on. */
const last = [p2pkh(3), childOf('the last', 'image/png')]
const later = await admitted(chain.spend({ inputs: [family], outputs: last }), family)
const moved = await admitted(chain.move(later, 1, p2pkh(1)), later)
const childId = (at: number): string => `${family.txid}i${at + 1}`
const idsFrom = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => childId(from + at))

const asked = async (path: string): Promise<unknown> => {
  const { status, json, body, headers: head } = await server.ask(path)
  if (status !== 200) throw new Error(`${path}: ${status} ${body.toString()}`)
  expect(head['content-type']).toBe('application/json; charset=utf-8')
  expect(head['access-control-allow-origin']).toBe('*')
  return json
}

const OF_PARENT = {
  ...{ id: PARENT, height: parent.height, timestamp: timeAt(parent.height), sat: null, charms: [] },
  ...{ output: `${later.txid}:0`, satpoint: `${later.txid}:0:0` },
}
const OF_LAST = {
  ...{ id: `${later.txid}i1`, height: later.height, timestamp: timeAt(later.height), sat: null, charms: [] },
  ...{ output: `${moved.txid}:0`, satpoint: `${moved.txid}:0:0` },
}
const ADDRESS = '11111111111111111111QekFQw'
const SHOWN = { content_type: 'text/plain', content_length: 10, delegate: null, value: 1, address: ADDRESS }
const OF_REST = idsFrom(200, 205).map((id) => ({
  ...{ id, height: family.height, timestamp: timeAt(family.height), sat: null, charms: [] },
  ...{ output: id.replace('i', ':'), satpoint: `${id.replace('i', ':')}:0` },
}))

test.each<[string, unknown]>([
  ['/r/blockheight', TIP],
  ['/r/blockhash', hashAt(TIP)],
  [`/r/blockhash/${FROM}`, hashAt(FROM)],
  ['/r/blocktime', timeAt(TIP)],
  [`/r/tx/${parent.txid}`, toHex(parent.raw)],
  [`/r/tx/${family.txid.toUpperCase()}`, toHex(family.raw)],
  [`/r/inscription/${PARENT}`, { ...OF_PARENT, ...SHOWN }],
  [`/r/children/${PARENT}`, { ids: idsFrom(0, 100), more: true, page: 0 }],
  [`/r/children/${PARENT}/0`, { ids: idsFrom(0, 100), more: true, page: 0 }],
  [`/r/children/${parent.outpoint(0)}/1`, { ids: idsFrom(100, 200), more: true, page: 1 }],
  [`/r/children/${PARENT}/2`, { ids: [...idsFrom(200, 205), OF_LAST.id], more: false, page: 2 }],
  [`/r/children/${PARENT}/999`, { ids: [], more: false, page: 999 }],
  [`/r/children/${childId(0)}`, { ids: [], more: false, page: 0 }],
  [`/r/children/${PARENT}/inscriptions/2`, { children: [...OF_REST, OF_LAST], more: false, page: 2 }],
  [`/r/parents/${childId(0)}`, { ids: [PARENT], more: false, page: 0, page_index: 0 }],
  [`/r/parents/${OF_LAST.id}/9`, { ids: [], more: false, page: 9, page_index: 9 }],
  [`/r/parents/${PARENT}`, { ids: [], more: false, page: 0, page_index: 0 }],
  [`/r/parents/${stranger.txid}_0`, { ids: [], more: false, page: 0, page_index: 0 }],
  [`/r/parents/${childId(3)}/inscriptions`, { parents: [OF_PARENT], more: false, page: 0 }],
  [`/r/parents/${childId(3)}/inscriptions/1`, { parents: [], more: false, page: 1 }],
])('%s', async (path, expected) => {
  expect(await asked(path)).toEqual(expected)
})

test('the first page of details has as many', async () => {
  const { children, ...rest } = (await asked(`/r/children/${PARENT}/inscriptions`)) as { children: unknown[] }
  expect([rest, children.length]).toEqual([{ more: true, page: 0 }, 100])
})

test('blocks are found by height and by hash', async () => {
  for (const height of [FROM, FROM + 9, FROM + 10, TIP]) {
    const times = Array.from({ length: 11 }, (_, at) => timeAt(height - at)).sort((a, b) => a - b)
    const info = {
      ...{ hash: hashAt(height), height, timestamp: timeAt(height), confirmations: TIP - height + 1 },
      median_time: height < FROM + 10 ? null : times[5],
      previous_block: height === FROM ? 'ee'.repeat(32) : hashAt(height - 1),
      next_block: height === TIP ? null : hashAt(height + 1),
    }
    for (const query of [height, hashAt(height), hashAt(height).toUpperCase()])
      expect(await asked(`/r/blockinfo/${query}`)).toMatchObject(info)
  }
})

test('metadata is MAP, in CBOR', async () => {
  const hex = await asked(`/r/metadata/${PARENT}`)
  expect(decode(Buffer.from(hex as string, 'hex'))).toEqual(MAP)
})

describe('what is not here', () => {
  const NONE = 'ab'.repeat(32)
  test.each<[string, number, string]>([
    [`/r/blockhash/${FROM - 1}`, 404, 'NOT_FOUND'],
    [`/r/blockhash/${TIP + 1}`, 404, 'NOT_FOUND'],
    ['/r/blockhash/x', 400, 'BAD_BODY'],
    ['/r/blockhash/-1', 400, 'BAD_BODY'],
    ['/r/blockhash/4294967296', 400, 'BAD_BODY'],
    [`/r/blockinfo/${TIP + 1}`, 404, 'NOT_FOUND'],
    [`/r/blockinfo/${NONE}`, 404, 'NOT_FOUND'],
    [`/r/blockinfo/${NONE}0`, 400, 'BAD_BODY'],
    [`/r/tx/${NONE}`, 404, 'NOT_FOUND'],
    ['/r/tx/x', 400, 'BAD_OUTPOINT'],
    ...['inscription', 'metadata', 'children', 'parents'].flatMap((route): [string, number, string][] => [
      [`/r/${route}/${NONE}i0`, 404, 'NOT_FOUND'],
      [`/r/${route}/${NONE}`, 400, 'BAD_OUTPOINT'],
      [`/r/${route}/${NONE}i`, 400, 'BAD_OUTPOINT'],
      [`/r/${route}/${NONE}i01`, 400, 'BAD_OUTPOINT'],
      [`/r/${route}/${NONE}i4294967296`, 400, 'BAD_OUTPOINT'],
      [`/r/${route}/%zz`, 400, 'BAD_BODY'],
    ]),
    // It is an output of the ordinal, and nothing was inscribed in it.
    [`/r/inscription/${moved.txid}i0`, 404, 'NOT_FOUND'],
    [`/r/metadata/${childId(0)}`, 404, 'NOT_FOUND'],
    ...['children', 'parents'].flatMap((route): [string, number, string][] =>
      ['x', '-1', '01', '1000', '1.5'].flatMap((page): [string, number, string][] => [
        [`/r/${route}/${PARENT}/${page}`, 400, 'BAD_BODY'],
        [`/r/${route}/${PARENT}/inscriptions/${page}`, 400, 'BAD_BODY'],
      ]),
    ),
  ])('%s is %i %s', async (path, status, code) => {
    expectError(await server.ask(path), { status, code })
  })

  test('is not said of blocks while the host catches up', async () => {
    const following = { CHAIN_SOURCES: 'junglebus=http://127.0.0.1:9' }
    const behind = await servers.start({ ...treeOf(chain.deployment), ...following })
    for (const path of [
      '/r/blockheight',
      '/r/blockhash',
      '/r/blocktime',
      '/r/blockinfo/5',
      `/r/blockinfo/${NONE}`,
    ])
      expect(await behind.ask(path)).toMatchObject({ status: 503, json: { code: 'NOT_CAUGHT_UP' } })
    const without = await servers.start()
    for (const path of ['/r/blockheight', '/r/blockhash/5', '/r/blocktime', '/r/blockinfo/5'])
      expectError(await without.ask(path), { status: 404, code: 'NOT_FOUND' })
  })
})

test('may be kept where it never changes, and is asked for again else', async () => {
  const cacheOf = async (path: string) => (await server.ask(path)).headers['cache-control']
  for (const path of [`/r/tx/${parent.txid}`, `/r/metadata/${PARENT}`])
    expect(await cacheOf(path)).toBe('public, max-age=31536000, immutable')
  for (const path of ['/r/blockheight', `/r/inscription/${PARENT}`, `/r/children/${PARENT}`]) {
    const { headers: head } = await server.ask(path)
    expect(head['cache-control']).toBe('no-cache')
    const again = await server.ask(path, { headers: { 'If-None-Match': String(head.etag) } })
    expect(again.status).toBe(304)
  }
})

test('content is found by the id of an inscription', async () => {
  const { status, headers: head, body } = await server.ask(`/content/${PARENT}`)
  expect([status, body.toString(), head['x-outpoint']]).toEqual([200, 'the parent', parent.outpoint(0)])
})

describe('a host', () => {
  const pages = [
    '/r/blockheight',
    `/r/inscription/${PARENT}`,
    `/r/children/${PARENT}/1`,
    `/r/tx/${parent.txid}`,
  ]
  const label = (outpoint: string): string => `${outpointLabel(parseOutpoint(outpoint))}.c.localhost`
  const page = text('<p>a page', 'text/html')

  test('has them too, whatever it shows', async () => {
    await named('page', page)
    await named('folder', directory({ 'index.html': '_1', '404.html': '_1' }), page)
    for (const host of ['page.localhost', 'folder.localhost', label(parent.outpoint(0))])
      for (const path of pages) {
        const [own, other] = [await on(host, path), await server.ask(path)]
        expect([own.status, own.body.toString()]).toEqual([200, other.body.toString()])
        expect(own.headers['access-control-allow-origin']).toBe('*')
        expect(own.headers.etag).toBe(other.headers.etag)
      }
    expectError(await on('folder.localhost', '/r/what'), { status: 404, code: 'NOT_FOUND' })
    expectError(await on('folder.localhost', `/r/inscription/x`), { status: 400, code: 'BAD_OUTPOINT' })
    const posted = await on('folder.localhost', '/r/blockheight', { method: 'POST' })
    expectError(posted, { status: 405, code: 'METHOD_NOT_ALLOWED' })
    // A path of the site: nothing is below it.
    expect((await on('page.localhost', '/r')).body.toString()).toBe('<p>a page')
    expect((await on('folder.localhost', '/r')).status).toBe(404)
    expect((await on('page.localhost', `/content/${PARENT}`)).body.toString()).toBe('the parent')
  })

  test('that shows a directory with an entry of that name has its own, as soon and as long as it shows that', async () => {
    const root = directory({ r: '_2', '404.html': '_1' })
    const own = [root, text('not here'), directory({ blockheight: '_3' }), text('12')]
    const { site } = await named('own', directory({ 'index.html': '_1' }), page)
    expect((await on('own.localhost', '/r/blockheight')).body.toString()).toBe(String(TIP))
    const shown = await show({ transaction: site, vout: 0 }, ...own)
    for (const _ of [1, 2]) {
      const { status, body } = await on('own.localhost', '/r/blockheight')
      expect([status, body.toString()]).toEqual([200, '12'])
    }
    expect((await on('own.localhost', '/r/blocktime')).body.toString()).toBe('not here')
    await show({ transaction: shown, vout: 0 }, directory({ 'index.html': '_1' }), page)
    expect((await on('own.localhost', '/r/blockheight')).body.toString()).toBe(String(TIP))
  })
})

test('a page that ends with the last child says that there are no more', async () => {
  const of = await admitted(chain.inscribe(text('of a hundred')))
  const child = inscriptionScript({ ...text('a child'), parent: parseOutpoint(of.outpoint(0)) })
  const outputs = [p2pkh(4), ...Array.from({ length: 100 }, () => child)]
  await admitted(chain.spend({ inputs: [of], outputs }), of)
  expect(await asked(`/r/children/${of.outpoint(0)}`)).toMatchObject({ ids: { length: 100 }, more: false })
})

test('what is blocked is refused, and missing from its page', async () => {
  const outpoint = family.outpoint(2)
  await server.block({ outpoint })
  for (const route of ['inscription', 'metadata', 'children', 'parents'])
    expectError(await server.ask(`/r/${route}/${outpoint}`), { status: 451, code: 'BLOCKED' })
  expectError(await server.ask(`/r/tx/${family.txid}`), { status: 451, code: 'BLOCKED' })
  const ids = [childId(0), ...idsFrom(2, 100)]
  expect(await asked(`/r/children/${PARENT}`)).toEqual({ ids, more: true, page: 0 })
  const { children } = (await asked(`/r/children/${PARENT}/inscriptions`)) as { children: { id: string }[] }
  expect(children.map(({ id }) => id)).toEqual(ids)
  await server.unblock({ outpoint })
  await server.block({ outpoint: parent.outpoint(0) })
  expect(await asked(`/r/parents/${childId(0)}`)).toEqual({ ids: [], more: false, page: 0, page_index: 0 })
  expect(await asked(`/r/parents/${childId(0)}/inscriptions`)).toMatchObject({ parents: [] })
  await server.unblock({ outpoint: parent.outpoint(0) })
  // Where an ordinal is, that of a blocked place is not said.
  await server.block({ outpoint: moved.outpoint(0) })
  expectError(await server.ask(`/r/inscription/${OF_LAST.id}`), { status: 451, code: 'BLOCKED' })
  expect(await asked(`/r/children/${PARENT}/inscriptions/2`)).toMatchObject({ children: { length: 5 } })
})

test('blocks are those of the best chain, as soon as it changes', async () => {
  const above = (previous: string, time: number): Uint8Array =>
    encodeHeader({ version: 1, root: '5'.repeat(64), bits: 0x207fffff, nonce: 8, previous, time })
  const hash = (header: Uint8Array): string => toHex(reversed(nativeHash256(header)))
  const lost = above(hashAt(TIP), 1)
  const first = above(hashAt(TIP), 2)
  const second = above(hash(first), 3)
  const { headers: chain } = server.node.graph
  await chain.replaceFrom({ height: TIP + 1, headers: lost, tip: headers.at(-1) })
  expect(await asked('/r/blockheight')).toBe(TIP + 1)
  expect(await asked(`/r/blockinfo/${hash(lost)}`)).toMatchObject({ height: TIP + 1, confirmations: 1 })
  await chain.replaceFrom({ height: TIP + 1, headers: joinBytes([first, second]), tip: lost })
  expect(await asked('/r/blockheight')).toBe(TIP + 2)
  expect(await asked('/r/blocktime')).toBe(3)
  expect(await asked(`/r/blockhash/${TIP + 1}`)).toBe(hash(first))
  const info = { confirmations: 2, next_block: hash(second) }
  expect(await asked(`/r/blockinfo/${hash(first)}`)).toMatchObject(info)
  expectError(await server.ask(`/r/blockinfo/${hash(lost)}`), { status: 404, code: 'NOT_FOUND' })
})
