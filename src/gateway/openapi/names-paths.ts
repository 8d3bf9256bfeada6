import {
  answer,
  blockedAnswer,
  errorAnswer,
  inPath,
  internal,
  type Paths,
  parameters,
  proofAnswers,
  type Schema,
  schema,
} from './operation.js'

const BAD_NAME = errorAnswer({ codes: ['BAD_NAME'], description: 'What is asked for cannot be a name.' })

const BLOCKED = blockedAnswer('The operator has blocked the name, or what it leads to.')

const CLAIMED: Schema = {
  type: 'object',
  required: ['name', 'outpoint'],
  additionalProperties: false,
  properties: { name: schema('Name'), outpoint: schema('Outpoint') },
}

const WHOLE: Schema = {
  type: 'object',
  required: ['name', 'origin'],
  additionalProperties: false,
  dependentRequired: { tip: ['sequence', 'map'], sequence: ['tip'], map: ['tip'] },
  properties: {
    name: schema('Name'),
    origin: schema('Outpoint'),
    tip: {
      description: 'Where its ordinal is now; absent where this host does not follow it.',
      type: 'object',
      required: ['outpoint', 'spent'],
      additionalProperties: false,
      properties: {
        outpoint: schema('Outpoint'),
        owner: { type: 'string', minLength: 1, description: 'An address, where the lock is P2PKH.' },
        script: {
          type: 'string',
          pattern: '^([0-9a-f]{2})*$',
          description:
            'The locking script; absent where it is over 64 KiB, or its transaction so large that it is not looked for.',
        },
        spent: { type: 'boolean', description: 'Whether it was spent, and the ordinal lost.' },
      },
    },
    sequence: { type: 'integer', minimum: 0, description: 'How many steps its ordinal has made.' },
    map: { ...schema('Map'), description: 'That of its ordinal, merged.' },
    mapTruncated: schema('MapTruncated'),
    node: { ...schema('Outpoint'), description: 'Its live node, from which longer names are mined.' },
    height: { type: 'integer', minimum: 0, description: 'Of the block that holds the mint.' },
  },
}

const found = (description: string, body: Schema) =>
  answer({ description, headers: ['Cache-Control'], content: { 'application/json': body } })

/** The lookups of names, below a prefix of theirs. */
export const NAMES_PATHS: Paths = {
  '': {
    get: {
      operationId: 'names',
      tags: ['names'],
      summary: 'Names in order, with their origins, a page at a time; without those that are blocked',
      parameters: [
        {
          name: 'prefix',
          in: 'query',
          description: 'Only names that begin with this.',
          schema: schema('Domain'),
        },
        {
          name: 'after',
          in: 'query',
          description: 'Only names behind this one: the `next` of the page before.',
          schema: schema('Domain'),
        },
        {
          name: 'limit',
          in: 'query',
          description: 'The most names to answer with.',
          schema: { type: 'integer', minimum: 1, maximum: 100, default: 100 },
        },
      ],
      responses: {
        '200': found('A page. `next` is absent on the last.', {
          type: 'object',
          required: ['names'],
          additionalProperties: false,
          properties: { names: { type: 'array', items: CLAIMED }, next: schema('Name') },
        }),
        '400': errorAnswer({
          codes: ['BAD_NAME', 'BAD_BODY'],
          description: 'A prefix that no name has, or a limit that is none (`BAD_BODY`).',
        }),
        default: internal(),
      },
    },
  },
  [`/origin/${inPath('Name')}`]: {
    get: {
      operationId: 'nameOrigin',
      tags: ['names'],
      summary: 'Where a name was mined',
      parameters: parameters('Name'),
      responses: {
        '200': found('The outpoint in which the name was mined.', CLAIMED),
        '400': BAD_NAME,
        '404': errorAnswer({ codes: ['NOT_FOUND'], description: 'The name is not claimed.' }),
        '451': BLOCKED,
        default: internal(),
      },
    },
  },
  [`/mine/${inPath('Name')}`]: {
    get: {
      operationId: 'nameToMine',
      tags: ['names'],
      summary: 'From where a name can be mined',
      parameters: parameters('Name'),
      responses: {
        '200': found('The longest mined prefix, and its live node.', {
          type: 'object',
          required: ['domain', 'outpoint'],
          additionalProperties: false,
          properties: { domain: schema('Domain'), outpoint: schema('Outpoint') },
        }),
        '400': BAD_NAME,
        '404': errorAnswer({
          codes: ['TAKEN', 'NOT_FOUND'],
          description: 'The name is taken; or this host holds no tree to mine from (`NOT_FOUND`).',
        }),
        '451': BLOCKED,
        default: internal(),
      },
    },
  },
  [`/proof/${inPath('Name')}`]: {
    get: {
      operationId: 'nameProof',
      tags: ['names'],
      summary: 'Proof that a name is genuine',
      description:
        'The origin of the name, and every transaction that spends a node on the way from the genesis outpoint to its mint, each with its merkle path where the store has one. Whoever knows the genesis outpoint and has block headers can check the name with no trust in this host.',
      parameters: parameters('Name', 'If-Match', 'If-None-Match'),
      responses: {
        ...proofAnswers(),
        '400': BAD_NAME,
        '404': errorAnswer({
          codes: ['NOT_FOUND'],
          description: 'The name is not claimed, or this host does not hold all of the way to genesis.',
        }),
        '451': BLOCKED,
        default: internal(),
      },
    },
  },
  [`/${inPath('Name')}`]: {
    get: {
      operationId: 'name',
      tags: ['names'],
      summary: 'All that is known of a name',
      parameters: parameters('Name'),
      responses: {
        '200': found('Where it was mined, and what has become of it.', WHOLE),
        '400': BAD_NAME,
        '404': errorAnswer({ codes: ['NOT_FOUND'], description: 'The name is not claimed.' }),
        '451': BLOCKED,
        default: internal(),
      },
    },
  },
  '/origins': {
    post: {
      operationId: 'nameOrigins',
      tags: ['names'],
      summary: 'Which outpoints are origins of genuine names',
      requestBody: {
        description: 'Outpoints, at most 1,000.',
        required: true,
        content: {
          'application/json': {
            schema: { type: 'array', maxItems: 1000, items: schema('AskedOutpoint') },
          },
        },
      },
      responses: {
        '200': found('For each outpoint as asked, whether it is one, and not blocked.', {
          type: 'object',
          propertyNames: schema('AskedOutpoint'),
          additionalProperties: { type: 'boolean' },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY', 'BAD_OUTPOINT'],
          description: 'Not a JSON array of texts, or one of them is no outpoint.',
        }),
        '413': errorAnswer({ codes: ['TOO_LARGE'], description: 'More than 1,000, or than 256 KiB.' }),
        default: internal(),
      },
    },
  },
}
