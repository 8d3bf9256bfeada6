import { z } from 'zod'
import {
  CONTENT_SECURITY,
  type HeaderName,
  type Operation,
  SERVICE_WORKER,
  STORE_ERRORS,
} from '../http/operation.js'
import { askedReference, text } from '../http/schemas.js'

const HEADERS: readonly HeaderName[] = [
  'Content-Length',
  'Cache-Control',
  'ETag',
  'Accept-Ranges',
  'X-Outpoint',
  'X-Origin',
  'X-Ord-Seq',
  'X-Map',
  'X-Parent',
  ...CONTENT_SECURITY,
]

const SHARED = {
  tag: 'content',
  headers: SERVICE_WORKER,
  answer: {
    description: 'The content, with its inscribed type if that is a valid one.',
    headers: HEADERS,
    types: ['*/*'],
  },
  errors: {
    BAD_OUTPOINT: 'The pointer is not an outpoint, or an escape in the path is broken.',
    BAD_SEQUENCE: 'The sequence is not a number.',
    BAD_BODY: 'A service worker is being installed.',
    NESTING_TOO_DEEP: 'The path leads through more than 8 directories.',
    NOT_FOUND:
      'This store has no such output or step, or nothing is there: no such entry, no default and no index.',
    BLOCKED: 'The operator has blocked the output, its content, or the name that it is the origin of.',
    ...STORE_ERRORS,
  },
} satisfies Partial<Operation>

/** `GET /content/{pointer}[:seq][/filepath]`, which takes two templates in OpenAPI. */
export const CONTENT_OPERATIONS: Operation[] = [
  {
    ...SHARED,
    route: 'GET /content/{reference}',
    id: 'content',
    summary: 'The bytes of an output, or of an ordinal at a step',
    description:
      'For a directory, the default entry (`.`), or else a redirect to its `index.html`. A trailing slash makes no difference.',
    params: z.object({ reference: askedReference }),
    query: z.object({
      raw: z
        .string()
        .optional()
        .describe('If present, with any value, a directory is sent as it was inscribed.'),
    }),
    otherAnswers: {
      302: {
        description: 'The output is a directory that has no default entry and an `index.html`.',
        headers: ['Location', 'Cache-Control', 'X-Origin', 'X-Ord-Seq'],
      },
    },
  },
  {
    ...SHARED,
    route: 'GET /content/{reference}/{filepath}',
    id: 'file',
    summary: 'A file in a directory',
    description:
      'If a directory does not have the last segment of the path, its `index.html` is sent. Below content that is not a directory, every path leads to that content.',
    params: z.object({
      reference: askedReference,
      filepath: text.describe(
        'One or more segments with slashes between them, each percent-encoded on its own. OpenAPI cannot describe a parameter with slashes: send them unescaped.',
      ),
    }),
  },
]
