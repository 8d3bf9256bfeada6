import { answer, type Paths } from '../../gateway/openapi/operation.js'

export const METRICS_PATHS: Paths = {
  '/metrics': {
    get: {
      operationId: 'metrics',
      tags: ['health'],
      summary: 'What this host counts, as Prometheus reads it',
      description: 'Numbers of this host, by words of its own: nothing of what it was asked or sent.',
      responses: {
        '200': answer({
          description: 'The text format of Prometheus, version 0.0.4.',
          headers: ['Cache-Control'],
          content: { 'text/plain': { type: 'string' } },
        }),
      },
    },
  },
}
