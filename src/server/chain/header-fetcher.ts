import { z } from 'zod'
import {
  encodeHeader,
  HEADER_BYTES,
  headerAt,
  headerCount,
  previousOf,
} from '../../../backend/src/protocol/block-header.js'
import { equalBytes, fromHex, joinBytes, readUtf8, reversed } from '../../../backend/src/protocol/bytes.js'
import { type FetchedAnswer, fetchBounded, readJson } from '../../client/bounded-fetch.js'
import type { HeaderSourceAddress } from '../config/header-settings.js'
import { ChaintracksStreams } from './chaintracks-streams.js'
import { hashOf, shownHash } from './header-rules.js'

/** The tip of a source's chain. `hash` is hex in display order. */
export interface SourceTip {
  height: number
  hash: string
}

export interface HeadersQuery {
  /** The height of the first header. */
  from: number
  /** The most headers that are wanted. */
  count: number
  /** The hash of the header before the first, in internal order; undefined if it is not known. */
  previous?: Uint8Array
  /** The tip of the source, as it answered. */
  tip: number
}

/** A service asked for block headers. Nothing that it answers is believed: callers verify it. */
export interface HeaderFetcher {
  tip(): Promise<SourceTip>
  /**
   * Consecutive headers; as many as the service gives at once. Empty if it has none at that height. `unlinked` if its header
   * there does not follow `previous`.
   */
  headers(query: HeadersQuery): Promise<Uint8Array | 'unlinked'>
}

/** A service did not answer as it should. */
export class HeaderSourceError extends Error {
  override readonly name = 'HeaderSourceError'
  /** How long the service asks to be left alone, in milliseconds. */
  readonly retryAfter: number | undefined

  constructor(message: string, { retryAfter, ...options }: ErrorOptions & { retryAfter?: number } = {}) {
    super(message, options)
    this.retryAfter = retryAfter
  }
}

export interface FetcherOptions {
  /** The timeout of a request for a tip, in milliseconds. One for headers may take {@link PAGE_TIMES} as long. */
  timeout: number
  /** For WhatsOnChain. */
  network: 'main' | 'test'
  signal: AbortSignal
}

/** Ten thousand headers take some 3.5 MB of JSON. */
const PAGE_TIMES = 6
const MAX_PAGE_BYTES = 8 * 1024 * 1024
const MAX_TIP_BYTES = 64 * 1024

/** The longest `Retry-After` that is honoured, in milliseconds. */
const MAX_RETRY_AFTER = 3_600_000

const height = z.int().nonnegative()
const hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/i)
  .transform((text) => text.toLowerCase())
const uint32 = z.int().min(0).max(0xffffffff)
const bits = z
  .string()
  .regex(/^[0-9a-f]{1,8}$/i)
  .transform((text) => Number.parseInt(text, 16))

/** A header in JSON, as JungleBus and WhatsOnChain have it. Versions are signed, and JungleBus shows them unsigned. */
const headerJson = z.object({
  height,
  hash,
  version: z.int().min(-0x80000000).max(0xffffffff),
  merkleroot: hash,
  time: uint32,
  bits,
  nonce: uint32,
})

type HeaderJson = z.output<typeof headerJson>

const NO_PREVIOUS = new Uint8Array(32)
const NONE = new Uint8Array(0)

/** @param address Without a slash at the end. */
export function openFetcher({ kind, url }: HeaderSourceAddress, options: FetcherOptions): HeaderFetcher {
  if (kind === 'junglebus') return jungleBus(url, options)
  return kind === 'chaintracks' ? chaintracks(url, options) : whatsOnChain(url, options)
}

/** The event streams of a source, which say when to ask; undefined if it has none. */
export function openStreams(
  { kind, url }: HeaderSourceAddress,
  onTip: () => void,
): ChaintracksStreams | undefined {
  return kind === 'chaintracks' ? new ChaintracksStreams({ url, onTip }) : undefined
}

/**
 * JungleBus (b-open-io/go-junglebus, `transports/http.go`): `GET /v1/block_header/tip` and
 * `/v1/block_header/list/{height}?limit=`, with at most 10,000. Headers lack the hash of the one before.
 */
