import type { Express, Request, RequestHandler, Response } from 'express'
import {
  type ContentReference,
  formatOutpoint,
  PointerError,
  parseContentReference,
} from '../../backend/src/protocol/outpoint.js'
import type { ContentStore } from './content-output.js'
import { type ContentRoot, contentRoot } from './content-root.js'
import { fileFinder } from './directory.js'
import { BadRequestError } from './error-response.js'
import { ownMapHeaders } from './map-headers.js'
import { percentDecoded } from './percent-decode.js'
import { sendContent } from './send-content.js'
import { refuseServiceWorkers } from './service-worker.js'

export interface ContentOptions {
  store: ContentStore
  /** The content types of directories (`Profile`). */
  directoryContentTypes: string[]
  /** The `Content-Security-Policy` of what a browser would run. */
  policy: string
  /** The longest JSON of a directory that paths lead into, in bytes. */
  maxDirectoryBytes: number
}

/**
 * `GET /content/{pointer}[:seq][/filepath]`: the bytes that an output holds, with their type (`service.md` 4.1, 4.2).
 * Straight on the app: a router of its own takes time that `npm run bench gateway` shows.
 */
export function attachContent(app: Express, options: ContentOptions): void {
  // Not a path with parameters: Express would decode those before anything here is split.
  app.get(/^\/content\/./, refuseServiceWorkers, serveContent(options))
}

interface Asked {
  reference: ContentReference
  segments: string[]
  raw: boolean
}

/** All that is said before the first byte. */
interface Answer {
  root: ContentRoot
  found: Awaited<ReturnType<ReturnType<typeof fileFinder>>>
  /** `X-Map` and `X-Parent` of the file. */
  own: Record<string, string>
}

function serveContent(options: ContentOptions): RequestHandler {
  const { store, policy } = options
  const findFile = fileFinder(options)
  const lookUp = async ({ reference, ...asked }: Asked): Promise<Answer> => {
    const root = await contentRoot(store, reference)
    const found = await findFile({ root: root.output, ...asked })
    if (found.kind === 'index') return { root, found, own: {} }
    const { file } = found
    const own = file === root.output ? await root.own() : await ownMapHeaders(store, file)
    return { root, found, own }
  }
  return async (request, response) => {
    const { reference, segments } = splitPath(request)
    const asked = { reference: parseContentReference(reference), segments, raw: asksForRaw(request) }
    const { root, found, own } = await store.consistent(() => lookUp(asked))
    response.setHeader('Cache-Control', root.cache)
    setHeaders(response, root.headers)
    if (found.kind === 'index') {
      redirectToIndex(request, response)
      return
    }
    const { file } = found
    response.setHeader('X-Outpoint', formatOutpoint(file === root.output ? root.outpoint : file.outpoint))
    setHeaders(response, own)
    await sendContent({ request, response, store, content: file.content, policy })
  }
}

function setHeaders(response: Response, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

/** Express reads the query anew whenever it is asked for. */
function asksForRaw(request: Request): boolean {
  return request.url.includes('?') && request.query.raw !== undefined
}

/** The path is split as written, and each segment is decoded once after that. */
function splitPath(request: Request): { reference: string; segments: string[] } {
  const [, , first = '', ...segments] = request.path.split('/')
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
    .set('Location', `${request.path.replace(/\/$/, '')}/index.html${query}`)
    .end()
}
