import { promisify, types } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Request, RequestHandler, Response } from 'express'
import type { Dependency } from '../../../backend/src/graph/dependencies.js'
import { whenReady } from '../../../backend/src/graph/yield-to-event-loop.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import type { ByteRange } from '../../../backend/src/read/content.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import type { AsOf, TreeProgress } from './as-of.js'
import { CACHE, type Exchange, endedByPrecondition, tagOf } from './caching.js'
import { codingFor, compressed, type Encoded, encodedAs, isText, WORTH } from './compression.js'
import { Multipart } from './range.js'
import {
  bytesRepresentation,
  type Chunks,
  type Header,
  type HeaderFor,
  JSON_TYPE,
  type Representation,
  sendChunks,
  sendHead,
  setHeaders,
} from './send-body.js'
import { NOTHING_FOLLOWED, namesHeaders } from './tree-progress.js'

/**
 * The part of a query that changes the answer, as the end of a cache key; unknown parameters are ignored. Undefined if the answer
 * must not be cached, since anybody could create any number of variants.
 */
export type QueryKey = (request: Request) => string | undefined

export const noneOfQuery: QueryKey = () => ''

/** For a route whose answers are cached unless a request has one of these parameters. */
export function unlessAsked(parameters: readonly string[]): QueryKey {
  return ({ query }) => (parameters.some((name) => query[name] !== undefined) ? undefined : '')
}

/** Reads a range of a body for a response, as a whole or in chunks. */
export type RangeReader = (range: ByteRange, response: Response) => Uint8Array | Chunks<Uint8Array>

/**
 * A response to GET that a store may cache (RFC 9111), as it is the same for everybody until one of its dependencies changes. It
 * contains everything that is sent, so that the next request for it needs no route.
 */
export class StoredResponse {
  /** The route that made it, for metrics. */
  route: Request['route']
  /** The part of the query that changes the response of that route. */
  queryKey: QueryKey = noneOfQuery
  /** The body in the codings that were asked for; null if compression saves little. */
  private encoded: { [Coding in keyof Encoded]: Encoded[Coding] | null } | undefined
  /**
   * Content of ordinals is not compressed: it can be read in ranges, and is verified as sent. Neither is a body without a tag,
   * which distinguishes codings.
   */
  private readonly isCompressible: boolean

  /** @param body The bytes, or a function that reads a range of them. */
  constructor(
    public representation: Representation,
    public body: Uint8Array | RangeReader,
    readonly dependsOn: readonly Dependency[],
  ) {
    const { hasRanges, tag, contentType } = representation
    this.isCompressible = hasRanges !== true && tag !== undefined && isText(contentType)
  }

  /** Its approximate size in bytes. */
  get weight(): number {
    const { headers } = this.representation
    const length = typeof this.body === 'function' ? 0 : this.body.length
    const bytes = this.isCompressible ? Math.ceil(length * (1 + 2 * WORTH)) : length
    return headers.reduce((sum, [name, value]) => sum + name.length + value.length, bytes)
  }

  /** Enables compression for clients that accept it, for a response that is sent repeatedly: each coding is made once. */
  compress(encoded: Encoded = {}): this {
    if (this.isCompressible) this.encoded ??= encoded
    return this
  }

  /** Drops compressed forms after the body changed. */
  protected recompress(): void {
    if (this.encoded !== undefined) this.encoded = {}
  }

  /** The response for a client. */
  for(request: Request): Pick<StoredResponse, 'representation' | 'body'> {
    const { body, encoded } = this
    if (typeof body === 'function' || !this.isCompressible) return this
    const { headers } = this.representation
    const representation = { ...this.representation, headers: [...headers, VARIES] }
    const coding = codingFor(request)
    if (encoded === undefined || coding === undefined) return { representation, body }
    const made = encoded[coding] === undefined ? compressed(body, coding) : encoded[coding]
    encoded[coding] = made ?? null
    if (!made) return { representation, body }
    return { representation: encodedAs(representation, { coding, length: made.length }), body: made }
  }
}

const VARIES = ['Vary', 'Accept-Encoding'] as const

