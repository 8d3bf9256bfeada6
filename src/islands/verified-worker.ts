import { IndexedDbSegmentStore } from '../client/segment-store.js'
import { configElement, type SiteConfig } from '../client/site-page.js'
import { serveVerifiedSite, siteFetch, type WorkerScope } from '../client/verified-site.js'

// A service worker that answers with verified bytes only. What it shows and whom it asks is in its URL, which the page makes.

const worker = globalThis as unknown as WorkerScope & { location: { search: string } }
const config = JSON.parse(new URLSearchParams(worker.location.search).get('config') ?? '') as SiteConfig
const store = new IndexedDbSegmentStore({ name: 'minetree-headers' })

/** A page of the site could register this worker for something else, which would stay after the name has another owner. */
async function requireConfigOfHost(): Promise<void> {
  const page = await fetch('/', { cache: 'no-store' })
  if (!(await page.text()).includes(configElement(config)))
    throw new Error('the host of this site has another configuration')
}

worker.addEventListener('install', (event) => event.waitUntil(requireConfigOfHost()))
serveVerifiedSite(worker, { site: config.site, fetch: siteFetch(config, { store }) })
