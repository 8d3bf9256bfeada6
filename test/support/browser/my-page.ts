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
