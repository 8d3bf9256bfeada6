import type { Request, RequestHandler } from 'express'
import { z } from 'zod'
import { type Dependency, dependenciesOfOutput } from '../../../backend/src/graph/dependencies.js'
import { CHUNK_BYTES } from '../../../backend/src/graph/records.js'
import { whenReady } from '../../../backend/src/graph/yield-to-event-loop.js'
import { percentDecoded } from '../../../backend/src/protocol/bytes.js'
import {
  decodedPointer,
  formatOutpoint,
  type Outpoint,
  parseContentReference,
} from '../../../backend/src/protocol/outpoint.js'
import { withQuery } from '../../../backend/src/protocol/redirects.js'
import { type ByteRange, SHORT_BODY } from '../../../backend/src/read/content.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { CACHE, digestField, type Exchange } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayLimits, GatewayParts } from '../http/gateway-parts.js'
import {
  CONTENT_HEADERS,
  DAMAGED,
  type HeaderName,
  type Operation,
  type OperationGroup,
  ORIGIN_PENDING,
  SERVICE_WORKER,
  STORE_ERRORS,
} from '../http/operation.js'
import { askedReference, optionalText, text } from '../http/schemas.js'
import { refuseServiceWorker, servedType } from '../http/security-headers.js'
import { contentRepresentation, type Header, ofLength, shortOf } from '../http/send-body.js'
import {
  passingErrors,
  type QueryKey,
  type RangeReader,
  StoredResponse,
  sendStored,
} from '../http/stored-response.js'
import {
  type ContentRoot,
  contentRoot,
  type MapOptions,
  outputHeaders,
  type ShownContent,
} from './content-root.js'
import { type Ahead, afterLong, FileFinder, shownBy } from './directory.js'
import { Patches } from './patches.js'

/** The origin to which pages in the content of an outpoint redirect, if there is one. */
type OriginOf = (request: Request, outpoint: Outpoint) => string | undefined

/** Not a path with parameters: Express would decode them before the path is split. */
export const CONTENT_PATH = /^\/content\/./
/** The route of these requests, for metrics: not all of them go through Express. */
const CONTENT_ROUTE = { path: CONTENT_PATH }

/**
 * Added to the sandbox of content in a frame of the explorer: it may use inscribed content of this host, but no other host
 * learns who looks at a list of strangers' content. It may not frame anything, since that would come without this policy.
 */
export const FRAMED_POLICY =
  "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-src 'none'; object-src 'none'; form-action 'none'; base-uri 'self'"

/** A redirect to the requested content: to the index of a directory, the origin of a page, or a target that a site names. */
export class ContentRedirect {
  readonly weight: number

  constructor(
    readonly headers: readonly Header[],
    readonly dependsOn: readonly Dependency[],
    /** The output to whose origin it leads, or a `Location` with its status; undefined for `index.html` below the path. */
    readonly to?: Outpoint | { status: number; location: string },
  ) {
    this.weight = to !== undefined && 'location' in to ? to.location.length : 0
  }
}

/** A path below a root, and the options of the answer. */
export interface ContentQuestion extends MapOptions {
  /** Decoded. A trailing slash adds an empty segment. */
  segments: string[]
  /** Whether to serve directories and patches as inscribed. */
  raw: boolean
  /** Whether the path is on the host of a name or an outpoint. */
  isSite?: boolean
  headers?: readonly Header[]
  policy: string | undefined
  /** Long reads that are done; see {@link afterLong}. */
  read: Ahead | undefined
}

/** What routes share that show content. */
export interface ContentParts extends GatewayParts {
  answers: ContentAnswers
}

/** Answers paths below a root, wherever the root was found: the only way from a path to a response. */
export class ContentAnswers {
  readonly patches: Patches
  readonly files: FileFinder

  constructor(private readonly options: Pick<GatewayParts, 'store' | 'profile'> & GatewayLimits) {
    this.patches = new Patches(options)
    this.files = new FileFinder({ ...options, patches: this.patches })
  }

