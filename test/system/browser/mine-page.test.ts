import { PrivateKey } from '@bsv/sdk'
import type { Page } from 'puppeteer-core'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import { POLLING, press, retype, says, textOf, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { order, shownMints } from '../../support/browser/mine-page.js'
import { bringWallet } from '../../support/browser/wallet.js'
import { builtPages } from '../../support/cli/built-package.js'
import { publisher, text } from '../../support/gateway/site.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, useServers } from '../../support/server/test-server.js'

// Payers, failures, and what strangers try.

const ADDRESS = encodeAddress('ab'.repeat(20), 'main')

const servers = useServers()
const pages = await builtPages()
const browser = useBrowser()

async function localNetwork(): Promise<TestServer> {
  return await servers.start({ DIFFICULTY: '4', COVENANT_VERSION: '2' }, { pages, deploy: deployTree })
}

describe('a wallet', () => {
  inBrowser('has signed a mint when the page is closed: it is there again, and sent', async () => {
    const server = await localNetwork()
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 50_000))
    const asked = new Promise<void>((sending) => {
      wallet.faults.send = () => {
        sending()
        return new Promise(() => {})
      }
    })
    const { page } = await browser.open(`${server.url}/mine`, (each) => bringWallet(each, wallet))
    await order(page, { name: 'q', payer: 'wallet' })
    await asked
    wallet.faults = {}
    await page.reload()
    await says(page, 'article .badge', 'the page was closed before the server had it')
    expect((await server.ask('/svc/names/q')).status).toBe(404)
    await press(page, 'article .badge button')
    await says(page, 'article .badge', 'q is minted.')
    const [sent] = wallet.sent
    expect((await server.ask('/svc/names/q')).json).toMatchObject({ origin: `${sent?.id('hex')}_2` })
    await page.reload()
    await page.waitForSelector('#start:not(:disabled)')
    expect(await page.$$('article')).toEqual([])
  })

  inBrowser('that is not there is missed before anything is mined', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine`)
    await order(page, { name: 'q', payer: 'wallet' })
    await says(
      page,
      '#status',
      'no wallet answers in this browser or on this machine: start one and try again.',
    )
    expect(await shownMints(page)).toEqual([])
  })
})

describe('what cannot be', () => {
  inBrowser('is said at the field that it is about', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine`)
    await says(page, '#name-hint', '1 to 75 characters of')
    await order(page, { name: 'a b' })
    await says(page, '#form-error', 'A name is 1 to 75 characters')
    expect(await page.$eval('[aria-invalid]', ({ id }) => id)).toBe('name')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('name')
    await order(page, { name: 'ab', owner: `${ADDRESS.slice(0, -1)}0` })
    await says(page, '#form-error', 'This is not a P2PKH address')
    expect(await page.$eval('[aria-invalid]', ({ id }) => id)).toBe('owner')
    expect(await textOf(page, '#status')).toBe('')
  })

  inBrowser('a search for nobody: where nobody pays yet, the owner is asked for first', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine`)
    await order(page, { name: 'q', payer: 'nobody' })
    await says(page, '#form-error', 'The search is for one owner: give the address first.')
    await says(page, '#owner-hint', 'Only this owner can use the solution.')
    expect(await page.$eval('#owner', (field) => (field as HTMLInputElement).required)).toBe(true)
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('owner')
    await page.keyboard.type(encodeAddress('ab'.repeat(20), 'test'))
    await page.keyboard.press('Enter')
    await says(page, '#form-error', 'This server is on the main network: use an address of that network')
    expect(await page.$eval('#progress', (section) => (section as HTMLElement).hidden)).toBe(true)
    await retype(page, '#owner', ADDRESS)
    await page.keyboard.press('Enter')
    await says(page, '#status', 'Found.')
    const [shown] = await shownMints(page)
    expect(shown?.fields.Owner).toBe(ADDRESS)
  })

  inBrowser('a name that is taken', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine`)
    await order(page, { name: 'q' })
    await says(page, '#status', 'All of q is mined.')
    await press(page, '#start')
    await says(page, '#status', 'Mining ended: q is taken.')
  })

  inBrowser('a server that follows no tree', async () => {
    const server = await servers.start({}, { pages })
    const { page } = await browser.open(`${server.url}/mine`)
    await says(page, '#tree', 'Nothing can be mined here:')
    expect(await textOf(page, '#tree')).toContain('follows no tree of names')
    expect(await page.$eval('#start', (button) => (button as HTMLButtonElement).disabled)).toBe(true)
  })

  inBrowser('a server that is gone', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine`)
    await page.waitForSelector('#start:not(:disabled)')
    // What mines is loaded with the first key.
    const loaded = page.waitForResponse((response) => response.url().endsWith('/mine/mining.js'))
    await page.type('#name', 'q')
    await (await loaded).text()
    await page.setOfflineMode(true)
    await page.focus('#start')
    await page.keyboard.press('Enter')
    await says(page, '#status', 'does not answer')
  })

  inBrowser('a server that is gone before what mines was loaded, and comes back', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine?name=q`)
    await page.waitForSelector('#start:not(:disabled)')
    await page.setOfflineMode(true)
    await page.focus('#start')
    await page.keyboard.press('Enter')
    await says(page, '#form-error', 'the mining script cannot be loaded')
    expect(await textOf(page, '#start')).toBe('Mine')
    await page.setOfflineMode(false)
    await page.keyboard.press('Enter')
    await says(page, '#status', 'All of q is mined.')
  })
})

