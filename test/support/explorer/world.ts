import { deflateSync } from 'node:zlib'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { directory, type File, text } from '../gateway/site.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../protocol/fake-chain.js'
import type { HeaderChain } from '../server/header-chain.js'
import type { TestServer } from '../server/test-server.js'

/** What there is to look at in an explorer: names, a site on one of them, inscriptions of all kinds, and what is hostile. */
export interface World {
  chain: FakeChain
  deployment: Deployment
  /** In how many blocks all of it is mined. */
  blocks: number
  /** Mines all of it, a block for each transaction, and has the proofs lead there: for a server that checks them. */
  mineOn(headers: HeaderChain): void
  /** Submits all of it. */
  fill(server: Pick<TestServer, 'submit'>): Promise<void>
  /** The outpoint of each inscription, by what it is. */
  outpoints: Record<
    keyof typeof FILES | 'long directory' | 'short directory' | 'files' | 'hostile' | 'child' | 'site',
    string
  >
  names: string[]
}

/** What turns text around, hides, or breaks out of markup. */
export const HOSTILE = `<script>alert(1)</script>"'&<img src=x onerror=alert(2)>\u202egnirts\u0000\u200b\u{1f600}`

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160"><rect width="160" height="160" fill="#c9e6d3"/><path d="M80 150V90M80 90 40 50M80 90l44-46" stroke="#1f6b45" stroke-width="10" fill="none"/><circle cx="40" cy="46" r="16" fill="#1f6b45"/><circle cx="126" cy="42" r="16" fill="#d9a862"/></svg>`

const PAGE = `<!doctype html><meta charset=utf-8><title>alice</title><style>body{margin:0;font:18px/1.5 system-ui;background:#fdf6e9;color:#2b2a26}header{padding:40px;background:linear-gradient(120deg,#2f8f5f,#7fd0a3);color:#fff}main{padding:32px 40px;max-width:60ch}h1{margin:0;font-size:44px}</style><header><h1>Alice</h1><p>Gardens, bread and small computers.</p></header><main><h2>This week</h2><p>The first tomatoes are in, and the sourdough has a name now. There is nothing to install here: this page is a transaction.</p></main><img src="http://other.example/tracker.png" alt="">`

const FILES = {
  gm: text('gm'),
  notes: text(
    '# Notes\n\nWhat is written here stays. It was mined in a block, and anybody can check that.',
    'text/markdown',
  ),
  json: text('{ "x": 1, "y": [true, null], "name": "example" }', 'application/json'),
  svg: text(SVG, 'image/svg+xml'),
  png: { contentType: 'image/png', body: png(96, (x, y) => [200 - x, 150 + Math.floor(y / 2), 90 + x]) },
  page: text(PAGE, 'text/html; charset=utf-8'),
  bytes: { contentType: 'application/octet-stream', body: new Uint8Array(24_000) },
  audio: { contentType: 'audio/wav', body: new Uint8Array(9000) },
} satisfies Record<string, File>

/**
 * @param options.names How many names are mined beside the ones with a meaning.
 * @param options.isPeaceful Leaves out what is hostile: for pictures.
 */
