import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ElementHandle, Page } from 'puppeteer-core'

/** Writes files into a folder. */
export async function writeFiles(folder: string, files: Record<string, string>): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  return folder
}

/** Chooses a folder to publish. */
export async function chooseFolder(page: Page, folder: string): Promise<void> {
  const field = (await page.$('#folder')) as ElementHandle<HTMLInputElement>
  await field.uploadFile(folder)
}

/** Presses a button or a link by the keyboard: on a page that scrolls, a mouse may miss it. */
export async function press(page: Page, selector: string): Promise<void> {
  await page.focus(selector)
  await page.keyboard.press('Enter')
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
