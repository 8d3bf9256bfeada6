import type { HeaderName } from './components.js'
import {
  answer,
  blockedAnswer,
  bytesAnswers,
  errorAnswer,
  inPath,
  internal,
  type Operation,
  type Paths,
  parameters,
} from './operation.js'

const ORDINAL: readonly HeaderName[] = ['X-Origin', 'X-Ord-Seq']
const MAP: readonly HeaderName[] = ['X-Map', 'X-Parent']
const SECURITY: readonly HeaderName[] = [
  'X-Content-Type-Options',
  'Cross-Origin-Resource-Policy',
  'Content-Security-Policy',
]
const SHOWN: readonly HeaderName[] = [
  'Cache-Control',
  'ETag',
  'Accept-Ranges',
  'X-Outpoint',
  ...ORDINAL,
  ...MAP,
  ...SECURITY,
]
const SENT: Operation['responses'] = {
  ...bytesAnswers({
    called: 'The content, with its type as inscribed where it is a legal one.',
    headers: SHOWN,
  }),
  '400': errorAnswer({
    codes: ['BAD_OUTPOINT', 'BAD_SEQUENCE', 'BAD_BODY', 'NESTING_TOO_DEEP'],
    description:
      'No outpoint or no sequence, a broken escape, a way through more than 8 directories, or a service worker (`BAD_BODY`).',
  }),
  '404': errorAnswer({
    codes: ['NOT_FOUND'],
    description: 'Not in this store; or nothing there: no such step, no such entry, no default and no index.',
  }),
  '416': errorAnswer({
    codes: ['RANGE_NOT_SATISFIABLE'],
    description: 'The content has no byte in that range.',
    headers: ['Content-Range', 'X-Outpoint', ...ORDINAL, ...MAP, ...SECURITY],
  }),
  '451': blockedAnswer(
    'The operator has blocked it: where it is, what it shows, or the name that it is the origin of.',
  ),
  default: internal(),
}

const HEADERS_TAKEN = parameters('Range', 'If-Range', 'If-Match', 'If-None-Match', 'Service-Worker')

/** `GET /content/{pointer}[:seq][/filepath]`, which is two templates to OpenAPI. */
export const CONTENT_PATHS: Paths = {
  [`/content/${inPath('Reference')}`]: {
    get: {
      operationId: 'content',
      tags: ['content'],
      summary: 'The bytes that an output holds, or that an ordinal shows at a step',
      description:
        'Of a directory, the default entry (`.`), else a redirect to its `index.html`. A slash at the end changes nothing.',
      parameters: [
        ...parameters('Reference'),
        {
          name: 'raw',
          in: 'query',
          description: 'With it, whatever its value, a directory comes as it was inscribed.',
          schema: { type: 'string' },
        },
        ...HEADERS_TAKEN,
      ],
      responses: {
        ...SENT,
        '302': answer({
          description: 'A directory without a default entry, which has an `index.html`.',
          headers: ['Location', 'Cache-Control', ...ORDINAL],
        }),
      },
    },
  },
  [`/content/${inPath('Reference')}/{filepath}`]: {
    get: {
      operationId: 'file',
      tags: ['content'],
      summary: 'A file in a directory',
      description:
        'A last segment that the directory does not have leads to its `index.html`. Below content that is no directory, every path leads to that content.',
      parameters: [
        ...parameters('Reference'),
        {
          name: 'filepath',
          in: 'path',
          required: true,
          description:
            'One or more segments with slashes between them, each percent-encoded by itself. OpenAPI has no word for a parameter with slashes in it: send them as they are.',
          schema: { type: 'string', minLength: 1 },
        },
        ...HEADERS_TAKEN,
      ],
      responses: SENT,
    },
  },
}
