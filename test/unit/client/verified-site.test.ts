import { MemorySegmentStore } from '../../../src/client/segment-store.js'
import { type SiteConfig, verifiedSitePage, verifiedSitePolicy } from '../../../src/client/site-page.js'
import { VerifiedFetchError } from '../../../src/client/verified-error.js'
import type { VerifiedFetch } from '../../../src/client/verified-fetch.js'
import {
  HostedSite,
  refusalOf,
  serveVerifiedSite,
  type WorkerScope,
} from '../../../src/client/verified-site.js'

// What a service worker answers, without a browser: the bytes are verified elsewhere.

const OUTPOINT = `${'0'.repeat(64)}_0`

const worker: WorkerScope = {
  location: { origin: 'https://site.example' },
  clients: { claim: async () => {} },
  skipWaiting: async () => {},
  addEventListener: () => {},
}

test.each([
  ...[`/content/${OUTPOINT}`, `/content/${OUTPOINT}:-1/index.html`, `/svc/gateway/stream/${OUTPOINT}`].map(
    (path) => [path, /^sandbox (?!.*allow-same-origin)/] as const,
  ),
  ...['/', '/content/index.html', '/svc/gateway/stream/index.html'].map(
    (path) => [path, /^(?!.*sandbox)/] as const,
  ),
])(
  'what anybody may have inscribed gets no storage of the site, whose own it is: %s',
  async (path, policy) => {
    const headers = { 'Content-Type': 'text/html' }
    const page = async () => new Response('<script>alert(1)</script>', { headers })
    const answer = serveVerifiedSite(worker, { site: 'alice', fetch: page as unknown as VerifiedFetch })
    const response = await answer(new Request(`https://site.example${path}`))
    expect(response.headers.get('content-security-policy')).toMatch(policy)
  },
)

test('the policy of the page outlives its gateways, and takes nothing from their addresses', () => {
  const policy = (url: string): string => verifiedSitePolicy({ site: 'a', gateways: [url], headers: 'none' })
  // A worker keeps the policy of its script, whatever gateways there are later.
  expect(policy('https://one.example:8443/path')).toBe(policy('https://two.example'))
  for (const url of ['https://a;script-src-elem', 'https://*', "https://a'", 'data:text/html,a', 'a'])
    expect(() => policy(url)).toThrow(/address|URL/)
})

test('no setting of a site ends the element that it is written in', () => {
  const site = '</script><img src=x onerror=alert(1)>'
  const page = verifiedSitePage({ site, gateways: [], headers: 'none' })
  expect(page.match(/<\/script>/g)).toHaveLength(2)
  expect(page).not.toContain('<img')
})

const CONFIG: SiteConfig = {
  site: 'alice',
  gateways: ['https://one.example'],
  headers: { sources: ['https://headers.example'] },
}
const tree = { genesis: OUTPOINT, difficulty: 20 }
const from = (changed: object = {}): Partial<SiteConfig> => ({
  headers: { sources: [], checkpoint: { height: 950_000, hash: 'aa'.repeat(32), ...changed } },
})

describe('a configuration that replaces another', () => {
  const changed: [what: string, before: Partial<SiteConfig>, after: Partial<SiteConfig>][] = [
    ['other gateways', {}, { gateways: ['https://two.example', 'https://three.example'] }],
    ['other sources of headers', {}, { headers: { sources: ['https://other.example'] } }],
    ['more that have to agree', { tipPolicy: 'any' }, { tipPolicy: 'majority' }],
    ['proofs that are required', {}, { requireProofs: true }],
    ['headers where there were none', { headers: 'none' }, {}],
    ['a later checkpoint', {}, from()],
    ['the default said', {}, { profile: 'mainnet', tipPolicy: 'any', requireProofs: false }],
    ['its tree in another order', { tree }, { tree: { difficulty: 20, genesis: OUTPOINT } }],
  ]
  test.each(changed)('may have %s', (_, before, after) => {
    expect(refusalOf({ ...CONFIG, ...before }, { ...CONFIG, ...after })).toBeUndefined()
  })

  const refused: [what: string, before: Partial<SiteConfig>, after: Partial<SiteConfig>][] = [
    ['another site', {}, { site: 'bob' }],
    ['another sequence', { site: OUTPOINT }, { site: `${OUTPOINT}:-1` }],
    ['another profile', {}, { profile: 'local' }],
    ['another tree', { tree }, { tree: { ...tree, genesis: `${'1'.repeat(64)}_0` } }],
    ['a tree where there was none', {}, { tree }],
    ['easier work', { tree }, { tree: { ...tree, difficulty: 1 } }],
    ['no headers', {}, { headers: 'none' }],
    ['headers of another network', {}, { headers: { sources: [], network: 'test' } }],
    ['an earlier checkpoint', {}, from({ height: 1 })],
    ['another block as its checkpoint', from(), from({ hash: 'bb'.repeat(32) })],
    ['fewer that have to agree', { tipPolicy: 'all' }, { tipPolicy: 'majority' }],
    ['no policy where there was one', { tipPolicy: 'majority' }, {}],
    ['proofs that are no longer required', { requireProofs: true }, {}],
  ]
  test.each(refused)('may not have %s', (_, before, after) => {
    expect(refusalOf({ ...CONFIG, ...before }, { ...CONFIG, ...after })).toEqual(expect.any(String))
  })
})

