import { readFile } from 'node:fs/promises'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  SITE_SCRIPTS,
  type SiteConfig,
  verifiedSitePage,
  verifiedSitePolicy,
} from '../../../src/client/site-page.js'
import { says, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { builtPages } from '../../support/cli/built-package.js'
import { type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { directory, text } from '../../support/gateway/site.js'
import { serving } from '../../support/server/connections.js'
import { useServers } from '../../support/server/test-server.js'

// A site on a name, in a browser that trusts only the page which starts the worker: whatever it shows is proven, or an error.

const servers = useServers()
const browser = useBrowser()
const pages = await builtPages()
const hosted = await hostedServer(servers)

const SITE = [
  directory({ 'index.html': '_1', 'script.js': '_2', docs: '_3', 'data.json': '_4' }),
  text('<!doctype html><title>al</title><h1>proven</h1><script src="script.js"></script>', 'text/html'),
  text(
    `fetch('/data.json').then((answer) => answer.json()).then(({ said }) => {
      document.body.append(Object.assign(document.createElement('p'), { id: 'said', textContent: said }))
    })`,
    'text/javascript',
  ),
  directory({ 'index.html': '_5' }),
  text(JSON.stringify({ said: 'by verified bytes' }), 'application/json'),
  text('<!doctype html><h1>a page below</h1>', 'text/html'),
]
const { site } = await hosted.named('al', ...SITE)

/** A host that serves what is trusted, and nothing else: the page, and two scripts. */
interface TrustedHost {
  url: string
  config: SiteConfig
  /** Its worker instead of the released one. */
  worker?: string
}

async function startHost(gateway: string, headers: SiteConfig['headers'] = 'none'): Promise<TrustedHost> {
  const { genesis, covenantVersion, difficulty, marker } = hosted.chain.deployment
  const config: SiteConfig = {
    site: 'al',
    gateways: [gateway],
    profile: 'local',
    tree: {
      genesis: formatOutpoint(genesis),
      nameMarker: Buffer.from(marker).toString('utf8'),
      ...{ covenantVersion, difficulty },
    },
    headers,
  }
  const state: TrustedHost = { url: '', config }
  const host = await serving(async ({ url = '/' }, response) => {
    response.setHeader('Content-Security-Policy', verifiedSitePolicy(state.config))
    response.setHeader('Cache-Control', 'no-cache')
    const script = Object.values(SITE_SCRIPTS).find((path) => url.split('?')[0] === path)
    if (script === undefined) {
      response.setHeader('Content-Type', 'text/html').end(verifiedSitePage(state.config))
      return
    }
    const own = script === SITE_SCRIPTS.worker ? state.worker : undefined
    response
      .setHeader('Content-Type', 'text/javascript')
      .end(own ?? (await readFile(new URL(script.slice(1), pages))))
  })
  state.url = `http://localhost:${new URL(host.url).port}`
  return state
}

const trustedHost = async (...of: Parameters<typeof startHost>): Promise<string> =>
  (await startHost(...of)).url

const gateway = async (lies: Record<string, RouteAnswer> = {}): Promise<string> =>
  (await startIndex(lies, hosted.server.url)).url

const swapped =
  (from: string, to: string) =>
  (body: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(body)
    bytes.write(to, bytes.indexOf(from), 'latin1')
    return Uint8Array.from(bytes)
  }

inBrowser('a site on a name is shown from proven bytes by an untrusted gateway', async () => {
  const host = await trustedHost(await gateway())
  const { page, complaints } = await browser.open(`${host}/`)
  await says(page, 'h1', 'proven')
  await says(page, '#said', 'by verified bytes')
  // By the redirect of the site to its slash.
  await page.goto(`${host}/docs`)
  await says(page, 'h1', 'a page below')
  expect(new URL(page.url()).pathname).toBe('/docs/')
  // Nothing of another host, and nothing that is only the server's word.
  expect(
    await page.evaluate(async () => {
      const other = await fetch('http://127.0.0.1:1/').catch(({ name }: Error) => name)
      return [other, (await fetch('/none/such')).status]
    }),
  ).toEqual(['TypeError', 404])
  expect(complaints.filter((each) => !/127\.0\.0\.1:1|404/.test(each))).toEqual([])
})

inBrowser('a page of the site cannot have the worker show something else', async () => {
  const { page } = await browser.open(`${await trustedHost(await gateway())}/`)
  await says(page, 'h1', 'proven')
  // By another address of its script, nor by what the worker keeps.
  const state = await page.evaluate(async (outpoint) => {
    const config = JSON.stringify({ site: outpoint, gateways: [], headers: 'none' })
    const url = `/verified-worker.js?config=${encodeURIComponent(config)}`
    const { installing, active } = await navigator.serviceWorker.register(url, { scope: '/', type: 'module' })
    return await new Promise<string>((resolve) => {
      const worker = installing ?? active
      const look = (): void => {
        if (/^(activated|redundant)$/.test(worker?.state ?? '')) resolve(worker?.state ?? '')
      }
      worker?.addEventListener('statechange', look)
      look()
    })
  }, site.outpoint(5))
  expect(state).toBe('activated')
  await page.goto(page.url())
  await says(page, 'h1', 'proven')
  await page.evaluate(async (outpoint) => {
    const database = await new Promise<IDBDatabase>((resolve) => {
      const opening = indexedDB.open('minetree-site', 1)
      opening.onsuccess = () => resolve(opening.result)
    })
    const text = JSON.stringify({ site: outpoint, gateways: [], headers: 'none' })
    const transaction = database.transaction('segments', 'readwrite')
    transaction.objectStore('segments').put(text, 'site/config')
    await new Promise((resolve) => {
      transaction.oncomplete = resolve
    })
    for (const registration of await navigator.serviceWorker.getRegistrations())
      await registration.unregister()
  }, site.outpoint(5))
  await page.goto(page.url())
  await says(page, '#status', 'Not verified')
  expect(await page.content()).not.toContain('a page below')
})

inBrowser('an earlier visitor gets the new gateways of a site, and the old one may be gone', async () => {
  let isGone = false
  const gone: RouteAnswer = { does: (response) => response.destroy() }
  const answers = new Proxy<Record<string, RouteAnswer>>({}, { get: () => (isGone ? gone : undefined) })
  const host = await startHost((await startIndex(answers, hosted.server.url)).url)
  const { page } = await browser.open(`${host.url}/`)
  await says(page, 'h1', 'proven')
  const script = await page.evaluate(() => navigator.serviceWorker.controller?.scriptURL)
  expect(script).toBe(`${host.url}${SITE_SCRIPTS.worker}`)
  isGone = true
  host.config = { ...host.config, gateways: [await gateway()] }
  // While its worker runs, and after it was started again.
  await page.goto(`${host.url}/docs/`)
  await says(page, 'h1', 'a page below')
  const session = await page.createCDPSession()
  await session.send('ServiceWorker.enable')
  await session.send('ServiceWorker.stopAllWorkers')
  await page.goto(`${host.url}/`)
  await says(page, 'h1', 'proven')
})

inBrowser('an earlier visitor gets a later release of the worker', async () => {
  const host = await startHost(await gateway())
  const { page } = await browser.open(`${host.url}/`)
  await says(page, 'h1', 'proven')
  host.worker = `
    addEventListener('install', (event) => event.waitUntil(skipWaiting()))
    addEventListener('activate', (event) => event.waitUntil(clients.claim()))
    addEventListener('fetch', (event) => event.respondWith(
      new Response('<h1>a later release</h1>', { headers: { 'Content-Type': 'text/html' } })))`
  // The browser looks for it when a page is opened.
  await page.evaluateOnNewDocument(() => {
    navigator.serviceWorker.addEventListener('controllerchange', () => {
      document.documentElement.setAttribute('data-replaced', '')
    })
  })
  await page.goto(`${host.url}/docs/`)
  await page.waitForSelector('[data-replaced]')
  await page.goto(`${host.url}/`)
  await says(page, 'h1', 'a later release')
})

inBrowser('a script that is swapped is not run, and a page that is swapped is an error', async () => {
  const lying = await gateway({
    [`/svc/gateway/proof/${site.outpoint(2)}`]: { alter: swapped('said }', 'lied }') },
    [`/svc/gateway/proof/${site.outpoint(5)}`]: { alter: swapped('a page', 'forged') },
  })
  const { page } = await browser.open(`${await trustedHost(lying)}/`)
  await says(page, 'h1', 'proven')
  expect(await page.evaluate(async () => (await fetch('/script.js')).status)).toBe(502)
  expect(await page.$('#said')).toBeNull()
  const { page: below } = await browser.open(`${await trustedHost(lying)}/docs/`)
  await says(below, '#status', 'Not verified: content')
  expect(await below.content()).not.toContain('forged')
})

inBrowser('without block headers that hold, nothing is shown', async () => {
  const url = await gateway({ '/v2/headers?height=899853&count=147': { body: new Uint8Array(147 * 80) } })
  const { page } = await browser.open(`${await trustedHost(url, { sources: [url] })}/`)
  await says(page, '#status', 'Not verified: headers')
  expect(await page.content()).not.toContain('proven</h1>')
})
