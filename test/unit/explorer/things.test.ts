import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../../../backend/src/protocol/patch.js'
import { encodeDelta } from '../../../backend/src/protocol/vcdiff.js'
import type { Site } from '../../../src/explorer/page.js'
import { contentViews, TILE_QUOTE } from '../../../src/explorer/reads.js'
import { directory, type File, inBytes, text } from '../../support/gateway/site.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { OPERATOR, type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// Lists show names, sites and streams, not the mints, files and chunks that these take.

const servers = useServers()

interface Tree {
  chain: FakeChain
  server: TestServer
  /** Mines what is missing of a name in a block, or in none yet. */
  mine(name: string, height?: number): Promise<void>
  /** The rows of the list of newest names, of all its pages. */
  rows(): Promise<string[]>
  page(path: string): Promise<string>
}

async function treeFor(): Promise<Tree> {
  const chain = new FakeChain()
  const server = await servers.start({ ...treeOf(chain.deployment), ...OPERATOR })
  await server.submit(beefOf(chain.genesis, { height: 1 }))
  const mined = new Map<string, { mint: FakeTransaction; purse: FakeTransaction; isProven: boolean }>()
  const page = async (path: string): Promise<string> => {
    const { status, body } = await server.ask(path)
    expect(status).toBe(200)
    return body.toString()
  }
  return {
    chain,
    server,
    page,
    async mine(name, height) {
      const prefixes = Array.from(name, (_, at) => name.slice(0, at + 1)).filter((each) => !mined.has(each))
      for (const prefix of prefixes) {
        // What no block holds has to pay for itself.
        const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
        const mint = chain.mint(prefix, { funding: [{ transaction: purse, vout: 0 }] })
        const known = [...mined.values()]
        const unproven = known.filter(({ isProven }) => !isProven).map(({ mint }) => mint)
        const ancestors = known.flatMap((each) => (each.isProven ? [each.mint] : [each.purse, each.mint]))
        const beside = { proven: false, with: [chain.genesis, ...ancestors, purse], unproven }
        const beef = beefOf(mint, height === undefined ? beside : { height })
        const { status, body } = await server.submit(beef, ['tm_names', 'tm_ordinals'])
        expect([status, status === 200 ? '' : body.toString()]).toEqual([200, ''])
        mined.set(prefix, {
          ...{ purse, isProven: height !== undefined },
          mint: { ...mint, ...(height !== undefined && { height }) },
        })
      }
    },
    async rows() {
      const found: string[] = []
      for (let next: string | undefined = '/names'; next !== undefined; ) {
        const html = await page(next)
        for (const [, name, also = ''] of html.matchAll(
          /<a class="name" href="\/name\/([^"]+)">[^<]*<\/a> (?:<small class="also">([^<]*)<)?/g,
        ))
          found.push(also === '' ? String(name) : `${name}, ${also}`)
        next = /href="(\/names\?after=[^"]+)"/.exec(html)?.[1]
      }
      return found
    },
  }
}

