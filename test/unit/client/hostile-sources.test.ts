import type { ServerResponse } from 'node:http'
import { createGzip } from 'node:zlib'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { OP } from '../../../backend/src/protocol/script-walk.js'
import { type AskBounds, HttpNameSource, type NameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { CHUNK_BYTES, endless, type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import {
  at,
  FakeHeaders,
  namedWorld,
  outpointBeef,
  proofOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { givenTime } from '../../support/server/waiting.js'

// An honest index, and beside it one that would have a reader wait, read or compute without end.

const { deployment, headers, line, mints, origin, tip, way } = namedWorld()

const RECORD = '/svc/names/abc'
const PROOF = '/svc/names/proof/abc'
const PROVENANCE = `/svc/gateway/provenance/${formatOutpoint(origin)}`
const HONEST: Record<string, RouteAnswer> = {
  [RECORD]: {
    body: {
      name: 'abc',
      origin: formatOutpoint(origin),
      tip: { outpoint: formatOutpoint(tip), spent: false },
    },
  },
  [PROOF]: { body: proofOf(line) },
  [PROVENANCE]: { body: outpointBeef(tip, recordsOf(way)) },
}

const MiB = 1024 * 1024
/** For what is waited for in vain, in milliseconds. */
const SHORT = 2000

/** A `fetch` that counts the bytes that are read of answers. */
function countingFetch(): { fetch: typeof fetch; count: () => number } {
  let bytes = 0
  const counting: typeof fetch = async (url, init) => {
    const { status, headers, body } = await fetch(url, init)
    const counter = new TransformStream<Uint8Array, Uint8Array>(
      {
        transform(chunk, controller) {
          bytes += chunk.length
          controller.enqueue(chunk)
        },
      },
      undefined,
      { highWaterMark: 0 },
    )
    return new Response(body?.pipeThrough(counter) ?? null, { status, headers })
  }
  return { fetch: counting, count: () => bytes }
}

function bomb(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' })
  const gzip = createGzip()
  gzip.pipe(response)
  gzip.end(Buffer.alloc(100 * MiB))
}

/** A byte now and then, for as long as anybody listens. */
function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream' })
  const timer = setInterval(() => response.write('a'), 20)
  response.on('close', () => clearInterval(timer))
}

const start = async (changed: Record<string, RouteAnswer> = {}) => await startIndex({ ...HONEST, ...changed })

const resolve = async (
  sources: (NameSource | string)[],
  more: Partial<Parameters<typeof resolveName>[0]> = {},
) => await resolveName({ name: 'abc', deployment, chainTracker: headers, sources, ...more })

/** A block over which the chain tracker hangs. */
const FAR = 2_000_000_000

interface Hostile {
  source: NameSource
  report: object
  /** How many bytes of its answers may be read, where that matters. */
  read?: [least: number, most: number]
  count?: () => number
}

const served = async (changed: Record<string, RouteAnswer>, report: object, read?: Hostile['read']) => {
  const { fetch, count } = countingFetch()
  const { url } = await start(changed)
  return { source: new HttpNameSource({ url, fetch }), report, count, ...(read && { read }) }
}
const failed = (code: string) => ({ verdict: 'failed', error: { name: 'SourceError', code } })

/** What a source may read of all its answers together. */
const SHARE = 2 * MiB
/** One of each kind. */
const hostileOnes = async (): Promise<Record<string, Hostile>> => {
  const long = { body: Buffer.alloc(0.7 * SHARE) }
  const far = { ...mints.abc, height: FAR }
  const share: Hostile['read'] = [SHARE / 2, SHARE + 2 * CHUNK_BYTES]
  const record: Hostile['read'] = [0, MiB + 2 * CHUNK_BYTES]
  return {
    'drips its record': await served({ [RECORD]: { does: drip } }, failed('TIMEOUT')),
    'drips its proof': await served({ [PROOF]: { does: drip } }, failed('TIMEOUT')),
    'drips its provenance': await served({ [PROVENANCE]: { does: drip } }, failed('TIMEOUT')),
    'says nothing at all': {
      source: { index: 'nobody', ask: async () => await new Promise(() => {}) },
      report: { index: 'nobody', ...failed('TIMEOUT') },
    },
    'answers without end': await served({ [PROOF]: { does: endless } }, failed('TOO_LARGE'), share),
    'packs a large answer small': await served({ [PROOF]: { does: bomb } }, failed('TOO_LARGE'), share),
    // Less is read of it than of a proof.
    'has a record without end': await served({ [RECORD]: { does: endless } }, failed('TOO_LARGE'), record),
    'has too much in all': await served({ [PROOF]: long, [PROVENANCE]: long }, failed('TOO_LARGE')),
    'shows a block over which the chain tracker hangs': await served(
      { [PROOF]: { body: proofOf([...line.slice(0, -1), far]) } },
      {
        verdict: 'unchecked',
        error: { name: 'HeadersError', message: expect.stringContaining('did not answer in time') },
      },
    ),
  }
}

test('an honest index is asked three questions, what it says of the name first', async () => {
  const { url, asked } = await start()
  expect(await resolve([`${url}/`])).toMatchObject({
    ...{ origin: { origin }, tip: { tip, sequence: 2 }, proven: true, spendStatus: 'unspent' },
    reports: [{ index: url, verdict: 'agrees' }],
  })
  expect(asked).toEqual([RECORD, PROOF, PROVENANCE])
})

test.each<[what: string, code: string, changed: Record<string, RouteAnswer>]>([
  ['shows no proof', 'NO_PROOF', { [PROOF]: { status: 404, body: { error: 'no', code: 'NOT_FOUND' } } }],
  ['shows no way to the tip', 'NO_PROOF', { [PROVENANCE]: { status: 404, body: {} } }],
  [
    'follows no ordinals',
    'NO_PROOF',
    { [RECORD]: { body: { name: 'abc', origin: formatOutpoint(origin) } } },
  ],
  ['fails', 'BAD_ANSWER', { [RECORD]: { status: 500, body: { error: 'sorry', code: 'INTERNAL' } } }],
  ['answers nonsense', 'BAD_ANSWER', { [RECORD]: { body: Uint8Array.of(0xff, 0x7b) } }],
  ['answers no outpoint', 'BAD_ANSWER', { [RECORD]: { body: { origin: 'abc' } } }],
  ['redirects', 'UNREACHABLE', { [RECORD]: { status: 302, headers: { location: '/other' }, body: '' } }],
  ['hangs up', 'UNREACHABLE', { [PROOF]: { does: (response) => response.destroy() } }],
])('an index that %s gives no answer', async (_, code, changed) => {
  const { url } = await start(changed)
  await expect(resolve([url])).rejects.toMatchObject({ name: 'ResolutionError', reports: [failed(code)] })
})

test('an index is waited for as long as its source says, and asked for a part of what says to be longer', async () => {
  const silent = (await start({ [RECORD]: { does: () => {} } })).url
  const waiting = resolve([new HttpNameSource({ url: silent, timeout: 50 })])
  await expect(waiting).rejects.toMatchObject({ reports: [failed('TIMEOUT')] })
  const long: RouteAnswer = {
    does: (response) => response.writeHead(200, { 'content-length': '1000001' }).write('a'),
  }
  const answers = new Proxy<Record<string, RouteAnswer>>(HONEST, {
    get: (_, path: string) => (path === PROOF ? long : HONEST[path.replace(/\?maxBytes=.*/, '')]),
  })
  const source = new HttpNameSource({ url: (await startIndex(answers)).url, maxBytes: 1_000_000 })
  expect(await resolve([source])).toMatchObject({ name: 'abc', proven: true })
})

test.each(['before', 'behind'])('an honest index is heard %s all that mean harm', async (place) => {
  await givenTime(SHORT, async (timeout) => {
    const hostile = Object.entries(await hostileOnes())
    const sources: (NameSource | string)[] = hostile.map(([, { source }]) => source)
    const { url } = await start()
    const all = place === 'before' ? [url, ...sources] : [...sources, url]
    const chainTracker = {
      isValidRootForHeight: async (root: string, height: number): Promise<boolean> =>
        height === FAR ? await new Promise(() => {}) : await headers.isValidRootForHeight(root, height),
    }
    const maxTotalBytes = all.length * SHARE
    const { tip: resolved, reports } = await resolve(all, { chainTracker, timeout, maxTotalBytes })
    expect(resolved.tip).toEqual(tip)
    expect(place === 'before' ? reports.shift() : reports.pop()).toMatchObject({ verdict: 'agrees' })
    for (const [at, [what, { report, read, count }]] of hostile.entries()) {
      expect([what, reports[at]]).toMatchObject([what, report])
      if (read === undefined) continue
      expect([what, count?.()]).toEqual([what, expect.any(Number)])
      expect(count?.()).toBeGreaterThanOrEqual(read[0])
      expect(count?.()).toBeLessThanOrEqual(read[1])
    }
  })
})

test.each([
  ['behind', 'honest', 'hostile'],
  ['before', 'hostile', 'honest'],
])('a proof that costs too much to check refutes the index %s an honest one', async (_, ...order) => {
  const chain = new FakeChain()
  // OP_DUP, OP_CAT: twice as long each time.
  const growing = [OP.ONE, ...new Array(40).fill([0x76, 0x7e]).flat()]
  const coin = chain.spend({
    inputs: [],
    outputs: [{ satoshis: 1000, lockingScript: Uint8Array.from(growing) }],
  })
  const mint = chain.mint('a', { funding: [at(coin, 0)] })
  const all = [chain.genesis, coin, mint]
  const sources = order.map((index): NameSource => {
    const beef = outpointBeef(at(mint, 2), recordsOf(all, index === 'honest' ? [] : [mint])).subarray(40)
    return {
      ask: async () => [{ index, kind: 'claimed', evidence: { form: 'history', beef, tip: at(mint, 2) } }],
    }
  })
  const { deployment } = chain
  const { reports } = await resolve(sources, { name: 'a', deployment, chainTracker: new FakeHeaders(all) })
  expect(reports.find(({ index }) => index === 'honest')).toMatchObject({ verdict: 'agrees' })
  expect(reports.find(({ index }) => index === 'hostile')).toMatchObject({
    verdict: 'refuted',
    error: { name: 'ProofError', code: 'TOO_COSTLY' },
  })
})

test('a chain tracker that hangs is waited for as long as an index, and no index is blamed', async () => {
  const { url } = await start()
  const chainTracker = { isValidRootForHeight: async () => await new Promise<boolean>(() => {}) }
  await givenTime(1000, async (timeout) => {
    await expect(resolve([url], { chainTracker, timeout })).rejects.toMatchObject({ name: 'HeadersError' })
  })
})

describe('sources share', () => {
  /** Sources that note what they are given, and how many of them are asked at once. */
  function noting(count: number) {
    const given: AskBounds[] = []
    const open = { now: 0, most: 0 }
    const sources = Array.from(
      { length: count },
      (_, at): NameSource => ({
        ask: async (_name, bounds = {}) => {
          given.push(bounds)
          open.most = Math.max(open.most, ++open.now)
          await new Promise((resume) => setImmediate(resume))
          open.now--
          return [{ index: `${at}`, kind: 'not-claimed' }]
        },
      }),
    )
    return { given, open, sources }
  }

  test.each([
    ['few', 4, { maxTotalBytes: 4000, timeout: 60_000 }, { maxBytes: 1000, timeout: 60_000, most: 4 }],
    ['many', 80, { maxTotalBytes: 32_000, timeout: 60_000 }, { maxBytes: 1000, timeout: 20_000, most: 32 }],
    ['as many as the caller says', 6, { maxTotalBytes: 4000, maxAtOnce: 2 }, { maxBytes: 2000, most: 2 }],
  ])('bytes and time, and are asked so many at once: %s', async (_, count, options, expected) => {
    const { given, open, sources } = noting(count)
    await expect(resolve(sources, options)).rejects.toMatchObject({ code: 'NOT_CLAIMED' })
    expect(given).toHaveLength(count)
    expect(open.most).toBe(expected.most)
    for (const { maxBytes, timeout = 0 } of given) {
      expect(maxBytes).toBe(expected.maxBytes)
      if ('timeout' in expected) {
        expect(timeout).toBeLessThanOrEqual(expected.timeout)
        expect(timeout).toBeGreaterThan(0)
      }
    }
  })

  const fail = (): never => {
    throw new Error('oh')
  }
  const answers = (answer: object) => ({ ask: async () => [{ index: 'x', ...answer }] })
  const misbehaving: [string, Record<string, unknown>][] = [
    ['throws', { ask: () => fail() }],
    ['rejects', { ask: async () => fail() }],
    ['answers nothing', { ask: async () => undefined }],
    ['answers what is no list', { ask: async () => ({ length: 3 }) }],
    ['fails without a reason', answers({ kind: 'failed' })],
    ['shows no evidence', answers({ kind: 'claimed' })],
    ['shows evidence of no form', answers({ kind: 'claimed', evidence: { form: 'y' } })],
    ['shows evidence without bytes', answers({ kind: 'claimed', evidence: { form: 'history' } })],
    ['finds nothing', { ask: async () => [], find: async () => null }],
    ['fails to find any', { ask: async () => [], find: async () => fail() }],
    ['has no end of indexes', { ask: async () => [], maxIndexes: Number.POSITIVE_INFINITY }],
    ['has no number of indexes', { ask: async () => [], maxIndexes: Number.NaN }],
  ]

  test.each(misbehaving)(
    'nothing with one that %s: an honest index is heard beside it',
    async (_, source) => {
      const { url } = await start()
      const resolved = await resolve([source as unknown as NameSource, url])
      expect(resolved.reports.at(-1)).toEqual({ index: url, verdict: 'agrees' })
    },
  )

  test('what is left of nobody: the tip does not hold on to the proof that it stood in', async () => {
    const { url } = await start()
    const { lockingScript } = (await resolve([url])).tip
    expect(lockingScript.buffer.byteLength).toBe(lockingScript.length)
  })
})

test('of a source that finds indexes without end, a few are asked at once, and no more than 64', async () => {
  const asked: string[] = []
  let [open, most] = [0, 0]
  const source: NameSource = {
    maxIndexes: 2,
    ask: async () => [],
    find: async () =>
      Array.from({ length: 1000 }, (_, at) => ({
        index: `index ${at}`,
        ask: async () => {
          asked.push(`index ${at}`)
          most = Math.max(most, ++open)
          await new Promise((resolve) => setImmediate(resolve))
          open--
          return [{ index: `index ${at}`, kind: 'not-claimed' as const }]
        },
      })),
  }
  await expect(resolve([source])).rejects.toMatchObject({ code: 'NOT_CLAIMED', notAsked: 936 })
  expect([new Set(asked).size, asked.length, most]).toEqual([64, 64, 2])
})