/** Where the body of a response about names states its block, and in what form. */
interface AsOfPlace {
  /** In bytes from the start of the body. */
  at: number
  text: (asOf: AsOf) => string
}

/**
 * A response about names. It states the block up to which it holds, which changes with every block while the rest stays valid: so
 * it is inserted when the response is sent, once per block.
 */
export class NamesResponse extends StoredResponse {
  private readonly bare: Representation
  private asOf: AsOf | undefined
  /** How many bytes were inserted. */
  private inserted = 0

  constructor(
    representation: Representation,
    override body: Uint8Array,
    dependsOn: readonly Dependency[],
    private readonly place: AsOfPlace,
  ) {
    super(representation, body, dependsOn)
    this.bare = representation
  }

  stamp(progress: TreeProgress): void {
    const { asOf, isCatchingUp } = progress
    if (asOf === this.asOf && !isCatchingUp) return
    const { at, text } = this.place
    const said = Buffer.from(asOf === undefined ? '' : text(asOf), 'utf8')
    this.body = Buffer.concat([this.body.subarray(0, at), said, this.body.subarray(at + this.inserted)])
    this.inserted = said.length
    this.asOf = asOf
    this.recompress()
    const { headers, tag: bareTag } = this.bare
    const tag = bareTag && asOf && tagAsOf(bareTag, asOf)
    this.representation = {
      ...this.bare,
      headers: [
        ...headers.map((header) => (header[0] === 'ETag' && tag ? (['ETag', tag] as const) : header)),
        ...namesHeaders(progress),
      ],
      length: this.body.length,
      ...(tag && { tag }),
    }
  }
}

/** How much of a hash is in an entity tag: the end, as hashes begin with zeros. */
const SHOWN_OF_HASH = 16

/** The entity tag of a body with the inserted block. */
export function tagAsOf(tag: string, { height, hash = String(height) }: AsOf): string {
  return `${tag.slice(0, -1)}-${hash.slice(-SHOWN_OF_HASH)}"`
}

/** A response with JSON about names: an object with at least one field, to which `asOf` is appended. */
export function namesJsonResponse(value: object, options?: JsonOptions): NamesResponse {
  const { representation, body, dependsOn } = jsonResponse(value, options)
  const text = (asOf: AsOf): string => `,"asOf":${JSON.stringify(asOf)}`
  return new NamesResponse(representation, body as Buffer, dependsOn, { at: representation.length - 1, text })
}

interface JsonOptions {
  /** By default, clients have to revalidate it. */
  cache?: string | undefined
  /** By default, nothing: it is made for one request. */
  dependsOn?: readonly Dependency[]
}

/** A response with JSON, and an entity tag. */
export function jsonResponse(value: unknown, options: JsonOptions = {}): StoredResponse {
  const { cache = CACHE.revalidate, dependsOn = [] } = options
  const body = Buffer.from(JSON.stringify(value), 'utf8')
  const tag = tagOf(body, JSON_TYPE)
  const headers: Header[] = [
    ['Cache-Control', cache],
    ['ETag', tag],
  ]
  return new StoredResponse({ headers, contentType: JSON_TYPE, length: body.length, tag }, body, dependsOn)
}

/** A response with bytes that browsers neither show nor run, and an entity tag. */
export function bytesResponse(
  body: Uint8Array,
  { cache, headers, dependsOn = [] }: JsonOptions & { cache: string; headers?: readonly Header[] },
): StoredResponse {
  const options = { cache, length: body.length, tag: tagOf(body, UNTYPED), ...(headers && { headers }) }
  return new StoredResponse(bytesRepresentation(options), body, dependsOn)
}

/**
 * A response about names with text of some type, and an entity tag.
 *
 * @param options.place A mark in the text where the block is stated; without one, only a header states it.
 */
export function textResponse(
  text: string,
  options: {
    headers: Readonly<Record<string, HeaderFor[1]>>
    type: string
    dependsOn: readonly Dependency[]
    place?: { mark: string; text: (asOf: AsOf) => string }
  },
): NamesResponse {
  const body = Buffer.from(text, 'utf8')
  const tag = tagOf(body, options.type)
  const headers: HeaderFor[] = [...Object.entries(options.headers), ['ETag', tag]]
  const { place } = options
  const at = place === undefined ? -1 : body.lastIndexOf(place.mark)
  return new NamesResponse(
    { headers, contentType: options.type, length: body.length, tag },
    body,
    options.dependsOn,
    place === undefined || at < 0 ? { at: body.length, text: () => '' } : { at, text: place.text },
  )
}

