import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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
import { type RouteAnswer, useNameIndexes } from '../../support/client/name-index.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { directory, text } from '../../support/gateway/site.js'
import { useServers } from '../../support/server/test-server.js'

// A site on a name, in a browser that trusts only the page which starts the worker: whatever it shows is proven, or an error.

const servers = useServers()
const indexes = useNameIndexes()
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
const { mint, site } = await hosted.named('al', ...SITE)

const opened: { close(): void }[] = []
afterAll(() => {
  for (const each of opened) each.close()
})

/** A host that serves what is trusted, and nothing else: the page, and two scripts. */
async function trustedHost(gateway: string, headers: SiteConfig['headers'] = 'none'): Promise<string> {
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
  const host = createServer(async ({ url = '/' }, response) => {
    response.setHeader('Content-Security-Policy', verifiedSitePolicy(config))
    const script = Object.values(SITE_SCRIPTS).find((path) => url.split('?')[0] === path)
    if (script === undefined) response.setHeader('Content-Type', 'text/html').end(verifiedSitePage(config))
    else
      response
        .setHeader('Content-Type', 'text/javascript')
        .end(await readFile(new URL(script.slice(1), pages)))
  }).listen(0, '127.0.0.1')
  await once(host, 'listening')
  opened.push({
    close() {
      host.closeAllConnections()
      host.close()
    },
  })
  return `http://localhost:${(host.address() as AddressInfo).port}`
}

const gateway = async (lies: Record<string, RouteAnswer> = {}): Promise<string> => {
  const cors = Object.entries(lies)
  return (await indexes.start(Object.fromEntries(cors), hosted.server.url)).url
}

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
  await page.goto(`${host}/docs/`)
  await says(page, 'h1', 'a page below')
  // Nothing of another host, and nothing that is only the server's word.
  expect(
    await page.evaluate(async () => {
      const other = await fetch('http://127.0.0.1:1/').catch(({ name }: Error) => name)
      return [other, (await fetch('/none/such')).status]
    }),
  ).toEqual(['TypeError', 404])
  expect(complaints.filter((each) => !/127\.0\.0\.1:1|404/.test(each))).toEqual([])
})

inBrowser.each([
  ['the page', '/index.html', `/svc/gateway/proof/${site.outpoint(1)}`, 'content'],
  ['a directory', '/docs/', `/svc/gateway/proof/${site.outpoint(3)}`, 'directory'],
  ['a step', '/', `/svc/gateway/provenance/${mint.outpoint(2)}`, 'provenance'],
])('a gateway that swaps %s shows an error, and never the swapped bytes', async (_, address, path, step) => {
  const lying = await gateway({ [path]: { alter: swapped('proven', 'forged') } })
  const { page } = await browser.open(`${await trustedHost(lying)}${address}`)
  await says(page, '#status', `Not verified: ${step}`)
  expect(await page.content()).not.toContain('forged')
})

inBrowser('a page of the site cannot have the worker show something else', async () => {
  const { page } = await browser.open(`${await trustedHost(await gateway())}/`)
  await says(page, 'h1', 'proven')
  const state = await page.evaluate(async (outpoint) => {
    const { active } = await navigator.serviceWorker.ready
    const url = new URL(active?.scriptURL ?? '')
    const config = JSON.parse(url.searchParams.get('config') ?? '')
    url.searchParams.set('config', JSON.stringify({ ...config, site: outpoint }))
    const { installing } = await navigator.serviceWorker.register(url, { scope: '/', type: 'module' })
    return await new Promise<string>((resolve) => {
      installing?.addEventListener('statechange', () => {
        if (/^(activated|redundant)$/.test(installing.state)) resolve(installing.state)
      })
    })
  }, site.outpoint(5))
  expect(state).toBe('redundant')
  await page.goto(page.url())
  await says(page, 'h1', 'proven')
})

inBrowser('a script that is swapped is not run, and the page is shown without it', async () => {
  const lying = await gateway({
    [`/svc/gateway/proof/${site.outpoint(2)}`]: { alter: swapped('said }', 'lied }') },
  })
  const { page } = await browser.open(`${await trustedHost(lying)}/`)
  await says(page, 'h1', 'proven')
  expect(await page.evaluate(async () => (await fetch('/script.js')).status)).toBe(502)
  expect(await page.$('#said')).toBeNull()
})

inBrowser('without block headers that hold, nothing is shown', async () => {
  const url = await gateway({ '/v2/headers?height=899853&count=147': { body: new Uint8Array(147 * 80) } })
  const { page } = await browser.open(`${await trustedHost(url, { sources: [url] })}/`)
  await says(page, '#status', 'Not verified: headers')
  expect(await page.content()).not.toContain('proven</h1>')
})
