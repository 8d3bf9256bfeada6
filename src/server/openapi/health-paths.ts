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

const INDEX: Schema = {
  description:
    'Whether what is answered is known to be all that was admitted. `rebuilding`: nothing else is answered meanwhile.',
  type: 'object',
  required: ['state', 'done'],
  additionalProperties: false,
  properties: {
    state: { enum: ['comparing', 'rebuilding', 'equal', 'unequal'] },
    done: { description: 'How much of it is done, of 1.', type: 'number', minimum: 0, maximum: 1 },
  },
}

const whole = (ready: boolean): Schema => ({
  type: 'object',
  required: ['status', 'live', 'ready', 'index', 'refused'],
  additionalProperties: false,
  properties: {
    status: { const: ready ? 'ok' : 'error' },
    live: { const: true },
    ready: { const: ready },
    index: INDEX,
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
      summary:
        'Whether the store and the chain tracker answer, and what is answered is all that was admitted',
      responses: {
        '200': told('All of it.', OK),
        '503': errorAnswer({
          codes: ['NOT_READY'],
          description: 'Not now; `error` says what is left, or that the chain tracker does not answer.',
        }),
      },
    },
  },
  '/health': {
    get: {
      operationId: 'health',
      tags: ['health'],
      summary: 'Both in one, how it is known, and what was refused',
      responses: {
        '200': told('It is ready.', whole(true)),
        '503': told('The process answers, and is not ready.', whole(false)),
      },
    },
  },
}