/** A cached response, or something from which one is made each time. */
type Cached = Pick<StoredResponse, 'dependsOn' | 'weight'>

/** Each gateway has its own options, and so its own responses to the same paths. */
let gateways = 0

export class ResponseCache {
  private readonly prefix = `${++gateways}:`

  constructor(
    private readonly store: GraphReads,
    private readonly progress: TreeProgress = NOTHING_FOLLOWED,
  ) {}

  /**
   * The cached answer to a request, or else what `read` returns, which may be cached. The key is the path as sent, including
   * mount points, and the part of the query that changes the answer.
   *
   * @param read Reads of one snapshot.
   */
  cached<Answer extends Cached>(request: Request, read: () => Answer, queryKey = noneOfQuery): Answer {
    const key = keyOf(request.originalUrl, request, queryKey)
    return key === undefined ? this.store.consistent(read) : this.cachedBy(key, read)
  }

  /** As {@link cached}, for a path on a host that shows content. No request target begins like these keys. */
  cachedOn<Answer extends Cached>(
    host: string,
    request: Request,
    read: () => Answer,
    queryKey: QueryKey,
  ): Answer {
    const key = keyOf(request.url, request, queryKey)
    return key === undefined ? this.store.consistent(read) : this.cachedBy(`@${host}${key}`, read)
  }

  /** As {@link cached}, for a part of responses. @param key Without spaces, and not a path. Undefined is not cached. */
  cachedBy<Part extends Cached | undefined>(key: string, read: () => Part): Part {
    const readToKeep = (): Part => {
      const part = read()
      if (part instanceof StoredResponse) part.compress()
      return part
    }
    return this.store.consistent(readToKeep, {
      key: this.prefix + key,
      dependsOn: (part) => part?.dependsOn ?? [],
      weightOf: (part) => part?.weight ?? 0,
    })
  }

  /**
   * Sends the cached response to a request, or else the one that `read` returns.
   *
   * @param options.isAboutNames While the host catches up, responses about names are neither cached nor served from the cache.
   */
  respond(
    request: Request,
    response: Response,
    read: () => StoredResponse,
    { queryKey = noneOfQuery, isAboutNames = false }: { queryKey?: QueryKey; isAboutNames?: boolean } = {},
  ): Promise<void> | void {
    const { progress, store } = this
    const made = store.afterLong(() =>
      isAboutNames && progress.isCatchingUp ? store.consistent(read) : this.cached(request, read, queryKey),
    )
    return whenReady(made, (stored) => {
      stored.queryKey = queryKey
      if (stored instanceof NamesResponse) stored.stamp(progress)
      return sendStored({ request, response, stored })
    })
  }

  /** Sends the cached response to a GET or HEAD, ahead of all routes. If there is none, the routes answer. */
  readonly handler: RequestHandler = (request, response, next) => {
    const { method, headers } = request
    const stored = method === 'GET' || method === 'HEAD' ? this.storedFor(request) : undefined
    // Some routes refuse service workers.
    if (!(stored instanceof StoredResponse) || headers['service-worker'] !== undefined) {
      next()
      return
    }
    if (stored instanceof NamesResponse) {
      if (this.progress.isCatchingUp) {
        next()
        return
      }
      stored.stamp(this.progress)
    }
    request.route = stored.route
    passingErrors(() => sendStored({ request, response, stored }), next)
  }

  /** The response cached for a path says which part of a query would change it. */
  private storedFor(request: Request): unknown {
    const { url } = request
    if (!url.includes('?')) return this.store.cachedAnswer(this.prefix + url)
    const stored = this.store.cachedAnswer(this.prefix + pathOf(url))
    if (!(stored instanceof StoredResponse)) return undefined
    const key = keyOf(url, request, stored.queryKey)
    return key === undefined ? undefined : this.store.cachedAnswer(this.prefix + key)
  }
}