export function explorerWorld({
  names: more = 30,
  difficulty = 2,
  isPeaceful = false,
}: {
  names?: number
  difficulty?: number
  isPeaceful?: boolean
} = {}): World {
  const chain = new FakeChain({ difficulty })
  const submissions: [transaction: FakeTransaction, topics: string[], sources?: FakeTransaction[]][] = [
    [chain.genesis, ['tm_names']],
  ]
  const both = ['tm_names', 'tm_ordinals']
  const names = ['home', 'alice', 'a1ice', 'satoshi-cafe', 'zebra9', ...invented(more)]
  const mints = new Map<string, FakeTransaction>()
  for (const name of names)
    for (let length = 1; length <= name.length; length++) {
      const prefix = name.slice(0, length)
      if (mints.has(prefix)) continue
      const mint = chain.mint(prefix)
      mints.set(prefix, mint)
      submissions.push([mint, both])
    }
  const inscribe = (
    file: File,
    rest: Omit<Parameters<FakeChain['inscribe']>[0], keyof File> = {},
  ): string => {
    // From a coin that is known, so that its origin is.
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })
    const transaction = chain.move(coin, 0, inscriptionScript({ ...file, ...rest }))
    submissions.push([transaction, ['tm_ordinals'], [coin]])
    return transaction.outpoint(0)
  }
  const inscribed = Object.fromEntries(
    Object.entries(FILES).map(([name, file]) => [name, inscribe(file)]),
  ) as Record<keyof typeof FILES, string>
  const bad = HOSTILE.replaceAll('/', '')
  const listing = (count: number, to: string, nameAt: (at: number) => string, first: string[] = []) =>
    directory(
      Object.fromEntries(
        [...first, ...Array.from({ length: count }, (_, at) => nameAt(at))].map((each) => [each, to]),
      ),
    )
  const long = inscribe(listing(10_000, '_0', (at) => `file-${at}${at % 7 ? '' : bad}`))
  const short = inscribe(listing(10_000, '_0', (at) => `f${at}`))
  const files = inscribe(listing(20, inscribed.gm, (at) => `file ${at}.txt`, [bad, '..']))
  const map = { [HOSTILE]: HOSTILE, app: 'example', long: 'x'.repeat(60_000), ['k'.repeat(2000)]: 'v' }
  const hostile = inscribe(
    { contentType: `text/plain; x="\u202e${'<b>'.repeat(20)}"`, body: utf8(HOSTILE) },
    { suffix: mapTail(map) },
  )
  const parent = parseOutpoint(inscribed.svg)
  const child = inscribe(text('a child'), { parent })
  const unwanted = new Set([long, short, files, hostile])
  let mined: HeaderChain | undefined
  // The ordinal of a name moves, and shows a site.
  const mint = mints.get('alice')
  if (mint === undefined) throw new Error('alice is not mined')
  const moved = chain.move(mint, 2, p2pkh(7))
  const shown = { 'index.html': '_1', 'notes.md': inscribed.notes }
  const suffix = mapTail({ app: 'site', title: 'The site of Alice' })
  const scripts = [{ ...directory(shown), suffix }, FILES.page].map((file) => inscriptionScript(file))
  const site = chain.spend({
    inputs: [{ transaction: moved, vout: 0 }],
    outputs: scripts.map((lockingScript) => ({ satoshis: 1, lockingScript })),
  })
  submissions.push([moved, ['tm_ordinals']], [site, ['tm_ordinals']])
  return {
    chain,
    deployment: chain.deployment,
    outpoints: {
      ...{ ...inscribed, 'long directory': long, 'short directory': short },
      ...{ files, hostile, child, site: site.outpoint(0) },
    },
    names,
    blocks: submissions.length,
    mineOn(headers) {
      for (const [transaction, , sources = []] of submissions) headers.mine([...sources, transaction])
      mined = headers
    },
    async fill(server) {
      for (const [transaction, topics, sources = []] of submissions) {
        if (isPeaceful && unwanted.has(transaction.outpoint(0))) continue
        const beef = mined?.branch.beef(transaction, sources) ?? beefOf(transaction, { with: sources })
        const { status, body } = await server.submit(beef, topics)
        if (status !== 200) throw new Error(`a submission was answered ${status}: ${body}`)
      }
    },
  }
}

/** Names that a person might want, the same ones each time. */
function invented(most: number): string[] {
  const [heads, tails] = [
    ['ba', 'co', 'du', 'fe', 'gi', 'ka', 'lo', 'mu', 'ne', 'pi', 'ra', 'so', 'tu', 've', 'wi'],
    ['n', 'la', 'ro', 's', 'ti', '-x', '9', 'mm', 'k0'],
  ]
  return Array.from(
    { length: most },
    (_, at) => `${heads[(at * 7) % heads.length]}${tails[(at * 5) % tails.length]}`,
  )
}

/** A square picture, as PNG. */
function png(size: number, colour: (x: number, y: number) => [number, number, number]): Uint8Array {
  const rows = Array.from({ length: size }, (_, y) =>
    Uint8Array.from([0, ...Array.from({ length: size }, (__, x) => colour(x, y)).flat()]),
  )
  const u32 = (value: number): Uint8Array => {
    const bytes = new Uint8Array(4)
    new DataView(bytes.buffer).setUint32(0, value)
    return bytes
  }
  const chunk = (type: string, data: Uint8Array): Uint8Array => {
    const named = concatBytes(utf8(type), data)
    return concatBytes(u32(data.length), named, u32(crc(named)))
  }
  return concatBytes(
    Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', concatBytes(u32(size), u32(size), Uint8Array.from([8, 2, 0, 0, 0]))),
    chunk('IDAT', new Uint8Array(deflateSync(Buffer.concat(rows)))),
    chunk('IEND', new Uint8Array()),
  )
}

function crc(bytes: Uint8Array): number {
  let value = 0xffffffff
  for (const byte of bytes) {
    value ^= byte
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  }
  return (value ^ 0xffffffff) >>> 0
}
