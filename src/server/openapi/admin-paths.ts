import { BLOCKED_KINDS } from '../../../backend/src/graph/blocklist.js'
import {
  answer,
  errorAnswer,
  type Operation,
  type Paths,
  type Schema,
  schema,
} from '../../gateway/openapi/operation.js'

const TAGS: Operation['tags'] = ['operator']
const SECURITY: Operation['security'] = [{ operator: [] }]
const SHA256 = '[0-9a-fA-F]{64}'

/** What one thing is said with; which it is, the one of the three says that is there. */
const SUBJECT = {
  outpoint: { ...schema('AskedOutpoint'), description: 'An output.' },
  sha256: {
    type: 'string',
    pattern: `^${SHA256}$`,
    description: 'Content, wherever it is: the hash of its body.',
  },
  name: { ...schema('Name'), description: 'A name, with its origin.' },
}
const REASON: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 1000,
  description: 'For the operator: nobody else is told.',
}

const COUNT: Schema = { type: 'integer', minimum: 0 }
const KIND: Schema = { enum: BLOCKED_KINDS }

const BLOCKED: Schema = {
  type: 'object',
  required: ['kind', 'reason', 'since'],
  additionalProperties: false,
  properties: {
    kind: KIND,
    ...SUBJECT,
    reason: REASON,
    since: {
      type: 'string',
      pattern: '^\\d{4}-\\d\\d-\\d\\dT.+Z$',
      description: 'When it was blocked first.',
    },
  },
}

const body = (asked: Schema): Operation['requestBody'] => ({
  description: 'One of `outpoint`, `sha256` and `name`; up to 16 KiB.',
  required: true,
  content: { 'application/json': { schema: asked } },
})

const told = (description: string, content: Schema) =>
  answer({ description, headers: ['Cache-Control'], content: { 'application/json': content }, shut: true })

const refusal = (options: Pick<Parameters<typeof errorAnswer>[0], 'codes' | 'description' | 'headers'>) =>
  errorAnswer({ ...options, shape: 'OverlayError', shut: true })

const UNABLE = refusal({
  codes: ['NOT_READY', 'STORE_FULL'],
  description: 'What is answered is made anew of what was admitted; later. Or the store has no space left.',
  headers: ['Retry-After'],
})

const SHARED: Operation['responses'] = {
  '401': refusal({
    codes: ['UNAUTHORIZED'],
    description: 'Another token, or none.',
    headers: ['WWW-Authenticate'],
  }),
  '404': refusal({
    codes: ['NOT_FOUND'],
    description: 'The operator has set no token: there are no such routes.',
  }),
  default: refusal({ codes: ['INTERNAL'], description: '500: our fault. It is logged here, and not told.' }),
}

const BAD_SUBJECT = refusal({
  codes: ['BAD_BODY', 'BAD_OUTPOINT', 'BAD_NAME'],
  description: 'Not one thing, no reason, or none that it can be.',
})
const LARGE = refusal({ codes: ['TOO_LARGE'], description: 'The body is over 16 KiB.' })

/** What the operator asks, with a token that the settings say. Pages of other origins cannot. */
export const ADMIN_PATHS: Paths = {
  '/admin/block': {
    post: {
      operationId: 'block',
      tags: TAGS,
      security: SECURITY,
      summary: 'Blocks an output, content or a name',
      description:
        'From then on it is 451 `BLOCKED` wherever it would be served, and left out of lists. It need not be here yet. Blocked once more it has the new reason.',
      requestBody: body({
        type: 'object',
        required: ['reason'],
        minProperties: 2,
        maxProperties: 2,
        additionalProperties: false,
        properties: { ...SUBJECT, reason: REASON },
      }),
      responses: {
        '200': told('It is blocked.', BLOCKED),
        '400': BAD_SUBJECT,
        '413': LARGE,
        '503': UNABLE,
        ...SHARED,
      },
    },
  },
  '/admin/unblock': {
    post: {
      operationId: 'unblock',
      tags: TAGS,
      security: SECURITY,
      summary: 'Lets something be served again',
      requestBody: body({
        type: 'object',
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: false,
        properties: SUBJECT,
      }),
      responses: {
        '200': told('It is not blocked.', {
          type: 'object',
          required: ['kind', 'wasBlocked'],
          additionalProperties: false,
          properties: { kind: KIND, ...SUBJECT, wasBlocked: { type: 'boolean' } },
        }),
        '400': BAD_SUBJECT,
        '413': LARGE,
        '503': UNABLE,
        ...SHARED,
      },
    },
  },
  '/admin/blocked': {
    get: {
      operationId: 'blocked',
      tags: TAGS,
      security: SECURITY,
      summary: 'What is blocked, a page at a time',
      parameters: [
        { name: 'kind', in: 'query', description: 'Only what is blocked by this.', schema: KIND },
        {
          name: 'limit',
          in: 'query',
          description: 'The most to answer with.',
          schema: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
        },
        {
          name: 'after',
          in: 'query',
          description: 'Only what stands behind this: the `next` of the page before.',
          schema: { type: 'string', minLength: 1 },
        },
      ],
      responses: {
        '200': told('A page, in order of kinds and of values in each. `next` is absent on the last.', {
          type: 'object',
          required: ['blocked'],
          additionalProperties: false,
          properties: {
            blocked: { type: 'array', items: BLOCKED },
            next: { type: 'string', minLength: 1 },
          },
        }),
        '400': refusal({ codes: ['BAD_BODY'], description: 'No such kind, limit or place.' }),
        ...SHARED,
      },
    },
  },
  '/admin/headers': {
    post: {
      operationId: 'headersChanged',
      tags: TAGS,
      security: SECURITY,
      summary: 'Tells that the chain has changed',
      description:
        'The blocks that kept proofs lead to are asked about, as the host does by itself now and then. Proofs that lead to a block which the chain does not have any more are taken back.',
      requestBody: {
        description:
          'The height from which on, where that is lower than where the host would start; up to 1 KiB.',
        required: true,
        content: {
          'application/json': {
            schema: { type: 'object', properties: { height: { type: 'integer', minimum: 0 } } },
          },
        },
      },
      responses: {
        '200': told('It is done.', {
          type: 'object',
          required: ['tip', 'from', 'blocks', 'disproved'],
          additionalProperties: false,
          properties: {
            tip: { ...COUNT, description: 'The height of the chain.' },
            from: { ...COUNT, description: 'The lowest height that was looked at.' },
            blocks: { ...COUNT, description: 'How many blocks were asked about.' },
            disproved: { ...COUNT, description: 'How many transactions lost their proof.' },
          },
        }),
        '400': refusal({ codes: ['BAD_BODY'], description: 'No height.' }),
        '413': refusal({ codes: ['TOO_LARGE'], description: 'The body is over 1 KiB.' }),
        ...SHARED,
        '404': refusal({
          codes: ['NOT_FOUND'],
          description: 'The operator has set no token, or this host checks no proofs.',
        }),
        '503': refusal({
          codes: ['NOT_READY'],
          description:
            'The source of block headers did not answer, or lies far below where it was. What was found until then is done.',
          headers: ['Retry-After'],
        }),
      },
    },
  },
}