function jungleBus(url: string, options: FetcherOptions): HeaderFetcher {
  const limit = 10_000
  const fetcher: HeaderFetcher = {
    async tip() {
      return tipOf(
        z.object({ height, hash }),
        await getJson(`${url}/v1/block_header/tip`, tipBounds(options)),
      )
    },
    async headers({ from, count, previous, tip }) {
      // Without the hash before the first, the header before it is asked for as well.
      const isKnown = previous !== undefined || from === 0
      const first = isKnown ? from : from - 1
      const asked = Math.min(limit, count + from - first)
      const path = `/v1/block_header/list/${first}?limit=${asked}`
      const listed = await getJson(url + path, pageBounds(options), 'or none')
      const found = parsed(z.array(headerJson).max(asked).nullable(), listed ?? null, url) ?? []
      // The chain of a test network may begin at any height.
      if (!isKnown && found.length === 0)
        return await fetcher.headers({ from, count, previous: NO_PREVIOUS, tip })
      let before = previous ?? NO_PREVIOUS
      const headers: Uint8Array[] = []
      for (const [index, fields] of found.entries()) {
        if (fields.height !== first + index) throw new HeaderSourceError(`${url} skips ${first + index}`)
        if (isKnown || index > 0) {
          const header = encoded(fields, before)
          if (header === undefined && index === 0) return 'unlinked'
          if (header === undefined) throw new HeaderSourceError(`${url} has no chain at ${fields.height}`)
          headers.push(header)
        }
        before = reversed(fromHex(fields.hash))
      }
      return joinBytes(headers)
    },
  }
  return fetcher
}

/** A header of its fields; undefined if it does not have the hash that it is said to have. */
function encoded(
  { merkleroot: root, hash, ...fields }: HeaderJson,
  before: Uint8Array,
): Uint8Array | undefined {
  const header = encodeHeader({ ...fields, root, previous: Buffer.from(reversed(before)).toString('hex') })
  return shownHash(header) === hash ? header : undefined
}

/**
 * A Chaintracks server with version 2 of its routes: `GET /v2/tip` (in earlier releases `/v2/tip/header`), and
 * `/v2/headers?height=&count=`, which answers with bytes (in earlier releases hex in JSON).
 */
function chaintracks(url: string, options: FetcherOptions): HeaderFetcher {
  const limit = 2000
  const value = z.object({ status: z.literal('success'), value: z.object({ height, hash }) })
  return {
    async tip() {
      const answer =
        (await getJson(`${url}/v2/tip`, tipBounds(options), 'or none')) ??
        (await getJson(`${url}/v2/tip/header`, tipBounds(options)))
      return tipOf(
        value.transform((tip) => tip.value),
        answer,
      )
    },
    async headers({ from, count, previous }) {
      const path = `/v2/headers?height=${from}&count=${Math.min(limit, count)}`
      const answer = await get(url + path, pageBounds(options))
      if (answer.status === 404) return NONE
      const hex = z.object({ value: z.string() }).safeParse(answer.isJson ? readJson(answer.body) : undefined)
      const headers = headersIn(hex.success ? hex.data.value : answer.body, url)
      return linked(headers.subarray(0, Math.min(limit, count) * HEADER_BYTES), previous)
    },
  }
}

/** So few headers at the tip are asked for one by one, rather than with a file of up to ten thousand. */
const FEW = 10

/**
 * WhatsOnChain (bsv-blockchain/ts-stack, `WhatsOnChainServices.ts`): `GET /chain/info`, `/block/{height}/header`, and the
 * files that `/block/headers/resources` lists: `<first>_<last>_headers.bin`, and `latest` with what follows.
 */
function whatsOnChain(origin: string, options: FetcherOptions): HeaderFetcher {
  const url = `${origin}/v1/bsv/${options.network}`
  const info = z.object({ blocks: height, bestblockhash: hash })
  const withPrevious = headerJson.extend({ previousblockhash: hash.optional() })
  const single = async (height: number): Promise<Uint8Array> => {
    const answer = await getJson(`${url}/block/${height}/header`, tipBounds(options), 'or none')
    if (answer === undefined) return NONE
    const { previousblockhash, ...fields } = parsed(withPrevious, answer, url)
    const before = previousblockhash === undefined ? NO_PREVIOUS : reversed(fromHex(previousblockhash))
    const header = fields.height === height ? encoded(fields, before) : undefined
    if (header === undefined) throw new HeaderSourceError(`${url} has no header at ${height}`)
    return header
  }
  const fileWith = async (height: number): Promise<{ first: number; headers: Uint8Array }> => {
    const resources = await getJson(`${url}/block/headers/resources`, pageBounds(options))
    const { files } = parsed(z.object({ files: z.array(z.string().max(1000)).max(10_000) }), resources, url)
    let first = 0
    for (const file of files) {
      // The name alone: where the file is, is for the settings to say.
      const [name, start, end] = /(\d{1,9})_(\d{1,9})_headers\.bin$/.exec(file) ?? []
      if (name === undefined) continue
      const [from, to] = [Number(start), Number(end)]
      if (from <= height && height <= to) {
        const { body } = await get(`${url}/block/headers/${name}`, pageBounds(options))
        return { first: from, headers: headersIn(body, url) }
      }
      first = Math.max(first, to + 1)
    }
    if (height < first) throw new HeaderSourceError(`${url} lists no file with ${height}`)
    const { body } = await get(`${url}/block/headers/latest`, pageBounds(options))
    return { first, headers: headersIn(body, url) }
  }
  return {
    async tip() {
      const shape = info.transform(({ blocks, bestblockhash }) => ({ height: blocks, hash: bestblockhash }))
      return tipOf(shape, await getJson(`${url}/chain/info`, tipBounds(options)))
    },
    async headers({ from, count, previous, tip }) {
      if (Math.min(count, tip - from + 1) <= FEW) {
        const headers: Uint8Array[] = []
        for (let next = from; next < from + Math.min(count, tip - from + 1); next++) {
          const header = await single(next)
          if (header.length === 0) break
          headers.push(header)
        }
        return linked(joinBytes(headers), previous)
      }
      const { first, headers } = await fileWith(from)
      const index = from - first
      return linked(headers.subarray(index * HEADER_BYTES, (index + count) * HEADER_BYTES), previous)
    },
  }
}

