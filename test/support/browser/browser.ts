import puppeteer, { type Browser, type BrowserContext, type Page } from 'puppeteer-core'
import { CHROMIUM, FLAGS } from './chromium.js'

/** A page that is open, and what the browser complains of in it: errors of scripts, and all else that its console says. */
export interface OpenPage {
  page: Page
  complaints: string[]
}

/** How long a browser may take to start, and a page for what is waited for, in milliseconds: a busy machine is slow. */
const PATIENCE = 240_000

/** How often a page is looked at, in milliseconds: one behind another draws no frames, with which it would be by default. */
export const POLLING = { polling: 50 }

/** Headless Chromium for the tests of one file. Each page is in a profile of its own, which ends with its test. */
export function useBrowser(...flags: string[]): {
  /** @param prepare What is done before anything is loaded. */
  open(url: string, prepare?: (page: Page) => Promise<void>): Promise<OpenPage>
} {
  let browser: Browser | undefined
  const contexts: BrowserContext[] = []
  // A page that stays open goes on: it asks, mines and draws beside the tests that follow.
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close()
  })
  afterAll(() => browser?.close())
  return {
    async open(url, prepare = async () => {}) {
      if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine')
      browser ??= await puppeteer.launch({
        ...{ executablePath: CHROMIUM, args: [...FLAGS, ...flags] },
        ...{ timeout: PATIENCE, protocolTimeout: PATIENCE },
      })
      const context = await browser.createBrowserContext()
      contexts.push(context)
      const page = await context.newPage()
      page.setDefaultTimeout(PATIENCE)
      const complaints: string[] = []
      page.on('console', (message) => {
        // For a name that is taken the server answers 404, which browsers log even where it is expected.
        if (
          /\/svc\/names\/mine\/[^/]+$/.test(message.location().url ?? '') &&
          message.text().includes(' 404 ')
        )
          return
        complaints.push(`${message.type()}: ${message.text()}`)
      })
      page.on('pageerror', (error) => complaints.push(String(error)))
      await prepare(page)
      await page.goto(url)
      return { page, complaints }
    },
  }
}

/** The text of the first element that is found; undefined where none is. */
export function textOf(page: Page, selector: string): Promise<string | undefined> {
  return page.evaluate((wanted) => document.querySelector(wanted)?.textContent ?? undefined, selector)
}

/** Presses a button or a link by the keyboard, once it is there: a mouse may miss what still moves. */
export async function press(page: Page, selector: string): Promise<void> {
  await page.waitForSelector(selector)
  await page.focus(selector)
  await page.keyboard.press('Enter')
}

/** Types into a field, in place of what it has. */
export async function retype(page: Page, selector: string, text: string): Promise<void> {
  await page.focus(selector)
  await page.$eval(selector, (field) => (field as HTMLInputElement).select())
  await page.keyboard.type(text)
}

/** Waits until the page at a path is there. */
export async function arrivesAt(page: Page, path: string): Promise<void> {
  await page.waitForFunction(
    (wanted) => location.pathname === wanted && document.body !== null,
    POLLING,
    path,
  )
}

/** Waits until the element says this. */
export async function says(page: Page, selector: string, text: string): Promise<void> {
  const isSaid = (wanted: string, part: string) =>
    document.querySelector(wanted)?.textContent?.includes(part) === true
  await page.waitForFunction(isSaid, POLLING, selector, text).catch(async (cause: unknown) => {
    const errors = await page.$$eval('.error', (all) => all.map(({ textContent }) => textContent))
    const said = await textOf(page, selector)
    throw new Error(
      `${selector} says ${JSON.stringify([said, ...errors])}, and not ${JSON.stringify(text)}`,
      { cause },
    )
  })
}

/** What a page has written as JSON into the element with this id, once it is there. */
export async function saidIn(page: Page, id = 'said'): Promise<unknown> {
  const find = (wanted: string) => document.getElementById(wanted)?.textContent
  const text = await page.waitForFunction(find, POLLING, id)
  return JSON.parse((await text.jsonValue()) ?? 'null')
}
