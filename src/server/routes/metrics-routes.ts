import { Router } from 'express'
import type { OperationGroup } from '../../gateway/http/operation.js'
import type { Metrics } from '../telemetry/metrics.js'

export function metricsRoutes(metrics: Metrics): Router {
  return Router().get('/metrics', async (_request, response) => {
    const { type, body } = await metrics.text()
    response.set({ 'Cache-Control': 'no-store', 'Content-Type': type }).send(body)
  })
}

export const METRICS_OPERATIONS: OperationGroup = {
  tag: 'health',
  operations: {
    metrics: {
      route: 'GET /metrics',
      summary: 'Metrics for Prometheus',
      description: 'The labels are words of this host, never what a request or a submission contains.',
      answer: { description: 'The text format of Prometheus, version 0.0.4.', types: ['text/plain'] },
    },
  },
}
