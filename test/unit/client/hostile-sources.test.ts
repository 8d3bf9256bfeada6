import type { ServerResponse } from 'node:http'
import { createGzip } from 'node:zlib'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { OP } from '../../../backend/src/protocol/script-walk.js'
import { type AskBounds, HttpNameSource, type NameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { type RouteAnswer, useNameIndexes } from '../../support/client/name-index.js'
import {
  at,
  FakeHeaders,
  namedWorld,
  outpointBeef,
  proofOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'

// An honest index, and beside it one that would have a reader wait, read or compute without end.

const indexes = useNameIndexes()
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
/** A reader takes what comes in chunks, and sees in the last one that it is too much. */
const CHUNK_BYTES = 64 * 1024
/** For what is waited for in vain, in milliseconds. */
const SHORT = 4000

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

function endless(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream' })
  const chunk = Buffer.alloc(CHUNK_BYTES, ' ')
  const write = (): void => {
    while (response.write(chunk));
  }
  response.on('drain', write)
  write()
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

const start = async (changed: Record<string, RouteAnswer> = {}) =>
  await indexes.start({ ...HONEST, ...changed })

const resolve = async (
  sources: (NameSource | string)[],
  more: Partial<Parameters<typeof resolveName>[0]> = {},
) => await resolveName({ name: 'abc', deployment, chainTracker: headers, sources, ...more })

describe.each([
  ['before', 0],
  ['behind', 1],
])('an honest index is heard %s one', (_, place) => {
  const beside = async (hostile: NameSource | string, more: Parameters<typeof resolve>[1] = {}) => {
    const honest = await start()
    const sources = place === 0 ? [honest.url, hostile] : [hostile, honest.url]
    const resolved = await resolve(sources, more)
    expect(resolved.tip.tip).toEqual(tip)
    expect(resolved.reports[place]).toMatchObject({ verdict: 'agrees' })
    return resolved.reports[1 - place]
  }

  test.each([
    ['its record', RECORD],
    ['its proof', PROOF],
    ['its provenance', PROVENANCE],
  ])('that drips %s', async (_, path) => {
    const { url } = await start({ [path]: { does: drip } })
    expect(await beside(url, { timeout: SHORT })).toMatchObject({
      verdict: 'failed',
      error: { name: 'SourceError', code: 'TIMEOUT' },
    })
  })

  test('that says nothing at all', async () => {
    const unresponsive: NameSource = { index: 'nobody', ask: async () => await new Promise(() => {}) }
    expect(await beside(unresponsive, { timeout: SHORT })).toMatchObject({
      index: 'nobody',
      verdict: 'failed',
      error: { code: 'TIMEOUT' },
    })
  })

  test.each([
    ['answers without end', endless],
    ['packs a large answer small', bomb],
  ])('that %s, of which its share is read', async (_, does) => {
    const { fetch, count } = countingFetch()
    const { url } = await start({ [PROOF]: { does } })
    const hostile = new HttpNameSource({ url, fetch })
    expect(await beside(hostile, { maxTotalBytes: 2 * MiB })).toMatchObject({
      verdict: 'failed',
      error: { code: 'TOO_LARGE' },
    })
    expect(count()).toBeGreaterThan(MiB / 2)
    expect(count()).toBeLessThanOrEqual(MiB + 2 * CHUNK_BYTES)
  })

  test('whose record has no end, of which less is read than of a proof', async () => {
    const { fetch, count } = countingFetch()
    const { url } = await start({ [RECORD]: { does: endless } })
    const hostile = new HttpNameSource({ url, fetch })
    expect(await beside(hostile)).toMatchObject({ verdict: 'failed', error: { code: 'TOO_LARGE' } })
    expect(count()).toBeLessThanOrEqual(MiB + 2 * CHUNK_BYTES)
  })

  test('whose answers are each within bounds, and together are not', async () => {
    const proof = { body: Buffer.alloc(700_000) }
    const { url } = await start({ [PROOF]: proof, [PROVENANCE]: proof })
    expect(await beside(url, { maxTotalBytes: 2_000_000 })).toMatchObject({
      verdict: 'failed',
      error: { code: 'TOO_LARGE' },
    })
  })

  test('whose proof costs too much to check', async () => {
    const chain = new FakeChain()
    // OP_DUP, OP_CAT: twice as long each time.
    const growing = [OP.ONE, ...new Array(40).fill([0x76, 0x7e]).flat()]
    const coin = chain.spend({
      inputs: [],
      outputs: [{ satoshis: 1000, lockingScript: Uint8Array.from(growing) }],
    })
    const mint = chain.mint('a', { funding: [at(coin, 0)] })
    const all = [chain.genesis, coin, mint]
    const claims = (index: string, unproven: typeof all): NameSource => ({
      ask: async () => [
        {
          index,
          kind: 'claimed',
          evidence: {
            form: 'history',
            beef: outpointBeef(at(mint, 2), recordsOf(all, unproven)).subarray(40),
            tip: at(mint, 2),
          },
        },
      ],
    })
    const sources = [claims('honest', []), claims('hostile', [mint])]
    const { reports } = await resolve(place === 0 ? sources : sources.toReversed(), {
      name: 'a',
      deployment: chain.deployment,
      chainTracker: new FakeHeaders(all),
    })
    expect(reports.find(({ index }) => index === 'honest')).toMatchObject({ verdict: 'agrees' })
    expect(reports.find(({ index }) => index === 'hostile')).toMatchObject({
      verdict: 'refuted',
      error: { name: 'ProofError', code: 'TOO_COSTLY' },
    })
  })

  test('that shows a block over which the chain tracker hangs', async () => {
    const far = { ...mints.abc, height: 2_000_000_000 }
    const { url } = await start({ [PROOF]: { body: proofOf([...line.slice(0, -1), far]) } })
    const chainTracker = {
      isValidRootForHeight: async (root: string, height: number): Promise<boolean> =>
        height === far.height
          ? await new Promise(() => {})
          : await headers.isValidRootForHeight(root, height),
    }
    expect(await beside(url, { chainTracker, timeout: SHORT })).toMatchObject({
      verdict: 'unchecked',
      error: { name: 'HeadersError', message: expect.stringContaining('did not answer in time') },
    })
  })
})

test('a chain tracker that hangs is waited for as long as an index, and no index is blamed', async () => {
  const { url } = await start()
  const chainTracker = { isValidRootForHeight: async () => await new Promise<boolean>(() => {}) }
  await expect(resolve([url], { chainTracker, timeout: SHORT })).rejects.toMatchObject({
    name: 'HeadersError',
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

  const misbehaving: [string, Record<string, unknown>][] = [
    [
      'throws',
      {
        ask: () => {
          throw new Error('oh')
        },
      },
    ],
    ['rejects', { ask: async () => await Promise.reject(new Error('oh')) }],
    ['answers nothing', { ask: async () => undefined }],
    ['answers what is no list', { ask: async () => ({ length: 3 }) }],
    ['fails without a reason', { ask: async () => [{ index: 'x', kind: 'failed' }] }],
    ['shows no evidence', { ask: async () => [{ index: 'x', kind: 'claimed' }] }],
    [
      'shows evidence of no form',
      { ask: async () => [{ index: 'x', kind: 'claimed', evidence: { form: 'y' } }] },
    ],
    [
      'shows evidence without bytes',
      { ask: async () => [{ index: 'x', kind: 'claimed', evidence: { form: 'history' } }] },
    ],
    ['finds nothing', { ask: async () => [], find: async () => null }],
    ['fails to find any', { ask: async () => [], find: async () => await Promise.reject(new Error('oh')) }],
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
