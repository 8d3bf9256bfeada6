import { described, type Routes } from '../../gateway/http/operation.js'
import type { Metrics } from '../telemetry/metrics.js'

export function metricsRoutes(metrics: Metrics): Routes {
  return routes({
    metrics: async (_request, response) => {
      const { type, body } = await metrics.text()
      response.set({ 'Cache-Control': 'no-store', 'Content-Type': type }).send(body)
    },
  })
}

const routes = described({
  tag: 'health',
  operations: {
    metrics: {
      route: 'GET /metrics',
      summary: 'Metrics for Prometheus',
      description: 'Label values come from this host, never from requests or submissions.',
      answer: { description: 'The Prometheus text format, version 0.0.4.', types: ['text/plain'] },
    },
  },
})