describe('strangers', () => {
  inBrowser('who make a link may say which name, and nothing more', async () => {
    const server = await localNetwork()
    const name = '"><img src=x onerror=alert(1)>'
    const query = new URLSearchParams({ name, owner: ADDRESS, payer: 'nobody' })
    const { page, complaints } = await browser.open(`${server.url}/mine?${query}`)
    await says(page, '#name-state', 'This is not a name.')
    expect(await page.$eval('#name', (field) => (field as HTMLInputElement).value)).toBe(name)
    expect(await page.$eval('#owner', (field) => (field as HTMLInputElement).value)).toBe('')
    expect(await page.$$('img')).toEqual([])
    expect(await page.$eval('#progress', (section) => (section as HTMLElement).hidden)).toBe(true)
    expect(complaints).toEqual([])
  })

  inBrowser('whose script got into the page could not run it', async () => {
    const server = await localNetwork()
    const { page } = await browser.open(`${server.url}/mine`)
    await page.evaluate(() => {
      const host = window as unknown as { ran: string[]; refused: string[] }
      host.ran = []
      host.refused = []
      document.addEventListener('securitypolicyviolation', (event) => {
        host.refused.push(event.effectiveDirective)
      })
      const script = document.createElement('script')
      script.textContent = "ran.push('inline')"
      const button = document.createElement('button')
      button.setAttribute('onclick', "ran.push('handler')")
      const style = document.createElement('style')
      const frame = document.createElement('iframe')
      frame.src = '/content/x'
      document.body.append(script, button, style, frame)
      button.click()
      fetch('https://example.com/').catch(() => {})
    })
    await page.waitForFunction(() => new Set((window as unknown as { refused: string[] }).refused).size === 5)
    expect(await page.evaluate(() => (window as unknown as { ran: string[] }).ran)).toEqual([])
    expect(
      await page.evaluate(() => [...new Set((window as unknown as { refused: string[] }).refused)].sort()),
    ).toEqual(['connect-src', 'frame-src', 'script-src-attr', 'script-src-elem', 'style-src-elem'])
  })

  inBrowser('whose content is on the same host cannot hold, open or run the page', async () => {
    const server = await localNetwork()
    const published = publisher({ server, chain: new FakeChain() })
    const script = `
      const frame = document.createElement('iframe')
      frame.src = '/mine'
      document.body.append(frame)
      const script = document.createElement('script')
      script.src = '/mine/main.js'
      script.onerror = () => { document.title += 'no script; ' }
      document.body.append(script)
      try { new Worker('/mine/search-worker.js') } catch (error) { document.title += error.name + '; ' }
      self.popup = open('/mine')
    `
    const html = `<!doctype html><title></title><body><script>${script}</script>`
    const site = await published(text(html, 'text/html'))
    const popups: Promise<Page | null>[] = []
    const { page } = await browser.open(`${server.url}/content/${site.outpoint(0)}`, async (each) => {
      popups.push(new Promise((resolve) => each.once('popup', resolve)))
    })
    await page.waitForFunction(() => document.title.includes('no script'), POLLING)
    const [popup] = await Promise.all(popups)
    expect(await page.title()).toContain('SecurityError')
    const tried = await page.evaluate(() => {
      const attempt = (trial: () => unknown): unknown => {
        try {
          return trial()
        } catch (error) {
          return (error as Error).name
        }
      }
      const { popup } = window as unknown as { popup: Window | null }
      return {
        framed: document.querySelector('iframe')?.contentDocument ?? null,
        opened: attempt(() => popup?.document.title),
      }
    })
    expect(tried.framed).toBeNull()
    expect(tried.opened === undefined || tried.opened === 'SecurityError').toBe(true)
    const frames = [...page.frames(), ...(popup?.frames() ?? [])]
    // Each has come to something, if only to the browser’s own word that it is not shown.
    for (const frame of frames)
      await frame.waitForFunction(
        () => location.href !== 'about:blank' && document.readyState === 'complete',
        POLLING,
      )
    const running = await Promise.all(
      frames.map((frame) => frame.evaluate(() => document.getElementById('form') !== null)),
    )
    // The content, the frame in it, and what it opened.
    expect(frames).toHaveLength(3)
    expect(running).toEqual(frames.map(() => false))
  })
})
