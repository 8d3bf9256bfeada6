import type { HeaderName } from './components.js'
import {
  blockedAnswer,
  bytesAnswers,
  errorAnswer,
  inPath,
  internal,
  type Paths,
  parameters,
} from './operation.js'

const OWN: readonly HeaderName[] = [
  'X-Outpoint',
  'X-Origin',
  'X-Content-Type-Options',
  'Cross-Origin-Resource-Policy',
  'Content-Security-Policy',
]
const SHOWN: readonly HeaderName[] = ['Cache-Control', 'ETag', 'Accept-Ranges', ...OWN]

/** Large bodies in many inscriptions, below a prefix of the gateway. */
export const STREAM_PATHS: Paths = {
  [`/stream/${inPath('Outpoint')}`]: {
    get: {
      operationId: 'stream',
      tags: ['content'],
      summary: 'The bytes that an ordinal holds from an output on, step after step',
      description:
        'The output’s own content, and that of the next steps, up to one without content, one of a type that is no chunk’s, or one that is not in this store. From an output in the middle, the rest.',
      parameters: parameters('Outpoint', 'Range', 'If-Range', 'If-Match', 'If-None-Match', 'Service-Worker'),
      responses: {
        ...bytesAnswers({
          called: 'The stream, with the type of its first chunk, also from the middle on.',
          headers: SHOWN,
        }),
        '400': errorAnswer({
          codes: ['BAD_OUTPOINT', 'BAD_BODY'],
          description: 'No outpoint, or a service worker (`BAD_BODY`).',
        }),
        '404': errorAnswer({ codes: ['NOT_FOUND'], description: 'No content there in this store.' }),
        '416': errorAnswer({
          codes: ['RANGE_NOT_SATISFIABLE'],
          description: 'The stream has no byte in that range.',
          headers: ['Content-Range', ...OWN],
        }),
        '451': blockedAnswer('The operator has blocked a chunk of it, or the output asked for.'),
        default: internal(),
      },
    },
  },
}