function pathOf(url: string): string {
  return url.slice(0, url.indexOf('?'))
}

/** A URL with unnecessary escapes (RFC 3986 6.2.2.2), or capitals in a txid. */
const OTHER_SPELLING =
  /%(?:2[DEde]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[Ff]|7[Ee])|(?<!\w)(?![\da-f]{64})[\dA-Fa-f]{64}/

/** Undefined also for other spellings of a path: there are too many. */
function keyOf(url: string, request: Request, queryKey: QueryKey): string | undefined {
  if (OTHER_SPELLING.test(url)) return undefined
  if (!url.includes('?')) return url
  const key = queryKey(request)
  if (key === undefined) return undefined
  return key === '' ? pathOf(url) : `${pathOf(url)}?${key}`
}

/** Sends a response, or the part of it that the request asks for. */
export function sendStored({
  request,
  response,
  stored,
}: Exchange & { stored: StoredResponse }): Promise<void> | void {
  const { representation, body } = stored.for(request)
  stored.route ??= request.route
  if (representation.plainTag !== undefined && !takesGzip(request))
    return sendUncompressed({ request, response, stored })
  const range = sendHead({ request, response, representation })
  if (range === undefined) return
  if (range instanceof Multipart) {
    const read = typeof body === 'function' ? (part: ByteRange) => body(part, response) : body
    return sendChunks(response, { chunks: range.chunks(read), length: range.length })
  }
  const { from, length } = range
  if (typeof body !== 'function') {
    response.end(length === body.length ? body : body.subarray(from, from + length))
    return
  }
  const bytes = body(range, response)
  if ('next' in bytes) return sendChunks(response, { chunks: bytes, length })
  response.end(bytes)
}

/** The longest body that is uncompressed for a client, in bytes, both compressed and uncompressed. */
const MAX_UNCOMPRESSED = 1024 * 1024
const uncompressed = promisify(gunzip)

/** A client that names no codings accepts all (RFC 9110 12.5.3). */
function takesGzip(request: Request): boolean {
  return request.headers['accept-encoding'] === undefined || request.acceptsEncodings('gzip') === 'gzip'
}

/** Uncompresses stored gzip for a client that does not accept it; unchanged if it is too long, or not gzip after all. */
async function sendUncompressed(asked: Parameters<typeof sendStored>[0]): Promise<void> {
  const { request, response, stored } = asked
  const { representation, body } = stored
  const { length, plainTag = '' } = representation
  const headers = representation.headers.flatMap((header): HeaderFor[] => {
    if (header[0] === 'Content-Encoding') return []
    return [header[0] === 'ETag' ? ['ETag', plainTag] : header]
  })
  // A client that names this tag has the uncompressed form.
  if (representation.status === undefined && request.headers['if-match'] === undefined) {
    setHeaders({ request, response, headers })
    if (endedByPrecondition({ request, response, tag: plainTag })) return
  }
  const bytes =
    typeof body === 'function' && length <= MAX_UNCOMPRESSED ? body({ from: 0, length }, response) : body
  const whole = typeof bytes === 'function' ? undefined : 'next' in bytes ? await joined(bytes) : bytes
  const plain =
    whole && (await uncompressed(whole, { maxOutputLength: MAX_UNCOMPRESSED }).catch(() => undefined))
  const { plainTag: _, ...asIs } = representation
  if (plain === undefined)
    return await sendStored({ ...asked, stored: new StoredResponse(asIs, body, stored.dependsOn) })
  const { digest: __, ...undigested } = asIs
  const inPlain = { ...undigested, headers, length: plain.length, tag: plainTag }
  await sendStored({ ...asked, stored: new StoredResponse(inPlain, plain, stored.dependsOn) })
}

async function joined(chunks: Chunks<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return joinBytes(parts)
}

/** For a handler in an app that may be of Express 4, which does not handle rejected promises. */
export function passingErrors(send: () => Promise<void> | void, next: (error: unknown) => void): void {
  try {
    const sent = send()
    if (types.isPromise(sent)) sent.catch(next)
  } catch (error) {
    next(error)
  }
}
