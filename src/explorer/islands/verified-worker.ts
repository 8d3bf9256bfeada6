import { IndexedDbSegmentStore } from '../../client/segment-store.js'
import { HostedSite, serveVerifiedSite, siteFetch, type WorkerScope } from '../../client/verified-site.js'

// A service worker that answers with verified bytes only. Its script has one address, so that the browser replaces it by later
// releases; the page of the host says what it shows and whom it asks.

const worker = globalThis as unknown as WorkerScope & { registration: { update(): Promise<unknown> } }
const headers = new IndexedDbSegmentStore({ name: 'minetree-headers' })

/** Fetches the page of the host, past this worker; if the host does not answer, the browser's last copy. */
async function hostPage(): Promise<string> {
  void worker.registration.update().catch(() => undefined)
  const init: RequestInit = { cache: 'no-cache', credentials: 'omit', redirect: 'error' }
  // Pages of the site cannot write to the browser's own cache.
  const page = await fetch('/', init).catch(() => fetch('/', { ...init, cache: 'force-cache' }))
  if (!page.ok) throw new TypeError(`the host of this site answers ${page.status}`)
  return await page.text()
}

const site = new HostedSite({
  page: hostPage,
  store: new IndexedDbSegmentStore({ name: 'minetree-site' }),
  fetchFor: (config) => siteFetch(config, { store: headers }),
})
worker.addEventListener('install', (event) => event.waitUntil(site.current()))
serveVerifiedSite(worker, site)
