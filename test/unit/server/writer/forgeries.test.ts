import {
  beefOf,
  FakeChain,
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
  for (const transaction of [chain.genesis, a, ab, chain.mint('b')]) await server.take(beefOf(transaction))
  return { server, chain, a, ab }
}

/** Everything that the server says of names, and what a forgery might change of it. */
async function answers(server: TestServer, suspects: string[] = []): Promise<unknown> {
  const names = ['a', 'ab', 'ac', 'acd', 'b', 'google', 'x', 'xy']
  const paths = names.flatMap((name) => [`/svc/names/origin/${name}`, `/svc/names/mine/${name}`])
  const said = await Promise.all(paths.map(async (path) => [path, (await server.ask(path)).json]))
  const search = await server.ask('/lookup', posted({ service: 'ls_names', query: { prefix: '' } }))
  return [said, search.json, (await server.ask('/svc/names/origins', posted(suspects))).json]
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

test('a copy of a node is no node, nor is what is minted from it a name', async () => {
  const { server, chain } = await tree()
  const node = chain.node('a')
  const copy = chain.spend({ outputs: [node.lockingScript] })
  const from = { ...node, outpoint: { txid: copy.txid, vout: 0 } }
  await expectNoName(server, [copy, chain.mint('ac', { from })])
  await expectName(server, 'ac', chain.mint('ac'))
})

describe('a second mint from one node', () => {
  test.each([
    ['of the same name', 'ac'],
    ['of another name', 'ad'],
  ])('%s is refused with the txid of the first, and changes nothing', async (_, name) => {
    const { server, chain, ab } = await tree()
    const from = chain.node('a')
    const winner = chain.mint('ac')
    const purse = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
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
    expect([headers['cache-control'], server.rows()]).toEqual(['no-store', before])
    const genuine = await server.ask('/svc/names/origins', posted([winner.outpoint(2), loser.outpoint(2)]))
    expect(genuine.json).toEqual({ [winner.outpoint(2)]: true, [loser.outpoint(2)]: false })
  })
})
