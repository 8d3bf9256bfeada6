import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PrivateKey } from '@bsv/sdk'
import type { Page } from 'puppeteer-core'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import { violations } from '../../support/browser/accessibility.js'
import { press, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { order } from '../../support/browser/mine-page.js'
import { chooseFolder, connect, dropFolder } from '../../support/browser/my-page.js'
import { bringWallet } from '../../support/browser/wallet.js'
import { builtPages } from '../../support/cli/built-package.js'
import { writeFiles } from '../../support/cli/commands.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, useServers } from '../../support/server/test-server.js'

// What a person does with their names. SHOTS=<folder> keeps pictures of the pages.

const ADDRESS = encodeAddress('ab'.repeat(20), 'main')
const SHOTS = process.env.SHOTS
const SCREENS = [
  { width: 1280, height: 900, scheme: 'light' },
  { width: 1280, height: 900, scheme: 'dark' },
  { width: 390, height: 844, scheme: 'light' },
  { width: 390, height: 844, scheme: 'dark' },
]

const servers = useServers()
const pages = await builtPages()
const browser = useBrowser()

async function localNetwork(): Promise<TestServer> {
  return await servers.start({ DIFFICULTY: '4', COVENANT_VERSION: '2' }, { pages, deploy: deployTree })
}

const newWallet = (): TestWallet => {
  const wallet = new TestWallet(coinsFor(new PrivateKey(7), 500_000))
  // By size, as wallets have it.
  wallet.fee = 400
  return wallet
}

const folderOf = async (files: Record<string, string>): Promise<string> =>
  await writeFiles(await servers.folder(), files)

async function shoot(page: Page, what: string): Promise<void> {
  expect(await violations(page)).toEqual([])
  if (SHOTS === undefined) return
  await mkdir(SHOTS, { recursive: true })
  for (const { width, height, scheme } of SCREENS) {
    await page.setViewport({ width, height })
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    await page.screenshot({
      path: join(SHOTS, `${what}-${width}-${scheme}.png`) as `${string}.png`,
      fullPage: true,
    })
  }
}

inBrowser('with fake money, a name is mined, published on, changed and given away', async () => {
  const server = await localNetwork()
  const { page, complaints } = await browser.open(`${server.url}/mine`)
  await order(page, { name: 'alice' })
  await says(page, '#status', 'All of alice is mined.')
  await shoot(page, 'mine-done')
  await press(page, '#next a.btn')
  await says(page, '#opened-state', 'Verified in this browser: nobody holds alice')
  await shoot(page, 'my-opened')
  await chooseFolder(
    page,
    await folderOf({ 'index.html': '<h1>Hello</h1>', 'assets/app.js': 'let a = 1', '.env': 'secret' }),
  )
  await says(page, '#plan-text', 'The money of this network is fake')
  await says(page, '#changes', '.env')
  await shoot(page, 'my-plan')
  await press(page, '#publish')
  await says(page, '#opened-state', 'Published. Verified in this browser')
  const { json } = await server.ask('/svc/names/alice')
  const { origin } = json as { origin: string }
  expect((await server.ask(`/content/${origin}:-1/index.html`)).body.toString()).toContain('<h1>Hello</h1>')
  expect((await server.ask(`/content/${origin}:-1/assets/app.js`)).body.toString()).toBe('let a = 1')
  expect((await server.ask(`/content/${origin}:-1/.env`)).body.toString()).not.toContain('secret')
  await chooseFolder(page, await folderOf({ 'index.html': '<h1>Bye</h1>', 'assets/app.js': 'let a = 1' }))
  await says(page, '#changes', '1 kept')
  await shoot(page, 'my-again')
  await press(page, '#publish')
  await says(page, '#opened-state', 'Published. Verified in this browser')
  expect((await server.ask(`/content/${origin}:-1/index.html`)).body.toString()).toContain('<h1>Bye</h1>')
  expect((await server.ask(`/content/${origin}:-1/assets/app.js`)).body.toString()).toBe('let a = 1')
  await chooseFolder(page, await folderOf({ 'index.html': '<h1>Bye</h1>', 'assets/app.js': 'let a = 1' }))
  await says(page, '#deed-error', 'alice shows this already')
  await page.type('#receiver', ADDRESS)
  await page.keyboard.press('Enter')
  await says(page, '#receiver-hint', 'you cannot take it back')
  await shoot(page, 'my-give')
  await press(page, '#give-now')
  await says(page, '#opened-state', `Given away. Verified in this browser: ${ADDRESS} holds alice`)
  expect(((await server.ask('/svc/names/alice')).json as { tip: { owner: string } }).tip.owner).toBe(ADDRESS)
  expect(complaints).toEqual([])
})

inBrowser('a wallet is asked for nothing before a button is pressed, and once for each change', async () => {
  const server = await localNetwork()
  const wallet = newWallet()
  let seen = 0
  /** What the wallet has asked its user since the last time. */
  const asked = (): string[] => {
    const news = wallet.prompts.slice(seen)
    seen = wallet.prompts.length
    return news
  }
  const { page, complaints } = await browser.open(`${server.url}/mine`, (each) => bringWallet(each, wallet))
  await order(page, { name: 'bob', payer: 'wallet' })
  await says(page, '#status', 'All of bob is mined.')
  expect(asked()).toEqual(['basket minetree names', 'pay Mint the name b'])
  await page.goto(`${server.url}/my`)
  await says(page, '#names-state', 'here are the newest')
  expect(asked()).toEqual([])
  await connect(page)
  expect(await textOf(page, '#names .name')).toBe('bob')
  asked()
  await shoot(page, 'my-names')
  await press(page, '#names .name')
  await says(page, '#opened-state', 'holds bob')
  await chooseFolder(page, await folderOf({ 'index.html': '<h1>Bob</h1>' }))
  await says(page, '#plan-text', 'Your wallet will ask you once, for the payment.')
  await press(page, '#publish')
  await says(page, '#opened-state', 'Published. Verified in this browser')
  expect(asked()).toEqual(['pay Move the name bob'])
  await says(page, '#bind-text', 'Your wallet will ask you twice')
  await press(page, '#bind')
  await says(page, '#opened-state', 'Bound. Verified in this browser: bob is bound to')
  expect(asked()).toEqual(['identity key', 'pay Move the name bob'])
  await shoot(page, 'my-bound')
  await connect(page)
  expect(await textOf(page, '#names .name')).toBe('bob')
  await says(page, '#opened-state', 'Verified in this browser: bob is bound to')
  await page.type('#receiver', ADDRESS)
  await page.keyboard.press('Enter')
  await press(page, '#give-now')
  await says(page, '#opened-state', 'Given away.')
  expect(await page.evaluate(() => localStorage.length)).toBe(0)
  expect(complaints).toEqual([])
})

inBrowser('what a wallet has signed when the page is closed is there again, and sent', async () => {
  const server = await localNetwork()
  const wallet = newWallet()
  const { page } = await browser.open(`${server.url}/mine`, (each) => bringWallet(each, wallet))
  await order(page, { name: 'q', payer: 'wallet' })
  await says(page, '#status', 'All of q is mined.')
  await page.goto(`${server.url}/my#q`)
  await connect(page)
  await says(page, '#opened-state', 'holds q')
  await chooseFolder(page, await folderOf({ 'index.html': '<h1>Q</h1>' }))
  const sending = new Promise<void>((asked) => {
    wallet.faults.send = () => {
      asked()
      return new Promise(() => {})
    }
  })
  await page.waitForSelector('#plan:not([hidden])')
  await press(page, '#publish')
  await sending
  wallet.faults = {}
  await page.reload()
  await says(page, '#unsent', 'A change of q is signed')
  const { origin } = (await server.ask('/svc/names/q')).json as { origin: string }
  expect((await server.ask(`/content/${origin}:-1/index.html`)).body.toString()).not.toContain('<h1>Q</h1>')
  await shoot(page, 'my-unsent')
  await press(page, '#unsent .btn')
  await page.waitForFunction(() => document.querySelector('#unsent')?.childElementCount === 0)
  expect((await server.ask(`/content/${origin}:-1/index.html`)).body.toString()).toContain('<h1>Q</h1>')
  expect(await page.evaluate(() => localStorage.length)).toBe(0)
})

inBrowser(
  'what a wallet does not send is kept and shown at once, and what it refused is asked again',
  async () => {
    const server = await localNetwork()
    const wallet = newWallet()
    const { page } = await browser.open(`${server.url}/mine`, (each) => bringWallet(each, wallet))
    await order(page, { name: 'q', payer: 'wallet' })
    await says(page, '#status', 'All of q is mined.')
    // A link may have anything behind its hash.
    await page.goto(`${server.url}/my#%`)
    await says(page, '#names-state', 'here are the newest')
    await page.goto(`${server.url}/my#q`)
    await connect(page)
    await says(page, '#opened-state', 'holds q')
    wallet.faults.key = () => {
      throw new Error('the user said no')
    }
    await press(page, '#bind')
    await says(page, '#deed-error', 'the user said no')
    await says(page, '#opened-state', 'q is not changed')
    expect(await page.$eval('#unsent', ({ childElementCount }) => childElementCount)).toBe(0)
    wallet.faults = {
      send: () => {
        throw new Error('nobody answers')
      },
    }
    await press(page, '#bind')
    await says(page, '#deed-error', 'nobody answers')
    await says(page, '#opened-state', 'A change of q is signed and kept: send it again above')
    await says(page, '#unsent', 'A change of q is signed')
    wallet.faults = {}
    await press(page, '#unsent .btn')
    await says(page, '#opened-state', 'Verified in this browser: q is bound to')
    expect(await page.evaluate(() => localStorage.length)).toBe(0)
  },
)

inBrowser('a name of somebody else is shown, and not moved', async () => {
  const server = await localNetwork()
  const { page } = await browser.open(`${server.url}/mine`)
  await order(page, { name: 'z', owner: ADDRESS })
  await says(page, '#status', 'All of z is mined.')
  await page.goto(`${server.url}/my#z`)
  await says(page, '#opened-state', `${ADDRESS} holds z. Only a wallet with its key can change it`)
  expect(await page.$eval('#deeds', (deeds) => (deeds as HTMLElement).hidden)).toBe(true)
})

inBrowser('a folder that is dropped is published, unless it says what not to publish', async () => {
  const server = await localNetwork()
  const { page } = await browser.open(`${server.url}/mine`)
  await order(page, { name: 'z' })
  await says(page, '#status', 'All of z is mined.')
  await page.goto(`${server.url}/my#z`)
  await says(page, '#opened-state', 'nobody holds z')
  await chooseFolder(page, await folderOf({ 'index.html': 'a', '.gitignore': 'secret', secret: 'b' }))
  await says(page, '#deed-error', '.gitignore says what not to publish')
  await dropFolder(
    page,
    await folderOf({ 'index.html': '<h1>Z</h1>', 'a/b/c.txt': 'deep', 'a/.d': 'hidden' }),
  )
  await says(page, '#changes', 'a/.d')
  await press(page, '#publish')
  await says(page, '#opened-state', 'Published.')
  const { origin } = (await server.ask('/svc/names/z')).json as { origin: string }
  expect((await server.ask(`/content/${origin}:-1/a/b/c.txt`)).body.toString()).toBe('deep')
})
