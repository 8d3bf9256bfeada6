import type { Request, RequestHandler, Response } from 'express'
import type { GraphReader } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary } from '../../../backend/src/graph/records.js'
import {
  formatOutpoint,
  PointerError,
  parseContentReference,
} from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError } from '../http/errors.js'
import { percentDecoded } from '../http/percent-decode.js'
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
      throw new BadRequestError('BAD_OUTPOINT', 'the path after the outpoint has an invalid percent-escape')
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
