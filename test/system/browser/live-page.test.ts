import { useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { builtPages } from '../../support/cli/built-package.js'
import { emptyLocalNetwork } from '../../support/cli/local-network.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const { open } = useBrowser()
const pages = await builtPages()

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
