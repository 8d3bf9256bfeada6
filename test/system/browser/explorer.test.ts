import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Page } from 'puppeteer-core'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { violations } from '../../support/browser/accessibility.js'
import { arrivesAt, press, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { builtPages } from '../../support/cli/built-package.js'
import { explorerWorld } from '../../support/explorer/world.js'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { useHeaderWorlds } from '../../support/server/header-world.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

// What the explorer looks like and may do in a browser. SHOTS=<folder> keeps a picture of each page.

const SHOTS = process.env.SHOTS

const servers = useServers()
const worlds = useHeaderWorlds()
/** Wherever a page asks, other than this machine and the hosts of names and outpoints on it, is this server. */
const elsewhere: string[] = []
const others = createServer(({ headers, url }, response) => {
  // The browser itself calls home.
  if (!/(?:google|googleapis)\.com$/.test(headers.host ?? '')) elsewhere.push(`${headers.host}${url}`)
  response.end()
}).listen(0, '127.0.0.1')
await once(others, 'listening')
afterAll(() => others.close())
const { port } = others.address() as AddressInfo
const browser = useBrowser(
  `--host-resolver-rules=MAP * 127.0.0.1:${port}, EXCLUDE 127.0.0.1, EXCLUDE *.localhost`,
)
const world = explorerWorld()
const { outpoints } = world
const pages = await builtPages()
const server = await servers.start(treeOf(world.deployment), { pages })
await world.fill(server)

const PAGES = {
  home: '/',
  'names that begin with a long prefix': `/names?order=name&prefix=${'m'.repeat(255)}`,
  'tree below a long name': '/tree?prefix=satoshi-caf',
  charts: '/charts',
  name: '/name/alice',
  site: `/ordinal/${outpoints.site}`,
  'hostile ordinal': `/ordinal/${outpoints.hostile}`,
  'long directory': `/ordinal/${outpoints['long directory']}`,
  inscriptions: '/inscriptions',
  address: `/address/${encodeAddress('01'.padStart(40, '0'), 'main')}`,
  transaction: `/tx/${outpoints.site.slice(0, 64)}`,
  status: '/status',
  api: '/api',
  search: '/search?q=my%20zzz',
  mine: '/mine',
  'my names': '/my',
  'unclaimed name': '/name/nobody',
  'no route': '/nothing/here',
}

/** What others of these are like, at night. */
const MORE_PAGES = {
  names: '/names',
  tree: '/tree',
  files: `/ordinal/${outpoints.files}`,
  'names in order': '/names?order=name&prefix=a',
  'tree below a': '/tree?prefix=a',
  'new name': '/name/home',
  ordinal: `/ordinal/${outpoints.svg}`,
  'short directory': `/ordinal/${outpoints['short directory']}`,
  parent: `/parent/${outpoints.svg}`,
  map: '/map?key=app&value=site',
  'mint transaction': `/tx/${world.chain.node('home').outpoint.txid}`,
}

const VERIFY_BUTTON = 'button[data-verify]:not([hidden])'

const SCREENS = {
  desktop: { width: 1280, height: 900, scheme: 'light' },
  'desktop dark': { width: 1280, height: 900, scheme: 'dark' },
  phone: { width: 360, height: 780, scheme: 'light' },
  'phone dark': { width: 320, height: 780, scheme: 'dark' },
}

/** Each width and each scheme once, unless pictures of all are wanted. */
const TESTED = Object.entries(SCREENS).filter(
  ([screen]) => SHOTS !== undefined || screen === 'desktop' || screen === 'phone dark',
)

/** Mines one more name. */
async function mineOne(name: string): Promise<void> {
  const { json } = await server.submit(beefOf(world.chain.mint(name)), ['tm_names'])
  expect(json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
}

interface Seen {
  page: Page
  complaints: string[]
}

type Screen = (typeof SCREENS)['desktop']

async function show(page: Page, { width, height, scheme }: Screen): Promise<void> {
  await page.setViewport({ width, height })
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
}

async function open(path: string, screen: Screen): Promise<Seen> {
  return await browser.open(`${server.url}${path}`, async (each) => await show(each, screen))
}

/** The paths of the scripts that a page asks for. */
function scriptsOf(page: Page): string[] {
  const asked: string[] = []
  page.on('request', (request) => {
    if (request.resourceType() === 'script') asked.push(new URL(request.url()).pathname)
  })
  return asked
}

/** Elements that stick out of the screen, and targets that a finger would miss. */
async function faults(page: Page, isPhone: boolean): Promise<string[]> {
  return await page.evaluate((isPhone) => {
    const found: string[] = []
    const width = document.documentElement.clientWidth
    if (document.documentElement.scrollWidth > width)
      found.push(`the page is ${document.documentElement.scrollWidth} wide`)
    const targets = document.querySelectorAll<HTMLElement>(
      'a.btn, button, nav a, .keys a, .rows > li > a, summary, input:not([type=radio]), .branch a, .filters a, .tile, td a, .mark, footer a',
    )
    for (const target of targets) {
      const { width: w, height: h, left, right } = target.getBoundingClientRect()
      if (w === 0 || target.closest('details:not([open])')) continue
      if (isPhone && (h < 39.5 || w < 39.5)) found.push(`${target.outerHTML.slice(0, 100)} is ${w} x ${h}`)
      if (left < -1 || right > width + 1) found.push(`${target.outerHTML.slice(0, 100)} sticks out`)
    }
    return found
  }, isPhone)
}

/** A page that is not there is 404, which browsers log; and a stranger's page in a frame cannot reach other hosts. */
const isExpected = (complaint: string): boolean =>
  /status of 404|'http:\/\/other\.example\/tracker\.png' violates the following Content Security Policy/.test(
    complaint,
  )

inBrowser('each page is accessible, fits, and asks no other host, on every screen', async () => {
  const pages = Object.entries(IS_NIGHTLY || SHOTS !== undefined ? { ...PAGES, ...MORE_PAGES } : PAGES)
  const { page, complaints } = await browser.open('about:blank')
  const found: Record<string, string[]> = {}
  for (const [at, [name, path]] of pages.entries()) {
    await page.goto(server.url + path)
    // What is lazy is loaded, too.
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
    await page.waitForNetworkIdle({ idleTime: 100 })
    await page.evaluate(() => scrollTo(0, 0))
    for (const [index, [screen, options]] of TESTED.entries()) {
      await show(page, options)
      if (SHOTS !== undefined) {
        await mkdir(SHOTS, { recursive: true })
        const file = `${SHOTS}/${name} ${screen}.png`.replaceAll(' ', '-')
        await page.screenshot({ path: file as `${string}.png`, fullPage: true })
      }
      const wrong = await faults(page, options.width < 500)
      // By day, pages take turns with their schemes: they share one style sheet.
      if (IS_NIGHTLY || at % TESTED.length === index) wrong.push(...(await violations(page)))
      if (wrong.length > 0) found[`${name}, ${screen}`] = wrong
    }
    const unexpected = complaints.splice(0).filter((each) => !isExpected(each))
    if (unexpected.length > 0) found[name] = unexpected
  }
  expect({ found, elsewhere }).toEqual({ found: {}, elsewhere: [] })
})

inBrowser('a name is verified in the browser, step by step', async () => {
  const { page, complaints } = await open('/name/alice', SCREENS.desktop)
  await press(page, VERIFY_BUTTON)
  await says(page, '#verdict', 'Genuine, checked here in')
  await says(page, '#verification', 'a, al, ali, alic, alice')
  await says(page, '#verification', '2 steps from the origin to the tip')
  await show(page, SCREENS['phone dark'])
  expect(await faults(page, true)).toEqual([])
  expect(complaints.filter((each) => !isExpected(each))).toEqual([])
})

inBrowser('a page of a free name says how long mining it takes on this machine', async () => {
  const { page, complaints } = await open('/name/nobody', SCREENS.desktop)
  await says(page, '[data-hashes]', 'on this machine, at')
  expect(complaints).toEqual([])
})

inBrowser('a search suggests names while one is typed, and leads to the one that is taken', async () => {
  const { page, complaints } = await open('/tree', SCREENS.desktop)
  const asked: string[] = []
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.pathname.endsWith('/search')) asked.push(url.searchParams.get('text') ?? url.search)
  })
  await page.type('input[name=q]', 'AL')
  await page.waitForSelector('option[value=alice]')
  await page.type('input[name=q]', 'icia')
  await page.waitForSelector('option[value=alicia][label="alicia: free"]')
  expect(asked.at(-1)).toBe('alicia')
  // What is no name is not asked for.
  await page.type('input[name=q]', ' !')
  await page.waitForFunction(() => document.querySelectorAll('option').length === 0)
  expect(asked.at(-1)).toBe('alicia')
  // As a browser does when a suggestion is taken.
  await page.$eval('input[name=q]', (field) => {
    ;(field as HTMLInputElement).value = 'alice'
    field.dispatchEvent(new Event('input', { bubbles: true }))
  })
  await arrivesAt(page, '/name/alice')
  expect(complaints.filter((each) => !isExpected(each))).toEqual([])
})

