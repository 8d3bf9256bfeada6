import { MerklePath } from '@bsv/sdk'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { concatBytes, joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { PROFILES, type ProfileName } from '../../../backend/src/protocol/profile.js'
import { MINE_PAGE_FILES } from '../../../src/gateway/pages/mine-page-routes.js'
import { builtPages } from '../cli/built-package.js'
import { whileReplaced } from '../gateway/faults.js'
import { animated, encoded, imageProgram, picture } from '../images/pictures.js'
import { blockOfTwo, proofIn, recordOf } from '../protocol/block.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../protocol/fake-chain.js'
import { bodyHolder, changeStore } from '../storage/changed-files.js'
import { HeaderChain } from './header-chain.js'
import { HostTracker } from './host-tracker.js'
import {
  AS_OPERATOR,
  OPERATOR,
  posted,
  type Question,
  submission,
  type TestServer,
  treeOf,
  type useServers,
} from './test-server.js'

/** The status of an answer, and the request that gets it: from `well`, unless another host is named. */
export type OpenapiRequest = [status: number, path: string, question?: Question, host?: keyof Hosts]

/** Hosts, each in another state that answers depend on. */
export interface Hosts {
  well: TestServer
  /** It has an empty store and an unreachable chain tracker. */
  empty: TestServer
  /** Its store is closed. */
  broken: TestServer
  /** It has a chain tracker that answers. */
  watching: TestServer
  /** The same host while its chain tracker does not answer, and while its store does not. */
  unheard: TestServer
  forgetting: TestServer
  /** {@link FLOODER} is over its rate limits. */
  flooded: TestServer
  /** It waits for a chain source, which does not answer, for what is before {@link Stored.waiting}. */
  awaiting: TestServer
  /** It has some of the tree, and follows it by a chain source that does not answer. */
  behind: TestServer
  /** Its store has no space left. */
  full: TestServer
  /** It is rebuilding its index, and never finishes. */
  rebuilding: TestServer
}

/** What `well` has stored, and what can be submitted to it. */
export interface Stored {
  /** Outputs: 0 a directory with an index, 1 a page, 2 a directory that leads into itself, 3 a patch and 4 a binary directory that are none. All are origins. */
  site: (vout: number) => string
  /** A blocked output with content. The name `d` is blocked as well. */
  blocked: string
  /** An output whose content is damaged in the store. */
  damaged: string
  /** An output with more MAP than any host shows. */
  mapped: string
  /** Outputs with images: 0 a still one, 1 an animated one, 2 one that is cut off, 3 SVG. All are origins. */
  image: (vout: number) => string
  /** An ordinal of `awaiting` without content. */
  waiting: string
  /** The origin of the name `a`, and its mint. */
  named: string
  mined: Pick<FakeTransaction, 'txid' | 'height'>
  submittable: Uint8Array
  conflicting: Uint8Array
  /** The proof of a transaction that `well` has, and `empty` has without its outputs. */
  notice: { txid: string; merklePath: string; blockHeight: number }
}

const MAX_BODY_BYTES = 100_000
/** `empty` accepts proofs with this token only. */
const ARC_CALLBACK_TOKEN = 'a-token-of-the-processor'

const { now } = performance
/** How many want the clock stopped. The suites of a worker share it: whoever is last has to let it go on. */
let stops = 0

/** Does something with the clock of this process stopped, so that no minute of a limit ends between two requests. */
export async function withinAMinute<Result>(work: () => Promise<Result>): Promise<Result> {
  if (stops++ === 0) {
    const stopped = performance.now()
    performance.now = () => stopped
  }
  try {
    return await work()
  } finally {
    if (--stops === 0) performance.now = now
  }
}

export async function openapiHosts({
  start,
  profile,
}: {
  start: ReturnType<typeof useServers>['start']
  profile: ProfileName
}): Promise<{ hosts: Hosts; stored: Stored }> {
  const [directoryType = ''] = PROFILES[profile].directoryContentTypes
  const chain = new FakeChain({ nameContentType: PROFILES[profile].nameContentType })
  const tree = treeOf(chain.deployment)
  const settings = { ...tree, PROFILE: profile, CHAIN_TRACKER: 'scripts-only' }
  const pages = await builtPages()
  const wells = { ...settings, ...OPERATOR, MAX_BODY_BYTES: String(MAX_BODY_BYTES) }
  const DATA_DIR = await followedStore(start, settings)
  const making = { imageProgram: await imageProgram() }
  const well = await start({ ...wells, DATA_DIR }, { pages, ...making })
  const nowhere = { CHAIN_TRACKER: 'headers', HEADERS_SOURCES: 'junglebus=http://127.0.0.1:9' }
  const unreachable = { ...settings, ...nowhere }
  const empty = await start(
    { ...unreachable, ARC_CALLBACK_TOKEN, DATA_DIR: await followedStore(start, unreachable) },
    making,
  )
  const broken = await start({ ...settings, ...OPERATOR }, making)
  await broken.node.close()

  const full = await start({ ...settings, ...OPERATOR })

  const awaiting = await start({ ...settings, CHAIN_SOURCES: 'junglebus=http://127.0.0.1:9' }, making)
  const placeless = chain.spend({
    inputs: [chain.madeUpCoin()],
    outputs: [concatBytes(p2pkh(1), mapTail({ title: 'from somewhere' }))],
  })
  await awaiting.submit(beefOf(placeless), ['tm_ordinals'])

  const behind = await start({ ...settings, CHAIN_SOURCES: 'junglebus=http://127.0.0.1:9' })

  const limits = { READS_PER_MINUTE: '1', SUBMISSIONS_PER_MINUTE: '1', TRUST_PROXY: '1' }
  const flooded = await start({ ...settings, ...limits })
  const flood = async (): Promise<void> => {
    await flooded.ask('/', FLOODER)
    await flooded.ask('/submit', { ...FLOODER, method: 'POST' })
  }

  const rebuilding = await start({ ...settings, ...OPERATOR })
  Object.defineProperty(rebuilding.node.index, 'status', { value: { state: 'rebuilding', done: 0 } })

  const submit = async (...sent: Parameters<TestServer['submit']>): Promise<void> => {
    await well.take(...sent)
  }
  const minted = chain.mint('a')
  for (const mint of [chain.genesis, minted, chain.mint('b')]) {
    await submit(beefOf(mint))
    await behind.submit(beefOf(mint))
  }
  const directory = (map: Record<string, string>): Uint8Array =>
    inscriptionScript({ contentType: directoryType, body: utf8(JSON.stringify(map)) })
  const funding = chain.spend({ outputs: [{ satoshis: 3, lockingScript: p2pkh(0) }] })
  // A parent counts where it is spent.
  const parent = { txid: funding.txid, vout: 0 }
  const suffix = mapTail({ title: 'a page' })
  const page = inscriptionScript({ contentType: 'text/html', body: utf8('<p>a page'), parent, suffix })
  const patch = inscriptionScript({ contentType: 'ordfs/patch', body: utf8('no record') })
  const bytes = inscriptionScript({ contentType: 'ordfs/dir', body: utf8('no directory') })
  const map = { 'index.html': '_1', loop: '_2', patch: '_3', bytes: '_4' }
  const scripts = [directory(map), page, directory({ '.': '_2', loop: '_2' }), patch, bytes]
  const site = chain.spend({ inputs: [funding], outputs: scripts })
  await submit(beefOf(site, { with: [funding] }), ['tm_ordinals'])
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('spent twice'), lock: OPEN_LOCK })
  await submit(beefOf(note), ['tm_ordinals'])
  const spent = [p2pkh(2), p2pkh(3)].map((lockingScript) =>
    chain.spend({ inputs: [note], outputs: [lockingScript] }),
  )
  // Mined, the double spend would win.
  const [first, doubleSpend] = spent
  if (first === undefined || doubleSpend === undefined) throw new Error('there are two')
  const conflicting = beefOf(doubleSpend, { with: [note], proven: false })
  // Second in its block: a chain tracker accepts nothing but a coinbase as the first.
  const block = blockOfTwo(note, first, first.height)
  const submittable = encodeBeef([recordOf(note, note.height), { ...first, proof: proofIn(block, first) }])
  const { txid, raw, height: blockHeight } = note
  for (const host of [empty, full]) await host.node.graph.record([{ txid, raw }])
  const notice = noticeOf(txid, blockHeight)
  const hidden = chain.inscribe({ contentType: 'text/plain', body: utf8('not to be seen') })
  await submit(beefOf(hidden), ['tm_ordinals'])
  const blocked = hidden.outpoint(0)
  const rotten = chain.inscribe({ contentType: 'image/png', body: utf8('rotten') })
  await submit(beefOf(rotten), ['tm_ordinals'])
  const still = await encoded(picture({ width: 40, height: 20 }), 'png')
  const bodies = {
    still,
    moving: await animated('gif', 2),
    halved: still.subarray(0, 60),
    drawn: utf8('<svg/>'),
  }
  const coins = chain.spend({ outputs: [{ satoshis: 4, lockingScript: p2pkh(0) }] })
  const images = chain.spend({
    inputs: [coins],
    outputs: Object.entries(bodies).map(([name, body]) =>
      inscriptionScript({ contentType: name === 'drawn' ? 'image/svg+xml' : 'image/png', body }),
    ),
  })
  await submit(beefOf(images, { with: [coins] }), ['tm_ordinals'])
  damage(well.dataDir, utf8('rotten'))
  const mapped = chain.inscribe({
    ...{ contentType: 'text/plain', body: utf8('much is said of it') },
    suffix: mapTail({ title: 'x'.repeat(70_000) }),
  })
  await submit(beefOf(mapped), ['tm_ordinals'])
  const headers = new HeaderChain()
  headers.grow(20)
  await well.node.graph.headers.replaceFrom({
    ...{ height: 800_000, tip: undefined },
    headers: joinBytes([...headers.branch.blocks()].reverse().map(({ header }) => header.bytes)),
  })
  for (const subject of [{ outpoint: blocked }, { name: 'd' }]) await well.block(subject)
  const ask: TestServer['ask'] = (...asked) =>
    // Each time, as the minute of the last flood may have passed.
    withinAMinute(async () => {
      await flood()
      return await flooded.ask(...asked)
    })
  return {
    hosts: {
      well,
      empty,
      broken,
      ...(await watchingHosts(start)),
      flooded: { ...flooded, ask },
      awaiting,
      behind,
      full: fullHost(full),
      rebuilding,
    },
    stored: {
      site: site.outpoint,
      blocked,
      damaged: rotten.outpoint(0),
      mapped: mapped.outpoint(0),
      image: images.outpoint,
      waiting: placeless.outpoint(0),
      named: minted.outpoint(2),
      mined: minted,
      submittable,
      conflicting,
      notice,
    },
  }
}

