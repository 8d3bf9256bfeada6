import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { type File, publisher, text } from '../../support/gateway/site.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'

// Content is a stranger's, and all of it comes from one host: a browser must hold each page as a site of its own.

const servers = useServers()
const browser = useBrowser()
const server = await servers.start()
const published = publisher({ server, chain: new FakeChain() })

/** For both pages: what a trial comes to, or the name of what it throws. */
const TRIED = `
  const tried = async (trial) => {
    try { return await trial() } catch (error) { return error.name }
  }
  self.heard = []
  const channel = new BroadcastChannel('minetree')
  channel.onmessage = ({ data }) => heard.push(data)
`

/** The page that is spied on: it reports to its opener what it can access there. */
const OTHER = `${TRIED}
  self.secret = 'secret'
  const above = opener ?? parent
  const talk = setInterval(() => channel.postMessage('from the other'), 10)
  const tell = async () => above.postMessage({
    by: opener ? 'popup' : 'frame',
    document: await tried(() => above.document.title),
    address: await tried(() => above.location.href),
    variable: await tried(() => String(above.heard)),
    storage: await tried(() => above.localStorage.length),
    leading: await tried(() => { above.location.href = 'about:blank'; return 'led away' }),
  }, '*')
  tell()
`

/** What neither page may have of the other, seen from either side. */
const SHUT = {
  document: 'SecurityError',
  address: 'SecurityError',
  variable: 'SecurityError',
  storage: 'SecurityError',
}

/** The page that spies, and says what it found. */
const spy = (other: string): string => `${TRIED}
  const received = {}
  addEventListener('message', ({ data, origin }) => { received[data.by] = { ...data, origin } })
  const reached = async (page) => ({
    document: await tried(() => page.document.title),
    address: await tried(() => page.location.href),
    variable: await tried(() => String(page.secret)),
    storage: await tried(() => page.localStorage.length),
  })
  const asked = async (options) => await tried(async () => {
    const response = await fetch('${other}', options)
    return [response.status, (await response.text()).includes("secret = 'secret'")]
  })
  const spy = async () => {
    const frame = document.createElementNS('http://www.w3.org/1999/xhtml', 'iframe')
    frame.src = '${other}'
    document.documentElement.append(frame)
    const popup = open('${other}')
    while (!(received.frame && received.popup)) await new Promise((again) => setTimeout(again, 10))
    const ownEcho = new BroadcastChannel('minetree')
    ownEcho.postMessage('from myself')
    while (heard.length === 0) await new Promise((again) => setTimeout(again, 10))
    for (let at = 0; at < 20; at++) await fetch('${other}')
    const said = {
      received,
      heard,
      frame: { ...await reached(frame.contentWindow), content: frame.contentDocument },
      popup: await reached(popup),
      origin: self.origin,
      cookies: await tried(() => { document.cookie = 'a=1'; return document.cookie }),
      local: await tried(() => { localStorage.a = 1; return localStorage.a }),
      session: await tried(() => { sessionStorage.a = 1; return sessionStorage.a }),
      database: await tried(() => { indexedDB.open('a'); return 'opened' }),
      caches: await tried(async () => { await caches.open('a'); return 'opened' }),
      locks: await tried(async () => await navigator.locks.request('a', () => 'locked')),
      files: await tried(async () => { await navigator.storage.getDirectory(); return 'opened' }),
      serviceWorker: await tried(async () => { await navigator.serviceWorker.register('${other}'); return 'registered' }),
      sharedWorker: await tried(() => { new SharedWorker('${other}'); return 'started' }),
      sharedWorkerOfData: await tried(() => { new SharedWorker('data:text/javascript,'); return 'started' }),
      worker: await tried(() => { new Worker('${other}'); return 'started' }),
      fetched: await asked({}),
      fetchedAsMyself: await asked({ credentials: 'include' }),
    }
    document.getElementById('said').textContent = JSON.stringify(said)
  }
  spy()
`

const PAGES: Record<string, (script: string) => string> = {
  'text/html': (script) => `<!doctype html><title>mine</title><p id="said"></p><script>${script}</script>`,
  'image/svg+xml': (script) =>
    `<svg xmlns="http://www.w3.org/2000/svg"><text id="said"/><script><![CDATA[${script}]]></script></svg>`,
  'application/xhtml+xml': (script) =>
    `<html xmlns="http://www.w3.org/1999/xhtml"><body><p id="said"/><script><![CDATA[${script}]]></script></body></html>`,
}

const page = (contentType: string, script: string): File =>
  text(PAGES[contentType]?.(script) ?? '', contentType)

inBrowser.each(Object.keys(PAGES))(
  'a page of %s reaches nothing of another page, and nothing of this host',
  async (contentType) => {
    const other = await published(page(contentType, OTHER))
    const spying = await published(page(contentType, spy(`/content/${other.outpoint(0)}`)))
    const { page: shown } = await browser.open(`${server.url}/content/${spying.outpoint(0)}`)
    const fromOther = { ...SHUT, leading: 'SecurityError', origin: 'null' }
    expect(await saidIn(shown)).toEqual({
      // Both ran, and were shut out of the page that opened them.
      received: { frame: { by: 'frame', ...fromOther }, popup: { by: 'popup', ...fromOther } },
      frame: { ...SHUT, content: null },
      popup: SHUT,
      // The channel works within the page: nothing else came.
      heard: ['from myself'],
      origin: 'null',
      cookies: 'SecurityError',
      local: 'SecurityError',
      session: 'SecurityError',
      database: 'SecurityError',
      caches: 'SecurityError',
      locks: 'SecurityError',
      files: 'SecurityError',
      serviceWorker: 'SecurityError',
      sharedWorker: 'SecurityError',
      sharedWorkerOfData: 'SecurityError',
      worker: 'SecurityError',
      // Content is public; but never requested in the name of its viewer.
      fetched: [200, true],
      fetchedAsMyself: 'TypeError',
    })
  },
)
