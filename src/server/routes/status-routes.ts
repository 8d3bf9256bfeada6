import { Router } from 'express'
import type { ApiView } from '../../explorer/index.js'
import type { Health } from './health-routes.js'
import { type PageHosts, pageHeaders } from './page-headers.js'
import { type RenderPage, sendPage } from './send-page.js'

/** Pages about the host itself: how it is, and what its routes are. */
export function statusRoutes({
  health,
  document,
  render,
  hostsOf,
}: {
  health: Health
  /** The OpenAPI document, which never changes. */
  document: () => ApiView
  render: RenderPage
  hostsOf: PageHosts
}): Router {
  const headers = pageHeaders(hostsOf)
  let api: Promise<string> | undefined
  return Router()
    .get('/status', async (request, response) => {
      const report = await health.report()
      const html = await render(({ statusPage, site }) => statusPage({ site, health: report }))
      sendPage({ request, response, html, headers })
    })
    .get('/api', async (request, response) => {
      api ??= render(({ apiPage, site }) => apiPage({ site, api: document() }))
      sendPage({ request, response, html: await api, headers })
    })
}
