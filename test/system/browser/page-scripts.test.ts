import { useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { builtPages } from '../../support/cli/built-package.js'
import { publisher, text } from '../../support/gateway/site.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'

// Anybody can inscribe a script, and it is served by the host of the service's own pages: those must not run it, even if markup
// of a stranger got into one of them.

const { start } = useServers()
const { open } = useBrowser()
const pages = await builtPages()

inBrowser(
  'a page of the service runs its own scripts, and no inscription as a script, worker or style',
  async () => {
    const server = await start({}, { pages })
    const published = publisher({ server, chain: new FakeChain() })
    const files = await published(
      text('self.ran = true; self.postMessage?.("ran")', 'text/javascript'),
      text('html { --ran: yes }', 'text/css'),
    )
    for (const path of ['/', '/names', '/mine', '/status', '/nothing-here']) {
      const { page } = await open(server.url + path)
      const ran = await page.evaluate(
        async (script, style) => {
          const loaded = (element: HTMLScriptElement | HTMLLinkElement): Promise<string> =>
            new Promise((resolve) => {
              element.onload = () => resolve('loaded')
              element.onerror = () => resolve('refused')
              document.head.append(element)
            })
          const scripted = (type: string) =>
            loaded(Object.assign(document.createElement('script'), { type, src: script }))
          return {
            script: await scripted('text/javascript'),
            module: await scripted('module'),
            style: await loaded(
              Object.assign(document.createElement('link'), { rel: 'stylesheet', href: style }),
            ),
            own: await loaded(
              Object.assign(document.createElement('script'), {
                type: 'module',
                src: '/explorer/explorer.js',
              }),
            ),
            ran: 'ran' in self,
          }
        },
        `/content/${files.outpoint(0)}`,
        `/content/${files.outpoint(1)}`,
      )
      // As text: Vitest has an import of its own in place of that of a program.
      const imports = `import('/content/${files.outpoint(0)}').then(() => 'loaded', () => 'refused')`
      expect({ path, ...ran, imported: await page.evaluate(imports) }).toEqual({
        path,
        ...{ script: 'refused', module: 'refused', imported: 'refused', style: 'refused' },
        ...{ own: 'loaded', ran: false },
      })
    }
  },
)
