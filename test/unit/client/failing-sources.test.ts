import type { ServerResponse } from 'node:http'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { resolveName } from '../../../src/client/resolve.js'
import { createVerifiedFetch, type VerifiedFetchInit } from '../../../src/client/verified-fetch.js'
import { type RouteAnswer, startIndex } from '../../support/client/name-index.js'
import { FakeHeaders } from '../../support/client/name-proofs.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { directory, text } from '../../support/gateway/site.js'
import { streamsOn } from '../../support/gateway/streams.js'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { beefOf, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'
import { givenTime } from '../../support/server/waiting.js'

// Two honest servers and one that fails in some way, whatever it is asked: the answer is that of the two.

const servers = useServers()
const hosted = await hostedServer(servers)
const { server, chain } = hosted
const chainTracker = Object.assign(new FakeHeaders(), { currentHeight: async () => 900_000 })
const mined = <Each extends FakeTransaction>(transaction: Each): Each => chainTracker.add(transaction)
mined(await hosted.mine('a'))
const mint = mined(await hosted.mine('al'))
const other = mined(chain.inscribe(text('other')))
await server.submit(beefOf(other), ['tm_ordinals'])
const site = mined(
  await hosted.show(
    { transaction: mint, vout: 2 },
    directory({ 'index.html': '_1', sub: '_2' }),
    text('<h1>al</h1>', 'text/html'),
    directory({ 'deep.txt': '_3' }),
    text('deep', 'text/plain'),
  ),
)
const moved = mined(await hosted.show({ transaction: site, vout: 0 }, 'lock'))
const [first] = (await streamsOn(server, chain).streamOf(['one ', 'two ', 'three'])).map(mined)
const stream = (first as FakeTransaction).outpoint(0)
const otherProof = Uint8Array.from((await server.ask(`/svc/gateway/proof/${other.outpoint(0)}`)).body)
const nowhere = `${'ab'.repeat(32)}_0`

const does = (act: (response: ServerResponse) => void): RouteAnswer => ({ does: act })
const FAILURES: [what: string, answer: RouteAnswer, timeout?: number][] = [
  ['answers garbage', { body: new Uint8Array(300).map((_, at) => (at * 37) % 251) }],
  ['answers nothing', { body: new Uint8Array() }],
  ['answers with the proof of something else', { body: otherProof }],
  ['answers with a proof that is cut off', { body: otherProof.slice(0, -40) }],
  ['has blocked it', { status: 451, body: { error: 'blocked', code: 'BLOCKED' } }],
  ['is not ready', { status: 503, body: { error: 'later', code: 'NOT_READY' } }],
  ['fails', { status: 500, body: 'oh no' }],
  ['demands a login', { headers: { 'content-type': 'text/html' }, body: Buffer.from('<html>log in') }],
  ['redirects in a loop', { status: 302, headers: { location: '/' }, body: {} }],
  ['answers 404 to everything, without a code', { status: 404, body: 'nginx' }],
  ['breaks the connection', does((response) => response.destroy())],
  [
    'breaks off in the middle',
    does((response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('half')
      setImmediate(() => response.destroy())
    }),
  ],
  ['says nothing', does(() => {}), 1000],
]

const init = (more: VerifiedFetchInit = {}): VerifiedFetchInit => more
const CALLS: [what: string, resource: string, init: VerifiedFetchInit, expected: object][] = [
  ['a file', site.outpoint(1), init(), { body: '<h1>al</h1>' }],
  ['a transaction', other.txid, init(), { body: 'other' }],
  ['a path', `${site.outpoint(0)}/sub/deep.txt`, init(), { body: 'deep' }],
  ['a step', `${mint.outpoint(2)}:1/sub/deep.txt`, init(), { body: 'deep' }],
  ['a tip', `${mint.outpoint(2)}:-1/`, init(), { body: '<h1>al</h1>' }],
  ['a name', 'al/', init(), { body: '<h1>al</h1>' }],
  ['a stream', stream, init({ stream: true }), { body: 'one two three' }],
  ['what nobody has', nowhere, init(), { code: 'NOT_FOUND' }],
  ['an ordinal that nobody has', `${nowhere}:-1`, init(), { code: 'NOT_FOUND' }],
  ['a name that nobody has mined', 'albert/', init(), { code: 'NOT_CLAIMED' }],
]

const placed = <Each>(bad: Each, honest: Each, position: number): Each[] =>
  [0, 1, 2].map((at) => (at === position ? bad : honest))

const WAYS = (['in order', 'in parallel'] as const).flatMap((order) =>
  [0, 1, 2].map((position) => ({ order, position })),
)
/** How servers are asked, and where the one stands that fails: for each question in another way, and at night in all. */
const waysOf = (failure: number, question: number): typeof WAYS =>
  WAYS.filter((_, at) => IS_NIGHTLY || at === (failure + question) % WAYS.length)

describe.each(FAILURES.map(([what, answer, least = 20_000], at) => ({ what, answer, least, failure: at })))(
  'beside a server that $what',
  ({ answer, least, failure }) => {
    let bad = ''
    beforeEach(async () => {
      const everywhere = new Proxy<Record<string, RouteAnswer>>({}, { get: () => answer })
      bad = (await startIndex(everywhere)).url
    })

    test.each(
      CALLS.map(([what, resource, init, expected], question) => ({
        what,
        resource,
        init,
        expected,
        question,
      })),
    )('$what is what the others say', async ({ resource, init, expected, question }) => {
      const expectOutcome = async (
        order: 'in order' | 'in parallel',
        position: number,
        timeout: number,
      ): Promise<void> => {
        const fetch = createVerifiedFetch({
          ...{ gateways: placed(bad, server.url, position), order, chainTracker, timeout },
          ...{ profile: 'local', deployment: chain.deployment, tipPolicy: 'majority' },
        })
        const outcome = await fetch(resource, init).then(
          async (response) => ({ body: await response.text(), end: await response.verification.end }),
          (error: unknown) => error,
        )
        expect([order, position, outcome]).toMatchObject([order, position, expected])
      }
      const all = waysOf(failure, question).map(({ order, position }) =>
        givenTime(least, (timeout) => expectOutcome(order, position, timeout)),
      )
      await Promise.all(all)
    })

    test('a name resolves to what the others prove, or is what they deny', async () => {
      const resolutions = [0, 1, 2].map(async (position) => {
        const sources = placed(bad, server.url, position)
        const { deployment } = chain
        await givenTime(least / 2, async (timeout) => {
          const resolve = async (name: string) =>
            await resolveName({ name, deployment, chainTracker, sources, timeout })
          const { tip, reports, spendStatus } = await resolve('al')
          expect(formatOutpoint(tip.tip)).toBe(moved.outpoint(0))
          expect(spendStatus).toBe('unspent')
          expect(reports.filter(({ verdict }) => verdict === 'agrees')).toHaveLength(2)
          await expect(resolve('albert')).rejects.toMatchObject({ code: 'NOT_CLAIMED' })
        })
      })
      await Promise.all(resolutions)
    })
  },
)