function damage(dataDir: string, body: Uint8Array): void {
  const holder = bodyHolder(dataDir, body)
  changeStore(dataDir, 'log', "update log set body = x'00' where kind = 1 and key = ?", holder)
}

/** The folder of a store whose tree was followed. */
async function followedStore(
  start: ReturnType<typeof useServers>['start'],
  settings: Record<string, string>,
): Promise<string> {
  const { node, dataDir, stop } = await start(settings)
  const asOf = { height: 800_000, hash: 'ab'.repeat(32) }
  await node.graph.settings.set('tree_followed', JSON.stringify({ complete: true, asOf }))
  await stop()
  return dataDir
}

/** The host, with a store that fails every write. */
function fullHost(host: TestServer): TestServer {
  const { graph } = host.node
  const by = async (): Promise<never> => {
    throw Object.assign(new Error('no space is left'), { code: 'SQLITE_FULL' })
  }
  const ask: TestServer['ask'] = (...asked) => {
    const blocking = () => whileReplaced(graph.blocklist, 'add', { by, during: () => host.ask(...asked) })
    const unblocking = () => whileReplaced(graph.blocklist, 'remove', { by, during: blocking })
    return whileReplaced(graph, 'record', { by, during: unblocking })
  }
  return { ...host, ask }
}

