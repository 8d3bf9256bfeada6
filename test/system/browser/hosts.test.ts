import type { Page } from 'puppeteer-core'
import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { fill } from '../../../src/cli/local-network/fill.js'
import { violations } from '../../support/browser/accessibility.js'
import { useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { emptyLocalNetwork, networkOf } from '../../support/cli/local-network.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { binaryDirectory, directory, type File, text } from '../../support/gateway/site.js'
import { OPERATOR, untilReady, useServers } from '../../support/server/test-server.js'

// Each name is a site of its own to a browser, with all that sites have; and the service is another one.

const servers = useServers()
const browser = useBrowser()
const hosted = await hostedServer(servers, OPERATOR)
const { server, named, port } = hosted
await untilReady(server)

const PAGE = text(
  '<!doctype html><title>a site</title><script type="module" src="/module.js"></script>',
  'text/html',
)
const files = (name: string) => [
  directory({ '.': '_1', 'index.html': '_1', 'module.js': '_2', 'sw.js': '_3', 'data.json': '_4' }),
  PAGE,
  text("import data from './data.json' with { type: 'json' }\nself.imported = data.of", 'text/javascript'),
  text(
    `addEventListener('install', () => skipWaiting())
     addEventListener('activate', (event) => event.waitUntil(clients.claim()))
     addEventListener('fetch', (event) => {
       if (new URL(event.request.url).pathname === '/from-worker') event.respondWith(new Response('by the worker of ${name}'))
     })`,
    'text/javascript',
  ),
  text(JSON.stringify({ of: name }), 'application/json'),
]
const alice = await named('alice', ...files('alice'))
await named('bob', ...files('bob'))
const [, , script, , data] = files('carol') as [File, File, File, File, File]
await named(
  'carol',
  binaryDirectory({ '.': '_1', 'index.html': '_1', scripts: '_2', 'module.js': '_3', 'data.json': '_5' }, [
    'module.js',
  ]),
  PAGE,
  binaryDirectory({ 'main.js': '_4' }),
  text('scripts/main.js'),
  script,
  data,
)
const outpointHost = `${outpointLabel(parseOutpoint(alice.site.outpoint(0)))}.c.localhost`
const otherOutpointHost = `${outpointLabel(parseOutpoint(alice.site.outpoint(1)))}.c.localhost`

/** What a page can do, and what it sees of what was left there. */
async function used(page: Page): Promise<Record<string, unknown>> {
  return await page.evaluate(async () => {
    const tried = async (trial: () => unknown): Promise<unknown> => {
      try {
        return await trial()
      } catch (error) {
        return (error as Error).name
      }
    }
    const before = await tried(() => ({ ...localStorage }))
    const caches_ = await tried(() => caches.keys())
    const databases = await tried(async () => (await indexedDB.databases()).map(({ name }) => name))
    const workers = await tried(async () => (await navigator.serviceWorker.getRegistrations()).length)
    return { origin: self.origin, before, caches: caches_, databases, workers, cookies: document.cookie }
  })
}

/** Has a page keep something of every kind. */
async function keep(page: Page): Promise<unknown> {
  return await page.evaluate(async () => {
    localStorage.kept = `by ${location.hostname}`
    await caches.open('kept')
    await new Promise((done) => {
      indexedDB.open('kept').onsuccess = done
    })
    // biome-ignore lint/suspicious/noDocumentCookie: this is what sites do.
    document.cookie = 'kept=1'
    await navigator.serviceWorker.register('/sw.js', { type: 'module' })
    await navigator.serviceWorker.ready
    while (navigator.serviceWorker.controller === null) await new Promise((again) => setTimeout(again, 10))
    return await (await fetch('/from-worker')).text()
  })
}

const EMPTY = { before: {}, caches: [], databases: [], workers: 0, cookies: '' }

inBrowser(
  'a site on a name has storage, modules and a service worker, and no other name or outpoint sees them',
  async () => {
    const { page, complaints } = await browser.open(`http://alice.localhost${port}/`)
    await page.waitForFunction(() => 'imported' in self)
    expect(await page.evaluate(() => (self as unknown as { imported: string }).imported)).toBe('alice')
    expect(await keep(page)).toBe('by the worker of alice')
    await page.reload()
    expect(await used(page)).toEqual({
      origin: `http://alice.localhost${port}`,
      before: { kept: 'by alice.localhost' },
      caches: ['kept'],
      databases: ['kept'],
      workers: 1,
      cookies: 'kept=1',
    })
    expect(complaints).toEqual([])
    // In the same profile. The last of these is the page alone: its module is not there.
    for (const host of ['bob.localhost', outpointHost, otherOutpointHost]) {
      await page.goto(`http://${host}${port}/`)
      expect(await used(page)).toEqual({ origin: `http://${host}${port}`, ...EMPTY })
    }
    // A name that shows the page of the same outpoint has its own.
    await page.goto(`http://${outpointHost}${port}/`)
    expect(await keep(page)).toBe('by the worker of alice')
    await page.goto(`http://${otherOutpointHost}${port}/`)
    expect(await used(page)).toEqual({ origin: `http://${otherOutpointHost}${port}`, ...EMPTY })
  },
)

inBrowser('a site in bytes opens as any other, with a module behind a symbolic link', async () => {
  const { page, complaints } = await browser.open(`http://carol.localhost${port}/`)
  await page.waitForFunction(() => 'imported' in self)
  expect(await page.evaluate(() => (self as unknown as { imported: string }).imported)).toBe('carol')
  expect(complaints).toEqual([])
})

inBrowser('content by its path is sandboxed on the host of a name, too', async () => {
  const { page } = await browser.open(`http://alice.localhost${port}/content/${alice.site.outpoint(0)}`)
  expect(await page.evaluate(() => self.origin)).toBe('null')
  expect(await page.evaluate(() => document.title)).toBe('a site')
})

inBrowser.each([
  ['a name', 'alice.localhost'],
  ['an outpoint', outpointHost],
])('the service is out of reach for the page of %s, but for what it shows everybody', async (_, host) => {
  const { page } = await browser.open(`http://${host}${port}/`)
  const service = `http://localhost${port}`
  const reached = await page.evaluate(
    async (from: string, token: string, others: string) => {
      const asked = async (path: string, options: RequestInit = {}, base = from): Promise<unknown> => {
        try {
          return (await fetch(base + path, options)).status
        } catch (error) {
          return (error as Error).name
        }
      }
      const framed = async (path: string): Promise<unknown> => {
        const frame = document.createElement('iframe')
        frame.src = from + path
        await new Promise((loaded) => {
          frame.onload = loaded
          document.body.append(frame)
        })
        try {
          return frame.contentDocument ?? (frame.contentWindow as Window).location.href
        } catch (error) {
          return (error as Error).name
        }
      }
      return {
        read: await asked('/svc/names/alice'),
        readAsMyself: await asked('/svc/names/alice', { credentials: 'include' }),
        submit: await asked('/submit', { method: 'POST', body: 'x' }),
        admin: await asked('/admin/blocked'),
        adminWithToken: await asked('/admin/blocked', { headers: { Authorization: `Bearer ${token}` } }),
        otherName: await asked('/data.json', {}, others),
        otherNameAsMyself: await asked('/data.json', { credentials: 'include' }, others),
        page: await framed('/svc/names/alice'),
        ownAdmin: (await asked('/admin/blocked', {}, '')) as unknown,
        ownSubmit: (await asked('/submit', { method: 'POST' }, '')) as unknown,
      }
    },
    service,
    OPERATOR.ADMIN_TOKEN,
    `http://bob.localhost${port}`,
  )
  expect(reached).toEqual({
    // What everybody reads, and submits: nobody is known by it. There are no cookies, and no answer lets a page send any.
    read: 200,
    readAsMyself: 'TypeError',
    submit: 400,
    // Not even with the token.
    admin: 'TypeError',
    adminWithToken: 'TypeError',
    otherName: 200,
    otherNameAsMyself: 'TypeError',
    page: 'SecurityError',
    // The index of the site, as for any path that is not there, and which has no method but GET and HEAD.
    ownAdmin: 404,
    ownSubmit: 405,
  })
  const answer = await server.ask('/svc/names/alice')
  expect(answer.headers['set-cookie']).toBeUndefined()
})

inBrowser('a page that is not there tells a reader how to mine the name', async () => {
  const { page } = await browser.open(`http://nobody.localhost${port}/x`)
  const shown = await page.evaluate(() => ({
    text: document.body.textContent,
    display: getComputedStyle(document.body).display,
    link: document.querySelector('a')?.href,
  }))
  expect(shown).toMatchObject({
    text: expect.stringContaining('Nobody has mined nobody.'),
    link: `http://localhost${port}/mine?name=nobody`,
  })
  // Its own style counts.
  expect(shown.display).toBe('grid')
})

inBrowser('the site of a local network works on the host of its name', async () => {
  const local = await emptyLocalNetwork(servers)
  await fill(networkOf(local))
  const own = `:${new URL(local.url).port}`
  const { page, complaints } = await browser.open(`http://home.localhost${own}/`)
  await page.waitForFunction(() => document.querySelectorAll('#names a').length === 6)
  const shown = await page.evaluate(async () => {
    const audio = document.querySelector('audio') as HTMLAudioElement
    if (audio.readyState === 0)
      await new Promise((loaded) => audio.addEventListener('loadedmetadata', loaded))
    return {
      seconds: audio.duration,
      picture: (document.querySelector('figure img') as HTMLImageElement).naturalWidth,
      width: getComputedStyle(document.body).maxWidth,
      names: document.querySelector('#names')?.textContent,
      list: (document.querySelector('a[href*="/openapi.json"]') as HTMLAnchorElement).href,
      command: document.querySelector('.command')?.textContent,
    }
  })
  expect(shown).toEqual({
    seconds: 6,
    picture: 480,
    width: '640px',
    names: 'h, ho, hom, home, hu, hum',
    list: `http://localhost${own}/openapi.json`,
    command: `npx minetree mine hey --url http://localhost${own}`,
  })
  // Before its script has run, the player looks for the stream on this host.
  expect(complaints.filter((said) => !said.endsWith(' 404 (Not Found)'))).toEqual([])
})

inBrowser.each(['light', 'dark'])(
  'an error of a host is accessible, and fits a phone, in %s',
  async (scheme) => {
    for (const host of ['nobody', `${'z'.repeat(56)}.c`]) {
      const { page } = await browser.open(`http://${host}.localhost${port}/`, async (each) => {
        await each.setViewport({ width: 360, height: 780 })
        await each.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
      })
      expect(await violations(page)).toEqual([])
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      expect(wide).toBeLessThanOrEqual(360)
      await page.close()
    }
  },
)
