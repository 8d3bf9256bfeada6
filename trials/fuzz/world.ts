import { concatBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { DIRECTORY, directory, type File, text } from '../../test/support/gateway/site.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../test/support/protocol/fake-chain.js'
import { type Environment, treeOf } from '../../test/support/server/test-server.js'
import { get, type PlainRequest, post, postJson } from './request.js'

export interface Submission {
  beef: Uint8Array
  topics: readonly string[]
}

/** A good request, and its right answer. */
export interface Probe {
  request: PlainRequest
  status: number
  headers?: Record<string, string>
  body?: Uint8Array
  json?: unknown
}

/** A small network that is always the same. */
export interface World {
  chain: FakeChain
  /** The settings of a server that follows its tree. */
  settings: Environment
  /** All submissions, in the order in which they must be sent. */
  filling: readonly Submission[]
  /** About outputs that nothing made of {@link prey} spends. */
  probes: readonly Probe[]
  /** The material of inputs. */
  prey: Prey
}

export interface Prey {
  submissions: readonly Submission[]
  /** Transactions whose outputs may be spent; output 0 of each is an ordinal. */
  coins: readonly FakeTransaction[]
  /** Proven; only its own outputs can be spent by any push. */
  open: FakeTransaction
  /** All outputs that probes do not ask for. */
  own: readonly string[]
  /** All outputs, of either part. */
  outpoints: readonly string[]
  directories: readonly string[]
  streams: readonly string[]
  names: readonly string[]
}

const STREAM = ['the first chunk, ', 'the second, ', 'and the end']
const SITE: File[] = [
  directory({ 'index.html': '_1', sub: '_2', 'a b': '_3' }),
  text('<p>index', 'text/html'),
  directory({ '.': '_3', up: '_0', 'c.txt': '_3' }),
  text('0123456789'),
]

export function fuzzWorld(): World {
  const chain = new FakeChain()
  const filling: Submission[] = []
  const fill = (transaction: FakeTransaction, options: FillOptions = {}): FakeTransaction => {
    const { topics = ['tm_ordinals'], ...form } = options
    filling.push({ beef: beefOf(transaction, form), topics })
    return transaction
  }
  const inscribed = (files: readonly Parameters<typeof inscriptionScript>[0][]): FakeTransaction => {
    const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })
    const outputs = files.map((file) => ({ satoshis: 1, lockingScript: inscriptionScript(file) }))
    const inputs = [{ transaction: funding, vout: 0 }]
    return fill(chain.spend({ inputs, outputs }), { with: [funding] })
  }
  const moved = (from: FakeTransaction, lockingScript: Uint8Array): FakeTransaction => {
    const inputs = [{ transaction: from, vout: 0 }]
    return fill(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] }), { with: [from] })
  }
  const chunk = (body: string): Uint8Array => inscriptionScript(text(body, 'gw/stream'))
  const life = (said: string): FakeTransaction[] => {
    const origin = inscribed([{ ...text(`${said} at first`), suffix: mapTail({ said, step: '0' }) }])
    const named = moved(origin, concatBytes(p2pkh(2), mapTail({ step: '1' })))
    const rewritten = moved(named, inscriptionScript(text(`${said} at last`)))
    return [origin, named, rewritten]
  }
  const stream = (): FakeTransaction[] => {
    const [first = '', ...rest] = STREAM
    const steps = [inscribed([text(first, 'audio/x-fuzz')])]
    for (const body of rest) steps.push(moved(steps.at(-1) ?? chain.genesis, chunk(body)))
    return steps
  }
  const named = (name: string): FakeTransaction[] =>
    chain.mintAll(name).map((mint) => fill(mint, { topics: ['tm_names'] }))

  fill(chain.genesis, { topics: ['tm_names'] })
  const mints = named('kept')
  const kept = { site: inscribed(SITE), life: life('kept'), stream: stream(), mints }
  const probes = probesOf(kept)
  // From here on, the material of inputs: it spends nothing of the above but the root of the tree, with this.
  named('p')
  const start = filling.length
  const preyed = { mints: named('prey'), site: inscribed(SITE), life: life('prey'), stream: stream() }
  const open = inscribed(Array.from({ length: 4 }, () => ({ ...text('open'), lock: OPEN_LOCK })))
  const unproven = chain.spend({
    inputs: [{ transaction: open, vout: 3 }],
    outputs: [{ satoshis: 1, lockingScript: inscriptionScript(text('unproven')) }],
  })
  fill(unproven, { proven: false, with: [open] })
  const coins = [preyed.site, ...preyed.life, ...preyed.stream, unproven]
  const own = [...coins, ...preyed.mints]
  const outpointsOf = (transactions: readonly FakeTransaction[]): string[] =>
    transactions.flatMap(({ outpoint }) => [0, 1, 2, 3].map(outpoint))
  const all = [...own, kept.site, ...kept.life, ...kept.stream, ...mints, chain.genesis]
  return {
    chain,
    settings: treeOf(chain.deployment),
    filling,
    probes,
    prey: {
      submissions: filling.slice(start),
      coins,
      open,
      own: outpointsOf(own),
      outpoints: outpointsOf(all),
      directories: [preyed.site, kept.site].flatMap(({ outpoint }) => [outpoint(0), outpoint(2)]),
      streams: [...preyed.stream, ...kept.stream].map(({ outpoint }) => outpoint(0)),
      names: ['k', 'ke', 'kep', 'kept', 'p', 'pr', 'pre', 'prey', 'none'],
    },
  }
}