async function watchingHosts(
  start: ReturnType<typeof useServers>['start'],
): Promise<Pick<Hosts, 'watching' | 'unheard' | 'forgetting'>> {
  const tracker = new HostTracker(new HeaderChain())
  const watching = await start({ ...OPERATOR, HEADERS_POLL_MS: '0' }, { tracker })
  const unheard: TestServer['ask'] = async (...asked) => {
    tracker.mood = 'fails'
    try {
      return await watching.ask(...asked)
    } finally {
      tracker.mood = 'answers'
    }
  }
  const by = async (): Promise<never> => {
    throw new Error('the store is gone')
  }
  const forgetting: TestServer['ask'] = (...asked) =>
    whileReplaced(watching.node.graph.settings, 'get', { by, during: () => watching.ask(...asked) })
  return { watching, unheard: { ...watching, ask: unheard }, forgetting: { ...watching, ask: forgetting } }
}

/** The callback of a transaction processor for a transaction that is alone in its block. */
function noticeOf(txid: string, blockHeight: number): Stored['notice'] {
  const path = new MerklePath(blockHeight, [[{ offset: 0, hash: txid, txid: true }]])
  return { txid, merklePath: path.toHex(), blockHeight }
}

/** Requests that get every described answer of every operation, below one prefix of each kind. */
export function openapiRequests({
  stored: { site, blocked, damaged, mapped, image, waiting, named, mined, submittable, conflicting, notice },
  gateway,
  names,
  wallets,
}: {
  stored: Stored
  gateway: string
  names: string
  wallets: string
}): OpenapiRequest[] {
  const worker = { headers: { 'Service-Worker': 'script' } }
  const range = (text: string): Question => ({ headers: { Range: text } })
  /** Requests for one body by its path, which for content has a sequence, so that every header is sent. */
  const ways = (path: string): OpenapiRequest[] => [
    [200, path],
    [206, path, range('bytes=1-2')],
    [416, path, range('bytes=900-')],
    [304, path, KNOWN],
    [400, path, worker],
    [500, path, {}, 'broken'],
    [404, path, {}, 'empty'],
  ]
  const lost = (path: string, asked: Question = {}): OpenapiRequest => [500, path, asked, 'broken']
  const shown = posted(notice, { Authorization: `Bearer ${ARC_CALLBACK_TOKEN}` })
  const overlay = submission(submittable, ['tm_ordinals'])
  const question = (query: unknown, service = 'ls_names'): Question => posted({ service, query })
  const binary = { ...question({ origin: 'a' }).headers, 'X-Aggregation': 'yes' }
  const streamed = { ...binary, Accept: 'application/octet-stream' }
  const manyOutpoints = Array.from({ length: 1001 }, () => site(0))
  const many = [`${site(1)}:0`, site(0), 'ab'.repeat(32)]
  const metadata = `${gateway}/metadata/${site(1)}`
  const images = (vout: number): string => `${gateway}/image/${image(vout)}`
  const provenance = `${gateway}/provenance/${site(1)}`
  const proof = `${gateway}/proof/${site(1)}`
  const html = (length: number): string => Buffer.alloc(length, '<p>').toString('base64url')
  const overlayRequests: OpenapiRequest[] = [
    [200, '/listTopicManagers'],
    [200, '/listLookupServiceProviders'],
    [200, '/getDocumentationForTopicManager?manager=tm_names'],
    [400, '/getDocumentationForTopicManager'],
    [404, '/getDocumentationForTopicManager?manager=x'],
    [200, '/getDocumentationForLookupServiceProvider?lookupService=ls_names'],
    [400, '/getDocumentationForLookupServiceProvider'],
    [404, '/getDocumentationForLookupServiceProvider?lookupService=x'],
    [200, '/submit', overlay],
    [409, '/submit', submission(conflicting, ['tm_ordinals'])],
    [400, '/submit', submission(new Uint8Array())],
    [413, '/submit', submission(new Uint8Array(MAX_BODY_BYTES + 1))],
    [503, '/submit', overlay, 'empty'],
    lost('/submit', overlay),
    [503, '/submit', overlay, 'full'],
    [200, '/lookup', question({ origin: 'a' })],
    [200, '/lookup', { ...question({ origin: 'a' }), headers: binary }],
    [200, '/lookup', question({ name: 'a', history: true })],
    [200, '/lookup', { ...question({ name: 'a', history: true }), headers: streamed }],
    [400, '/lookup', question({ why: 'a' })],
    [413, '/lookup', question('-'.repeat(2 ** 20))],
    lost('/lookup', question({ origin: 'a' })),
    [451, '/lookup', question({ origin: 'd' })],
    [200, '/lookup', question({ origin: 'a' }), 'behind'],
    [503, '/lookup', question({ mine: 'ab' }), 'behind'],

    ...synced({ held: site(1), blocked, mined }).flatMap(([status, path, asked]): OpenapiRequest[] =>
      status === 200 ? [[status, path, asked], lost(path, asked)] : [[status, path, asked]],
    ),
  ]
  const requests: OpenapiRequest[] = [
    ...ways(`/content/${site(1)}:0`),
    [400, '/content/x'],
    [400, `/content/${site(1)}:x`],
    // Its default leads into itself.
    [400, `/content/${site(2)}`],
    [400, `/content/${site(3)}`],
    [400, `/content/${site(0)}/patch`],
    [400, `/content/${site(4)}`],
    [400, `/content/${site(0)}/bytes/x`],
    [302, `/content/${site(0)}:0`],
    [302, `/content/${site(0)}/`],
    [200, `/content/${site(0)}?raw`],
    ...ways(`/content/${site(0)}:0/index.html`),
    [451, `/content/${blocked}`],
    [503, `/content/${damaged}`],
    [451, `/content/${blocked}/a`],
    [451, `${gateway}/stream/${blocked}`],
    ...ways(`${gateway}/stream/${site(1)}`),
    [400, `${gateway}/stream/x`],
    [400, '/content/x/index.html'],
    [400, `/content/${site(0)}:x/index.html`],
    [400, `/content/${site(0)}${'/loop'.repeat(9)}`],

    ...['?f=jpeg', ':0?f=png', ':0?f=avif', ''].map((rest): OpenapiRequest => [200, `${images(0)}${rest}`]),
    [200, `${images(1)}:0?f=webp`],
    [200, `${images(3)}:0`],
    [304, `${images(1)}:0?f=webp`, KNOWN],
    [304, `${images(3)}:0`, KNOWN],
    [304, images(0), KNOWN],
    [400, `${images(0)}?w=x`],
    [400, images(0), worker],
    [400, `${gateway}/image/x`],
    [400, `${images(0)}:x`],
    [404, images(0), {}, 'empty'],
    [404, `${gateway}/image/${waiting}:0`, {}, 'awaiting'],
    [415, `${gateway}/image/${site(1)}`],
    [400, `${gateway}/image/${site(3)}`],
    [422, images(2)],
    [451, `${gateway}/image/${blocked}`],
    [503, `${gateway}/image/${damaged}`],
    lost(images(0)),

    [200, `${names}?prefix=a&limit=1&after=`],
    [200, `${names}?limit=1`],
    [400, `${names}?limit=0`],
    [400, `${names}?prefix=A`],
    [200, `${names}?available=a,zz`],
    [413, `${names}?available=${Array.from({ length: 101 }, () => 'a')}`],
    lost(names),
    ...['?prefix=a', '?available=zz', '/origin/a', '/mine/ab', '/a'].map(
      (path): OpenapiRequest => [304, names + path, KNOWN],
    ),
    [200, `${names}/origin/a`],
    [400, `${names}/origin/A`],
    [404, `${names}/origin/c`],
    lost(`${names}/origin/a`),
    [200, `${names}/mine/ab`],
    [400, `${names}/mine/A`],
    [400, `${names}/mine/ab?unseen=x`],
    // It is taken, and there is no tree.
    [404, `${names}/mine/a`],
    [404, `${names}/mine/a`, {}, 'empty'],
    lost(`${names}/mine/a`),
    [200, `${names}/proof/a`],
    [304, `${names}/proof/a`, KNOWN],
    [400, `${names}/proof/A`],
    [400, `${names}/proof/a?known=x`],
    [404, `${names}/proof/c`],
    lost(`${names}/proof/a`),
    [200, `${names}/a`],
    [400, `${names}/A`],
    [404, `${names}/c`],
    lost(`${names}/a`),
    ...['origin/d', 'mine/d', 'proof/d', 'd'].map((path): OpenapiRequest => [451, `${names}/${path}`]),
    [200, `${names}/origins`, posted([site(0)])],
    [400, `${names}/origins`, posted({})],
    [400, `${names}/origins`, posted(['x'])],
    [413, `${names}/origins`, posted(manyOutpoints)],
    lost(`${names}/origins`, posted([site(0)])),

    [200, '/deployment.json'],
    [200, '/mine?name=a'],
    [304, '/mine', KNOWN],
    [200, '/mine', COMPRESSED],
    [404, '/mine', {}, 'empty'],
    [200, '/my'],
    [304, '/my', KNOWN],
    [404, '/my', {}, 'empty'],
    ...MINE_PAGE_FILES.map((file): OpenapiRequest => [200, `/mine/${file}`]),
    [304, '/mine/main.js', KNOWN],
    [404, '/mine/other.js'],

    [200, metadata],
    [200, `${metadata}:0`],
    [304, metadata, KNOWN],
    [400, `${gateway}/metadata/x`],
    [400, `${metadata}:x`],
    [404, metadata, {}, 'empty'],
    [404, `${gateway}/metadata/${waiting}:0`, {}, 'awaiting'],
    [404, `${gateway}/provenance/${waiting}`, {}, 'awaiting'],
    [404, `${gateway}/stream/${waiting}`, {}, 'awaiting'],
    [404, `/content/${waiting}:0`, {}, 'awaiting'],
    [404, `/content/${waiting}:0/page.html`, {}, 'awaiting'],
    lost(metadata),
    [451, `${gateway}/metadata/${blocked}`],
    [200, `${gateway}/metadata`, posted(many)],
    [200, `${gateway}/metadata`, posted({ outpoints: many })],
    [400, `${gateway}/metadata`, posted('')],
    [400, `${gateway}/metadata`, posted(['x'])],
    [400, `${gateway}/metadata`, posted([`${site(1)}:x`])],
    [413, `${gateway}/metadata`, posted(manyOutpoints.slice(0, 101))],
    lost(`${gateway}/metadata`, posted(many)),
    [200, provenance],
    [304, provenance, KNOWN],
    [400, `${gateway}/provenance/x`],
    [404, provenance, {}, 'empty'],
    lost(provenance),
    [451, `${gateway}/provenance/${blocked}`],
    [200, proof],
    [304, proof, KNOWN],
    [200, `${proof}:-1`],
    [304, `${proof}:-1`, KNOWN],
    [404, `${proof}?next`],
    [404, `${gateway}/proof/${waiting}:0`, {}, 'awaiting'],
    [400, `${gateway}/proof/x`],
    [400, `${proof}:x`],
    [404, proof, {}, 'empty'],
    lost(proof),
    [451, `${gateway}/proof/${blocked}`],

    ...soFar({ names, gateway, wallets, named }),
    ...listed({ gateway, held: site(1), blocked, waiting }),
    ...recursive({ held: site(1), blocked, mapped }),

    [200, `${gateway}/preview/${html(9)}`],
    [400, `${gateway}/preview/*`],
    [414, `${gateway}/preview/${html(10_000)}`],
    [431, `${gateway}/preview/${html(18_000)}`],
    [200, `${gateway}/preview`, preview('<p>')],
    [400, `${gateway}/preview`, preview('')],
    [413, `${gateway}/preview`, preview('-'.repeat(2 ** 20 + 1))],

    ...overlayRequests,
    ...overlayRequests.map(
      ([status, path, ...rest]): OpenapiRequest => [status, `${wallets}/overlay${path}`, ...rest],
    ),
    ...walletRequests({ wallets, held: site(1), blocked, lost }),

    ...blocking('/admin/block', { reason: 'a test' }),
    ...blocking('/admin/unblock', {}),
    [200, '/admin/blocked?kind=outpoint', SHOWN],
    [200, '/admin/blocked?limit=1&after=name:a', SHOWN],
    [400, '/admin/blocked?limit=0', SHOWN],
    ...guarded('/admin/blocked', SHOWN),
    ...watched('/admin/headers'),

    [200, '/arc-ingest', posted(notice)],
    [200, '/arc-ingest', posted([{ ...notice, merklePath: null, txStatus: 'SEEN_ON_NETWORK' }])],
    [400, '/arc-ingest', posted({ ...notice, merklePath: '00' })],
    [404, '/arc-ingest', posted(noticeOf('ab'.repeat(32), 800_000))],
    [413, '/arc-ingest', posted({ ...notice, merklePath: '00'.repeat(2 ** 14) })],
    [401, '/arc-ingest', posted(notice), 'empty'],
    [503, '/arc-ingest', shown, 'empty'],
    lost('/arc-ingest', posted(notice)),
    [503, '/arc-ingest', posted(notice), 'full'],

    [200, '/health/live'],
    [200, '/health/ready'],
    [503, '/health/ready', {}, 'broken'],
    [200, '/health'],
    [503, '/health', {}, 'broken'],
    [200, '/metrics'],
    [200, '/openapi.json'],
    [304, '/openapi.json', KNOWN],
  ]
  return [
    ...requests,
    ...overRate(requests),
    ...tooEarly(requests),
    ...otherwise(requests),
    ...packed(requests),
  ].flatMap(withHead)
}