describe('names', () => {
  test('a name is one row with the prefixes that were mined on the way, in one block or in none', async () => {
    const { mine, rows, page } = await treeFor()
    await mine('alice-in-wonderland', 10)
    expect(await rows()).toEqual(['alice-in-wonderland, and 18 prefixes'])
    await mine('alice-b')
    expect(await rows()).toEqual(['alice-b', 'alice-in-wonderland, and 18 prefixes'])
    await mine('zoo')
    expect(await rows()).toEqual(['zoo, and 2 prefixes', 'alice-b', 'alice-in-wonderland, and 18 prefixes'])
    for (const path of ['/', '/feeds/names.atom']) {
      const html = await page(path)
      expect(html).toContain('and 18 prefixes')
      expect(html).not.toContain('/name/alice-in-wonderlan"')
    }
  })

  test('what is mined on from a name long after is another row', async () => {
    const { mine, rows } = await treeFor()
    await mine('home', 10)
    await mine('homer', 13)
    expect(await rows()).toEqual(['homer, and 4 prefixes'])
    await mine('homer-b', 17)
    expect(await rows()).toEqual(['homer-b, and 1 prefix', 'homer, and 4 prefixes'])
    // Only what continues the node of a name was mined on from it; not what came beside that.
    await mine('homer-c', 17)
    expect(await rows()).toEqual(
      expect.arrayContaining(['homer-c', 'homer-b, and 1 prefix', 'homer, and 4 prefixes']),
    )
  })

  test('an unproven name is on from a proven one of the latest blocks only', async () => {
    const { mine, rows } = await treeFor()
    await mine('old', 10)
    await mine('new', 20)
    await mine('older')
    await mine('newer')
    expect(await rows()).toEqual(['newer, and 4 prefixes', 'older, and 1 prefix', 'old, and 2 prefixes'])
  })

  test('a blocked name hides no prefix of it', async () => {
    const { mine, rows, server } = await treeFor()
    await mine('abcd', 10)
    await server.block({ name: 'abcd' })
    expect(await rows()).toEqual(['abc, and 2 prefixes'])
    await server.block({ name: 'ab' })
    expect(await rows()).toEqual(['abc', 'a'])
  })

  test('pages show each name once, whatever is folded, and the JSON list shows all', async () => {
    const { mine, rows, page, server } = await treeFor()
    const names = Array.from({ length: 37 }, (_, at) => 'abcdefghijklmnopqrstuvwxyz0123456789-'.charAt(at))
    for (const [at, first] of names.entries()) await mine(`${first}xy`, 10 + 10 * Math.floor(at / 5))
    for (const first of names.slice(0, 13)) await mine(`${first}xw`, 500)
    // A page has fifty rows.
    expect(await page('/names')).not.toContain('/names?after=')
    for (const first of names.slice(13, 30)) await mine(`${first}xw`, 500)
    expect(await page('/names')).toContain('/names?after=')
    const found = await rows()
    expect(found).toHaveLength(67)
    expect(new Set(found).size).toBe(67)
    expect(found.slice(0, 30).every((row) => row.endsWith('xw'))).toBe(true)
    expect(found.slice(30).every((row) => row.endsWith('xy, and 2 prefixes'))).toBe(true)
    const { json } = await server.ask('/svc/gateway/newest/names?limit=100')
    expect((json as { names: object[] }).names).toHaveLength(100)
  })

  test('a long way is counted up to a bound', async () => {
    const { mine, rows } = await treeFor()
    await mine('m'.repeat(66), 10)
    await mine('n'.repeat(65), 20)
    const [n, m] = ['n'.repeat(65), 'm'.repeat(66)]
    expect(await rows()).toEqual([`${n}, and 64 prefixes`, `${m}, and more than 64 prefixes`])
  })
})