describe('the worker of a site', () => {
  /** Gateways that are there: any other fails. */
  const up = new Set<string>()
  const workerOf = (host: { page: () => Promise<string> }, store = new MemorySegmentStore()) => {
    const source = new HostedSite({
      ...{ store, page: () => host.page() },
      fetchFor: ({ gateways: [gateway = ''] }) =>
        (async (resource: string) => {
          if (up.has(gateway)) return new Response(`${resource} by ${gateway}`)
          throw new VerifiedFetchError('NO_ANSWER', `${gateway} is gone`, { step: 'content' })
        }) as unknown as VerifiedFetch,
    })
    const answer = serveVerifiedSite(worker, source)
    return async (path = '/'): Promise<[number, string]> => {
      const response = await answer(new Request(`https://site.example${path}`))
      return [response.status, await response.text()]
    }
  }
  const hostOf = (config: SiteConfig) => ({
    ...{ config, isUp: true },
    async page() {
      if (!this.isUp) throw new TypeError('the host is down')
      return verifiedSitePage(this.config)
    },
  })
  const [one, two] = ['https://one.example', 'https://two.example']
  beforeEach(() => {
    up.clear()
    up.add(one)
  })

  test('takes new gateways from its host, while it runs and when it starts again', async () => {
    const host = hostOf(CONFIG)
    const store = new MemorySegmentStore()
    const visit = workerOf(host, store)
    expect(await visit()).toEqual([200, `alice/ by ${one}`])
    up.clear()
    up.add(two)
    expect((await visit())[0]).toBe(502)
    host.config = { ...CONFIG, gateways: [two] }
    expect(await Promise.all([visit('/x'), visit('/y')])).toEqual([
      [200, `alice/x by ${two}`],
      [200, `alice/y by ${two}`],
    ])
    expect(await workerOf(host, store)()).toEqual([200, `alice/ by ${two}`])
  })

  test('goes on with what it has while its host is down', async () => {
    const host = hostOf(CONFIG)
    const visit = workerOf(host)
    await visit()
    host.isUp = false
    expect(await visit()).toEqual([200, `alice/ by ${one}`])
    up.clear()
    expect(await visit()).toEqual([502, expect.stringContaining('one.example is gone')])
    expect(await workerOf(host)()).toEqual([502, expect.stringContaining('the host is down')])
  })

  test('takes nothing from its host that has fewer guarantees, and tries again', async () => {
    const host = hostOf({ ...CONFIG, requireProofs: true })
    const store = new MemorySegmentStore()
    const visit = workerOf(host, store)
    await visit()
    host.config = { ...CONFIG, site: 'bob' }
    up.clear()
    expect(await visit()).toEqual([502, expect.stringContaining('one.example is gone')])
    up.add(one)
    expect(await visit()).toEqual([200, `alice/ by ${one}`])
    const started = workerOf(host, store)
    expect(await started()).toEqual([502, expect.stringContaining('another site')])
    host.config = { ...CONFIG, requireProofs: true, gateways: [one, two] }
    expect(await started()).toEqual([200, `alice/ by ${one}`])
  })

  test('shows nothing that was written to its store: pages of the site can', async () => {
    const store = new MemorySegmentStore()
    await store.put('site/config', JSON.stringify({ ...CONFIG, site: 'mallory' }))
    expect(await workerOf(hostOf(CONFIG), store)()).toEqual([502, expect.stringContaining('another site')])
    await store.put('site/config', '{')
    expect(await workerOf(hostOf(CONFIG), store)()).toEqual([200, `alice/ by ${one}`])
  })

  test.each(['', '<html>', '<script type="application/json" id="site">{}</script>'])(
    'shows nothing where its host answers %j',
    async (page) => {
      expect((await workerOf({ page: async () => page })())[0]).toBe(502)
    },
  )
})
