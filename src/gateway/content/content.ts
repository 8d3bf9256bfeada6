import type { Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import type { GraphReader } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import {
  formatOutpoint,
  PointerError,
  parseContentReference,
} from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError } from '../http/errors.js'
import {
  CONTENT_HEADERS,
  type HeaderName,
  type Operation,
  type OperationGroup,
  SERVICE_WORKER,
  STORE_ERRORS,
} from '../http/operation.js'
import { percentDecoded } from '../http/percent-decode.js'
import { askedReference, optionalText, text } from '../http/schemas.js'
import { refuseServiceWorkers } from '../http/service-worker.js'
import { ownMapHeaders } from '../metadata/map-headers.js'
import { contentRoot } from './content-root.js'
import { fileFinder } from './directory.js'
import { sendContent } from './send-content.js'

export interface ContentOptions {
  store: GraphReader
  /** The content types of directories (`Profile`). */
  directoryContentTypes: string[]
  /** The `Content-Security-Policy` of what a browser would run. */
  policy: string
  /** The longest JSON of a directory that paths lead into, in bytes. */
  maxDirectoryBytes: number
  /** The JSON of all directories that one path leads through, in bytes. */
  maxPathBytes: number
}

/** Not a path with parameters: Express would decode those before anything here is split. */
export const CONTENT_PATH = /^\/content\/./

/** `GET /content/{pointer}[:seq][/filepath]`: the bytes that an output holds, with their type (`service.md` 4.1, 4.2). */
export function contentHandlers(options: ContentOptions): RequestHandler[] {
  return [refuseServiceWorkers, serveContent(options)]
}

/** What there is at a path. */
interface Answer {
  /** Of where it is and what is said of it there: what its bytes alone say comes with them. */
  headers: [name: string, value: string][]
  /** Undefined where it is a directory with an index. */
  content: ContentSummary | undefined
}

function serveContent(options: ContentOptions): RequestHandler {
  const { store, policy } = options
  const findFile = fileFinder(options)
  const lookUp = async (path: string, raw: boolean): Promise<Answer> => {
    const { reference, segments } = splitPath(path)
    const root = await contentRoot(store, parseContentReference(reference))
    const found = await findFile({ root: root.output, segments, raw })
    const said = { 'Cache-Control': root.cache, ...root.headers }
    if (found.kind === 'index') return { headers: Object.entries(said), content: undefined }
    const { file } = found
    const isRoot = file === root.output
    const own = isRoot ? await root.own() : await ownMapHeaders(store, file)
    const outpoint = formatOutpoint(isRoot ? root.outpoint : file.outpoint)
    return { headers: Object.entries({ ...said, 'X-Outpoint': outpoint, ...own }), content: file.content }
  }
  const serve = async (request: Request, response: Response): Promise<void> => {
    const { path } = request
    const raw = asksForRaw(request)
    const { headers, content } = await store.consistent(() => lookUp(path, raw), {
      key: `content ${raw} ${path}`,
      weightOf,
    })
    for (const [name, value] of headers) response.setHeader(name, value)
    if (content === undefined) redirectToIndex(request, response)
    else await sendContent({ request, response, store, content, policy })
  }
  // Straight on an app, which may be one of Express 4: that takes no promise for what went wrong.
  return (request, response, next) => {
    serve(request, response).catch(next)
  }
}

function weightOf({ headers }: Answer): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
}

/** Express reads the query anew whenever it is asked for. */
function asksForRaw(request: Request): boolean {
  return request.url.includes('?') && request.query.raw !== undefined
}

/** The path is split as written, and each segment is decoded once after that. */
function splitPath(path: string): { reference: string; segments: string[] } {
  const [, , first = '', ...segments] = path.split('/')
  const reference = percentDecoded(first)
  if (reference === undefined) throw new PointerError('BAD_OUTPOINT', first)
  return {
    reference,
    segments: segments.map((segment) => {
      const name = percentDecoded(segment)
      if (name !== undefined) return name
      throw new BadRequestError('BAD_OUTPOINT', 'the path behind the outpoint has a broken escape')
    }),
  }
}

/** 302 to `{path}/index.html`, with the query as it came: a redirect of Express would escape it once more. */
function redirectToIndex(request: Request, response: Response): void {
  const query = /\?.*$/.exec(request.originalUrl)?.[0] ?? ''
  response
    .status(302)
    .set('Location', `${request.baseUrl}${request.path.replace(/\/$/, '')}/index.html${query}`)
    .end()
}

const OUTPUT_HEADERS: HeaderName[] = ['X-Outpoint', 'X-Origin', 'X-Ord-Seq', 'X-Map', 'X-Parent']
const answer: Operation['answer'] = {
  description: 'The content, with its inscribed type if that is a valid one.',
  headers: [...CONTENT_HEADERS, 'ETag', 'Accept-Ranges', ...OUTPUT_HEADERS],
  types: ['*/*'],
}

/** Two templates to OpenAPI. */
export const CONTENT_OPERATIONS: OperationGroup = {
  tag: 'content',
  errors: {
    BAD_OUTPOINT: 'The pointer is not an outpoint, or an escape in the path is broken.',
    BAD_SEQUENCE: 'The sequence is not a number.',
    BAD_BODY: 'A service worker is being installed.',
    NESTING_TOO_DEEP: 'The path leads through more than 8 directories.',
    NOT_FOUND: 'This store has no such output, step or entry, or the directory has no default and no index.',
    BLOCKED: 'The operator has blocked the output, its content, or the name that it is the origin of.',
    ...STORE_ERRORS,
  },
  operations: {
    content: {
      route: 'GET /content/{reference}',
      summary: 'The bytes of an output, or of an ordinal at a step',
      description:
        'For a directory, the default entry (`.`), or else a redirect to its `index.html`. A trailing slash makes no difference.',
      params: z.object({ reference: askedReference }),
      query: z.object({ raw: optionalText('If present, with any value, directories come as inscribed.') }),
      headers: SERVICE_WORKER,
      answer,
      otherAnswers: {
        302: {
          description: 'A directory that has no default entry, but an `index.html`.',
          headers: ['Location', 'X-Origin', 'X-Ord-Seq'],
        },
      },
    },
    file: {
      route: 'GET /content/{reference}/{filepath}',
      summary: 'A file in a directory',
      description:
        'If the directory lacks the last segment of the path, its `index.html` is sent. Below content that is not a directory, every path leads to that content.',
      params: z.object({
        reference: askedReference,
        filepath: text.describe(
          'Segments with slashes between them, each percent-encoded on its own. OpenAPI cannot describe parameters with slashes: send them unescaped.',
        ),
      }),
      headers: SERVICE_WORKER,
      answer,
    },
  },
}
