import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { HttpNameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import { namedWorld } from '../../support/client/name-proofs.js'
import { beefOf } from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// A real server over HTTP, and others before it that lie: one test a lie.

const servers = useServers()

const world = namedWorld()
const { deployment, headers, line, mints, origin, purse, tip, transfers } = world
const [first, second] = transfers

const RECORD = '/svc/names/abc'
const PROOF = '/svc/names/proof/abc'
const PROVENANCE = `/svc/gateway/provenance/${formatOutpoint(origin)}`

let server: TestServer

beforeAll(async () => {
  server = await servers.start(treeOf(deployment))
  for (const mint of line) await server.submit(beefOf(mint))
  for (const [transaction, sources] of [
    [first, [mints.abc]],
    [second, [purse, first]],
  ] as const) {
    const beef = beefOf(transaction, { with: sources })
    await server.take(beef, ['tm_ordinals'])
  }
})

/** An index that answers truthfully, except on the given routes. */
const index = async (changed: Record<string, RouteAnswer> = {}): Promise<string> =>
  (await startIndex(changed, server.url)).url

const resolve = async (
  urls: string[],
  more: { maxBytes?: number; timeout?: number; name?: string } = {},
): ReturnType<typeof resolveName> => {
  const { name = 'abc', ...bounds } = more
  const sources = urls.map((url) => new HttpNameSource({ url, ...bounds }))
  return await resolveName({ name, deployment, chainTracker: headers, sources })
}

/** What is said of an index that stands alone. */
async function reportOn(url: string, bounds: Parameters<typeof resolve>[1] = {}): Promise<unknown> {
  const error: unknown = await resolve([url], bounds).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ name: 'ResolutionError' })
  return (error as { reports: unknown[] }).reports[0]
}

const failing = (code: string) => ({ verdict: 'failed', error: { name: 'SourceError', code } })

test('an honest index is followed', async () => {
  const url = await index()
  expect(await resolve([`${url}/`])).toMatchObject({
    origin: { origin },
    tip: { tip, sequence: 2 },
    proven: true,
    spendStatus: 'unspent',
    reports: [{ index: url, verdict: 'agrees' }],
  })
})

test('three questions are asked, what the index says of the name first', async () => {
  const { url, asked } = await startIndex({}, server.url)
  await resolve([url])
  expect(asked).toEqual([RECORD, PROOF, PROVENANCE])
})

describe('an index that gives no answer', () => {
  test('because the name is not claimed', async () => {
    await expect(resolve([server.url], { name: 'nobody' })).rejects.toMatchObject({ code: 'NOT_CLAIMED' })
  })

  test.each<[what: string, code: string, changed: Record<string, RouteAnswer>]>([
    ['shows no proof', 'NO_PROOF', { [PROOF]: { status: 404, body: { error: 'no', code: 'NOT_FOUND' } } }],
    ['shows no way to the tip', 'NO_PROOF', { [PROVENANCE]: { status: 404, body: {} } }],
    [
      'does not follow ordinals',
      'NO_PROOF',
      { [RECORD]: { body: { name: 'abc', origin: formatOutpoint(origin) } } },
    ],
    ['fails', 'BAD_ANSWER', { [RECORD]: { status: 500, body: { error: 'sorry', code: 'INTERNAL' } } }],
    ['answers nonsense', 'BAD_ANSWER', { [RECORD]: { body: Uint8Array.of(0xff, 0x7b) } }],
    ['answers no outpoint', 'BAD_ANSWER', { [RECORD]: { body: { origin: 'abc' } } }],
    [
      'sends one elsewhere',
      'UNREACHABLE',
      { [RECORD]: { status: 302, headers: { location: '/other' }, body: '' } },
    ],
    ['hangs up', 'UNREACHABLE', { [PROOF]: { does: (response) => response.destroy() } }],
  ])('because it %s', async (_, code, changed) => {
    expect(await reportOn(await index(changed))).toMatchObject(failing(code))
  })

  test('because it says nothing for longer than the caller waits', async () => {
    const unresponsive = await index({ [RECORD]: { does: () => {} } })
    expect(await reportOn(unresponsive, { timeout: 50 })).toMatchObject(failing('TIMEOUT'))
    const slow = await index({
      [PROOF]: { does: (response) => response.writeHead(200).write('a') },
    })
    expect(await reportOn(slow, { timeout: 200 })).toMatchObject(failing('TIMEOUT'))
  })

  test('is asked for a part of what is too long, if it says so before', async () => {
    const long = await index({
      [PROOF]: { does: (response) => response.writeHead(200, { 'content-length': '1000001' }).write('a') },
    })
    expect(await resolve([long], { maxBytes: 1_000_000 })).toMatchObject({ name: 'abc', proven: true })
  })
})