function linked(headers: Uint8Array, previous: Uint8Array | undefined): Uint8Array | 'unlinked' {
  if (headers.length === 0 || previous === undefined) return headers
  return equalBytes(previousOf(headers), previous) ? headers : 'unlinked'
}

/** Headers as bytes, or as hex: services have changed from one to the other. */
function headersIn(body: Uint8Array | string, url: string): Uint8Array {
  const isText = body.length > 0 && typeof body !== 'string' && body.every(isHexDigit)
  const text = typeof body === 'string' ? body : isText ? readUtf8(body) : undefined
  if (text !== undefined && !/^(?:[0-9a-f]{2})*$/i.test(text))
    throw new HeaderSourceError(`${url} answered with something else than headers`)
  const bytes = text === undefined ? (body as Uint8Array) : fromHex(text)
  if (bytes.length % HEADER_BYTES !== 0)
    throw new HeaderSourceError(`${url} answered ${bytes.length} bytes, which are not headers`)
  return bytes
}

function isHexDigit(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x66) || (byte >= 0x41 && byte <= 0x46)
}

/** The hash of the last of some headers, in internal order. */
export function lastHash(headers: Uint8Array): Uint8Array {
  return hashOf(headerAt(headers, headerCount(headers) - 1))
}

interface Bounds {
  timeout: number
  maxBytes: number
  signal: AbortSignal
}

function tipBounds({ timeout, signal }: FetcherOptions): Bounds {
  return { timeout, maxBytes: MAX_TIP_BYTES, signal }
}

function pageBounds({ timeout, signal }: FetcherOptions): Bounds {
  return { timeout: PAGE_TIMES * timeout, maxBytes: MAX_PAGE_BYTES, signal }
}

function tipOf(shape: z.ZodType<SourceTip>, answer: unknown): SourceTip {
  return parsed(shape, answer, 'the source')
}

function parsed<Shape extends z.ZodType>(shape: Shape, answer: unknown, url: string): z.output<Shape> {
  const { success, data, error } = shape.safeParse(answer)
  if (success) return data
  const [issue] = error.issues
  throw new HeaderSourceError(
    `${url} answered something else: ${issue?.path.join('.')}: ${issue?.message}`.slice(0, 300),
  )
}

/** @returns undefined for a 404, if `none` says that it means that there is none. */
async function getJson(url: string, bounds: Bounds, none?: 'or none'): Promise<unknown> {
  const { status, body } = await get(url, bounds)
  if (status === 404 && none !== undefined) return undefined
  if (status !== 200) throw new HeaderSourceError(`${url} answered ${status}`)
  return readJson(body)
}

/** @throws HeaderSourceError for any status but 200 and 404; SourceError. */
async function get(url: string, bounds: Bounds): Promise<FetchedAnswer & { isJson: boolean }> {
  const answer = await fetchBounded(url, {}, bounds)
  const { status, headers, contentType } = answer
  if (status === 200 || status === 404) return { ...answer, isJson: contentType === 'application/json' }
  const retryAfter = requestedPause(headers.get('retry-after'))
  throw new HeaderSourceError(`${url} answered ${status}`, retryAfter === undefined ? {} : { retryAfter })
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 10.2.3). */
function requestedPause(value: string | null): number | undefined {
  if (value === null) return undefined
  const pause = /^\s*\d{1,9}\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return pause > 0 ? Math.min(pause, MAX_RETRY_AFTER) : undefined
}