describe('inscriptions', () => {
  /** Inscribes outputs of one transaction, from a coin that is known. */
  async function inscribe({ chain, server }: Tree, files: File[]): Promise<FakeTransaction> {
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 100_000, lockingScript: p2pkh(0) }] })
    const inscribed = chain.spend({
      inputs: [{ transaction: coin, vout: 0 }],
      outputs: files.map((file) => ({ satoshis: 1, lockingScript: inscriptionScript(file) })),
    })
    await server.take(beefOf(inscribed, { with: [coin] }), ['tm_ordinals'])
    return inscribed
  }
  const TILE = /class="tile" href="\/ordinal\/([^"]+)">.*?class="caption cluster">(.*?)<\/a>/gs
  const tiles = async ({ page }: Tree, path = '/inscriptions'): Promise<Record<string, string>> => {
    const words = (caption: string) => caption.replace(/<[^>]+>/g, ' ').match(/\S+/g) ?? []
    const found = Array.from((await page(path)).matchAll(TILE))
    return Object.fromEntries(
      found.map(([, outpoint = '', caption = '']) => [outpoint, words(caption).join(' ')]),
    )
  }
  /** A directory of numbered files in the outputs from one on. */
  const numbered = (count: number, from: number, end = '') =>
    directory(Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}${end}`, `_${at + from}`])))

  test.each<[string, (file: File) => File]>([
    ['JSON', (file) => file],
    ['bytes', (file) => inBytes(file)],
  ])('a published site is one tile, with what it leads to: in %s', async (_, written) => {
    const tree = await treeFor()
    const other = await inscribe(tree, [text('alone'), text('beside it')])
    const site = await inscribe(tree, [
      written(directory({ 'index.html': '_1', img: '_2', kept: other.outpoint(0), 'a.css': '_15' })),
      text('<p>hello</p>', 'text/html'),
      written(numbered(12, 3, '.txt')),
      ...Array.from({ length: 12 }, (_, at) => text(`file ${at}`.padEnd(100))),
      text('p {}'.padEnd(100), 'text/css'),
    ])
    expect(await tiles(tree)).toEqual({
      [site.outpoint(0)]: 'site 15 files, 1.3 KB',
      [other.outpoint(0)]: 'text 5 B',
      [other.outpoint(1)]: 'text 9 B',
    })
    expect(Object.keys(await tiles(tree, '/'))).toHaveLength(3)
    expect((await tree.page('/feeds/inscriptions.atom')).match(/<entry>/g)).toHaveLength(3)
    expect(await tree.page(`/ordinal/${site.outpoint(0)}`)).toContain('15 files, 1.3 KB')
    const files = await tree.page(`/ordinal/${site.outpoint(2)}`)
    expect(files).toContain('11.txt')
    const { json } = await tree.server.ask('/svc/gateway/newest/inscriptions?limit=100')
    expect((json as { inscriptions: object[] }).inscriptions).toHaveLength(18)
  })

  test('directories that lead to themselves or each other, or are none, hide nothing', async () => {
    const tree = await treeFor()
    const own = await inscribe(tree, [directory({ a: '_0' })])
    const both = await inscribe(tree, [directory({ b: '_1' }), directory({ a: '_0' })])
    const broken = await inscribe(tree, [directory('{"a": "_1", '), text('a')])
    const odd = await inscribe(tree, [directory({ a: 'x', b: '_7', c: `${'ab'.repeat(32)}_0` }), text('b')])
    const all = [
      ...[own, both, broken, odd].map((each) => each.outpoint(0)),
      broken.outpoint(1),
      odd.outpoint(1),
    ]
    expect(Object.keys(await tiles(tree)).sort()).toEqual(all.sort())
  })

  test('a blocked directory hides none of its files', async () => {
    const tree = await treeFor()
    const site = await inscribe(tree, [directory({ 'index.html': '_1' }), text('hello')])
    await tree.server.block({ outpoint: site.outpoint(0) })
    expect(await tiles(tree)).toEqual({ [site.outpoint(1)]: 'text 5 B' })
  })

  test('a directory is followed within bounds', async () => {
    const tree = await treeFor()
    const files = Array.from({ length: 150 }, (_, at) => text(`${at}`.padEnd(1000)))
    const site = await inscribe(tree, [numbered(150, 1, '.txt'), ...files])
    expect((await tiles(tree))[site.outpoint(0)]).toBe('directory more than 100 files, 100 KB')
    expect(await tree.page(`/ordinal/${site.outpoint(0)}`)).toContain('150 files, 150 KB')
  })

  test('of many directories below one, some are opened', async () => {
    const tree = await treeFor()
    const below = Array.from({ length: 30 }, (_, at) => directory({ [`${at}`]: '_31' }))
    const site = await inscribe(tree, [numbered(30, 1), ...below, text('deep')])
    expect((await tiles(tree))[site.outpoint(0)]).toBe('directory more than 1 file, 4 B')
    expect(await tree.page(`/ordinal/${site.outpoint(0)}`)).toContain('>1 file, 4 B<')
  })

  test.each([
    ['with thousands of entries', [directory(`{${'"":"x",'.repeat(12_000)}"":"x"}`)]],
    ['many and short', Array.from({ length: 300 }, (_, at) => directory({ [`${at}`]: 'x' }))],
  ])('of directories %s, few are read before other requests run', async (_, files) => {
    const tree = await treeFor()
    for (let at = 0; at < 4; at++) await inscribe(tree, files)
    const { things } = tree.server.node.graph
    expect(things.inscriptions({ limit: 1 })).toHaveLength(1)
    expect(() => things.inscriptions({ limit: 1000 })).toThrow('takes several turns of the event loop')
    expect(Object.keys(await tiles(tree))).not.toHaveLength(0)
  })

  test('what directories lead to is looked for in several turns', async () => {
    const tree = await treeFor()
    for (let at = 0; at < 8; at++) await inscribe(tree, [directory({ a: `${'ab'.repeat(32)}_${at}` })])
    const { graph: store } = tree.server.node
    const outputs = store.things.inscriptions({ limit: 8 })
    expect(outputs).toHaveLength(8)
    const site = { gatewayHost: undefined } as unknown as Site
    const views = (most: number) =>
      contentViews({ store, site }, outputs.slice(0, most), { quoted: TILE_QUOTE })
    expect(views(3)).toHaveLength(3)
    expect(() => views(8)).toThrow('takes several turns of the event loop')
    expect(Object.keys(await tiles(tree, '/'))).toHaveLength(8)
  })

  test('a patch is shown as what it makes', async () => {
    const tree = await treeFor()
    const page = text('<!doctype html><p>a page of some length</p>', 'text/html')
    const base = await inscribe(tree, [
      page,
      text('a text of some length'),
      directory({ 'index.html': '_0' }),
    ])
    const on = (place: Outpoint, before: File, after: string): File => ({
      contentType: PATCH_TYPE,
      body: encodePatch({ base: place, delta: encodeDelta(before.body, utf8(after)) }),
    })
    const at = (vout: number): Outpoint => ({ txid: base.txid, vout })
    const patches = [
      on(at(0), page, '<!doctype html><p>a page of another length</p>'),
      on(at(1), text('a text of some length'), 'a text of another length'),
      on(at(2), directory({ 'index.html': '_0' }), JSON.stringify({ 'index.html': base.outpoint(0) })),
      on({ ...at(0), txid: 'ab'.repeat(32) }, page, ''),
      { contentType: PATCH_TYPE, body: utf8('no patch') },
    ]
    const patch = await inscribe(tree, patches)
    const framed = /<iframe class="view" src="[^"]+\?framed"/
    const size = (vout: number): number => patches[vout]?.body.length ?? 0
    const shown = await tiles(tree)
    for (const [vout, label] of ['page', 'text', 'site'].entries()) {
      expect(shown[patch.outpoint(vout)]).toBe(`${label} patch of ${size(vout)} B`)
      expect(await tree.page(`/ordinal/${patch.outpoint(vout)}`)).toMatch(framed)
    }
    for (const vout of [3, 4]) {
      expect(shown[patch.outpoint(vout)]).toBe(`patch ${size(vout)} B`)
      expect(await tree.page(`/ordinal/${patch.outpoint(vout)}`)).toContain('Open the content')
    }
  })

  test('a directory that is too long to be read for a list hides nothing', async () => {
    const tree = await treeFor()
    const entries = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`file ${at}`, '_1']))
    const site = await inscribe(tree, [directory(entries), text('hello')])
    expect(Object.keys(await tiles(tree)).sort()).toEqual([site.outpoint(0), site.outpoint(1)])
  })

  test('a stream is titled by its type and whole length, and grows', async () => {
    const tree = await treeFor()
    const { chain, server } = tree
    const first = await inscribe(tree, [{ contentType: 'video/mp4;stream=gw', body: utf8('a'.repeat(1000)) }])
    const outpoint = first.outpoint(0)
    expect(await tiles(tree)).toEqual({ [outpoint]: 'video 1.0 KB' })
    let last = first
    for (const length of [2000, 3000]) {
      const chunk = inscriptionScript({ contentType: 'gw/stream', body: new Uint8Array(length) })
      const next = chain.move(last, 0, chunk)
      await server.take(beefOf(next, { with: [last] }), ['tm_ordinals'])
      last = next
      expect(await tiles(tree)).toEqual({ [outpoint]: `video ${length === 2000 ? '3.0' : '6.0'} KB` })
    }
    for (const each of [outpoint, last.outpoint(0)]) {
      const html = await tree.page(`/ordinal/${each}`)
      expect(html).toContain('>video/mp4, 6.0 KB</h1>')
      expect(html).toContain('<title>A stream: video/mp4, 6.0 KB')
    }
    expect(server.node.graph.things.furtherChunks(parseOutpoint(last.outpoint(0)))).toBeUndefined()
  })
})
