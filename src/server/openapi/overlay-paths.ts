import {
  answer,
  blockedAnswer,
  errorAnswer,
  internal,
  type Paths,
  type Schema,
} from '../../gateway/openapi/operation.js'
import { INDEX, SYNC_PATHS, TAGS } from './sync-paths.js'

const INDEXES: Schema = { type: 'array', items: INDEX }
/** Bytes, as the body itself. */
const BYTES: Schema = {}

/** What a host runs: each by its name, and by its aliases. */
const RUN: Schema = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    required: ['name', 'shortDescription'],
    additionalProperties: false,
    properties: { name: { type: 'string' }, shortDescription: { type: 'string' } },
  },
}

const STEAK: Schema = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    required: ['outputsToAdmit', 'coinsToRetain'],
    additionalProperties: false,
    properties: { outputsToAdmit: INDEXES, coinsToRetain: INDEXES, coinsRemoved: INDEXES },
  },
}

const OUTPUT_LIST: Schema = {
  type: 'object',
  required: ['type', 'outputs'],
  additionalProperties: false,
  properties: {
    type: { const: 'output-list' },
    outputs: {
      type: 'array',
      items: {
        type: 'object',
        required: ['beef', 'outputIndex'],
        additionalProperties: false,
        properties: {
          beef: {
            description: 'The BEEF of the transaction, a number for each byte.',
            type: 'array',
            items: { type: 'integer', minimum: 0, maximum: 255 },
          },
          outputIndex: INDEX,
        },
      },
    },
    truncated: {
      description: 'Present where a page ends before its limit, as its BEEF is long: go on with `after`.',
      type: 'boolean',
      enum: [true],
    },
  },
}

const NOTICE: Schema = {
  type: 'object',
  required: ['txid', 'merklePath'],
  properties: {
    txid: { type: 'string', pattern: '^[0-9a-fA-F]{64}$' },
    merklePath: { type: 'string', pattern: '^([0-9a-fA-F]{2})+$' },
    blockHeight: { type: 'integer', minimum: 0 },
  },
}

const listed = (description: string) => answer({ description, content: { 'application/json': RUN } })

const documentation = answer({
  description: 'Its documentation.',
  content: { 'text/markdown': { type: 'string' } },
})