type FillOptions = Parameters<typeof beefOf>[1] & { topics?: string[] }

interface Kept {
  site: FakeTransaction
  life: FakeTransaction[]
  stream: FakeTransaction[]
  mints: FakeTransaction[]
}

function probesOf({ site, life, stream, mints }: Kept): Probe[] {
  const origin = life[0]?.outpoint(0) ?? ''
  const tip = life[2]?.outpoint(0) ?? ''
  const first = stream[0]?.outpoint(0) ?? ''
  const name = { name: 'kept', outpoint: mints.at(-1)?.outpoint(2) ?? '' }
  const origins = mints.map(({ outpoint }) => outpoint(2))
  const whole = utf8(STREAM.join(''))
  const map = { said: 'kept', step: '1' }
  return [
    { request: get(`/content/${site.outpoint(3)}`), status: 200, body: utf8('0123456789') },
    {
      request: get(`/content/${site.outpoint(3)}`, [['Range', 'bytes=2-4']]),
      status: 206,
      headers: { 'content-range': 'bytes 2-4/10' },
      body: utf8('234'),
    },
    {
      request: get(`/content/${site.outpoint(0)}`),
      status: 302,
      headers: { location: `/content/${site.outpoint(0)}/index.html` },
    },
    {
      request: get(`/content/${site.outpoint(0)}/sub/c.txt`),
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: utf8('0123456789'),
    },
    { request: get(`/content/${site.outpoint(0)}?raw`), status: 200, headers: { 'content-type': DIRECTORY } },
    {
      request: get(`/content/${origin}:-1`),
      status: 200,
      headers: { 'x-outpoint': tip, 'x-origin': origin, 'x-ord-seq': '2', 'x-map': JSON.stringify(map) },
      body: utf8('kept at last'),
    },
    { request: get(`/content/${origin}:0`), status: 200, body: utf8('kept at first') },
    { request: get(`/svc/gateway/stream/${first}`), status: 200, body: whole },
    {
      request: get(`/svc/gateway/stream/${first}`, [['Range', 'bytes=-7']]),
      status: 206,
      body: whole.subarray(-7),
    },
    { request: get('/svc/names/origin/kept'), status: 200, json: name },
    {
      request: postJson('/svc/names/origins', JSON.stringify(origins)),
      status: 200,
      json: Object.fromEntries(origins.map((outpoint) => [outpoint, true])),
    },
    {
      request: get('/svc/names?prefix=kep'),
      status: 200,
      json: { names: [{ name: 'kep', outpoint: origins[2] }, name] },
    },
    {
      request: get('/svc/names/proof/kept'),
      status: 200,
      headers: { 'content-type': 'application/octet-stream' },
    },
    { request: get(`/svc/gateway/provenance/${tip}`), status: 200 },
    {
      request: post('/svc/gateway/preview', '<p>shown', [['Content-Type', 'text/html']]),
      status: 200,
      body: utf8('<p>shown'),
    },
    { request: get('/health/ready'), status: 200, json: { status: 'ok' } },
  ]
}
