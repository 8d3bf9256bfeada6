import { join } from 'node:path'
import { MerklePath } from '@bsv/sdk'
import Database from 'libsql'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { PROFILES, type ProfileName } from '../../../backend/src/protocol/profile.js'
import { MINE_PAGE_FILES } from '../../../src/server/routes/mine-page-routes.js'
import { builtMinePage } from '../cli/built-package.js'
import { whileReplaced } from '../gateway/faults.js'
import { blockOfTwo, proofIn, recordOf } from '../protocol/block.js'
import { beefOf, FakeChain, inscriptionScript, mapTail, OPEN_LOCK, p2pkh } from '../protocol/fake-chain.js'
import { listening } from './connections.js'
import { HeaderChain } from './header-chain.js'
import { HeaderService } from './header-service.js'
import { posted, type Question, submission, type TestServer, treeOf, type useServers } from './test-server.js'

/** A request, and the status of its answer. */
export interface OpenapiRequest {
  name: string
  /** The host it is sent to; `well` by default. */
  host?: keyof Hosts
  path: string
  question?: Question
  status: number
}

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
  /** Its store has no space left. */
  full: TestServer
  /** It is rebuilding its index, and never finishes. */
  rebuilding: TestServer
}

/** What `well` has stored, and what can be submitted to it. */
export interface Stored {
  /** Outputs: 0 a directory with an index, 1 a page, 2 a directory that leads into itself. All are origins. */
  site: (vout: number) => string
  /** A blocked output with content. The name `d` is blocked as well. */
  blocked: string
  submittable: Uint8Array
  conflicting: Uint8Array
  /** The proof of a transaction that `well` has, and `empty` has without its outputs. */
  notice: { txid: string; merklePath: string; blockHeight: number }
}

const MAX_BODY_BYTES = 100_000
/** `empty` accepts proofs with this token only. */
const ARC_CALLBACK_TOKEN = 'a-token-of-the-processor'
/** Every host but `empty` and `flooded` has it. */
const ADMIN_TOKEN = 'a-token-of-the-operator'

