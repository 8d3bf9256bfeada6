import { z } from 'zod'
import { CONTENT_SECURITY, type Operation, SERVICE_WORKER, STORE_ERRORS } from '../http/operation.js'
import { askedOutpoint } from '../http/schemas.js'

export const STREAM_OPERATIONS: Operation[] = [
  {
    route: 'GET /stream/{outpoint}',
    id: 'stream',
    tag: 'content',
    summary: 'The content of an ordinal from an output on, step after step, as one body',
    description:
      "The output's own content and that of the following steps, up to the first one that has no content, has a type that chunks do not have, or is not in this store. It may start at any chunk.",
    params: z.object({ outpoint: askedOutpoint }),
    headers: SERVICE_WORKER,
    answer: {
      description: "The stream, with its first chunk's type, even if it was requested from a later one.",
      headers: [
        'Content-Length',
        'Cache-Control',
        'ETag',
        'Accept-Ranges',
        'X-Outpoint',
        'X-Origin',
        ...CONTENT_SECURITY,
      ],
      types: ['*/*'],
    },
    errors: {
      BAD_OUTPOINT: 'The path does not end with an outpoint.',
      BAD_BODY: 'A service worker is being installed.',
      NOT_FOUND: 'This store has no content there.',
      BLOCKED: 'The operator has blocked the output or one of its chunks.',
      ...STORE_ERRORS,
    },
  },
]