describe('before anything is pressed, 30 KiB of script at most, compressed, are loaded', () => {
  const EXPLORER = '/explorer/explorer.js'
  const VERIFY = { press: VERIFY_BUTTON, loads: '/explorer/verify.js' }
  const MINE = { press: '#start:not(:disabled)', loads: '/mine/mining.js' }
  inBrowser.each([
    { path: '/', scripts: [EXPLORER], later: undefined },
    { path: '/name/alice', scripts: [EXPLORER], later: VERIFY },
    { path: `/ordinal/${outpoints.svg}`, scripts: [EXPLORER], later: VERIFY },
    { path: '/mine?name=new', scripts: [EXPLORER, '/mine/main.js'], later: MINE },
  ])('by $path', async ({ path, scripts, later }) => {
    let asked: string[] = []
    const { page } = await browser.open(server.url + path, async (each) => {
      asked = scriptsOf(each)
    })
    if (later !== undefined) await page.waitForSelector(later.press)
    await page.waitForNetworkIdle({ idleTime: 300 })
    expect(asked.toSorted()).toEqual(scripts)
    const bodies = await Promise.all(scripts.map(async (script) => (await server.ask(script)).body))
    const size = bodies.reduce((sum, body) => sum + gzipSync(body).length, 0)
    expect(size).toBeLessThan(30 * 1024)
    if (later !== undefined) {
      const isThat = (url: string): boolean => new URL(url).pathname === later.loads
      await Promise.all([page.waitForRequest((request) => isThat(request.url())), press(page, later.press)])
    }
    await page.close()
  })
})

