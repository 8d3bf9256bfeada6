import { z } from 'zod'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { encodeHeader, HEADER_BYTES } from '../../../backend/src/protocol/block-header.js'
import { fromHex, joinBytes, readUtf8, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { readJson } from '../../client/bounded-fetch.js'
import type { HeaderSource, SourceTip } from '../headers/header-chain.js'
import { ChainSourceError } from './errors.js'
import type { HeaderSourceKind } from './source-address.js'
import type { SourceClient } from './source-client.js'

/** A service that provides block headers. Its answers are not trusted: callers verify them. They throw ChainSourceErrors. */
export interface HeaderFetcher extends Pick<HeaderSource, 'headers'> {
  tip(): Promise<SourceTip>
}

/** The timeout of a page, as a multiple of that of a tip. */
export const PAGE_TIMES = 6
/** Ten thousand headers take some 3.5 MB of JSON. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024
const MAX_TIP_BYTES = 64 * 1024

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

/** A header in JSON, as from JungleBus and WhatsOnChain. Versions are signed, but JungleBus shows them unsigned. */
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

/**
 * @param client The client of the service, with the URL that its routes are below.
 * @param options.pageTimeout The timeout for many headers at once, in milliseconds.
 */
export function openFetcher(
  kind: HeaderSourceKind,
  client: SourceClient,
  { pageTimeout: timeout }: { pageTimeout: number },
): HeaderFetcher {
  return FETCHERS[kind](new Questions(client, timeout))
}

const FETCHERS: Record<HeaderSourceKind, (questions: Questions) => HeaderFetcher> = {
  junglebus: jungleBus,
  chaintracks,
  whatsonchain: whatsOnChain,
  headersservice: headersService,
}

/** Questions to a service: undefined for a 404. They throw ChainSourceErrors. */
class Questions {
  constructor(
    private readonly client: SourceClient,
    private readonly pageTimeout: number,
  ) {}

  /** The tip, or a single header. */
  async tip<Shape extends z.ZodType>(path: string, shape: Shape): Promise<z.output<Shape> | undefined> {
    const read = (body: Uint8Array): z.output<Shape> => this.checked(readJson(body), shape)
    return await this.client.ask(path, { maxBytes: MAX_TIP_BYTES, read })
  }

  /** JSON with many headers, or a list of their files. */
  async page<Shape extends z.ZodType>(path: string, shape: Shape): Promise<z.output<Shape> | undefined> {
    return await this.long(path, (body) => this.checked(readJson(body), shape))
  }

  /** Headers as bytes. */
  async bytes(path: string): Promise<Uint8Array | undefined> {
    return await this.long(path, (body) => headersIn(body, this.client.name))
  }

  /** Throws because something required is missing. */
  fail(what: string): never {
    throw new ChainSourceError('BAD_ANSWER', `${this.client.name} ${what}`)
  }

  checked<Shape extends z.ZodType>(value: unknown, shape: Shape): z.output<Shape> {
    const { success, data, error } = shape.safeParse(value)
    if (success) return data
    const [issue] = error.issues
    return this.fail(`answered something else: ${issue?.path.join('.')}: ${issue?.message}`.slice(0, 300))
  }

  private async long<Answer>(path: string, read: (body: Uint8Array) => Answer): Promise<Answer | undefined> {
    return await this.client.ask(path, { maxBytes: MAX_PAGE_BYTES, timeout: this.pageTimeout, read })
  }
}

/**
 * JungleBus (b-open-io/go-junglebus, `transports/http.go`): `GET /v1/block_header/tip` and `/v1/block_header/list/{height}?limit=`,
 * with at most 10,000. Headers lack the hash of the previous one.
 */
function jungleBus(questions: Questions): HeaderFetcher {
  const limit = 10_000
  const fetcher: HeaderFetcher = {
    async tip() {
      const tip = await questions.tip('/v1/block_header/tip', z.object({ height, hash }))
      return tip ?? questions.fail('has no tip')
    },
    async headers({ from, count, previous }) {
      // If the previous hash is unknown, the header before the first is requested as well.
      const isKnown = previous !== undefined || from === 0
      const first = isKnown ? from : from - 1
      const asked = Math.min(limit, count + from - first)
      const path = `/v1/block_header/list/${first}?limit=${asked}`
      const found = (await questions.page(path, z.array(z.unknown()).max(asked).nullable())) ?? []
      // The chain of a test network may start at any height.
      if (!isKnown && found.length === 0) return await fetcher.headers({ from, count, previous: NO_PREVIOUS })
      let before = previous ?? NO_PREVIOUS
      const headers: Uint8Array[] = []
      // Ten thousand headers take half a second.
      const slice = new TimeSlice()
      for (const [index, each] of found.entries()) {
        const fields = questions.checked(each, headerJson)
        if (fields.height !== first + index) questions.fail(`skips ${first + index}`)
        if (isKnown || index > 0) {
          const header = encoded(fields, before)
          if (header === undefined && index === 0) return 'unlinked'
          headers.push(header ?? questions.fail(`has no chain at ${fields.height}`))
        }
        before = reversed(fromHex(fields.hash))
        await slice.yieldIfOver()
      }
      return joinBytes(headers)
    },
  }
  return fetcher
}

/** Encodes a header; undefined if it does not have the given hash. */
function encoded(
  { merkleroot: root, hash, ...fields }: HeaderJson,
  before: Uint8Array,
): Uint8Array | undefined {
  const header = encodeHeader({ ...fields, root, previous: Buffer.from(reversed(before)).toString('hex') })
  return toHex(reversed(nativeHash256(header))) === hash ? header : undefined
}

/**
 * A Chaintracks server with version 2 of its routes: `GET /v2/tip` returns a header (in earlier releases in an envelope, at first
 * at `/v2/tip/header`), and `/v2/headers?height=&count=` returns bytes (in earlier releases hex in JSON).
 */
function chaintracks(questions: Questions): HeaderFetcher {
  const limit = 2000
  const header = z.object({ height, hash })
  const inEnvelope = z.object({ status: z.literal('success'), value: header }).transform(({ value }) => value)
  const shape = z.union([header, inEnvelope])
  return {
    async tip() {
      const tip = (await questions.tip('/v2/tip', shape)) ?? (await questions.tip('/v2/tip/header', shape))
      return tip ?? questions.fail('has no tip')
    },
    async headers({ from, count }) {
      const most = Math.min(limit, count)
      const headers = (await questions.bytes(`/v2/headers?height=${from}&count=${most}`)) ?? NONE
      return headers.subarray(0, most * HEADER_BYTES)
    },
  }
}

/**
 * A Block Headers Service (bitcoin-sv/block-headers-service, `transports/http/endpoints`): `GET /api/v1/chain/tip/longest` and
 * `/api/v1/chain/header/byHeight?height=&count=`, whose list has no heights, is unordered, and includes blocks of other branches.
 */
function headersService(questions: Questions): HeaderFetcher {
  const limit = 2000
  // With headers of a single height, nothing would tell the chain's block from those of other branches.
  const least = 10
  const header = z
    .object({
      ...{ hash, version: headerJson.shape.version, prevBlockHash: hash, merkleRoot: hash },
      ...{ creationTimestamp: uint32, difficultyTarget: uint32, nonce: uint32 },
    })
    .transform(({ prevBlockHash, merkleRoot, creationTimestamp: time, difficultyTarget: bits, ...rest }) => ({
      ...{ ...rest, merkleroot: merkleRoot, time, bits, previous: prevBlockHash },
    }))
  const longest = z
    .object({ height, header: z.object({ hash }) })
    .transform(({ height, header }) => ({ height, hash: header.hash }))
  return {
    async tip() {
      return (await questions.tip('/api/v1/chain/tip/longest', longest)) ?? questions.fail('has no tip')
    },
    async headers({ from, count }) {
      const most = Math.min(limit, count)
      const path = `/api/v1/chain/header/byHeight?height=${from}&count=${Math.max(least, most)}`
      // Leaves room for branches beside the chain.
      const found = (await questions.page(path, z.array(z.unknown()).max(2 * limit))) ?? []
      const byHash = new Map<string, { bytes: Uint8Array; previous: string; length: number }>()
      const slice = new TimeSlice()
      for (const each of found) {
        const { previous, ...fields } = questions.checked(each, header)
        const bytes = encoded({ ...fields, height: from }, reversed(fromHex(previous)))
        byHash.set(fields.hash, { bytes: bytes ?? questions.fail('has another hash'), previous, length: 0 })
        await slice.yieldIfOver()
      }
      return joinBytes(longestOf(byHash).slice(0, most))
    },
  }
}

/** The longest chain of linked headers. */
function longestOf(
  byHash: Map<string, { bytes: Uint8Array; previous: string; length: number }>,
): Uint8Array[] {
  let best: string | undefined
  for (const start of byHash.keys()) {
    const line: string[] = []
    for (let at = start; byHash.get(at)?.length === 0; at = byHash.get(at)?.previous ?? '') line.push(at)
    for (const hash of line.reverse()) {
      const each = byHash.get(hash)
      if (each !== undefined) each.length = (byHash.get(each.previous)?.length ?? 0) + 1
    }
    if ((byHash.get(start)?.length ?? 0) > (byHash.get(best ?? '')?.length ?? 0)) best = start
  }
  const headers: Uint8Array[] = []
  for (let each = byHash.get(best ?? ''); each !== undefined; each = byHash.get(each.previous))
    headers.push(each.bytes)
  return headers.reverse()
}

/** Up to this many headers at the tip are requested one by one, rather than as a file of up to ten thousand. */
const FEW = 10

/**
 * WhatsOnChain (bsv-blockchain/ts-stack, `WhatsOnChainServices.ts`): `GET /chain/info`, `/block/{height}/header`, and the files
 * that `/block/headers/resources` lists: `<first>_<last>_headers.bin`, and `latest` with the rest.
 */
function whatsOnChain(questions: Questions): HeaderFetcher {
  const info = z
    .object({ blocks: height, bestblockhash: hash })
    .transform(({ blocks, bestblockhash }) => ({ height: blocks, hash: bestblockhash }))
  const withPrevious = headerJson.extend({ previousblockhash: hash.optional() })
  const list = z.object({ files: z.array(z.string().max(1000)).max(10_000) })
  const single = async (height: number): Promise<Uint8Array> => {
    const answer = await questions.tip(`/block/${height}/header`, withPrevious)
    if (answer === undefined) return NONE
    const { previousblockhash, ...fields } = answer
    const before = previousblockhash === undefined ? NO_PREVIOUS : reversed(fromHex(previousblockhash))
    const header = fields.height === height ? encoded(fields, before) : undefined
    return header ?? questions.fail(`has no header at ${height}`)
  }
  const file = async (name: string): Promise<Uint8Array> =>
    (await questions.bytes(`/block/headers/${name}`)) ?? questions.fail(`does not have its file ${name}`)
  const fileWith = async (height: number): Promise<{ first: number; headers: Uint8Array }> => {
    const resources = await questions.page('/block/headers/resources', list)
    const { files } = resources ?? questions.fail('lists no files of headers')
    let first = 0
    for (const each of files) {
      // Only the name is used: the settings say where the file is.
      const [name, start, end] = /(\d{1,9})_(\d{1,9})_headers\.bin$/.exec(each) ?? []
      if (name === undefined) continue
      const [from, to] = [Number(start), Number(end)]
      if (from <= height && height <= to) return { first: from, headers: await file(name) }
      first = Math.max(first, to + 1)
    }
    if (height < first) questions.fail(`lists no file with ${height}`)
    return { first, headers: await file('latest') }
  }
  return {
    async tip() {
      return (await questions.tip('/chain/info', info)) ?? questions.fail('has no tip')
    },
    async headers({ from, count, tip = Infinity }) {
      const wanted = Math.min(count, tip - from + 1)
      if (wanted <= FEW) {
        const headers: Uint8Array[] = []
        for (let next = from; next < from + wanted; next++) {
          const header = await single(next)
          if (header.length === 0) break
          headers.push(header)
        }
        return joinBytes(headers)
      }
      const { first, headers } = await fileWith(from)
      const index = from - first
      return headers.subarray(index * HEADER_BYTES, (index + count) * HEADER_BYTES)
    },
  }
}

const inJson = z.object({ value: z.string() }).transform(({ value }) => value)

/** Headers as bytes, or as hex, possibly in JSON: services have changed from one to the other. */
function headersIn(body: Uint8Array, name: string): Uint8Array {
  const { data } = body[0] === BRACE ? inJson.safeParse(readJson(body)) : {}
  const text = data ?? (body.length > 0 && body.every(isHexDigit) ? readUtf8(body) : undefined)
  if (text !== undefined && !/^(?:[0-9a-f]{2})*$/i.test(text))
    throw new ChainSourceError('BAD_ANSWER', `${name} answered with something else than headers`)
  const bytes = text === undefined ? body : fromHex(text)
  if (bytes.length % HEADER_BYTES !== 0)
    throw new ChainSourceError('BAD_ANSWER', `${name} answered ${bytes.length} bytes, which are not headers`)
  return bytes
}

/** The first byte of a JSON object. */
const BRACE = 0x7b

function isHexDigit(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x66) || (byte >= 0x41 && byte <= 0x46)
}
