import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'puppeteer-core'

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe-core finds. It runs outside of the page's own policy, as an extension does. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return await page.evaluate(async () => {
    const { axe } = window as unknown as {
      axe: {
        run(
          context: unknown,
          options: object,
        ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>
      }
    }
    // Content in frames is a stranger's.
    const found = await axe.run({ exclude: [['iframe']] }, { iframes: false, resultTypes: ['violations'] })
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 200)}`),
    )
  })
}
