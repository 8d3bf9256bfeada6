import {
  answer,
  blockedAnswer,
  errorAnswer,
  inPath,
  internal,
  type Paths,
  parameters,
  preconditionFailed,
  type Schema,
  schema,
} from './operation.js'

/** What is absent is unknown, or there is none: nothing is null. */
const RECORD: Schema = {
  type: 'object',
  required: ['outpoint', 'map', 'satoshis', 'spent'],
  additionalProperties: false,
  dependentRequired: {
    origin: ['sequence', 'tip'],
    sequence: ['origin'],
    tip: ['origin'],
    contentOutpoint: ['contentType', 'contentLength', 'sha256'],
  },
  properties: {
    outpoint: schema('Outpoint'),
    origin: { ...schema('Outpoint'), description: 'The first outpoint of the ordinal. With a sequence.' },
    sequence: { type: 'integer', minimum: 0, description: 'The step of the ordinal. With a sequence.' },
    tip: { type: 'boolean', description: 'Whether that is where the ordinal is now. With a sequence.' },
    contentOutpoint: {
      ...schema('Outpoint'),
      description: 'Where the content stands: that of the latest inscription up to the step.',
    },
    contentType: { type: 'string', description: 'As inscribed.' },
    contentLength: { type: 'integer', minimum: 0, description: 'In bytes.' },
    sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
    map: { ...schema('Map'), description: 'That of the output; with a sequence, merged up to the step.' },
    mapTruncated: schema('MapTruncated'),
    parent: schema('Outpoint'),
    satoshis: { type: 'integer', minimum: 0 },
    owner: { type: 'string', minLength: 1, description: 'An address, where the lock is P2PKH.' },
    spent: { type: 'boolean' },
    height: { type: 'integer', minimum: 0, description: 'Of the block that it is proven to be in.' },
  },
}

const POINTERS: Schema = { type: 'array', maxItems: 100, items: schema('AskedReference') }

/** What is known of outputs and ordinals, below a prefix of the gateway. */
export const METADATA_PATHS: Paths = {
  [`/metadata/${inPath('Reference')}`]: {
    get: {
      operationId: 'metadata',
      tags: ['content'],
      summary: 'What is known of an output, or of an ordinal at a step',
      parameters: parameters('Reference', 'If-Match', 'If-None-Match'),
      responses: {
        '200': answer({
          description: 'The record.',
          headers: ['Cache-Control', 'ETag'],
          content: { 'application/json': RECORD },
        }),
        '304': answer({
          description: 'It is what whoever asks has.',
          headers: ['Cache-Control', 'ETag'],
        }),
        '412': preconditionFailed(),
        '400': errorAnswer({
          codes: ['BAD_OUTPOINT', 'BAD_SEQUENCE'],
          description: 'No outpoint, or no sequence.',
        }),
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'Not in this store; or the ordinal has no such step.',
        }),
        '451': blockedAnswer('The operator has blocked it.'),
        default: internal(),
      },
    },
  },
  '/metadata': {
    post: {
      operationId: 'metadataOfMany',
      tags: ['content'],
      summary: 'What is known of many outputs',
      requestBody: {
        description: 'Pointers, each with a sequence or without, at most 100.',
        required: true,
        content: {
          'application/json': {
            schema: {
              anyOf: [
                POINTERS,
                { type: 'object', required: ['outpoints'], properties: { outpoints: POINTERS } },
              ],
            },
          },
        },
      },
      responses: {
        '200': answer({
          description:
            'For each pointer as asked its record, or null where this store has none, or the operator has blocked it.',
          headers: ['Cache-Control'],
          content: {
            'application/json': {
              type: 'object',
              propertyNames: schema('AskedReference'),
              additionalProperties: { anyOf: [RECORD, { type: 'null' }] },
            },
          },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY', 'BAD_OUTPOINT', 'BAD_SEQUENCE'],
          description: 'Not a list of texts, or one of them is none: the error names it.',
        }),
        '413': errorAnswer({ codes: ['TOO_LARGE'], description: 'More than 100, or than 64 KiB.' }),
        default: internal(),
      },
    },
  },
}