/** Requests about names to a host that has found some of them so far. */
function soFar({
  names,
  gateway,
  wallets,
  named,
}: Record<'names' | 'gateway' | 'wallets' | 'named', string>): OpenapiRequest[] {
  const tagged = [
    ...['', '/origin/a', '/a', '/proof/a'].map((path) => names + path),
    ...['counts', 'newest/names', 'tree', 'tree/a', 'search?text=a'].map((path) => `${gateway}/${path}`),
  ]
  const notYet = [
    ...['?prefix=c', '/origin/c', '/mine/ab', '/proof/c', '/c'].map((path) => names + path),
    ...['tree/c', 'search?text=c'].map((path) => `${gateway}/${path}`),
  ]
  return [
    ...tagged.map((path): OpenapiRequest => [200, path, {}, 'behind']),
    ...tagged.map((path): OpenapiRequest => [304, path, KNOWN, 'behind']),
    ...notYet.map((path): OpenapiRequest => [503, path, {}, 'behind']),
    ...['tree', 'newest/names'].map((path): OpenapiRequest => [503, `${gateway}/${path}`, {}, 'awaiting']),
    [503, `${wallets}/txo/${named.replace(/_2$/, '_1')}/spend`, {}, 'behind'],
    [200, `${names}/origins`, posted([named]), 'behind'],
    [503, `${names}/origins`, posted([named, `${'ab'.repeat(32)}_2`]), 'behind'],
  ]
}

