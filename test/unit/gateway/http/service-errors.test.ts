import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { directory, publisher, text } from '../../../support/gateway/site.js'
import { chunk, lastOf, streamPath, streamsOn } from '../../../support/gateway/streams.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  type MintOverrides,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

// The table of `service.md` 7, a test a row; where a row says "or", a test for each.

const servers = useServers()
const chain = new FakeChain()
const server = await servers.start(treeOf(chain.deployment))
const published = publisher({ server, chain })
const streams = streamsOn(server, chain)

const NOT_FOUND = { status: 404, code: 'NOT_FOUND' }

/** Submits an inscription whose origin is known: the coin that it spends is, and is no ordinal. */
async function publishedOrigin(): Promise<FakeTransaction> {
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  const origin = chain.spend({
    inputs: [{ transaction: funding, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: inscriptionScript(text('origin')) }],
  })
  expect((await server.submit(beefOf(origin, { with: [funding] }), ['tm_ordinals'])).status).toBe(200)
  return origin
}

describe('a request that needs what is outside the store', () => {
  test('an outpoint', async () => {
    const elsewhere = chain.inscribe(text('elsewhere'))
    for (const pointer of [elsewhere.outpoint(0), elsewhere.txid, `${elsewhere.outpoint(0)}:0`]) {
      expectError(await server.ask(`/content/${pointer}`), NOT_FOUND)
    }
    expectError(await server.ask(streamPath(elsewhere)), NOT_FOUND)
  })

  test('an output that its transaction has not', async () => {
    const here = await published(text('here'))
    expectError(await server.ask(`/content/${here.outpoint(1)}`), NOT_FOUND)
  })

  test.each(['0', '1', '-1', '-2'])('an ancestor, for the sequence %s', async (sequence) => {
    // The coin that paid for it is fake: whether it was an ordinal, nobody here knows.
    const orphan = await published(text('orphan'))
    expectError(await server.ask(`/content/${orphan.outpoint(0)}:${sequence}`), NOT_FOUND)
    expect((await server.ask(`/content/${orphan.outpoint(0)}`)).status).toBe(200)
  })

  test('a spend', async () => {
    const origin = await publishedOrigin()
    for (const sequence of ['0', '-1', '-2']) {
      expect((await server.ask(`/content/${origin.outpoint(0)}:${sequence}`)).status).toBe(200)
    }
    for (const sequence of ['1', '9007199254740991']) {
      expectError(await server.ask(`/content/${origin.outpoint(0)}:${sequence}`), NOT_FOUND)
    }
  })
})

test('a directory whose child is not in the store', async () => {
  const elsewhere = chain.inscribe(text('elsewhere'))
  const site = await published(
    directory({ file: elsewhere.outpoint(0), any: elsewhere.txid, here: '_1' }),
    text('here'),
  )
  for (const path of ['/file', '/any']) {
    expectError(await server.ask(`/content/${site.outpoint(0)}${path}`), NOT_FOUND)
  }
  expect((await server.ask(`/content/${site.outpoint(0)}/here`)).status).toBe(200)
})

test('an empty path into a directory with neither a default nor an index', async () => {
  const site = await published(directory({ file: '_1' }), text('file'))
  for (const path of ['', '/', '?x=raw']) {
    expectError(await server.ask(`/content/${site.outpoint(0)}${path}`), NOT_FOUND)
  }
  expect((await server.ask(`/content/${site.outpoint(0)}?raw`)).status).toBe(200)
})

describe('a path', () => {
  const site = published(directory({ file: '_1', sub: '_2' }), text('file'), directory({ file: '_1' }))
  test.each([
    ['through what is not a directory', '/file/file'],
    ['through a key that is missing', '/none/file'],
    ['to a key that is missing, without an index to fall back to', '/none'],
    ['to a key that is missing further down', '/sub/none'],
    ['through a key that is missing further down', '/sub/none/file'],
  ])('%s', async (_, path) => {
    expectError(await server.ask(`/content/${(await site).outpoint(0)}${path}`), NOT_FOUND)
  })
})

test('a path through more than 8 directories', async () => {
  const levels = Array.from({ length: 9 }, (_, at) => directory({ next: `_${at + 1}` }))
  const site = await published(...levels, text('deep'))
  const error = 'a path may open at most 8 directories'
  const path = (steps: number): string => `/content/${site.outpoint(9 - steps)}${'/next'.repeat(steps)}`
  expect((await server.ask(path(8))).body.toString('utf8')).toBe('deep')
  expectError(await server.ask(path(9)), { status: 400, code: 'NESTING_TOO_DEEP', error })
})

describe('a middle chunk of a stream that cannot be loaded', () => {
  test('stops the stream where its spend is not here', async () => {
    const steps = await streams.streamOf(['first', 'second'])
    const missing = streams.transferred(lastOf(steps), chunk('missing'))
    await streams.submit(streams.transferred(missing, chunk('last')))
    const { status, body } = await server.ask(streamPath(steps[0]))
    expect([status, body.toString('utf8')]).toEqual([200, 'firstsecond'])
  })

  test('breaks the connection where its bytes are gone', async () => {
    const gone = sha256(utf8('gone')).toString('hex')
    const [first, second] = await streams.streamOf(['here', 'gone', 'here'])
    const { graph } = server.node
    const contentChunks = graph.content.chunks.bind(graph)
    await whileReplaced(graph.content, 'chunks', {
      by: async function* (hash, range) {
        if (hash !== gone) yield* contentChunks(hash, range)
      },
      during: async () => {
        await expect(server.ask(streamPath(first))).rejects.toThrow(/aborted|hang up|ECONNRESET/)
        expectError(await server.ask(streamPath(second)), { status: 500, code: 'INTERNAL' })
      },
    })
  })
})

describe('a mint', () => {
  const swapped: MintOverrides = {
    outputs: ([node, child, name, ...rest]) =>
      [node, name, child, ...rest].filter((output) => output !== undefined),
  }
  const held = (async () => {
    for (const transaction of [chain.genesis, ...chain.mintAll('ab')]) {
      expect((await server.submit(beefOf(transaction))).status).toBe(200)
    }
  })()

  test.each<[string, MintOverrides]>([
    ['with a character that names do not have', { character: 'C' }],
    ['of a bit that is set', { character: 'b' }],
    ['with too little work', { badWork: true }],
    ['whose outputs are laid out otherwise', swapped],
  ])('%s names nothing', async (_, overrides) => {
    await held
    const wrong = chain.mint('ac', { from: chain.node('a'), ...overrides })
    const { status, json } = await server.submit(beefOf(wrong))
    expect({ status, json }).toMatchObject({ status: 200, json: { tm_names: { outputsToAdmit: [] } } })
    expectError(await server.ask('/svc/names/origin/ac'), NOT_FOUND)
    const live = { domain: 'a', outpoint: formatOutpoint(chain.node('a').outpoint) }
    expect((await server.ask('/svc/names/mine/ac')).json).toEqual(live)
  })
})
