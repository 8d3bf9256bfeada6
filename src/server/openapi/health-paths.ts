import { answer, errorAnswer, type Paths, type Schema } from '../../gateway/openapi/operation.js'

const OK: Schema = {
  type: 'object',
  required: ['status'],
  additionalProperties: false,
  properties: { status: { const: 'ok' } },
}

const REFUSED: Schema = {
  description: 'How often each topic has refused something since the start, by topic and code.',
  type: 'object',
  additionalProperties: { type: 'object', additionalProperties: { type: 'integer', minimum: 1 } },
}

const whole = (ready: boolean): Schema => ({
  type: 'object',
  required: ['status', 'live', 'ready', 'refused'],
  additionalProperties: false,
  properties: {
    status: { const: ready ? 'ok' : 'error' },
    live: { const: true },
    ready: { const: ready },
    refused: REFUSED,
  },
})

const told = (description: string, body: Schema) =>
  answer({ description, headers: ['Cache-Control'], content: { 'application/json': body } })

export const HEALTH_PATHS: Paths = {
  '/health/live': {
    get: {
      operationId: 'live',
      tags: ['health'],
      summary: 'Whether the process answers',
      responses: { '200': told('It does.', OK) },
    },
  },
  '/health/ready': {
    get: {
      operationId: 'ready',
      tags: ['health'],
      summary: 'Whether the store answers',
      responses: {
        '200': told('It does.', OK),
        '503': errorAnswer({ codes: ['NOT_READY'], description: 'It does not.' }),
      },
    },
  },
  '/health': {
    get: {
      operationId: 'health',
      tags: ['health'],
      summary: 'Both in one, and what was refused',
      responses: {
        '200': told('Process and store answer.', whole(true)),
        '503': told('The process answers, the store does not.', whole(false)),
      },
    },
  },
}