/** Requests for lists. */
function listed({
  gateway,
  held,
  blocked,
  waiting,
}: {
  gateway: string
  held: string
  blocked: string
  waiting: string
}): OpenapiRequest[] {
  const at = (path: string): string => `${gateway}/${path}`
  const [txid] = held.split('_')
  const pages = ['newest/names', 'newest/inscriptions', `history/${held}`, `transactions/${txid}`]
  const whole = ['counts', 'tree', 'tree/a', 'ordinals?contentType=text/html', 'search?text=a']
  const notHere = ['tree', 'tree/c', `history/${held}`, `transactions/${txid}`]
  const malformed = ['tree/A', 'history/x', 'transactions/x', 'ordinals', 'ordinals?parent=x', 'search']
  return [
    ...[...pages, ...whole].flatMap((path): OpenapiRequest[] => [
      [200, at(path)],
      [304, at(path), KNOWN],
      [500, at(path), {}, 'broken'],
    ]),
    ...pages.flatMap((path): OpenapiRequest[] => [
      [200, at(`${path}?limit=1`)],
      [400, at(`${path}?limit=0`)],
    ]),
    ...malformed.map((path): OpenapiRequest => [400, at(path)]),
    [200, at(`transactions/${txid?.toUpperCase()}`)],
    ...notHere.map((path): OpenapiRequest => [404, at(path), {}, 'empty']),
    [404, at(`history/${waiting}`), {}, 'awaiting'],
    ...['tree/d', `history/${blocked}`].map((path): OpenapiRequest => [451, at(path)]),
  ]
}