  /** @throws as {@link FileFinder.find}. */
  answer(
    root: ContentRoot,
    { segments, raw, isSite = false, isMapAsked, headers: others = [], policy, read }: ContentQuestion,
  ): StoredResponse | ContentRedirect {
    const { store, maxMapBytes } = this.options
    const isRecord = raw && segments.length <= 1 && !segments[0]
    const shown = isRecord ? root.output : shownBy(this.patches, root.output, read)
    const found = this.files.find({ root: shown, segments, raw }, { isSite, read })
    const { dependsOn } = root
    const headers: Header[] = [['Cache-Control', root.cache], ...Object.entries(root.headers), ...others]
    if (found.kind === 'index') return new ContentRedirect(headers, dependsOn)
    if (found.kind === 'moved') return new ContentRedirect(headers, dependsOn, found)
    const { file, status } = found
    const isRoot = file === shown
    const metadata = isRoot
      ? root.metadataHeaders({ isMapAsked, maxMapBytes })
      : outputHeaders(store, file, { isMapAsked, maxMapBytes })
    const outpoint = formatOutpoint(isRoot ? root.outpoint : file.outpoint)
    const body = bodyOf(store, file.content)
    const representation = contentRepresentation(file.content, {
      headers: [...headers, ['X-Outpoint', outpoint], ...Object.entries(metadata)],
      ...{ policy, status, isSite },
      start: typeof body === 'function' ? () => startOf(store, file.content) : body,
    })
    const digest = digestField(file.content.sha256)
    return new StoredResponse({ ...representation, digest }, body, [
      ...dependsOn,
      ...dependenciesOfOutput(file),
    ])
  }
}

/**
 * `GET /content/{pointer}[:seq][/filepath]`: the bytes in an output, with their type (`docs/spec/http.md`, Content).
 *
 * @param originOf If missing, pages are served here, too.
 */
export function contentHandler(
  { store, policy, responses, answers }: ContentParts,
  originOf: OriginOf | undefined,
): RequestHandler {
  const framedPolicy = `${policy}; ${FRAMED_POLICY}`
  const resolve = (
    path: string,
    { framed, ...flags }: Flags,
    read: Ahead | undefined,
  ): StoredResponse | ContentRedirect => {
    // The path is split before each segment is decoded, once.
    const [, , reference = '', ...segments] = path.split('/')
    const root = contentRoot(store, parseContentReference(decodedPointer(reference)))
    const question = {
      segments: decodedSegments(segments),
      ...flags,
      policy: framed ? framedPolicy : policy,
      read,
    }
    const answer = answers.answer(root, question)
    const isElsewhere =
      originOf !== undefined &&
      !framed &&
      answer instanceof StoredResponse &&
      servedType(answer.representation.contentType).document
    if (!isElsewhere) return answer
    // Not cached forever, as the setting may change.
    return new ContentRedirect([['Cache-Control', CACHE.revalidate]], root.dependsOn, root.output.outpoint)
  }
  return (request, response, next) => {
    request.route = CONTENT_ROUTE
    passingErrors(() => {
      refuseServiceWorker(request)
      const { path } = request
      const flags = flagsOf(request)
      const resolved = afterLong(response, (read) =>
        responses.cached(request, () => resolve(path, flags, read), flagsKey),
      )
      return whenReady(resolved, (found) => {
        if (found instanceof StoredResponse) {
          found.queryKey = flagsKey
          return sendStored({ request, response, stored: found })
        }
        sendRedirect({
          ...{ request, response, redirect: found, originOf },
          below: /^\/content\/[^/]*(.*)$/.exec(path)?.[1] || '/',
        })
      })
    }, next)
  }
}

/** @param below The requested path, as it is on the origin of the output. */
export function sendRedirect(
  exchange: Exchange & { redirect: ContentRedirect; originOf: OriginOf | undefined; below: string },
): void {
  const { request, response, originOf, below } = exchange
  const { headers, to } = exchange.redirect
  const { status = 302, location } = to !== undefined && 'location' in to ? to : {}
  const origin = to !== undefined && 'txid' in to ? originOf?.(request, to) : undefined
  const place = location ?? (origin === undefined ? undefined : origin + below)
  for (const [name, value] of headers) response.setHeader(name, value)
  // The query as sent: Express's redirect would escape it again.
  const query = /\?.*$/.exec(request.originalUrl)?.[0] ?? ''
  const index = `${request.baseUrl}${request.path.replace(/\/$/, '')}/index.html`
  response.status(status).setHeader('Location', withQuery(place ?? index, query))
  response.end()
}

/** The bytes of a short body, else a function that reads a range. */
export function bodyOf(store: GraphReads, { sha256, length, made }: ShownContent): StoredResponse['body'] {
  if (made !== undefined) return made.body()
  if (length > SHORT_BODY) return (range) => bytesOf(store, sha256, range)
  const body = store.content.chunk(sha256, 0)
  if (body?.length !== length) throw shortOf({ sha256, length }, body?.length ?? 0)
  return body
}

function startOf(store: GraphReads, { sha256, made }: ShownContent): Uint8Array | undefined {
  return made === undefined ? store.content.chunk(sha256, 0) : made.bytes().subarray(0, CHUNK_BYTES)
}

