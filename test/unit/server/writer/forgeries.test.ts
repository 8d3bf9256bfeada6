import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { encodeEnvelope } from '../../../../backend/src/protocol/inscription.js'
import {
  decodeMineNode,
  encodeMineNode,
  type MineNode,
  UNCLAIMED,
} from '../../../../backend/src/protocol/mine-node.js'
import { encodeNameOutput } from '../../../../backend/src/protocol/mint.js'
import {
  beefOf,
  FakeChain,
  type FakeNode,
  type FakeOutput,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()

/** A server that holds `a`, `ab` and `b`, and the chain it follows. */
async function tree(): Promise<
  Record<'a' | 'ab', FakeTransaction> & { server: TestServer; chain: FakeChain }
> {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  const a = chain.mint('a')
  const ab = chain.mint('ab')
  for (const transaction of [chain.genesis, a, ab, chain.mint('b')]) {
    expect((await server.submit(beefOf(transaction))).status).toBe(200)
  }
  return { server, chain, a, ab }
}

/** Everything that the server says of names, and what a forgery might change of it. */
async function answers(server: TestServer, suspects: string[] = []): Promise<unknown> {
  const names = ['a', 'ab', 'ac', 'acd', 'b', 'google', 'x', 'xy']
  const paths = names.flatMap((name) => [`/svc/names/origin/${name}`, `/svc/names/mine/${name}`])
  const said = await Promise.all(paths.map(async (path) => [path, (await server.ask(path)).json]))
  const search = await server.ask('/lookup', posted({ service: 'ls_names', query: { prefix: '' } }))
  return {
    said,
    names: search.json,
    genuine: (await server.ask('/svc/names/origins', posted(suspects))).json,
  }
}

/** Submits what must not count, and sees that it does not. */
async function expectNoName(server: TestServer, forgeries: FakeTransaction[]): Promise<void> {
  const suspects = forgeries.flatMap(({ transaction, outpoint }) =>
    transaction.outputs.map((_, vout) => outpoint(vout)),
  )
  const before = await answers(server, suspects)
  for (const forgery of forgeries) {
    const { status, json } = await server.submit(beefOf(forgery))
    expect(status).toBe(200)
    expect(json).toMatchObject({ tm_names: { outputsToAdmit: [] } })
  }
  expect(await answers(server, suspects)).toEqual(before)
}

/** Submits a mint that must count. */
async function expectName(server: TestServer, name: string, mint: FakeTransaction): Promise<void> {
  const { status, json } = await server.submit(beefOf(mint))
  expect(status).toBe(200)
  expect(json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2], coinsToRetain: [0] } })
  const origin = await server.ask(`/svc/names/origin/${name}`)
  expect(origin.json).toEqual({ name, outpoint: mint.outpoint(2) })
  const further = await server.ask(`/svc/names/mine/${name}x`)
  expect(further.json).toEqual({ domain: name, outpoint: mint.outpoint(1) })
}

/** The live node of `a` with parts of its state replaced, as an output of a transaction that is no mint. */
function copyOf(chain: FakeChain, state: Partial<MineNode>): FakeOutput {
  const node = decodeMineNode(chain.node('a').lockingScript)
  return { satoshis: 1, lockingScript: encodeMineNode({ ...node, ...state }) }
}

function nodeAt(transaction: FakeTransaction, vout: number): FakeNode {
  const output = transaction.transaction.outputs[vout]
  if (output === undefined) throw new Error(`no output ${vout}`)
  const { satoshis, lockingScript } = output
  return { satoshis, lockingScript, outpoint: { txid: transaction.txid, vout } }
}

describe('a copy of a node', () => {
  test.each<[string, Partial<MineNode>]>([
    ['as it is', {}],
    ['with nothing claimed', { claimed: UNCLAIMED }],
    ['of another domain', { domain: 'x' }],
    ['with another seed', { seed: new Uint8Array(32).fill(7) }],
    ['of the root as deployed', { genesis: undefined, domain: '', seed: new Uint8Array() }],
  ])('%s is no node, nor is what is minted from it a name', async (_, state) => {
    const { server, chain } = await tree()
    const copy = chain.spend({ inputs: [], outputs: [copyOf(chain, state)] })
    const domain = state.domain ?? 'a'
    const minted = chain.mint(`${domain}c`, { from: nodeAt(copy, 0) })
    await expectNoName(server, [copy, minted])
    await expectName(server, 'ac', chain.mint('ac'))
  })

  test('to which a name was transferred is an ordinal, and no node', async () => {
    const { server, chain, a } = await tree()
    const relocked = chain.spend({
      inputs: [{ transaction: a, vout: 2 }],
      outputs: [copyOf(chain, { domain: 'x' }), { satoshis: 1, lockingScript: p2pkh(2) }],
    })
    const transfer = await server.submit(beefOf(relocked, { with: [a] }))
    expect(transfer.json).toMatchObject({
      tm_names: { outputsToAdmit: [] },
      tm_ordinals: { outputsToAdmit: [0] },
    })
    await expectNoName(server, [relocked, chain.mint('xc', { from: nodeAt(relocked, 0) })])
    expect((await server.ask('/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: a.outpoint(2) })
    await expectName(server, 'ac', chain.mint('ac'))
  })
})

test('a name output with the right marker and genesis, and no mint behind it, is no name', async () => {
  const { server, chain } = await tree()
  const lockingScript = encodeNameOutput({
    ownerLock: p2pkh(1),
    name: 'google',
    deployment: chain.deployment,
  })
  const alone = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
  const atTwo = chain.spend({
    inputs: [],
    outputs: [copyOf(chain, {}), copyOf(chain, { domain: 'google' }), { satoshis: 1, lockingScript }],
  })
  await expectNoName(server, [alone, atTwo])
  await expectName(server, 'ac', chain.mint('ac'))
})

test('the name is what the tree says, whatever the owner lock inscribes before it', async () => {
  const { server, chain } = await tree()
  const decoy = encodeEnvelope({ contentType: 'application/name-claim', body: utf8('google') })
  const mint = chain.mint('ac', { ownerLock: concatBytes(p2pkh(1), decoy) })
  await expectName(server, 'ac', mint)
  expect((await server.ask('/svc/names/origin/google')).status).toBe(404)
  expect((await server.ask('/svc/names/mine/google')).json).toMatchObject({ domain: '' })
})

describe('a second mint from one node', () => {
  test.each([
    ['of the same name', 'ac'],
    ['of another name', 'ad'],
  ])('%s is refused with the txid of the first, and changes nothing', async (_, name) => {
    const { server, chain, ab } = await tree()
    const from = chain.node('a')
    const winner = chain.mint('ac')
    const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
    const funding = [{ transaction: purse, vout: 0 }]
    const loser = chain.mint(name, { from, ownerLock: p2pkh(9), funding })
    await expectName(server, 'ac', winner)
    const before = server.rows()
    const beef = beefOf(loser, { proven: false, with: [purse, ab] })
    const { status, headers, json } = await server.submit(beef)
    expect(status).toBe(409)
    expect(json).toEqual({
      code: 'CONFLICT',
      txid: winner.txid,
      status: 'error',
      error: expect.stringContaining(winner.txid),
      message: expect.stringContaining(winner.txid),
    })
    expect(headers['cache-control']).toBe('no-store')
    expect(server.rows()).toEqual(before)
    const genuine = await server.ask('/svc/names/origins', posted([winner.outpoint(2), loser.outpoint(2)]))
    expect(genuine.json).toEqual({ [winner.outpoint(2)]: true, [loser.outpoint(2)]: false })
  })
})
