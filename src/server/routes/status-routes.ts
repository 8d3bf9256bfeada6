import { Router } from 'express'
import { type PageHosts, pageHeaders, type RenderPage, sendPage } from '../../gateway/pages/send-page.js'
import type { Health } from './health-routes.js'

export function statusRoutes(options: { health: Health; render: RenderPage; hostsOf: PageHosts }): Router {
  const { health, render, hostsOf } = options
  const headers = pageHeaders(hostsOf)
  return Router().get('/status', async (request, response) => {
    const report = await health.report()
    const html = await render(({ statusPage, site }) => statusPage({ site, health: report }))
    sendPage({ request, response, html, headers })
  })
}
