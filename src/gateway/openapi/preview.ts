import { z } from 'zod'
import { CONTENT_SECURITY, type Operation, SERVICE_WORKER } from '../http/operation.js'
import { BASE64 } from '../preview/preview.js'

const HEADERS: Operation['answer']['headers'] = ['Cache-Control', 'Content-Length', ...CONTENT_SECURITY]

export const PREVIEW_OPERATIONS: Operation[] = [
  {
    route: 'GET /preview/{html}',
    id: 'previewHtml',
    tag: 'preview',
    summary: 'HTML as it would be served if it were inscribed; nothing is stored',
    params: z.object({
      html: z
        .string()
        .min(2)
        .regex(BASE64)
        .describe(
          'The HTML as base64 or base64url, with or without padding. The slashes of base64 need no escape.',
        ),
    }),
    headers: SERVICE_WORKER,
    answer: { description: 'The HTML, in the sandbox of content.', headers: HEADERS, types: ['text/html'] },
    errors: {
      BAD_BODY: 'The path does not end with base64, or a service worker is being installed.',
      '414 TOO_LARGE': 'The path is longer than the operator allows.',
      '431 TOO_LARGE': 'The path and the headers together are longer than the operator allows.',
    },
  },
  {
    route: 'POST /preview',
    id: 'preview',
    tag: 'preview',
    summary: 'A body as it would be served if it were inscribed; nothing is stored',
    headers: SERVICE_WORKER,
    body: {
      description: 'Up to 1 MiB, with the `Content-Type` that it should be shown as.',
      types: ['*/*'],
    },
    answer: {
      description: 'The body, in the sandbox of content if a browser would run it.',
      headers: HEADERS,
      types: ['*/*'],
    },
    errors: {
      BAD_BODY: 'The body is empty or not encoded as it says, or a service worker is being installed.',
      TOO_LARGE: 'The body is over 1 MiB.',
    },
  },
]
