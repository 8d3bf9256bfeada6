import { encodeBeef } from '../../../../backend/src/graph/write-beef.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { OverlaySource } from '../../../../src/chain/sources/overlay-source.js'
import { recordOf } from '../../../support/protocol/block.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK, p2pkh } from '../../../support/protocol/fake-chain.js'
import { listening, serving } from '../../../support/server/connections.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

const LIMIT = { maxBytes: 100_000 }
const UNKNOWN = '12'.repeat(32)
const servers = useServers()
const chain = new FakeChain()
const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5000, lockingScript: p2pkh(1) }] })
const mint = chain.mint('a', { funding: [{ transaction: coin, vout: 0 }] })
const moved = move(mint, 2)
const pending = move(moved, 0)

function move(from: FakeTransaction, vout: number): FakeTransaction {
  const outputs = [{ satoshis: 1, lockingScript: OPEN_LOCK }]
  return chain.spend({ inputs: [{ transaction: from, vout }], outputs })
}

/** A host that has them all, as it is, and one of which only `/lookup` can be reached. */
const hosts = await (async () => {
  const server = await servers.start(treeOf(chain.deployment))
  const submitted: [FakeTransaction, FakeTransaction[]][] = [
    [chain.genesis, []],
    [mint, [chain.genesis, coin]],
    [moved, [mint]],
  ]
  for (const [subject, sources] of submitted) {
    const records = [...sources, subject].map((each) => recordOf(each, each.height))
    const { status } = await server.submit(encodeBeef(records), ['tm_names', 'tm_ordinals'])
    if (status !== 200) throw new Error(`the server answered ${status}`)
  }
  await server.submit(encodeBeef([recordOf(moved, moved.height), recordOf(pending)]), ['tm_ordinals'])
  const front = await listening((incoming, response) => {
    if (incoming.url !== '/lookup') return void response.writeHead(404).end()
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', async () => {
      const headers = { 'Content-Type': 'application/json' }
      const answer = await fetch(`${server.url}/lookup`, {
        method: 'POST',
        headers,
        body: Buffer.concat(chunks),
      })
      response.writeHead(answer.status).end(await answer.text())
    })
  })
  afterAll(front.close)
  return { wallets: server.url, lookup: front.url }
})()

function sourceOf(host: 'wallets' | 'lookup'): OverlaySource {
  const source = new OverlaySource({ url: hosts[host] })
  onTestFinished(() => source.client.close())
  return source
}

describe.each(['wallets', 'lookup'] as const)('an overlay host asked by its routes for %s', (host) => {
  test('has transactions with an output in a topic, with their proofs', async () => {
    const source = sourceOf(host)
    expect(await source.transaction(mint.txid, LIMIT)).toEqual(recordOf(mint, mint.height))
    expect(await source.proof(moved.txid)).toEqual(recordOf(moved, moved.height).proof)
    expect(await source.transaction(pending.txid, LIMIT)).toEqual(recordOf(pending))
    expect(await source.transaction(UNKNOWN, LIMIT)).toBeUndefined()
    expect(await source.proof(UNKNOWN)).toBeUndefined()
  })

  test('names the spender of the output of an ordinal', async () => {
    const source = sourceOf(host)
    expect(await source.spenderOf(parseOutpoint(moved.outpoint(0)))).toBe(pending.txid)
    expect(await source.spenderOf(parseOutpoint(pending.outpoint(0)))).toBeUndefined()
    expect(await source.spenderOf({ txid: UNKNOWN, vout: 0 })).toBeUndefined()
  })

  test('does not return more than was asked for', async () => {
    const source = sourceOf(host)
    await expect(source.transaction(mint.txid, { maxBytes: 10 })).rejects.toMatchObject({ code: 'TOO_LARGE' })
  })
})

test('the routes for wallets have the spenders of nodes too', async () => {
  const source = sourceOf('wallets')
  expect(await source.spenderOf(parseOutpoint(chain.genesis.outpoint(0)))).toBe(mint.txid)
})

test.each<[string, string]>([
  ['bytes that are no BEEF', '{"outputs":[{"beef":[1,2,3],"outputIndex":0}]}'],
  ['an array of anything', '{"outputs":[{"beef":["a",{}],"outputIndex":0}]}'],
])('%s of a host are refused', async (_, answer) => {
  const { url } = await serving((incoming, response) => {
    response.writeHead(incoming.url === '/lookup' ? 200 : 404).end(answer)
  })
  const source = new OverlaySource({ url })
  onTestFinished(() => source.client.close())
  await expect(source.spenderOf({ txid: UNKNOWN, vout: 0 })).rejects.toMatchObject({ code: 'BAD_ANSWER' })
})