inBrowser(
  'an ordinal is verified in the browser, and its type shown with what nobody sees written out',
  async () => {
    const { page } = await open(`/ordinal/${outpoints.hostile}`, SCREENS.desktop)
    await press(page, VERIFY_BUTTON)
    await says(page, '#verdict', 'Genuine, checked here in')
    const text = await page.$eval('#verification', ({ textContent }) => textContent)
    expect(text).toContain(String.raw`text/plain; x="\u{202e}<b>`)
    expect(text).not.toContain('\u202e')
  },
)

// By day, `long-histories.test.ts` has such a way without a browser.
const inBrowserAtNight = IS_NIGHTLY ? inBrowser : test.skip
inBrowserAtNight(
  'a name is verified in the browser although strangers have made the way to it very long',
  async () => {
    const chain = new FakeChain({ covenantVersion: 1, difficulty: 1 })
    const { server: long, mined } = await worlds.start({}, { chain, pages })
    // Half of each stands in its unlocking script, too.
    const trailing = [{ satoshis: 1, lockingScript: new Uint8Array(4_650_000).fill(0x51) }]
    await mined(...['w', 'x', 'y', 'z'].map((name) => chain.mint(name, { trailing })))
    await mined(chain.mint('o'), chain.mint('ok'))
    const { page } = await browser.open(`${long.url}/name/ok`)
    await press(page, VERIFY_BUTTON)
    await says(page, '#verdict', 'Genuine, checked here in')
    await says(page, '#verification', 'w, x, y, z, o, ok')
    await page.close()
  },
)