/** Requests of inscribed pages. */
function recursive({
  held,
  blocked,
  mapped,
}: Record<'held' | 'blocked' | 'mapped', string>): OpenapiRequest[] {
  const block = 800_000
  const lists = ['children', 'parents'].flatMap((list) =>
    ['', '/0', '/inscriptions', '/inscriptions/0'].map((rest) => ({ list, rest })),
  )
  const ofId = [{ list: 'inscription', rest: '' }, { list: 'metadata', rest: '' }, ...lists]
  const one = ['blockheight', 'blockhash', `blockhash/${block}`, 'blocktime', `blockinfo/${block}`]
  const [tx, hidden] = [held, blocked].map((outpoint) => `/r/tx/${outpoint.split('_')[0]}`)
  return [
    ...one
      .map((path) => `/r/${path}`)
      .flatMap((path): OpenapiRequest[] => [
        [200, path],
        [304, path, KNOWN],
        [404, path, {}, 'empty'],
        [500, path, {}, 'broken'],
        [503, path, {}, 'behind'],
      ]),
    ...['blockhash', 'blockinfo'].map((route): OpenapiRequest => [400, `/r/${route}/x`]),
    ...ofId.flatMap(({ list, rest }): OpenapiRequest[] => {
      const at = (id: string): string => `/r/${list}/${id}${rest}`
      return [
        [200, at(held.replace('_', 'i'))],
        [304, at(held), KNOWN],
        [400, at('x')],
        [404, at(held), {}, 'empty'],
        [451, at(blocked)],
        [500, at(held), {}, 'broken'],
        ...(rest.endsWith('0') ? [[400, `${at(held).slice(0, -1)}1000`] satisfies OpenapiRequest] : []),
      ]
    }),
    [413, `/r/metadata/${mapped}`],
    [200, tx ?? ''],
    [400, '/r/tx/x'],
    [404, tx ?? '', {}, 'empty'],
    [451, hidden ?? ''],
    [500, tx ?? '', {}, 'broken'],
  ]
}

