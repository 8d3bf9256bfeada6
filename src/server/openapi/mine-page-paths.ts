import type { HeaderName } from '../../gateway/openapi/components.js'
import {
  answer,
  errorAnswer,
  type Operation,
  type Paths,
  parameters,
  preconditionFailed,
  type Schema,
} from '../../gateway/openapi/operation.js'
import { MINE_PAGE_FILES } from '../routes/mine-page-routes.js'

const HEADERS: readonly HeaderName[] = [
  'Cache-Control',
  'Content-Security-Policy',
  'Cross-Origin-Opener-Policy',
  'Cross-Origin-Resource-Policy',
  'ETag',
  'Referrer-Policy',
  'X-Content-Type-Options',
]

const answers = (described: {
  content: Record<string, Schema>
  missing: string
}): Operation['responses'] => ({
  '200': answer({
    description: 'As it was built.',
    headers: ['Content-Length', ...HEADERS],
    content: described.content,
  }),
  '304': answer({ description: 'It is what whoever asks has.', headers: HEADERS }),
  '412': preconditionFailed(HEADERS.filter((name) => name !== 'ETag' && name !== 'Cache-Control')),
  '404': errorAnswer({ codes: ['NOT_FOUND'], description: described.missing }),
})

/** The page for mining: for people, and of one origin with the host. */
export const MINE_PAGE_PATHS: Paths = {
  '/mine': {
    get: {
      operationId: 'minePage',
      tags: ['names'],
      summary: 'A page that mines names in the browser',
      parameters: [
        {
          name: 'name',
          in: 'query',
          description: 'What the page has in its field for the name when it opens.',
          schema: { type: 'string' },
        },
        ...parameters('If-Match', 'If-None-Match'),
      ],
      responses: answers({
        content: { 'text/html': { type: 'string' } },
        missing: 'The host was started without it.',
      }),
    },
  },
  '/mine/{file}': {
    get: {
      operationId: 'minePageFile',
      tags: ['names'],
      summary: 'A script or a style of that page',
      parameters: [
        {
          name: 'file',
          in: 'path',
          required: true,
          description: 'Its name.',
          schema: { enum: Object.keys(MINE_PAGE_FILES) },
        },
        ...parameters('If-Match', 'If-None-Match'),
      ],
      responses: answers({
        content: {
          'text/html': { type: 'string' },
          'text/javascript': { type: 'string' },
          'text/css': { type: 'string' },
        },
        missing: 'There is no such file.',
      }),
    },
  },
}
