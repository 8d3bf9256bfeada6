import { readdir } from 'node:fs/promises'
import { PrivateKey } from '@bsv/sdk'
import type { Page } from 'puppeteer-core'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { press, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { chooseFolder, connect } from '../../support/browser/my-page.js'
import { bringWallet } from '../../support/browser/wallet.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { writeFiles } from '../../support/cli/commands.js'
import { viteBuild } from '../../support/gateway/vite-site.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { sampleOf } from '../../support/nightly.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

// The whole way of a newcomer in a browser, from an empty folder: start, look, search a free name, mine it, publish on it,
// change one file, publish again, open the site, follow a route in it, verify the name, give it away.

const NAME = 'dora'
const RECEIVER = encodeAddress('ab'.repeat(20), 'main')

const { folder } = useServers()
const cli = useBuiltCli()
const browser = useBrowser()

const bytesIn = (text = ''): number => Number(/of ([\d,]+) bytes/.exec(text)?.[1]?.replaceAll(',', ''))

/** Publishes a folder on the name, and returns how many bytes the page says that takes. */
async function publish(page: Page, files: Record<string, string>): Promise<number> {
  await chooseFolder(page, await writeFiles(await folder(), files))
  await page.waitForSelector('#plan:not([hidden])')
  const bytes = bytesIn(await textOf(page, '#plan-text'))
  await press(page, '#publish')
  await says(page, '#opened-state', 'Published. Verified in this browser')
  return bytes
}

// By day, `my.test.ts` has what is done with fake money.
inBrowser.each(
  sampleOf(
    [
      ['a wallet', true],
      ['fake money', false],
    ],
    2,
  ),
)('with %s, from an empty folder to a name that somebody else has', async (_, hasWallet) => {
  const dataDir = await folder()
  expect(await readdir(dataDir)).toEqual([])
  const started = cli.start(['serve'], { PORT: '0', DATA_DIR: dataDir, DIFFICULTY: '8' })
  const url = await started.url
  const { port } = new URL(url)
  // The network fills itself meanwhile.
  await until(async () => (await fetch(`${url}/svc/names/home`)).status === 200)
  const wallet = new TestWallet(coinsFor(new PrivateKey(7), 500_000))
  wallet.fee = 400
  const { page, complaints } = await browser.open(url, async (each) => {
    if (hasWallet) await bringWallet(each, wallet)
  })
  const first = await browser.open(url)
  await says(page, '#newest', 'home')

  await page.type('.hero input[name=q]', NAME)
  await page.keyboard.press('Enter')
  await says(page, '.badges', 'Free')
  await press(page, '.actions a[href^="/mine"]')

  await page.waitForSelector('#start:not(:disabled)')
  // Tiles and frames of the pages before are of strangers' content.
  complaints.length = 0
  expect(await page.$eval('#name', (field) => (field as HTMLInputElement).value)).toBe(NAME)
  if (hasWallet) {
    await press(page, '#options > summary')
    await page.focus('input[value=wallet]')
    await page.keyboard.press('Space')
  }
  let submitted = 0
  page.on('request', (request) => {
    if (request.url().endsWith('/submit')) submitted = performance.now()
  })
  await press(page, '#start')
  await says(page, '#status', `All of ${NAME} is mined.`)
  await says(first.page, '#newest', NAME)
  const seconds = (performance.now() - submitted) / 1000
  await says(page, '#next', `${NAME}.localhost:${port}`)

  await press(page, '#next a.btn')
  if (hasWallet) await connect(page)
  await says(page, '#opened-state', `holds ${NAME}`)
  const before = await publish(page, viteBuild({ title: 'Hello' }))
  const after = await publish(page, viteBuild({ title: 'Hello again' }))
  expect(after).toBeLessThan(before / 10)

  const site = await browser.open(`http://${NAME}.localhost:${port}/`)
  await says(site.page, 'h1', 'Hello again')
  await says(site.page, '#route', 'Home')
  await press(site.page, 'a[href="/team/ada"]')
  await says(site.page, '#route', 'Route /team/ada')
  await site.page.reload()
  await says(site.page, '#route', 'Route /team/ada')
  expect(site.complaints).toEqual([])

  expect(complaints).toEqual([])

  await press(page, '#opened-page')
  await press(page, 'button[data-verify]:not([hidden])')
  await says(page, '#verdict', 'Genuine, checked here')

  await page.goto(`${url}/my#${NAME}`)
  if (hasWallet) await connect(page)
  await says(page, '#opened-state', `holds ${NAME}`)
  complaints.length = 0
  await page.type('#receiver', RECEIVER)
  await page.keyboard.press('Enter')
  await page.waitForSelector('#sure:not([hidden])')
  await press(page, '#give-now')
  await says(page, '#opened-state', `Given away. Verified in this browser: ${RECEIVER} holds ${NAME}`)
  // The command line says the same.
  expect(JSON.parse((await cli.run(['resolve', NAME, '--url', url, '--json'])).stdout)).toMatchObject({
    name: NAME,
  })
  if (hasWallet) {
    expect(wallet.prompts).toEqual([
      'basket minetree names',
      'pay Mint the name d',
      ...new Array<string>(3).fill(`pay Move the name ${NAME}`),
    ])
  }
  expect(complaints).toEqual([])
  process.stdout.write(
    `${seconds.toFixed(1)} s from the submission to the open first page; ${before} bytes published, then ${after}\n`,
  )
})