/** Requests of wallets, for an output that a mined transaction has, and for one that is blocked. */
function walletRequests({
  wallets,
  held,
  blocked,
  lost,
}: {
  wallets: string
  held: string
  blocked: string
  lost: (path: string, asked?: Question) => OpenapiRequest
}): OpenapiRequest[] {
  const forms = ['', '/tx', '/proof'].flatMap((form): OpenapiRequest[] => {
    const at = (txid = ''): string => `${wallets}/beef/${txid}${form}`
    const path = at(held.split('_')[0])
    return [
      [200, path],
      ...(form === '/tx' ? [] : [[304, path, KNOWN] satisfies OpenapiRequest]),
      [400, at('x')],
      [404, path, {}, 'empty'],
      [451, at(blocked.split('_')[0])],
      lost(path),
    ]
  })
  const outputs = ['', '/spend'].flatMap((form): OpenapiRequest[] => {
    const at = (outpoint: string): string => `${wallets}/txo/${outpoint}${form}`
    return [[200, at(held)], [400, at('x')], [404, at(held), {}, 'empty'], [451, at(blocked)], lost(at(held))]
  })
  return [
    ...forms,
    ...outputs,
    [200, `${wallets}/txo/${held}?sats=true&block=true`],
    [400, `${wallets}/txo/${held}?sats=1`],
    [200, `${wallets}/txo/tx/${held.split('_')[0]}`],
    [400, `${wallets}/txo/tx/x`],
    [400, `${wallets}/txo/tx/${held.split('_')[0]}?sats=1`],
    lost(`${wallets}/txo/tx/${held.split('_')[0]}`),
    [400, `${wallets}/txo/outpoints`, posted({})],
    [400, `${wallets}/txo/spends`, posted({})],
    ...['/outpoints', '/spends'].flatMap((form): OpenapiRequest[] => [
      [200, `${wallets}/txo${form}`, posted([held, blocked])],
      [400, `${wallets}/txo${form}`, posted(['x'])],
      lost(`${wallets}/txo${form}`, posted([held])),
      [413, `${wallets}/txo${form}`, posted(Array.from({ length: 1001 }, () => held))],
    ]),
    [200, '/capabilities'],
    [200, `${wallets}/capabilities`],
  ]
}

/** Requests of a syncing peer: for an output that the host offers, and for one that is blocked. */
function synced(of: { held: string; blocked: string; mined: Stored['mined'] }): OpenapiRequest[] {
  const { held, blocked } = of
  const { height: blockHeight, txid: minted } = of.mined
  const offers = '/requestSyncResponse'
  const offered = (body: unknown, topic = 'tm_ordinals'): Question => {
    return posted(body, { 'x-bsv-topic': topic })
  }
  const nodes = '/requestForeignGASPNode'
  const node = (outpoint: string): Question => {
    const [txid, vout] = outpoint.split('_')
    return posted({ graphID: `${txid}.${vout}`, txid, outputIndex: Number(vout), metadata: true })
  }
  const long = posted('-'.repeat(4096))
  const names = { 'x-bsv-topic': 'tm_names' }
  const unknown = 'ab'.repeat(32)
  const veryLong = posted('-'.repeat(128 * 1024 + 1), names)
  const others = { 'x-bsv-topic': 'tm_ordinals' }
  const anchors: [path: string, good: Question, bad: Question][] = [
    ['/requestTopicAnchorTip', posted({}, names), posted({}, others)],
    [
      '/requestTopicAnchorRange',
      posted({ fromHeight: 0, toHeight: 1023 }, names),
      posted({ fromHeight: 0, toHeight: 1024 }, names),
    ],
    ['/requestRawTransactions', posted({ txids: [unknown, minted] }), posted({ txids: [unknown, unknown] })],
  ]
  const ofBlocks: [path: string, found: object, missing: object][] = [
    ['/requestAdmittedList', { blockHeight }, { blockHeight: 1 }],
    ['/requestCompoundMerklePath', { blockHeight, txids: [minted] }, { blockHeight, txids: [unknown] }],
  ]
  return [
    [200, offers, offered({ version: 1, since: 0, limit: 2 })],
    [400, offers, offered({ version: 1 })],
    [400, offers, offered({ version: 1, since: 0 }, 'tm_others')],
    [413, offers, offered('-'.repeat(4096))],
    [200, nodes, node(held)],
    [400, nodes, node('x_0')],
    [404, nodes, node(`${'ab'.repeat(32)}_0`)],
    [413, nodes, long],
    [451, nodes, node(blocked)],
    ...anchors.flatMap(([path, good, bad]): OpenapiRequest[] => [
      [200, path, good],
      [400, path, bad],
      [413, path, veryLong],
    ]),
    ...ofBlocks.flatMap(([path, found, missing]): OpenapiRequest[] => [
      [200, path, posted(found, names)],
      [400, path, posted(found, others)],
      [404, path, posted(missing, names)],
      [413, path, veryLong],
    ]),
  ]
}

