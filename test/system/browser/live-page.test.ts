import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { fundedTransaction } from '../../../src/cli/fake-transactions.js'
import { NOBODY_LOCK } from '../../../src/payments/fake.js'
import { says, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { builtPages } from '../../support/cli/built-package.js'
import { emptyLocalNetwork } from '../../support/cli/local-network.js'
import { inscriptionScript } from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const { open } = useBrowser()
const pages = await builtPages()

const noteOf = (text: string): Uint8Array => {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text), lock: NOBODY_LOCK })
  return fundedTransaction([{ satoshis: 1, lockingScript }]).beef
}

inBrowser('the open first page shows what was mined, without a reload', async () => {
  const server = await emptyLocalNetwork(servers, {}, { pages })
  const { page, complaints } = await open(server.url)
  await page.evaluate(() => Object.assign(self, { isSamePage: true }))
  for (const text of ['the first note', 'the second note']) {
    await server.take(noteOf(text), ['tm_ordinals'])
    await says(page, '#newest .tile', text)
    // Whoever is in the list with the keyboard sees it later.
    await page.focus('#newest .tile')
    await page.evaluate(() => (document.activeElement as HTMLElement).blur())
  }
  await says(page, '#counts', '2')
  expect(await page.evaluate(() => 'isSamePage' in self)).toBe(true)
  expect(complaints).toEqual([])
})

inBrowser('an open page asks by its entity tag, and not at all while it is hidden', async () => {
  const server = await emptyLocalNetwork(servers, {}, { pages })
  const { page } = await open(server.url, async (opened) => {
    await opened.evaluateOnNewDocument(() => {
      const timers: (() => void)[] = []
      Object.assign(self, { timers, setInterval: (timer: () => void) => timers.push(timer) })
    })
  })
  const asked = await page.evaluate(async () => {
    const { timers } = self as unknown as { timers: (() => void)[] }
    const statuses: number[] = []
    const { fetch } = self
    let last: Promise<unknown> = Promise.resolve()
    self.fetch = (...args) => {
      const answer = fetch(...args)
      // It asks for the state of the chain, too.
      if (args[0] === location.href) last = answer.then(({ status }) => statuses.push(status))
      return answer
    }
    const fire = async () => {
      for (const timer of timers) timer()
      await last
      // What follows from the answer is done before the next one is asked for.
      await new Promise((resolve) => setTimeout(resolve))
    }
    for (let round = 0; round < 4; round++) await fire()
    const shown = statuses.splice(0)
    Object.defineProperty(document, 'hidden', { value: true })
    for (let round = 0; round < 3; round++) await fire()
    return { shown, hidden: statuses }
  })
  expect(asked).toEqual({ shown: [200, 304, 304, 304], hidden: [] })
})
