import { IndexedDbSegmentStore } from '../client/segment-store.js'
import type { SiteConfig } from '../client/site-page.js'
import { serveVerifiedSite, siteFetch, type WorkerScope } from '../client/verified-site.js'

// A service worker that answers with verified bytes only. What it shows and whom it asks is in its URL, which the page makes.

const worker = globalThis as unknown as WorkerScope & { location: { search: string } }
const config = JSON.parse(new URLSearchParams(worker.location.search).get('config') ?? '') as SiteConfig
const store = new IndexedDbSegmentStore({ name: 'minetree-verified' })
serveVerifiedSite(worker, { site: config.site, fetch: siteFetch(config, { store }) })
