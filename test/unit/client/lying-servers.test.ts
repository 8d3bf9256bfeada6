import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { HttpNameSource } from '../../../src/client/name-source.js'
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
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// A real server over HTTP, and others before it that lie: one test a lie.

const servers = useServers()
const indexes = useNameIndexes()

const world = namedWorld()
const { chain, deployment, headers, line, mints, origin, purse, tip, transfers, way } = world
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
    expect((await server.submit(beef, ['tm_ordinals'])).status).toBe(200)
  }
})

/** An index that answers truthfully, except on the given routes. */
const index = async (changed: Record<string, RouteAnswer> = {}): Promise<string> =>
  (await indexes.start(changed, server.url)).url

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

const caught = (code: string) => ({ verdict: 'refuted', error: { name: 'ProofError', code } })
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
  const { url, asked } = await indexes.start({}, server.url)
  await resolve([url])
  expect(asked).toEqual([RECORD, PROOF, PROVENANCE])
})

describe('lies', () => {
  test('a wrong origin', async () => {
    const wrong = formatOutpoint(at(mints.ab, 2))
    const url = await index({ [RECORD]: { change: (json) => ({ ...(json as object), origin: wrong }) } })
    // Of which it would have to show the provenance, and can.
    expect(await reportOn(url)).toMatchObject(caught('OTHER_ORIGIN'))
  })

  test('a lookalike for an origin, proven as far as it can be', async () => {
    const fake = chain.inscribe({ contentType: 'application/name-claim', body: new Uint8Array() })
    const outpoint = at(fake, 0)
    const url = await index({
      [RECORD]: { body: recordFor(outpoint, outpoint) },
      [PROOF]: { body: outpointBeef(outpoint, recordsOf([...line, fake])) },
      [`/svc/gateway/provenance/${formatOutpoint(outpoint)}`]: {
        body: outpointBeef(outpoint, recordsOf([fake])),
      },
    })
    expect(await reportOn(url)).toMatchObject(caught('NOT_IN_TREE'))
  })

  test('a cut lineage', async () => {
    const cut = line.filter((mint) => mint !== mints.ax)
    expect(await reportOn(await index({ [PROOF]: { body: proofOf(cut) } }))).toMatchObject(
      caught('NOT_IN_TREE'),
    )
  })

  test('another genesis', async () => {
    const otherTree = new FakeChain({ codeSize: 65 })
    const mined = ['a', 'ab', 'abc'].map((name) => otherTree.mint(name)) as FakeTransaction[]
    const outpoint = { txid: mined[2]?.txid ?? '', vout: 2 }
    const url = await index({
      [RECORD]: { body: recordFor(outpoint, outpoint) },
      [PROOF]: { body: proofOf([otherTree.genesis, ...mined]) },
      [`/svc/gateway/provenance/${formatOutpoint(outpoint)}`]: { body: proofOf(mined.slice(2)) },
    })
    expect(await reportOn(url)).toMatchObject(caught('NO_GENESIS'))
  })

  test('a forged node', async () => {
    const node = chain.node('ab')
    const copy = chain.spend({ inputs: [], outputs: [node] })
    const mint = chain.mint('abx', { from: { ...node, outpoint: at(copy, 0) } })
    const outpoint = at(mint, 2)
    const url = await index({
      '/svc/names/abx': { body: recordFor(outpoint, outpoint) },
      '/svc/names/proof/abx': { body: proofOf([...line, copy, mint]) },
      [`/svc/gateway/provenance/${formatOutpoint(outpoint)}`]: { body: proofOf([mint]) },
    })
    expect(await reportOn(url, { name: 'abx' })).toMatchObject(caught('NOT_IN_TREE'))
  })

  test('the proof of another name', async () => {
    const url = await index({ [PROOF]: { body: proofOf(line.slice(0, -1)) } })
    expect(await reportOn(url)).toMatchObject(caught('OTHER_NAME'))
  })

  test('a block that is none', async () => {
    const stray = { ...mints.abc, height: 1 }
    const url = await index({ [PROOF]: { body: proofOf([...line.slice(0, -1), stray]) } })
    expect(await reportOn(url)).toMatchObject(caught('BAD_PATH'))
  })

  test('a tip that is another ordinal', async () => {
    const theirs = chain.spend({
      inputs: [at(mints.ax, 2)],
      outputs: [{ satoshis: 1, lockingScript: p2pkh(66) }],
    })
    const outpoint = at(theirs, 0)
    const body = outpointBeef(outpoint, recordsOf([mints.ax, theirs]))
    const chained = new FakeHeaders([...line, ...way, theirs])
    const url = await index({
      [RECORD]: { body: recordFor(origin, outpoint) },
      [PROVENANCE]: { body },
    })
    const failure = resolveName({
      name: 'abc',
      deployment,
      chainTracker: chained,
      sources: [new HttpNameSource({ url })],
    })
    await expect(failure).rejects.toMatchObject({ reports: [caught('NOT_DESCENDED')] })
  })

  test('a tip that it does not show the way to', async () => {
    const elsewhere = { txid: 'ab'.repeat(32), vout: 0 }
    const url = await index({ [RECORD]: { body: recordFor(origin, elsewhere) } })
    expect(await reportOn(url)).toMatchObject(caught('OTHER_TIP'))
  })

  test('a stale tip, against a second index', async () => {
    const stale = await index({
      [RECORD]: { body: recordFor(origin, at(first, 0)) },
      [PROVENANCE]: { body: outpointBeef(at(first, 0), recordsOf([mints.abc, first])) },
    })
    const honest = await index()
    for (const urls of [
      [stale, honest],
      [honest, stale],
    ]) {
      const { tip: found, spendStatus, reports } = await resolve(urls)
      expect({ tip: found.tip, spendStatus }).toEqual({ tip, spendStatus: 'unspent' })
      expect(reports.find(({ index }) => index === stale)).toMatchObject({ verdict: 'stale' })
      expect(reports.find(({ index }) => index === honest)).toMatchObject({ verdict: 'agrees' })
    }
  })

  test('a stale tip, by what the same index lets slip', async () => {
    const slip = await index({
      [RECORD]: {
        body: {
          ...recordFor(origin, at(first, 0)),
          tip: { outpoint: formatOutpoint(at(first, 0)), spent: true },
        },
      },
      [PROVENANCE]: { body: outpointBeef(at(first, 0), recordsOf([mints.abc, first])) },
    })
    expect(await resolve([slip])).toMatchObject({ spendStatus: 'spent' })
    const beside = await index({
      [RECORD]: { body: recordFor(origin, at(first, 0)) },
      [PROVENANCE]: { body: outpointBeef(at(first, 0), recordsOf(way)) },
    })
    expect(await reportOn(beside)).toMatchObject(caught('STALE_TIP'))
  })

  test('that the name is not claimed, against a second index', async () => {
    const withholding = await index({ [RECORD]: NOT_CLAIMED })
    expect(await resolve([withholding, await index()])).toMatchObject({
      tip: { tip },
      reports: [{ verdict: 'denies' }, { verdict: 'agrees' }],
    })
  })
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
    ['fails later', 'BAD_ANSWER', { [PROOF]: { status: 503, body: {} } }],
    ['is something else', 'BAD_ANSWER', { [RECORD]: { status: 404, body: 'not here' } }],
    ['answers nonsense', 'BAD_ANSWER', { [RECORD]: { body: Uint8Array.of(0xff, 0x7b) } }],
    ['answers null', 'BAD_ANSWER', { [RECORD]: { body: null } }],
    ['answers a number for an outpoint', 'BAD_ANSWER', { [RECORD]: { body: { origin: 7 } } }],
    ['answers no outpoint', 'BAD_ANSWER', { [RECORD]: { body: { origin: 'abc' } } }],
    [
      'sends one elsewhere',
      'UNREACHABLE',
      { [RECORD]: { status: 302, headers: { location: '/other' }, body: '' } },
    ],
    ['hangs up', 'UNREACHABLE', { [PROOF]: { does: (response) => response.destroy() } }],
    [
      'hangs up in the midst of it',
      'UNREACHABLE',
      {
        [PROOF]: {
          does: (response) => {
            response.writeHead(200, { 'content-length': '1000' })
            response.write('a', () => response.destroy())
          },
        },
      },
    ],
  ])('because it %s', async (_, code, changed) => {
    expect(await reportOn(await index(changed))).toMatchObject(failing(code))
  })

  test('because nobody listens', async () => {
    expect(await reportOn('http://127.0.0.1:1')).toMatchObject(failing('UNREACHABLE'))
  })

  test('because it says nothing for longer than the caller waits', async () => {
    const unresponsive = await index({ [RECORD]: { does: () => {} } })
    expect(await reportOn(unresponsive, { timeout: 50 })).toMatchObject(failing('TIMEOUT'))
    const slow = await index({
      [PROOF]: { does: (response) => response.writeHead(200).write('a') },
    })
    expect(await reportOn(slow, { timeout: 200 })).toMatchObject(failing('TIMEOUT'))
  })

  test('because it answers more than the caller reads', async () => {
    const endless = await index({
      [PROOF]: {
        does: (response) => {
          response.writeHead(200)
          const more = (): void => {
            while (response.write(Buffer.alloc(64 * 1024)));
            response.once('drain', more)
          }
          more()
        },
      },
    })
    expect(await reportOn(endless, { maxBytes: 1_000_000 })).toMatchObject(failing('TOO_LARGE'))
  })

  test('is asked for a part of what is too long, if it says so before', async () => {
    const long = await index({
      [PROOF]: { does: (response) => response.writeHead(200, { 'content-length': '1000001' }).write('a') },
    })
    expect(await resolve([long], { maxBytes: 1_000_000 })).toMatchObject({ name: 'abc', proven: true })
  })
})

const NOT_CLAIMED: RouteAnswer = { status: 404, body: { error: 'abc is not claimed', code: 'NOT_FOUND' } }

/** What an index says of a name that was minted and is now at these outpoints. */
function recordFor(from: { txid: string; vout: number }, now: { txid: string; vout: number }) {
  return { name: 'abc', origin: formatOutpoint(from), tip: { outpoint: formatOutpoint(now), spent: false } }
}
