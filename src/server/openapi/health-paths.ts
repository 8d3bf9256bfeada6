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

const REASONS: Schema = {
  description:
    'Why it is not ready, a sentence for each part of the host that says so; empty where it is ready.',
  type: 'object',
  additionalProperties: { type: 'string' },
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
  required: ['status', 'live', 'ready', 'reasons', 'index', 'refused'],
  additionalProperties: false,
  properties: {
    status: { const: ready ? 'ok' : 'error' },
    live: { const: true },
    ready: { const: ready },
    reasons: REASONS,
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
        'Whether the store answers and has space, the chain tracker answers, and what is answered is all that was admitted',
      responses: {
        '200': told('All of it.', OK),
        '503': errorAnswer({
          codes: ['NOT_READY'],
          description: 'Not now; `error` says why, as `/health` does in full.',
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