inBrowser('a proof that does not hold is said to fail', async () => {
  const { page } = await open('/name/alice', SCREENS.desktop)
  await page.setRequestInterception(true)
  page.on('request', (request) => {
    if (request.url().includes('/proof/'))
      void request.respond({ contentType: 'application/octet-stream', body: 'no proof' })
    else void request.continue()
  })
  await press(page, VERIFY_BUTTON)
  await says(page, '#verdict', 'Not verified')
  expect(await page.$eval('#verdict', ({ className }) => className)).toContain('bad')
})

inBrowser('without scripts, every page says all that it knows', async () => {
  const without = async (path: string): Promise<string> => {
    const { page } = await browser.open(`${server.url}${path}`, async (each) => {
      await each.setJavaScriptEnabled(false)
    })
    const text = await page.$eval('main', (main) => main.textContent ?? '')
    await page.close()
    return text
  }
  expect(await without('/')).toContain(world.names.at(-1))
  expect(await without('/name/alice')).toContain('Inscribed again')
  expect(await without(`/ordinal/${outpoints.hostile}`)).toContain('\\u{202e}')
  expect(await without('/tree?prefix=a')).toContain('al')
  expect(await without('/mine')).toContain('The search needs JavaScript')
})

inBrowser('a page that may ask another host is seen to: this test would notice', async () => {
  const before = elsewhere.length
  const { page } = await browser.open(`${server.url}/content/${outpoints.page}`)
  await page.waitForNetworkIdle({ idleTime: 100 })
  expect(elsewhere.splice(before)).toEqual(['other.example/tracker.png'])
})

describe('the first page, while it is open', () => {
  /** Opens it, and gives what lets some time pass: a look at what is new. */
  async function opened(): Promise<Seen & { look(): Promise<void> }> {
    const seen = await browser.open(server.url, async (each) => {
      await each.evaluateOnNewDocument(() => {
        const { setInterval: real } = window
        const looks: (() => void)[] = []
        Object.assign(window, { looks, isSame: true })
        window.setInterval = ((look: () => void, every: number) =>
          every === 4000 ? looks.push(look) : real(look, every)) as typeof window.setInterval
      })
    })
    const look = async (): Promise<void> => {
      await seen.page.evaluate(() => {
        for (const each of (window as unknown as { looks: (() => void)[] }).looks) each()
      })
    }
    return { ...seen, look }
  }

  const newest = (page: Page): Promise<string | undefined> => textOf(page, '#newest .name')

  inBrowser('shows a name that was mined since, and counts it, without being loaded again', async () => {
    const { page, look } = await opened()
    const before = await newest(page)
    const names = Number(await textOf(page, '#counts dd'))
    await mineOne('x')
    expect(await newest(page)).toBe(before)
    await look()
    await says(page, '#newest .name', 'x')
    await says(page, '#counts dd', String(names + 1))
    expect(await page.evaluate(() => (window as unknown as { isSame?: boolean }).isSame)).toBe(true)
    await page.close()
  })

  inBrowser(
    'leaves a list alone that somebody is in with the keyboard, and one while the server is away',
    async () => {
      const { page, look } = await opened()
      const before = await newest(page)
      const names = Number(await textOf(page, '#counts dd'))
      await page.focus('#newest .name')
      await mineOne('y')
      await look()
      await says(page, '#counts dd', String(names + 1))
      expect(await newest(page)).toBe(before)
      await page.setOfflineMode(true)
      await look()
      await page.setOfflineMode(false)
      await page.focus('input[type=search]')
      await look()
      await says(page, '#newest .name', 'y')
      await page.close()
    },
  )
})