/** The successful requests, except those for monitoring. */
function answeredOf(requests: OpenapiRequest[]): OpenapiRequest[] {
  const isWatched = (path: string): boolean => path.startsWith('/health') || path === '/metrics'
  return requests.filter(([status, path]) => status === 200 && !isWatched(path))
}

/** A question with more headers. */
function withHeaders(question: Question | undefined, headers: Record<string, string>): Question {
  return { ...question, headers: { ...question?.headers, ...headers } }
}

/** The same to a host that rebuilds its index. */
function tooEarly(requests: OpenapiRequest[]): OpenapiRequest[] {
  return answeredOf(requests).map(([, path, question]) => [503, path, question, 'rebuilding'])
}

/** The same from a client that is over its rate limit. */
function overRate(requests: OpenapiRequest[]): OpenapiRequest[] {
  return answeredOf(requests).map(([, path, question]) => {
    return [429, path, withHeaders(question, FLOODER.headers), 'flooded']
  })
}

/** Requests for whatever has an ETag, with another one in `If-Match`. */
function otherwise(requests: OpenapiRequest[]): OpenapiRequest[] {
  return requests
    .filter(([status]) => status === 304)
    .map(([, path, , host]) => [412, path, { headers: { 'If-Match': '"another"' } }, host])
}

/** The successful requests with a body, which they say is compressed. */
function packed(requests: OpenapiRequest[]): OpenapiRequest[] {
  return answeredOf(requests)
    .filter(([, , question]) => question?.method === 'POST')
    .map(([, path, question, host]) => {
      return [415, path, withHeaders(question, { 'Content-Encoding': 'gzip' }), host]
    })
}

/** A client at an address reserved for documentation (RFC 5737). */
const FLOODER = { headers: { 'X-Forwarded-For': '192.0.2.1' } }
const SHOWN: Question = { headers: AS_OPERATOR }

/** A request of the operator. */
function operators(value: unknown): Question {
  return posted(value, AS_OPERATOR)
}

/** Requests that every route of the operator refuses. */
function guarded(path: string, question: Question): OpenapiRequest[] {
  const { headers: _, ...unshown } = question
  return [
    [401, path, unshown],
    [404, path, question, 'empty'],
    [500, path, question, 'broken'],
  ]
}

/** Blocks or unblocks things that no host has. */
function blocking(path: string, rest: { reason?: string }): OpenapiRequest[] {
  const sha256 = 'ab'.repeat(32)
  const asked = (value: object): Question => operators({ ...value, ...rest })
  return [
    [200, path, asked({ sha256 })],
    [200, path, asked({ outpoint: `${sha256}_0` })],
    [200, path, asked({ name: 'e' })],
    [400, path, asked({})],
    [400, path, asked({ outpoint: 'x' })],
    [400, path, asked({ name: 'E' })],
    [413, path, asked({ name: 'e'.repeat(2 ** 15) })],
    [503, path, asked({ sha256 }), 'full'],
    ...guarded(path, asked({ sha256 })),
  ]
}

function watched(path: string): OpenapiRequest[] {
  const question = operators({ height: 0 })
  const { headers: _, ...unshown } = question
  return [
    [200, path, operators({}), 'watching'],
    [200, path, question, 'watching'],
    [400, path, operators({ height: -1 }), 'watching'],
    [401, path, unshown, 'watching'],
    [404, path, question, 'well'],
    [413, path, operators({ height: '0'.repeat(2 ** 10) }), 'watching'],
    [500, path, question, 'forgetting'],
    [503, path, question, 'unheard'],
  ]
}

const KNOWN: Question = { headers: { 'If-None-Match': '*' } }
const COMPRESSED: Question = { method: 'HEAD', headers: { 'Accept-Encoding': 'br' } }

function preview(body: string): Question {
  return { method: 'POST', headers: { 'Content-Type': 'text/html' }, body }
}

/** HEAD is answered like GET, except that it ignores ranges. */
function withHead(request: OpenapiRequest): OpenapiRequest[] {
  const [status, path, question = {}, host] = request
  if (question.method !== undefined) return [request]
  return [request, [[206, 416].includes(status) ? 200 : status, path, { ...question, method: 'HEAD' }, host]]
}
