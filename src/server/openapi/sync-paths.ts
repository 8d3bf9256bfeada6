import {
  answer,
  blockedAnswer,
  errorAnswer,
  internal,
  type Operation,
  type Paths,
  type Schema,
} from '../../gateway/openapi/operation.js'

/** Of all that other hosts and wallets ask. */
export const TAGS: Operation['tags'] = ['overlay']
/** Of an output in its transaction. */
export const INDEX: Schema = { type: 'integer', minimum: 0, maximum: 0xffffffff }
const TXID: Schema = { type: 'string', pattern: '^[0-9a-f]{64}$' }
const SCORE: Schema = { type: 'integer', minimum: 0 }
const HEX: Schema = { type: 'string', pattern: '^([0-9a-f]{2})+$' }
const GASP_OUTPOINT: Schema = {
  description: '`<txid>.<vout>`',
  type: 'string',
  pattern: '^[0-9a-f]{64}\\.(0|[1-9][0-9]{0,9})$',
}

const OFFER: Schema = {
  type: 'object',
  required: ['UTXOList', 'since'],
  additionalProperties: false,
  properties: {
    UTXOList: {
      type: 'array',
      items: {
        type: 'object',
        required: ['txid', 'outputIndex', 'score'],
        additionalProperties: false,
        properties: { txid: TXID, outputIndex: INDEX, score: SCORE },
      },
    },
    since: SCORE,
  },
}

const NODE: Schema = {
  type: 'object',
  required: ['graphID', 'outputIndex', 'rawTx'],
  additionalProperties: false,
  properties: { graphID: GASP_OUTPOINT, outputIndex: INDEX, rawTx: HEX, proof: HEX },
}

const tooLong = errorAnswer({
  codes: ['TOO_LARGE'],
  description: 'The body is over 4 KiB.',
  shape: 'OverlayError',
})

/** What peers ask that sync with this host (GASP). */
export const SYNC_PATHS: Paths = {
  '/requestSyncResponse': {
    post: {
      operationId: 'offeredOutputs',
      tags: TAGS,
      summary: 'The unspent outputs of a topic, for a peer that syncs',
      parameters: [
        {
          name: 'x-bsv-topic',
          in: 'header',
          required: true,
          description: 'A topic, as `tm_names`.',
          schema: { type: 'string' },
        },
      ],
      requestBody: {
        description: 'From which score on, and how many at the most; the version is that of GASP.',
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['version', 'since'],
              properties: { version: { const: 1 }, since: SCORE, limit: { type: 'integer', minimum: 1 } },
            },
          },
        },
      },
      responses: {
        '200': answer({
          description:
            'The outputs by their scores, which are milliseconds since 1970: 10,000 at the most, unless more of them than that have the first score.',
          content: { 'application/json': OFFER },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'No such topic, another version, or no scores.',
          shape: 'OverlayError',
        }),
        '413': tooLong,
        default: internal('OverlayError'),
      },
    },
  },
  '/requestForeignGASPNode': {
    post: {
      operationId: 'syncNode',
      tags: TAGS,
      summary: 'A transaction of the graph behind an offered output, for a peer that syncs',
      requestBody: {
        description: 'The output that is offered, and the one in its graph whose transaction is asked for.',
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['graphID', 'txid', 'outputIndex'],
              properties: { graphID: GASP_OUTPOINT, txid: TXID, outputIndex: INDEX },
            },
          },
        },
      },
      responses: {
        '200': answer({
          description: 'The transaction, and its merkle path (BUMP, BRC-74) where it is known to be mined.',
          headers: ['Content-Length'],
          content: { 'application/json': NODE },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'No outputs, in the form that GASP has for them.',
          shape: 'OverlayError',
        }),
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'The one is not offered here, or the other is of no graph here.',
          shape: 'OverlayError',
        }),
        '413': tooLong,
        '451': blockedAnswer('The operator has blocked it.', 'OverlayError'),
        default: internal('OverlayError'),
      },
    },
  },
}
