import type { Page } from 'puppeteer-core'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { readTransaction, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import { press, retype } from './browser.js'

/** What a card shows of a mint. */
export interface ShownMint {
  title: string
  badge: string
  /** By their terms. */
  fields: Record<string, string>
  transaction: TransactionView
}

/** The mints that the page shows, the last one first. */
export async function shownMints(page: Page): Promise<ShownMint[]> {
  const cards = await page.$$eval('article', (articles) =>
    articles.map((article) => ({
      title: article.querySelector('h2')?.textContent ?? '',
      badge: article.querySelector('.badge')?.textContent ?? '',
      fields: Object.fromEntries(
        Array.from(article.querySelectorAll('dd'), (field) => [field.dataset.field, field.textContent]),
      ) as Record<string, string>,
      hex: article.querySelector('textarea')?.value ?? '',
    })),
  )
  return cards.map(({ hex, ...card }) => ({ ...card, transaction: readTransaction(fromHex(hex)) }))
}

/** Fills the form in, as a person with a keyboard does, and sends it off. */
export async function order(
  page: Page,
  fields: { name: string; owner?: string; payer?: 'fake' | 'wallet' | 'nobody'; workers?: number },
): Promise<void> {
  await page.waitForSelector('#start:not(:disabled)')
  await retype(page, '#name', fields.name)
  const { owner, payer, workers } = fields
  if (owner !== undefined || payer !== undefined || workers !== undefined) {
    const isOpen = await page.$eval('#options', (options) => (options as HTMLDetailsElement).open)
    await page.focus('#options > summary')
    if (!isOpen) await page.keyboard.press('Enter')
  }
  if (owner !== undefined) {
    await retype(page, '#owner', owner)
  }
  if (fields.payer !== undefined) {
    await page.focus(`input[value=${fields.payer}]`)
    await page.keyboard.press('Space')
  }
  if (fields.workers !== undefined) {
    await retype(page, '#workers', String(fields.workers))
  }
  await press(page, '#start')
}