export async function openapiHosts({
  start,
  profile,
}: {
  start: ReturnType<typeof useServers>['start']
  profile: ProfileName
}): Promise<{ hosts: Hosts; stored: Stored }> {
  const [directoryType = ''] = PROFILES[profile].directoryContentTypes
  const chain = new FakeChain({ nameContentType: PROFILES[profile].nameContentType })
  const settings = { ...treeOf(chain.deployment), PROFILE: profile, CHAIN_TRACKER: 'scripts-only' }
  const minePage = await builtMinePage()
  const well = await start({ ...settings, ADMIN_TOKEN, MAX_BODY_BYTES: String(MAX_BODY_BYTES) }, { minePage })
  const empty = await start({ ...settings, CHAIN_TRACKER: 'http://127.0.0.1:9', ARC_CALLBACK_TOKEN })
  const broken = await start({ ...settings, ADMIN_TOKEN })
  await broken.node.close()

  const full = await start({ ...settings, ADMIN_TOKEN })

  const limits = { READS_PER_MINUTE: '1', SUBMISSIONS_PER_MINUTE: '1', TRUST_PROXY: '1' }
  const flooded = await start({ ...settings, ...limits })
  const flood = async (): Promise<void> => {
    await flooded.ask('/', FLOODER)
    await flooded.ask('/submit', { ...FLOODER, method: 'POST' })
  }

  const left = await start({ ...settings, ADMIN_TOKEN })
  await left.stop()
  leaveHalf(left.dataDir)
  const rebuilding = await start({ ...settings, ADMIN_TOKEN, DATA_DIR: left.dataDir })

  const submit = async (...sent: Parameters<TestServer['submit']>): Promise<void> => {
    const { status, body } = await well.submit(...sent)
    if (status !== 200) throw new Error(`the host took no ${sent[1] ?? 'name'}: ${body.toString()}`)
  }
  for (const mint of [chain.genesis, chain.mint('a'), chain.mint('b')]) await submit(beefOf(mint))
  const directory = (map: Record<string, string>): Uint8Array =>
    inscriptionScript({ contentType: directoryType, body: utf8(JSON.stringify(map)) })
  const parent = chain.madeUpCoin()
  const suffix = mapTail({ title: 'a page' })
  const page = inscriptionScript({ contentType: 'text/html', body: utf8('<p>a page'), parent, suffix })
  const scripts = [directory({ 'index.html': '_1', loop: '_2' }), page, directory({ '.': '_2', loop: '_2' })]
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 3, lockingScript: p2pkh(0) }] })
  const site = chain.spend({
    inputs: [{ transaction: funding, vout: 0 }],
    outputs: scripts.map((lockingScript) => ({ satoshis: 1, lockingScript })),
  })
  await submit(beefOf(site, { with: [funding] }), ['tm_ordinals'])
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('spent twice'), lock: OPEN_LOCK })
  await submit(beefOf(note), ['tm_ordinals'])
  const spent = [p2pkh(2), p2pkh(3)].map((lockingScript) =>
    chain.spend({ inputs: [{ transaction: note, vout: 0 }], outputs: [{ satoshis: 1, lockingScript }] }),
  )
  // Mined, the double spend would win.
  const [first, doubleSpend] = spent
  if (first === undefined || doubleSpend === undefined) throw new Error('there are two')
  const conflicting = beefOf(doubleSpend, { with: [note], proven: false })
  // Second in its block: a chain tracker accepts nothing but a coinbase as the first.
  const block = blockOfTwo(note, first, first.height)
  const submittable = encodeBeef([recordOf(note, note.height), { ...first, proof: proofIn(block, first) }])
  const { txid, raw, height: blockHeight } = note
  for (const host of [empty, full])
    await host.node.graph.record(graphRecords({ transactions: [{ txid, raw }] }))
  const notice = noticeOf(txid, blockHeight)
  const hidden = chain.inscribe({ contentType: 'text/plain', body: utf8('not to be seen') })
  await submit(beefOf(hidden), ['tm_ordinals'])
  const blocked = hidden.outpoint(0)
  for (const subject of [{ outpoint: blocked }, { name: 'd' }])
    await well.ask('/admin/block', operators({ ...subject, reason: 'a test' }))
  const ask: TestServer['ask'] = async (...asked) => {
    // Each time, as the minute of the last flood may have passed.
    await flood()
    return await flooded.ask(...asked)
  }
  return {
    hosts: {
      well,
      empty,
      broken,
      ...(await watchingHosts(start)),
      flooded: { ...flooded, ask },
      full: fullHost(full),
      rebuilding,
    },
    stored: { site: site.outpoint, blocked, submittable, conflicting, notice },
  }
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
  const service = new HeaderService(new HeaderChain())
  const { url: CHAIN_TRACKER } = await listening(service.listener)
  const watching = await start({ CHAIN_TRACKER, ADMIN_TOKEN, HEADERS_POLL_MS: '0' })
  const unheard: TestServer['ask'] = async (...asked) => {
    service.mood = 'fails'
    try {
      return await watching.ask(...asked)
    } finally {
      service.mood = 'answers'
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
  stored: { site, blocked, submittable, conflicting, notice },
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
    { name: 'the whole', path, status: 200 },
    { name: 'a part', path, question: range('bytes=1-2'), status: 206 },
    { name: 'a part that is not there', path, question: range('bytes=900-'), status: 416 },
    { name: 'what is known', path, question: KNOWN, status: 304 },
    { name: 'for a service worker', path, question: worker, status: 400 },
    { name: 'of a store that is gone', host: 'broken', path, status: 500 },
    { name: 'of an empty store', host: 'empty', path, status: 404 },
  ]
  const lost = (path: string): OpenapiRequest => ({
    name: 'a store that is gone',
    host: 'broken',
    path,
    status: 500,
  })
  const { headers: head, ...request } = posted(notice)
  const shown = { ...request, headers: { ...head, Authorization: `Bearer ${ARC_CALLBACK_TOKEN}` } }
  const overlay = submission(submittable, ['tm_ordinals'])
  const question = (query: unknown, service = 'ls_names'): Question => posted({ service, query })
  const binary = { ...question({ origin: 'a' }).headers, 'X-Aggregation': 'yes' }
  const manyOutpoints = Array.from({ length: 1001 }, () => site(0))
  const many = [`${site(1)}:0`, site(0), 'ab'.repeat(32)]
  const metadata = `${gateway}/metadata/${site(1)}`
  const provenance = `${gateway}/provenance/${site(1)}`
  const html = (length: number): string => Buffer.alloc(length, '<p>').toString('base64url')
  const overlayRequests: OpenapiRequest[] = [
    { name: 'topics', path: '/listTopicManagers', status: 200 },
    { name: 'lookup services', path: '/listLookupServiceProviders', status: 200 },
    { name: 'a topic', path: '/getDocumentationForTopicManager?manager=tm_names', status: 200 },
    { name: 'no topic', path: '/getDocumentationForTopicManager', status: 404 },
    {
      name: 'a lookup service',
      path: '/getDocumentationForLookupServiceProvider?lookupService=ls_names',
      status: 200,
    },
    { name: 'no lookup service', path: '/getDocumentationForLookupServiceProvider', status: 404 },
    { name: 'a submission', path: '/submit', question: overlay, status: 200 },
    {
      name: 'a double spend',
      path: '/submit',
      question: submission(conflicting, ['tm_ordinals']),
      status: 409,
    },
    { name: 'no submission', path: '/submit', question: submission(new Uint8Array()), status: 400 },
    {
      name: 'a submission over the limit',
      path: '/submit',
      question: submission(new Uint8Array(MAX_BODY_BYTES + 1)),
      status: 413,
    },
    { name: 'a submission without headers', host: 'empty', path: '/submit', question: overlay, status: 503 },
    { ...lost('/submit'), question: overlay },
    { name: 'a submission to a full store', host: 'full', path: '/submit', question: overlay, status: 503 },
    { name: 'a question', path: '/lookup', question: question({ origin: 'a' }), status: 200 },
    {
      name: 'a question in binary',
      path: '/lookup',
      question: { ...question({ origin: 'a' }), headers: binary },
      status: 200,
    },
    {
      name: 'a question with history',
      path: '/lookup',
      question: question({ name: 'a', history: true }),
      status: 200,
    },
    {
      name: 'a question with history in binary',
      path: '/lookup',
      question: {
        ...question({ name: 'a', history: true }),
        headers: { ...binary, Accept: 'application/octet-stream' },
      },
      status: 200,
    },
    { name: 'a question of no form', path: '/lookup', question: question({ why: 'a' }), status: 400 },
    { name: 'a long question', path: '/lookup', question: question('-'.repeat(2 ** 20)), status: 413 },
    { ...lost('/lookup'), question: question({ origin: 'a' }) },
    {
      name: 'a question for what is blocked',
      path: '/lookup',
      question: question({ origin: 'd' }),
      status: 451,
    },

    ...synced({ held: site(1), blocked }).flatMap((request) =>
      request.status === 200 ? [request, { ...request, ...lost(request.path) }] : [request],
    ),
  ]
  const requests: OpenapiRequest[] = [
    ...ways(`/content/${site(1)}:0`),
    { name: 'no outpoint', path: '/content/x', status: 400 },
    { name: 'no sequence', path: `/content/${site(1)}:x`, status: 400 },
    { name: 'a default without end', path: `/content/${site(2)}`, status: 400 },
    { name: 'a redirect', path: `/content/${site(0)}:0`, status: 302 },
    { name: 'a directory, with a slash', path: `/content/${site(0)}/`, status: 302 },
    { name: 'a directory itself', path: `/content/${site(0)}?raw`, status: 200 },
    ...ways(`/content/${site(0)}:0/index.html`),
    { name: 'blocked content', path: `/content/${blocked}`, status: 451 },
    { name: 'what hangs below it', path: `/content/${blocked}/a`, status: 451 },
    { name: 'a blocked stream', path: `${gateway}/stream/${blocked}`, status: 451 },
    ...ways(`${gateway}/stream/${site(1)}`),
    { name: 'a stream of no outpoint', path: `${gateway}/stream/x`, status: 400 },
    { name: 'a file of no outpoint', path: '/content/x/index.html', status: 400 },
    { name: 'a file of no sequence', path: `/content/${site(0)}:x/index.html`, status: 400 },
    { name: 'a path too deep', path: `/content/${site(0)}${'/loop'.repeat(9)}`, status: 400 },

    { name: 'names', path: `${names}?prefix=a&limit=1&after=`, status: 200 },
    { name: 'a page of names', path: `${names}?limit=1`, status: 200 },
    { name: 'no limit', path: `${names}?limit=0`, status: 400 },
    { name: 'no prefix', path: `${names}?prefix=A`, status: 400 },
    lost(names),
    { name: 'an origin', path: `${names}/origin/a`, status: 200 },
    { name: 'an origin of no name', path: `${names}/origin/A`, status: 400 },
    { name: 'an origin that is not there', path: `${names}/origin/c`, status: 404 },
    lost(`${names}/origin/a`),
    { name: 'where to mine', path: `${names}/mine/ab`, status: 200 },
    { name: 'where to mine no name', path: `${names}/mine/A`, status: 400 },
    { name: 'where to mine a taken name', path: `${names}/mine/a`, status: 404 },
    { name: 'where to mine without a tree', host: 'empty', path: `${names}/mine/a`, status: 404 },
    lost(`${names}/mine/a`),
    { name: 'a proof', path: `${names}/proof/a`, status: 200 },
    { name: 'a proof that is known', path: `${names}/proof/a`, question: KNOWN, status: 304 },
    { name: 'a proof of no name', path: `${names}/proof/A`, status: 400 },
    { name: 'a proof of a name that is not there', path: `${names}/proof/c`, status: 404 },
    lost(`${names}/proof/a`),
    { name: 'all of a name', path: `${names}/a`, status: 200 },
    { name: 'all of no name', path: `${names}/A`, status: 400 },
    { name: 'all of a name that is not there', path: `${names}/c`, status: 404 },
    lost(`${names}/a`),
    ...['origin/d', 'mine/d', 'proof/d', 'd'].map((path) => ({
      name: 'a blocked name',
      path: `${names}/${path}`,
      status: 451,
    })),
    { name: 'origins', path: `${names}/origins`, question: posted([site(0)]), status: 200 },
    { name: 'origins of no list', path: `${names}/origins`, question: posted({}), status: 400 },
    { name: 'origins of no outpoints', path: `${names}/origins`, question: posted(['x']), status: 400 },
    { name: 'too many origins', path: `${names}/origins`, question: posted(manyOutpoints), status: 413 },
    { ...lost(`${names}/origins`), question: posted([site(0)]) },

    { name: 'the tree', path: '/deployment.json', status: 200 },
    { name: 'the page for mining', path: '/mine?name=a', status: 200 },
    { name: 'that page as it is known', path: '/mine', question: KNOWN, status: 304 },
    { name: 'that page where there is none', host: 'empty', path: '/mine', status: 404 },
    ...Object.keys(MINE_PAGE_FILES).map((file) => ({ name: 'a file', path: `/mine/${file}`, status: 200 })),
    { name: 'a file that is known', path: '/mine/main.js', question: KNOWN, status: 304 },
    { name: 'another file', path: '/mine/other.js', status: 404 },

    { name: 'metadata', path: metadata, status: 200 },
    { name: 'metadata of a step', path: `${metadata}:0`, status: 200 },
    { name: 'metadata that is known', path: metadata, question: KNOWN, status: 304 },
    { name: 'metadata of no outpoint', path: `${gateway}/metadata/x`, status: 400 },
    { name: 'metadata of no sequence', path: `${metadata}:x`, status: 400 },
    { name: 'metadata of an empty store', host: 'empty', path: metadata, status: 404 },
    lost(metadata),
    { name: 'metadata of what is blocked', path: `${gateway}/metadata/${blocked}`, status: 451 },
    { name: 'metadata of many', path: `${gateway}/metadata`, question: posted(many), status: 200 },
    {
      name: 'metadata of many in an object',
      path: `${gateway}/metadata`,
      question: posted({ outpoints: many }),
      status: 200,
    },
    { name: 'metadata of no list', path: `${gateway}/metadata`, question: posted(''), status: 400 },
    { name: 'metadata of no outpoints', path: `${gateway}/metadata`, question: posted(['x']), status: 400 },
    {
      name: 'metadata of no sequences',
      path: `${gateway}/metadata`,
      question: posted([`${site(1)}:x`]),
      status: 400,
    },
    {
      name: 'metadata of too many',
      path: `${gateway}/metadata`,
      question: posted(manyOutpoints.slice(0, 101)),
      status: 413,
    },
    { ...lost(`${gateway}/metadata`), question: posted(many) },
    { name: 'provenance', path: provenance, status: 200 },
    { name: 'provenance that is known', path: provenance, question: KNOWN, status: 304 },
    { name: 'provenance of no outpoint', path: `${gateway}/provenance/x`, status: 400 },
    { name: 'provenance of an empty store', host: 'empty', path: provenance, status: 404 },
    lost(provenance),
    { name: 'provenance of what is blocked', path: `${gateway}/provenance/${blocked}`, status: 451 },

    { name: 'HTML', path: `${gateway}/preview/${html(9)}`, status: 200 },
    { name: 'no base64', path: `${gateway}/preview/*`, status: 400 },
    { name: 'HTML of 10 KB', path: `${gateway}/preview/${html(10_000)}`, status: 414 },
    { name: 'HTML of 18 KB', path: `${gateway}/preview/${html(18_000)}`, status: 431 },
    { name: 'a body', path: `${gateway}/preview`, question: preview('<p>'), status: 200 },
    { name: 'no body', path: `${gateway}/preview`, question: preview(''), status: 400 },
    {
      name: 'a large body',
      path: `${gateway}/preview`,
      question: preview('-'.repeat(2 ** 20 + 1)),
      status: 413,
    },

    ...overlayRequests,
    ...overlayRequests.map((request) => ({ ...request, path: `${wallets}/overlay${request.path}` })),
    ...walletRequests({ wallets, held: site(1), blocked, lost }),

    ...blocking('/admin/block', { reason: 'a test' }),
    ...blocking('/admin/unblock', {}),
    { name: 'what is blocked', path: '/admin/blocked?kind=outpoint', question: SHOWN, status: 200 },
    { name: 'a page of it', path: '/admin/blocked?limit=1&after=name:a', question: SHOWN, status: 200 },
    { name: 'no page of it', path: '/admin/blocked?limit=0', question: SHOWN, status: 400 },
    ...guarded('/admin/blocked', SHOWN),
    ...watched('/admin/headers'),

    { name: 'a proof for what is here', path: '/arc-ingest', question: posted(notice), status: 200 },
    { name: 'no proof', path: '/arc-ingest', question: posted({ ...notice, merklePath: '00' }), status: 400 },
    {
      name: 'a proof for what is not here',
      path: '/arc-ingest',
      question: posted(noticeOf('ab'.repeat(32), 800_000)),
      status: 404,
    },
    {
      name: 'a proof at length',
      path: '/arc-ingest',
      question: posted({ ...notice, merklePath: '00'.repeat(2 ** 14) }),
      status: 413,
    },
    {
      name: 'a proof without a token',
      host: 'empty',
      path: '/arc-ingest',
      question: posted(notice),
      status: 401,
    },
    { name: 'a proof without headers', host: 'empty', path: '/arc-ingest', question: shown, status: 503 },
    { ...lost('/arc-ingest'), question: posted(notice) },
    {
      name: 'a proof to a full store',
      host: 'full',
      path: '/arc-ingest',
      question: posted(notice),
      status: 503,
    },

    { name: 'liveness', path: '/health/live', status: 200 },
    { name: 'readiness', path: '/health/ready', status: 200 },
    { name: 'no readiness', host: 'broken', path: '/health/ready', status: 503 },
    { name: 'health', path: '/health', status: 200 },
    { name: 'no health', host: 'broken', path: '/health', status: 503 },
    { name: 'the metrics', path: '/metrics', status: 200 },
    { name: 'the document', path: '/openapi.json', status: 200 },
    {
      name: 'the document as it is known',
      path: '/openapi.json',
      question: KNOWN,
      status: 304,
    },
  ]
  return [
    ...requests,
    ...overRate(requests),
    ...tooEarly(requests),
    ...otherwise(requests),
    ...packed(requests),
  ].flatMap(withHead)
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
  lost: (path: string) => OpenapiRequest
}): OpenapiRequest[] {
  const forms = ['', '/tx', '/proof'].flatMap((form): OpenapiRequest[] => {
    const at = (txid = ''): string => `${wallets}/beef/${txid}${form}`
    const path = at(held.split('_')[0])
    return [
      { name: 'a transaction', path, status: 200 },
      ...(form === '/tx' ? [] : [{ name: 'one that is known', path, question: KNOWN, status: 304 }]),
      { name: 'no txid', path: at('x'), status: 400 },
      { name: 'no transaction', host: 'empty', path, status: 404 },
      { name: 'a transaction with what is blocked', path: at(blocked.split('_')[0]), status: 451 },
      lost(path),
    ]
  })
  const outputs = ['', '/spend'].flatMap((form): OpenapiRequest[] => {
    const at = (outpoint: string): string => `${wallets}/txo/${outpoint}${form}`
    return [
      { name: 'an output', path: at(held), status: 200 },
      { name: 'an output of no transaction', path: at('x'), status: 400 },
      { name: 'an output that is not here', host: 'empty', path: at(held), status: 404 },
      { name: 'a blocked output', path: at(blocked), status: 451 },
      lost(at(held)),
    ]
  })
  return [
    ...forms,
    ...outputs,
    { name: 'all of an output', path: `${wallets}/txo/${held}?sats=true&block=true`, status: 200 },
    { name: 'an output, otherwise', path: `${wallets}/txo/${held}?sats=1`, status: 400 },
    { name: 'the capabilities', path: '/capabilities', status: 200 },
    { name: 'the capabilities below a prefix', path: `${wallets}/capabilities`, status: 200 },
  ]
}

