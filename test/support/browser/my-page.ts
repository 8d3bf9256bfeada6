import type { ElementHandle, Page } from 'puppeteer-core'
import { press, says } from './browser.js'

/** Chooses a folder to publish. */
export async function chooseFolder(page: Page, folder: string): Promise<void> {
  const field = (await page.$('#folder')) as ElementHandle<HTMLInputElement>
  await field.uploadFile(folder)
}

/** Shows the names of the wallet, once the page has shown those of the network; the name that is open is opened again. */
export async function connect(page: Page): Promise<void> {
  const ready = '#connect:not([hidden]):not(:disabled)'
  await press(page, ready)
  await page.waitForSelector(ready)
  await says(page, '#names-state', 'These are in your wallet.')
}

/** Drops a folder onto the page. */
export async function dropFolder(page: Page, folder: string): Promise<void> {
  const place = await page.$eval('#drop', (drop) => {
    drop.scrollIntoView({ block: 'center', behavior: 'instant' })
    const { x, y, width, height } = drop.getBoundingClientRect()
    return { x: x + width / 2, y: y + height / 2 }
  })
  const client = await page.createCDPSession()
  const data = { items: [], files: [folder], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await client.send('Input.dispatchDragEvent', { type, ...place, data })
  await client.detach()
}