/** A range of a body; synchronously if it is within one chunk. */
function bytesOf({ content }: GraphReads, sha256: string, range: ByteRange): ReturnType<RangeReader> {
  const { from, length } = range
  const position = Math.floor(from / CHUNK_BYTES)
  const start = from - position * CHUNK_BYTES
  if (start + length > CHUNK_BYTES) return ofLength(content.chunks(sha256, range), { sha256, length })
  const bytes = content.chunk(sha256, position)?.subarray(start, start + length)
  if (bytes?.length !== length) throw shortOf({ sha256, length }, bytes?.length ?? 0)
  return bytes
}

interface Flags extends MapOptions {
  raw: boolean
  /** Whether the answer is for a frame that must reach no other host. */
  framed: boolean
}

const NO_FLAGS: Flags = { raw: false, isMapAsked: false, framed: false }

/** Checks for a query first, as Express parses it again for each access. */
export function flagsOf(request: Request): Flags {
  if (!request.url.includes('?')) return NO_FLAGS
  const { raw, map, framed } = request.query
  return { raw: raw !== undefined, isMapAsked: map === 'true', framed: framed !== undefined }
}

export const flagsKey: QueryKey = (request) => {
  const { raw, isMapAsked, framed } = flagsOf(request)
  return (raw ? 'raw' : '') + (isMapAsked ? 'map' : '') + (framed ? 'framed' : '')
}

/** @throws AnswerError if an escape is broken. */
export function decodedSegments(segments: readonly string[]): string[] {
  return segments.map((segment) => {
    const name = percentDecoded(segment)
    if (name !== undefined) return name
    throw new AnswerError('BAD_OUTPOINT', 'the path after the outpoint has an invalid percent-escape')
  })
}

const OUTPUT_HEADERS: HeaderName[] = ['X-Outpoint', 'X-Origin', 'X-Ord-Seq', 'X-Map', 'X-Parent']
const answer: Operation['answer'] = {
  description: 'The content, with its inscribed type if that is a valid media type.',
  headers: [...CONTENT_HEADERS, 'ETag', 'Accept-Ranges', 'Repr-Digest', 'Content-Digest', ...OUTPUT_HEADERS],
  types: ['*/*'],
}

const map = optionalText('`true` raises the limit of `X-Map` from 4 KiB to 12 KiB. A longer one is omitted.')
const framed = optionalText(
  'If present, with any value, the Content-Security-Policy of active content blocks requests to other hosts. For previews in a frame.',
)

/** OpenAPI needs two templates for this route. */
export const CONTENT_OPERATIONS: OperationGroup = {
  tag: 'content',
  errors: {
    BAD_OUTPOINT: 'The pointer is not an outpoint, or the path has an invalid percent-escape.',
    BAD_SEQUENCE: 'The sequence is not a number.',
    BAD_BODY: 'A service worker is being installed.',
    BAD_PATCH: 'A patch cannot be applied, or a chain of patches is longer than 16.',
    BAD_DIRECTORY: 'A binary directory on the path is malformed at byte `offset`.',
    NESTING_TOO_DEEP: 'The path leads through more than 8 directories and symbolic links.',
    ORIGIN_PENDING,
    NOT_FOUND:
      'The output, step, directory entry or base of a patch is not in this store, or the directory has neither a default entry nor an index.',
    BLOCKED: 'The operator has blocked the output, its content, or the name whose origin it is.',
    ...STORE_ERRORS,
  },
  operations: {
    content: {
      route: 'GET /content/{reference}',
      summary: 'The bytes of an output, or of an ordinal at a step',
      description:
        'For a directory, the default entry (`.`) if it has one, otherwise a redirect to its `index.html`. A trailing slash makes no difference.',
      params: z.object({ reference: askedReference }),
      query: z.object({
        raw: optionalText('If present, with any value, directories and patches are returned as inscribed.'),
        map,
        framed,
      }),
      headers: SERVICE_WORKER,
      answer,
      errors: { DAMAGED },
      otherAnswers: {
        302: {
          description: 'The directory has an `index.html` but no default entry.',
          headers: ['Location', 'X-Origin', 'X-Ord-Seq'],
        },
      },
    },
    file: {
      route: 'GET /content/{reference}/{filepath}',
      summary: 'A file in a directory',
      description:
        'If the directory has no entry for the last segment of the path, its `index.html` is returned. Any path below content that is not a directory returns that content.',
      params: z.object({
        reference: askedReference,
        filepath: text.describe(
          'Slash-separated segments, each percent-encoded on its own. OpenAPI cannot describe parameters that contain slashes: send the slashes unescaped.',
        ),
      }),
      query: z.object({
        raw: optionalText('If present, with any value, a patch is returned as inscribed.'),
        map,
        framed,
      }),
      headers: SERVICE_WORKER,
      answer,
    },
  },
}