/** Requests of a syncing peer: for an output that the host offers, and for one that is blocked. */
function synced({ held, blocked }: { held: string; blocked: string }): OpenapiRequest[] {
  const offers = '/requestSyncResponse'
  const offered = (body: unknown, topic = 'tm_ordinals'): Question => {
    const { headers, ...question } = posted(body)
    return { ...question, headers: { ...headers, 'x-bsv-topic': topic } }
  }
  const nodes = '/requestForeignGASPNode'
  const node = (outpoint: string): Question => {
    const [txid, vout] = outpoint.split('_')
    return posted({ graphID: `${txid}.${vout}`, txid, outputIndex: Number(vout), metadata: true })
  }
  const long = posted('-'.repeat(4096))
  return [
    { name: 'offers', path: offers, question: offered({ version: 1, since: 0, limit: 2 }), status: 200 },
    { name: 'offers of no score', path: offers, question: offered({ version: 1 }), status: 400 },
    {
      name: 'offers of no topic',
      path: offers,
      question: offered({ version: 1, since: 0 }, 'tm_others'),
      status: 400,
    },
    { name: 'offers at length', path: offers, question: offered('-'.repeat(4096)), status: 413 },
    { name: 'a node', path: nodes, question: node(held), status: 200 },
    { name: 'no node', path: nodes, question: node('x_0'), status: 400 },
    { name: 'a node of nothing', path: nodes, question: node(`${'ab'.repeat(32)}_0`), status: 404 },
    { name: 'a node at length', path: nodes, question: long, status: 413 },
    { name: 'a blocked node', path: nodes, question: node(blocked), status: 451 },
  ]
}

