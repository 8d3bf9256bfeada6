import type { HeaderName } from './components.js'
import { answer, errorAnswer, type Paths, parameters } from './operation.js'

const SHOWN: readonly HeaderName[] = [
  'Cache-Control',
  'Content-Length',
  'X-Content-Type-Options',
  'Cross-Origin-Resource-Policy',
  'Content-Security-Policy',
]

/** The previews, below a prefix of the gateway. */
export const PREVIEW_PATHS: Paths = {
  '/preview/{html}': {
    get: {
      operationId: 'previewHtml',
      tags: ['preview'],
      summary: 'HTML as it would be served if it were inscribed; nothing is stored',
      parameters: [
        {
          name: 'html',
          in: 'path',
          required: true,
          description:
            'The HTML as base64 or base64url, with or without padding. The slashes of base64 may stand as they are.',
          schema: { type: 'string', pattern: '^([A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}$', minLength: 2 },
        },
        ...parameters('Service-Worker'),
      ],
      responses: {
        '200': answer({
          description: 'The HTML, in the sandbox of content.',
          headers: SHOWN,
          content: { 'text/html': { type: 'string' } },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'Not base64, nothing at all, or a service worker.',
        }),
        '414': errorAnswer({ codes: ['TOO_LARGE'], description: 'A longer path than the operator allows.' }),
        '431': errorAnswer({
          codes: ['TOO_LARGE'],
          description: 'More path and headers together than the operator allows.',
        }),
      },
    },
  },
  '/preview': {
    post: {
      operationId: 'preview',
      tags: ['preview'],
      summary: 'A body as it would be served if it were inscribed; nothing is stored',
      parameters: parameters('Service-Worker'),
      requestBody: {
        description: 'Up to 1 MiB, of the `Content-Type` that it is to be shown as.',
        required: true,
        content: { '*/*': { schema: {} } },
      },
      responses: {
        '200': answer({
          description: 'The body, in the sandbox of content where a browser would run it.',
          headers: SHOWN,
          content: { '*/*': {} },
        }),
        '400': errorAnswer({
          codes: ['BAD_BODY'],
          description: 'Nothing at all, not packed as it says, or a service worker.',
        }),
        '413': errorAnswer({ codes: ['TOO_LARGE'], description: 'More than 1 MiB.' }),
      },
    },
  },
}
