import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { beefOf, FakeChain, inscriptionScript } from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'

const { start } = useServers()
const browser = useBrowser()

/** Says in the page what a stranger’s script may and may not do here. */
const SCRIPT = `
  const said = { origin: self.origin }
  const tried = (what, trial) => {
    try { said[what] = trial() } catch (error) { said[what] = error.name }
  }
  tried('cookies', () => { document.cookie = 'a=1'; return document.cookie })
  tried('storage', () => { localStorage.a = 1; return localStorage.a })
  tried('database', () => { indexedDB.open('a'); return 'opened' })
  const register = async () => {
    // Where it is forbidden, the very word for it throws.
    try {
      await navigator.serviceWorker.register('sw.js')
      said.worker = 'registered'
    } catch (error) {
      said.worker = error.name
    }
    document.getElementById('said').textContent = JSON.stringify(said)
  }
  register()
`

const PAGE = `<!doctype html><title>mined</title>
<link rel="stylesheet" href="style.css"><p id="styled">text</p>
<img id="image" src="img/dot.svg"><p id="said"></p><p id="seen"></p>
<script src="deep/er/still/app.js"></script>
<script>addEventListener('load', () => {
  document.getElementById('seen').textContent = JSON.stringify({
    color: getComputedStyle(document.getElementById('styled')).color,
    width: document.getElementById('image').naturalWidth,
  })
})</script>`

const DOT = `<svg xmlns="http://www.w3.org/2000/svg" width="12" height="12"><circle cx="6" cy="6" r="6"/></svg>`

/** A site in one transaction: files, directories three deep, and the root last, with a default entry. */
const FILES: [type: string, body: string][] = [
  ['text/html', PAGE],
  ['text/css', '#styled { color: rgb(1, 2, 3) }'],
  ['text/javascript', SCRIPT],
  ['image/svg+xml', DOT],
  ['gw-fs/json', JSON.stringify({ 'app.js': '_2' })],
  ['gw-fs/json', JSON.stringify({ still: '_4' })],
  ['gw-fs/json', JSON.stringify({ er: '_5' })],
  ['gw-fs/json', JSON.stringify({ 'dot.svg': 'ord://_3' })],
  ['gw-fs/json', JSON.stringify({ '.': '_0', 'style.css': '_1', deep: '_6', img: '_7', 'sw.js': '_2' })],
]

describe('a site from the chain, in a browser', () => {
  const chain = new FakeChain()
  const outputs = FILES.map(([contentType, body]) => ({
    satoshis: 1,
    lockingScript: inscriptionScript({ contentType, body: utf8(body) }),
  }))
  const site = chain.spend({ inputs: [], outputs })

  inBrowser('renders, runs its script, and reaches nothing of this host', async () => {
    const server = await start()
    await server.take(beefOf(site), ['tm_ordinals'])
    const { page } = await browser.open(`${server.url}/content/${site.outpoint(FILES.length - 1)}/`)
    expect(await saidIn(page, 'seen')).toEqual({ color: 'rgb(1, 2, 3)', width: 12 })
    expect(await saidIn(page)).toEqual({
      origin: 'null',
      cookies: 'SecurityError',
      storage: 'SecurityError',
      database: 'SecurityError',
      worker: 'SecurityError',
    })
  })
})