/** The successful requests, except those for monitoring. */
function answeredOf(requests: OpenapiRequest[]): OpenapiRequest[] {
  const isWatched = (path: string): boolean => path.startsWith('/health') || path === '/metrics'
  return requests.filter(({ path, status }) => status === 200 && !isWatched(path))
}

/** The same to a host that rebuilds its index. */
function tooEarly(requests: OpenapiRequest[]): OpenapiRequest[] {
  return answeredOf(requests).map((request) => ({
    ...request,
    name: `${request.name}, too early`,
    host: 'rebuilding',
    status: 503,
  }))
}

/** Leaves a store with an index that has to be rebuilt, and cannot be. */
function leaveHalf(dataDir: string): void {
  const database = new Database(join(dataDir, 'minetree.sqlite'))
  database.exec(
    "insert into graph_settings (name, value) values ('reindex', 'needed'); drop table graph_traits",
  )
  database.close()
}

/** The same from a client that is over its rate limit. */
function overRate(requests: OpenapiRequest[]): OpenapiRequest[] {
  return answeredOf(requests).map((request) => ({
    ...request,
    name: `${request.name}, once too often`,
    host: 'flooded',
    question: { ...request.question, headers: { ...request.question?.headers, ...FLOODER.headers } },
    status: 429,
  }))
}

