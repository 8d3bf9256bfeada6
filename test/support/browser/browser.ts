import puppeteer, { type Browser, type Page } from 'puppeteer-core'
import { CHROMIUM, FLAGS } from './chromium.js'

/** A page that is open, and what the browser complains of in it: errors of scripts, and all else that its console says. */
export interface OpenPage {
  page: Page
  complaints: string[]
}

/** How long a browser may take to start, and a page for what is waited for, in milliseconds: a busy machine is slow. */
const PATIENCE = 90_000

/** Headless Chromium for the tests of one file. Each page is in a profile of its own. */
export function useBrowser(...flags: string[]): {
  /** @param prepare What is done before anything is loaded. */
  open(url: string, prepare?: (page: Page) => Promise<void>): Promise<OpenPage>
} {
  let browser: Browser | undefined
  afterAll(() => browser?.close())
  return {
    async open(url, prepare = async () => {}) {
      if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine')
      browser ??= await puppeteer.launch({
        ...{ executablePath: CHROMIUM, args: [...FLAGS, ...flags] },
        timeout: PATIENCE,
      })
      const page = await (await browser.createBrowserContext()).newPage()
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

/** Waits until the element says this. */
export async function says(page: Page, selector: string, text: string): Promise<void> {
  const isSaid = (wanted: string, part: string) =>
    document.querySelector(wanted)?.textContent?.includes(part) === true
  await page.waitForFunction(isSaid, {}, selector, text).catch(async (cause: unknown) => {
    const errors = await page.$$eval('.error', (all) => all.map(({ textContent }) => textContent))
    const said = await textOf(page, selector)
    throw new Error(
      `${selector} says ${JSON.stringify([said, ...errors])}, and not ${JSON.stringify(text)}`,
      { cause },
    )
  })
}