/** The surface that overlay clients speak. */
export const OVERLAY_PATHS: Paths = {
  ...SYNC_PATHS,
  '/listTopicManagers': {
    get: {
      operationId: 'topicManagers',
      tags: TAGS,
      summary: 'The topics that this host takes',
      responses: { '200': listed('The topics, each with a line about it.') },
    },
  },
  '/listLookupServiceProviders': {
    get: {
      operationId: 'lookupServices',
      tags: TAGS,
      summary: 'The lookup services that this host runs',
      responses: { '200': listed('The services, each with a line about it.') },
    },
  },
  '/getDocumentationForTopicManager': {
    get: {
      operationId: 'topicDocumentation',
      tags: TAGS,
      summary: 'What a topic admits',
      parameters: [
        {
          name: 'manager',
          in: 'query',
          required: true,
          description: 'A topic, as `tm_names`.',
          schema: { type: 'string' },
        },
      ],
      responses: {
        '200': documentation,
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'This host has no such topic.',
          shape: 'OverlayError',
        }),
      },
    },
  },
  '/getDocumentationForLookupServiceProvider': {
    get: {
      operationId: 'lookupDocumentation',
      tags: TAGS,
      summary: 'The queries that a lookup service answers',
      parameters: [
        {
          name: 'lookupService',
          in: 'query',
          required: true,
          description: 'A lookup service, as `ls_names`.',
          schema: { type: 'string' },
        },
      ],
      responses: {
        '200': documentation,
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'This host has no such lookup service.',
          shape: 'OverlayError',
        }),
      },
    },
  },
  '/submit': {
    post: {
      operationId: 'submit',
      tags: TAGS,
      summary: 'Submits a transaction to topics',
      description: 'A transaction for `tm_names` is given to `tm_ordinals`, too: a mint belongs in both.',
      parameters: [
        {
          name: 'X-Topics',
          in: 'header',
          required: true,
          description: 'The topics, as `["tm_names"]`.',
          content: {
            'application/json': {
              schema: { type: 'array', minItems: 1, maxItems: 32, items: { type: 'string' } },
            },
          },
        },
        {
          name: 'x-includes-off-chain-values',
          in: 'header',
          description:
            'With `true`, the body is a varint, a BEEF of that many bytes, and off-chain values behind it. No topic here reads those.',
          schema: { type: 'string' },
        },
      ],
      requestBody: {
        description: 'A BEEF, up to the size that the operator has set. The transaction is the last in it.',
        required: true,
        content: { 'application/octet-stream': { schema: BYTES } },
      },
      responses: {
        '200': answer({
          description: 'For each topic, which outputs it admitted and which of the coins spent it keeps.',
          content: { 'application/json': STEAK },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'Not a list of topics, no such topic, no BEEF, or a transaction that does not verify.',
          shape: 'OverlayError',
        }),
        '409': errorAnswer({
          codes: ['CONFLICT'],
          description: 'It spends what an admitted transaction spends already.',
          shape: 'ConflictError',
        }),
        '413': errorAnswer({
          codes: ['TOO_LARGE'],
          description:
            'The body is over the limit, what stands behind the BEEF is, or the BEEF is: by its transactions, the depth of unproven ones, their inputs and outputs, a script, or the blocks that its proofs lead to.',
          shape: 'OverlayError',
        }),
        '503': errorAnswer({
          codes: ['NOT_READY', 'STORE_FULL'],
          description:
            'The source of block headers did not answer, so that no proof can be checked, as many submissions wait as may, or this one could not be verified in time next to the others: try again. Or the store has no space left.',
          headers: ['Retry-After'],
          shape: 'OverlayError',
        }),
        default: internal('OverlayError'),
      },
    },
  },
  '/lookup': {
    post: {
      operationId: 'lookup',
      tags: TAGS,
      summary: 'Asks a lookup service',
      parameters: [
        {
          name: 'X-Aggregation',
          in: 'header',
          description:
            'With `yes`, the answer is binary; where it has a history, only if `Accept` asks for it.',
          schema: { type: 'string' },
        },
      ],
      requestBody: {
        description: 'A service, and a query as its documentation has them.',
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['service', 'query'],
              properties: { service: { type: 'string' }, query: {} },
            },
          },
        },
      },
      responses: {
        '200': answer({
          description:
            'The outputs that answer. In binary: a varint, how many; for each its txid, index (varint), and context after its length (varint); and one BEEF with all their transactions.',
          content: { 'application/json': OUTPUT_LIST, 'application/octet-stream': BYTES },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'Not a question, no such service, or a query of no form that it knows.',
          shape: 'OverlayError',
        }),
        '413': errorAnswer({
          codes: ['TOO_LARGE'],
          description: 'The body is over the limit.',
          shape: 'OverlayError',
        }),
        '451': blockedAnswer('The operator has blocked what answers. Lists leave it out.', 'OverlayError'),
        default: internal('OverlayError'),
      },
    },
  },
  '/arc-ingest': {
    post: {
      operationId: 'ingestProof',
      tags: TAGS,
      summary: 'Brings the merkle path of a transaction that this host has',
      description:
        'What a transaction processor (ARC) calls back with. Other fields do not matter. Where the operator has set a token for it, it is shown as `Authorization: Bearer <token>`.',
      requestBody: {
        description:
          'The transaction, its merkle path (BUMP, BRC-74) and the height of its block; up to 32 KiB.',
        required: true,
        content: { 'application/json': { schema: NOTICE } },
      },
      responses: {
        '200': answer({
          description: 'The proof is kept.',
          content: {
            'application/json': {
              type: 'object',
              required: ['status', 'message'],
              additionalProperties: false,
              properties: { status: { const: 'success' }, message: { type: 'string' } },
            },
          },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'No notice, or a path that is no proof: of another transaction, height or chain.',
          shape: 'OverlayError',
        }),
        '401': errorAnswer({
          codes: ['UNAUTHORIZED'],
          description: 'Another token than the operator has set, or none.',
          headers: ['WWW-Authenticate'],
          shape: 'OverlayError',
        }),
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'This host has no such transaction.',
          shape: 'OverlayError',
        }),
        '413': errorAnswer({
          codes: ['TOO_LARGE'],
          description: 'The body is over 32 KiB.',
          shape: 'OverlayError',
        }),
        '503': errorAnswer({
          codes: ['NOT_READY', 'STORE_FULL'],
          description:
            'The source of block headers did not answer, or knows of no block at that height yet: try again. Or the store has no space left.',
          headers: ['Retry-After'],
          shape: 'OverlayError',
        }),
        default: internal('OverlayError'),
      },
    },
  },
}
