import { Router } from 'express'
import type { Metrics } from '../telemetry/metrics.js'

/** `/metrics`: what this host counts, as Prometheus reads it. */
export function metricsRoutes(metrics: Metrics): Router {
  return Router().get('/metrics', async (_request, response) => {
    const { type, body } = await metrics.text()
    response.set({ 'Cache-Control': 'no-store', 'Content-Type': type }).send(body)
  })
}
