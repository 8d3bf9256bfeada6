import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import puppeteer from 'puppeteer-core'
import { readConfig } from '../../src/server/config/config.js'
import { packageFolder } from '../../src/server/config/package-info.js'
import { startServer } from '../../src/server/server.js'
import { CHROMIUM, FLAGS } from '../../test/support/browser/chromium.js'
import { explorerWorld } from '../../test/support/explorer/world.js'
import { ask, submission, treeOf } from '../../test/support/server/test-server.js'

// Takes the pictures of the README: `npm run pictures`. They show what the browser tests look at.

const FOLDER = join(packageFolder(), 'assets/pictures')
const SCREEN = { width: 1180, height: 860 }

const PICTURES: Record<string, string> = { explorer: '/', name: '/name/alice' }

if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine')
const world = explorerWorld({ isPeaceful: true })
const data = await mkdtemp(join(tmpdir(), 'minetree-pictures-'))
const config = readConfig({ PORT: '0', DATA_DIR: data, ...treeOf(world.deployment) })
const pages = pathToFileURL(join(packageFolder(), 'dist/pages/'))
const server = await startServer({ config, pages, logger: pino({ level: 'error' }) })
await world.fill({ submit: (beef, topics) => ask(server.url, '/submit', submission(beef, topics)) })
await mkdir(FOLDER, { recursive: true })
const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: FLAGS })
for (const [name, path] of Object.entries(PICTURES)) {
  const page = await browser.newPage()
  await page.setViewport(SCREEN)
  await page.goto(server.url + path, { waitUntil: 'networkidle0' })
  await page.screenshot({ path: `${join(FOLDER, name)}.png` })
}
await browser.close()
await server.stop()
await rm(data, { recursive: true, force: true })