/** Requests for whatever has an ETag, with another one in `If-Match`. */
function otherwise(requests: OpenapiRequest[]): OpenapiRequest[] {
  return requests
    .filter(({ status }) => status === 304)
    .map((request) => ({
      ...request,
      name: `${request.name}, and is to be another`,
      question: { headers: { 'If-Match': '"another"' } },
      status: 412,
    }))
}

/** The successful requests with a body, which they say is compressed. */
function packed(requests: OpenapiRequest[]): OpenapiRequest[] {
  return answeredOf(requests)
    .filter(({ question }) => question?.method === 'POST')
    .map((request) => ({
      ...request,
      name: `${request.name}, compressed`,
      question: {
        ...request.question,
        headers: { ...request.question?.headers, 'Content-Encoding': 'gzip' },
      },
      status: 415,
    }))
}

/** A client at an address reserved for documentation (RFC 5737). */
const FLOODER = { headers: { 'X-Forwarded-For': '192.0.2.1' } }
const SHOWN: Question = { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } }

/** A request of the operator. */
function operators(value: unknown): Question {
  const { headers, ...question } = posted(value)
  return { ...question, headers: { ...headers, ...SHOWN.headers } as Record<string, string> }
}

/** Requests that every route of the operator refuses. */
function guarded(path: string, question: Question): OpenapiRequest[] {
  const { headers: _, ...unshown } = question
  return [
    { name: 'the operator’s, without a token', path, question: unshown, status: 401 },
    { name: 'the operator’s, where no token is set', host: 'empty', path, question, status: 404 },
    { name: 'the operator’s, of a store that is gone', host: 'broken', path, question, status: 500 },
  ]
}

