import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import puppeteer, { type Page } from 'puppeteer-core'
import { readConfig } from '../../src/server/config/config.js'
import { packageFolder } from '../../src/server/config/package-info.js'
import { startServer } from '../../src/server/server.js'
import { CHROMIUM, FLAGS } from '../../test/support/browser/chromium.js'
import { explorerWorld } from '../../test/support/explorer/world.js'
import { listening } from '../../test/support/server/connections.js'
import { HeaderChain, SPACING } from '../../test/support/server/header-chain.js'
import { HeaderService } from '../../test/support/server/header-service.js'
import { startServerProcess } from '../../test/support/server/server-process.js'
import { ask, submission, treeOf, untilReady } from '../../test/support/server/test-server.js'
import { until } from '../../test/support/server/waiting.js'

// Takes the pictures of the README: `npm run pictures`. The explorer shows the world of the browser tests, on a chain that goes
// on until now; the site is that of a first start.

const FOLDER = join(packageFolder(), 'pictures')
/** One and a half pixels for each of the page's: sharp on most screens, at a good size for a README. */
const SCREEN = { width: 1180, height: 780, deviceScaleFactor: 1.5 }
const SCHEMES = ['light', 'dark'] as const

/** Pages of the explorer. */
const PAGES = { explorer: '/', name: '/name/alice' }
/** The name on which a first start publishes a site, and its address in the picture. */
const SITE = { name: 'home', address: 'home.localhost:8080' }

if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine')
const world = explorerWorld({ isPeaceful: true })
// The last block is four minutes old.
const headers = new HeaderChain(923_000, Math.floor(Date.now() / 1000) - world.blocks * SPACING - 240)
const { height, hash } = headers.bestTip
world.mineOn(headers)
const service = await listening(new HeaderService(headers).listener)
const data = await mkdtemp(join(tmpdir(), 'minetree-pictures-'))
const config = readConfig({
  ...{ PORT: '0', DATA_DIR: data, ...treeOf(world.deployment) },
  ...{ CHAIN_TRACKER: 'headers', HEADERS_SOURCES: `junglebus=${service.url}` },
  HEADERS_CHECKPOINT: `${height}:${hash}`,
})
const pages = pathToFileURL(join(packageFolder(), 'dist/pages/'))
const server = await startServer({ config, pages, logger: pino({ level: 'error' }) })
await untilReady({ ask: (path, question) => ask(server.url, path, question) })
await world.fill({ submit: (beef, topics) => ask(server.url, '/submit', submission(beef, topics)) })
const first = await startServerProcess({
  main: join(packageFolder(), 'dist/cli/main.js'),
  env: { PORT: '0', DATA_DIR: join(data, 'first') },
})
await until(
  async () => (await ask(first.url, '/', { headers: { Host: `${SITE.name}.localhost` } })).status < 400,
)
await mkdir(FOLDER, { recursive: true })
const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: FLAGS })

async function open(url: string, scheme: (typeof SCHEMES)[number]): Promise<Page> {
  const page = await browser.newPage()
  await page.setViewport(SCREEN)
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
  await page.goto(url, { waitUntil: 'networkidle0' })
  return page
}

async function take(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${join(FOLDER, name)}.webp`, type: 'webp', quality: 85 })
}

/** The height of the bar of a window, in pixels. */
const BAR = 52

/** A window of a browser with a picture of a page in it. */
function browserWindow(address: string, picture: string, isDark: boolean): string {
  const [bar, field, ink] = isDark ? ['#2a2d2a', '#1a1d1a', '#d8dcd8'] : ['#e9e8e3', '#ffffff', '#3a3d3a']
  return `<!doctype html><meta charset=utf-8><style>
    body { margin: 0; background: ${bar}; color: ${ink}; font: 15px/1 system-ui }
    p { display: flex; gap: 8px; align-items: center; height: ${BAR}px; margin: 0; padding: 0 18px }
    i { width: 12px; height: 12px; border-radius: 50%; background: currentcolor; opacity: .25 }
    b { flex: 1; margin-left: 12px; padding: 10px 16px; border-radius: 17px; background: ${field}; font-weight: 400 }
    img { display: block; width: 100% }
  </style><p><i></i><i></i><i></i><b>${address}</b></p><img src="data:image/png;base64,${picture}" alt="">`
}

for (const scheme of SCHEMES) {
  for (const [name, path] of Object.entries(PAGES))
    await take(await open(server.url + path, scheme), `${name}-${scheme}`)
  const site = await open(`http://${SITE.name}.localhost:${new URL(first.url).port}/`, scheme)
  await site.setViewport({ ...SCREEN, height: SCREEN.height - BAR })
  const picture = await site.screenshot({ encoding: 'base64' })
  await site.setViewport(SCREEN)
  await site.setContent(browserWindow(SITE.address, picture, scheme === 'dark'))
  await take(site, `site-${scheme}`)
}
await browser.close()
await first.kill('SIGTERM')
await server.stop()
await service.close()
await rm(data, { recursive: true, force: true })
