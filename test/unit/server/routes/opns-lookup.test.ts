import { LookupResolver, Transaction } from '@bsv/sdk'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain, OPEN_LOCK, p2pkh } from '../../../support/protocol/fake-chain.js'
import { OPERATOR, posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

// `ls_opns` as clients of OpNS overlays ask it.

const servers = useServers()
const chain = new FakeChain({ nameContentType: 'application/op-ns' })
const a = chain.mint('a', { ownerLock: OPEN_LOCK })
const ab = chain.mint('ab')
const moved = chain.move(a, 2, p2pkh(7))
let server: TestServer

/** The outpoints that the SDK's resolver finds. */
async function find(query: unknown): Promise<string[]> {
  const resolver = new LookupResolver({ networkPreset: 'local', hostOverrides: { ls_opns: [server.url] } })
  const { outputs } = await resolver.query({ service: 'ls_opns', query })
  return outputs.map(({ beef, outputIndex }) => `${Transaction.fromBEEF(beef).id('hex')}_${outputIndex}`)
}

beforeAll(async () => {
  const settings = { ...treeOf(chain.deployment), ...OPERATOR }
  server = await servers.start({ ...settings, PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
  for (const mint of [chain.genesis, a, ab]) await server.take(beefOf(mint))
  await server.take(beefOf(moved), ['tm_ordinals'])
})

test.each([
  ['a name by its domain', { domain: 'a' }, [moved.outpoint(0)]],
  ['a name by its event', { event: 'opns:a' }, [moved.outpoint(0)]],
  ['a name by the event of its origin', { event: `origin:${a.outpoint(2)}` }, [moved.outpoint(0)]],
  ['a live node by its event', { event: 'mine:a' }, [ab.outpoint(0)]],
  ['the live root by its event', { event: 'mine:' }, [a.outpoint(0)]],
  ['the origin of a name by its outpoint', { outpoint: a.outpoint(2) }, [a.outpoint(2)]],
  ['a later output of a name', { outpoint: moved.outpoint(0) }, [moved.outpoint(0)]],
  ['a live node by its outpoint', { outpoint: ab.outpoint(1) }, [ab.outpoint(1)]],
  ['a spent node by its outpoint', { outpoint: a.outpoint(1) }, [a.outpoint(1)]],
  ['no name that is not claimed', { domain: 'b' }, []],
  ['no event of one', { event: 'opns:b' }, []],
  ['no node of one', { event: 'mine:b' }, []],
  ['no change of a mint', { outpoint: a.outpoint(3) }, []],
  ['no name by an outpoint that is not its origin', { event: `origin:${moved.outpoint(0)}` }, []],
  ['nothing spent, of which there are no events', { event: 'opns:a', spent: true }, []],
])('finds %s', async (_, query, outpoints) => {
  expect(await find(query)).toEqual(outpoints)
})

test('takes the fields that clients in Go always send', async () => {
  const fields = { events: null, join: null, from: { height: 0, idx: 0 }, limit: 0, spent: null, rev: false }
  expect(await find({ event: 'mine:ab', ...fields })).toEqual([ab.outpoint(1)])
})

test.each([
  [{ event: 'p2pkh:1BitcoinEaterAddressDontSendf59kuE' }],
  [{ event: 'opns:A' }],
  [{ event: 'origin:x' }],
  [{ event: 'opns:a', events: ['opns:b'] }],
  [{ outpoint: 'x' }],
  [{ domain: '' }],
])('refuses %j and says which forms there are', async (query) => {
  const answer = await server.ask('/lookup', posted({ service: 'ls_opns', query }))
  const error = expect.stringMatching(/^ls_names takes /)
  expectError(answer, { status: 400, code: 'BAD_BODY', error, overlay: true })
})

test('comes with the history that proves a name', async () => {
  const query = { outpoint: moved.outpoint(0), history: true }
  const { json } = await server.ask('/lookup', posted({ service: 'ls_opns', query }))
  const [output] = (json as { outputs: { beef: number[] }[] }).outputs
  const beef = Buffer.from(output?.beef ?? [])
  for (const { raw } of [chain.genesis, a, moved]) expect(beef.includes(Buffer.from(raw))).toBe(true)
})

test('refuses what is blocked, by every form', async () => {
  await server.block({ name: 'a' })
  const events = ['opns:a', `origin:${a.outpoint(2)}`, 'mine:a'].map((event) => ({ event }))
  const outpoints = [a.outpoint(2), moved.outpoint(0)].map((outpoint) => ({ outpoint }))
  for (const query of [{ domain: 'a' }, ...events, ...outpoints]) {
    const { status } = await server.ask('/lookup', posted({ service: 'ls_opns', query }))
    expect([query, status]).toEqual([query, 451])
  }
})