/** Blocks or unblocks things that no host has. */
function blocking(path: string, rest: { reason?: string }): OpenapiRequest[] {
  const sha256 = 'ab'.repeat(32)
  const asked = (value: object): Question => operators({ ...value, ...rest })
  return [
    { name: 'the operator, of content', path, question: asked({ sha256 }), status: 200 },
    { name: 'the operator, of an output', path, question: asked({ outpoint: `${sha256}_0` }), status: 200 },
    { name: 'the operator, of a name', path, question: asked({ name: 'e' }), status: 200 },
    { name: 'the operator, of nothing', path, question: asked({}), status: 400 },
    { name: 'the operator, of no outpoint', path, question: asked({ outpoint: 'x' }), status: 400 },
    { name: 'the operator, of no name', path, question: asked({ name: 'E' }), status: 400 },
    { name: 'the operator, at length', path, question: asked({ name: 'e'.repeat(2 ** 15) }), status: 413 },
    { name: 'the operator, of a full store', host: 'full', path, question: asked({ sha256 }), status: 503 },
    ...guarded(path, asked({ sha256 })),
  ]
}

function watched(path: string): OpenapiRequest[] {
  const question = operators({ height: 0 })
  const { headers: _, ...unshown } = question
  const ways: [keyof Hosts, Question, number][] = [
    ['watching', operators({}), 200],
    ['watching', question, 200],
    ['watching', operators({ height: -1 }), 400],
    ['watching', unshown, 401],
    ['well', question, 404],
    ['watching', operators({ height: '0'.repeat(2 ** 10) }), 413],
    ['forgetting', question, 500],
    ['unheard', question, 503],
  ]
  return ways.map(([host, asked, status]) => ({
    name: 'the operator, of headers',
    host,
    path,
    question: asked,
    status,
  }))
}

const KNOWN: Question = { headers: { 'If-None-Match': '*' } }

function preview(body: string): Question {
  return { method: 'POST', headers: { 'Content-Type': 'text/html' }, body }
}

/** HEAD is answered like GET, except that it ignores ranges. */
function withHead(request: OpenapiRequest): OpenapiRequest[] {
  const { name, question = {}, status } = request
  if (question.method !== undefined) return [request]
  const head = {
    ...request,
    name: `the head of ${name}`,
    question: { ...question, method: 'HEAD' },
    status: [206, 416].includes(status) ? 200 : status,
  }
  return [request, head]
}
