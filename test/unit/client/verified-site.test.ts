import { verifiedSitePage, verifiedSitePolicy } from '../../../src/client/site-page.js'
import type { VerifiedFetch } from '../../../src/client/verified-fetch.js'
import { serveVerifiedSite, type WorkerScope } from '../../../src/client/verified-site.js'

// What a service worker answers, without a browser: the bytes are verified elsewhere.

const OUTPOINT = `${'0'.repeat(64)}_0`

const worker: WorkerScope = {
  location: { origin: 'https://site.example' },
  clients: { claim: async () => {} },
  skipWaiting: async () => {},
  addEventListener: () => {},
}

const page = (async () =>
  new Response('<script>alert(1)</script>', {
    headers: { 'Content-Type': 'text/html' },
  })) as unknown as VerifiedFetch

const answer = serveVerifiedSite(worker, { site: 'alice', fetch: page })

const policyOf = async (path: string): Promise<string | null> => {
  const response = await answer(new Request(`https://site.example${path}`))
  return response.headers.get('content-security-policy')
}

test.each([`/content/${OUTPOINT}`, `/content/${OUTPOINT}:-1/index.html`, `/svc/gateway/stream/${OUTPOINT}`])(
  'what anybody may have inscribed, at %s, gets no storage of the site',
  async (path) => {
    expect(await policyOf(path)).toMatch(/^sandbox (?!.*allow-same-origin)/)
  },
)

test.each(['/', '/content/index.html', '/svc/gateway/stream/index.html'])(
  'what the site has at %s is in its own origin',
  async (path) => {
    expect(await policyOf(path)).not.toContain('sandbox')
  },
)

test('the policy of the page has the hosts that are asked, and nothing else that an address could add', () => {
  const policy = (url: string): string => verifiedSitePolicy({ site: 'a', gateways: [url], headers: 'none' })
  expect(policy('https://one.example:8443/path')).toContain("connect-src 'self' https://one.example:8443;")
  for (const url of ['https://a;script-src-elem', 'https://*', "https://a'", 'data:text/html,a', 'a'])
    expect(() => policy(url)).toThrow(/address|URL/)
})

test('no setting of a site ends the element that it is written in', () => {
  const page = verifiedSitePage({
    site: '</script><img src=x onerror=alert(1)>',
    gateways: [],
    headers: 'none',
  })
  expect(page.match(/<\/script>/g)).toHaveLength(2)
  expect(page).not.toContain('<img')
})
