import { mkdir } from 'node:fs/promises'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { deploymentOf, PROFILES, termsOf } from '../../../backend/src/protocol/profile.js'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import { attachGateway } from '../../../src/gateway/index.js'
import { storesOf } from '../../../src/plugin/index.js'
import { press, says, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { order } from '../../support/browser/mine-page.js'
import { builtPages } from '../../support/cli/built-package.js'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { type PluginHost, startPluginHost } from '../../support/plugin/plugin-host.js'
import { ToolboxWallet } from '../../support/plugin/toolbox-wallet.js'
import { ask, SILENT, useServers } from '../../support/server/test-server.js'
import { eventually } from '../../support/server/waiting.js'

// The pages and the sites of a host of another engine, below a path, in a browser. SHOTS=<folder> keeps a picture of each.

const SHOTS = process.env.SHOTS
const PATH = '/names-and-sites'
const { folder } = useServers()
const browser = useBrowser()
const explorer = { files: await builtPages() }
const hosts: PluginHost[] = []
afterAll(() => Promise.all(hosts.map((each) => each.stop())))

async function hostOf(deployment: Deployment): Promise<PluginHost> {
  const host = await startPluginHost({
    ...{ deployment, engine: '0.4.6' },
    database: { name: 'host', KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' },
    configure: ({ app, knex }) =>
      attachGateway(app, storesOf(knex), {
        ...{ deployment, path: PATH, explorer, gatewayHost: 'localhost' },
        ...{ profile: PROFILES.local, logger: SILENT },
      }),
  })
  hosts.push(host)
  return host
}

const SCREENS = [
  ['desktop', 1280, 'light'],
  ['desktop dark', 1280, 'dark'],
  ['phone', 360, 'light'],
  ['phone dark', 360, 'dark'],
] as const

describe('a host whose engine has names', () => {
  const wallet = new ToolboxWallet()
  const { genesis, deployment } = wallet.chain
  const mints = ['h', 'ho', 'hom', 'home'].map((name) => wallet.mint(name, { mined: true }))
  const home = mints.at(-1)
  if (home === undefined) throw new Error('it is the last one')
  const page = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>home</title>
    <style>:root { color-scheme: light dark }</style><h1>A site in an overlay node</h1><script src="/said.js"></script>`
  const files = [
    { contentType: 'gw-fs/json', text: '{"index.html":"_1","said.js":"_2"}' },
    { contentType: 'text/html', text: page },
    { contentType: 'text/javascript', text: 'document.title = "home, said by its script"' },
  ]
  let url: string
  beforeAll(async () => {
    const host = await hostOf(deployment)
    url = host.host.url
    const shown = wallet.show(home, 2, files)
    for (const each of [genesis, ...mints, shown]) {
      await host.submit(wallet.beef(each))
      await host.stored()
    }
    await eventually(async () => {
      expect((await ask(url, `${PATH}/svc/gateway/metadata/${shown.outpoint(0)}:-1`)).status).toBe(200)
    })
  })

  // `explorer.test.ts` has each screen of each page by day, and whether it is accessible.
  describe.each(SHOTS === undefined && !IS_NIGHTLY ? [SCREENS[3]] : SCREENS)(
    'on a %s',
    (screen, width, scheme) => {
      const open = (address: string) =>
        browser.open(address, async (each) => {
          await each.setViewport({ width, height: 800 })
          await each.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
        })

      inBrowser.each(['/', '/name/home', '/inscriptions', '/mine', '/api'])(
        'the page %s has its style and scripts, and nothing that is missing',
        async (path) => {
          const { page, complaints } = await open(url + PATH + path)
          await page.waitForNetworkIdle({ idleTime: 100 })
          const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
          expect(background).not.toBe('rgba(0, 0, 0, 0)')
          await shot(page, `${path.replaceAll('/', ' ')} ${screen}`)
          // In lists, scripts of strangers do not run.
          const ours = complaints.filter((each) => !each.includes('Blocked script execution'))
          expect(ours).toEqual([])
          await page.close()
        },
      )

      inBrowser('a name is a site of its own', async () => {
        const { page, complaints } = await open(`http://home.localhost:${new URL(url).port}/`)
        await page.waitForFunction(() => document.title === 'home, said by its script')
        expect(page.url()).toMatch(/^http:\/\/home\.localhost:\d+\/$/)
        await shot(page, `site ${screen}`)
        expect(complaints).toEqual([])
        await page.close()
      })
    },
  )

  inBrowser('a name is verified in the browser', async () => {
    const { page, complaints } = await browser.open(`${url}${PATH}/name/home`)
    await press(page, 'button[data-verify]:not([hidden])')

    await says(page, '#verdict', 'Genuine, checked here in')
    expect(complaints).toEqual([])
  })
})

inBrowser('a name is mined in the browser, and submitted to the engine', async () => {
  const terms = termsOf(PROFILES.local, { difficulty: 8, covenantVersion: 2 })
  const deployed = await deployTree(terms)
  const deployment = deploymentOf(PROFILES.local, { ...terms, genesis: deployed.genesis })
  if (deployment === undefined) throw new Error('it has a genesis')
  const host = await hostOf(deployment)
  await host.submit(deployed.beef)
  await host.stored()
  const { page, complaints } = await browser.open(`${host.host.url}${PATH}/mine`)
  await order(page, { name: 'ab', owner: encodeAddress('ab'.repeat(20), 'main') })

  await says(page, '#status', 'All of ab is mined.')
  expect(complaints).toEqual([])
  await eventually(async () => {
    expect((await ask(host.host.url, `${PATH}/svc/names/ab`)).status).toBe(200)
  })
})

async function shot(page: { screenshot(options: object): Promise<unknown> }, name: string): Promise<void> {
  if (SHOTS === undefined) return
  await mkdir(SHOTS, { recursive: true })
  await page.screenshot({ path: `${SHOTS}/host ${name}.png`.replaceAll(' ', '-'), fullPage: true })
}
