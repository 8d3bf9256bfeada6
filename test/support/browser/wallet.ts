import type { Page } from 'puppeteer-core'
import type { TestWallet } from '../mining/test-wallet.js'

/** Puts a wallet into the pages of a browser, as those do that bring one (BRC-100, `window.CWI`). */
export async function bringWallet(page: Page, wallet: TestWallet): Promise<void> {
  // What goes through JSON: of bytes, lists.
  const methods: Record<string, (args: never) => unknown> = {
    getVersion: () => ({ version: 'test-1.0.0' }),
    getPublicKey: (args) => wallet.getPublicKey(args),
    createSignature: (args) => wallet.createSignature(args),
    createAction: (args) => wallet.createAction(args),
    signAction: (args) => wallet.signAction(args),
    abortAction: (args) => wallet.abortAction(args),
    listOutputs: (args) => wallet.listOutputs(args),
  }
  await page.exposeFunction('askWallet', async (method: string, args: string) => {
    const answer = await methods[method]?.(JSON.parse(args) as never)
    return JSON.stringify(answer, (_, value) => (value instanceof Uint8Array ? Array.from(value) : value))
  })
  await page.evaluateOnNewDocument((names) => {
    const plain = (_: string, value: unknown) => (value instanceof Uint8Array ? Array.from(value) : value)
    const host = window as unknown as Record<string, unknown>
    const ask = host.askWallet as (method: string, args: string) => Promise<string>
    host.CWI = Object.fromEntries(
      names.map((name) => [
        name,
        async (args: unknown) => JSON.parse(await ask(name, JSON.stringify(args, plain))),
      ]),
    )
  }, Object.keys(methods))
}
