import { formatOutpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { HttpMineIndex } from '../../src/mining/mine-index.js'
import { beefOf, FakeChain, OPEN_LOCK } from '../support/fake-chain.js'
import { listening } from '../support/other-server.js'
import { treeOf, useServers } from '../support/test-server.js'

const servers = useServers()

/** A server that follows a tree with the name `a` in it, and how mining sees it. */
async function indexed() {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  const submit = async (...mints: Parameters<typeof beefOf>[0][]) => {
    for (const mint of mints) expect((await server.submit(beefOf(mint))).status).toBe(200)
  }
  const first = chain.mint('a')
  await submit(chain.genesis, first)
  return { chain, first, submit, index: new HttpMineIndex(server.url) }
}

test('a server tells where mining goes on, and with which transaction', async () => {
  const { index, first } = await indexed()
  const node = await index.liveNode('ab')
  expect(node).toEqual({ domain: 'a', outpoint: parseOutpoint(first.outpoint(1)) })
  expect(
    (await index.nodeTransaction({ domain: 'a', outpoint: parseOutpoint(first.outpoint(1)) })).id('hex'),
  ).toBe(first.txid)
  expect(await index.liveNode('a')).toBeUndefined()
})

test('a node that is live no more has moved', async () => {
  const { index, chain, submit } = await indexed()
  const node = await index.liveNode('ab')
  await submit(chain.mint('ac'))
  expect(node).toBeDefined()
  await expect(
    index.nodeTransaction(node ?? { domain: '', outpoint: chain.madeUpCoin() }),
  ).rejects.toMatchObject({
    code: 'NODE_MOVED',
  })
})

test('a mint is submitted once, or again; a rival of it has lost its node', async () => {
  const { index, chain, first } = await indexed()
  const from = chain.node('a')
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const mint = chain.mint('ab')
  const rival = chain.mint('ac', { from })
  const told = (each: typeof mint, name: string) => ({ beef: beefOf(each), txid: each.txid, name })
  await index.submit(told(mint, 'ab'))
  await index.submit(told(mint, 'ab'))
  expect((await index.liveNode('abc'))?.outpoint).toEqual(parseOutpoint(mint.outpoint(1)))
  await expect(index.submit(told(rival, 'ac'))).rejects.toMatchObject({ code: 'NODE_MOVED' })
  const unproven = chain.mint('ad', { from, funding: [{ transaction: purse, vout: 0 }] })
  const beef = beefOf(unproven, { proven: false, with: [purse, first] })
  const refused = index.submit({ beef, txid: unproven.txid, name: 'ad' })
  await expect(refused).rejects.toMatchObject({ code: 'NODE_MOVED' })
  await expect(refused).rejects.toThrow(mint.txid)
  expect(formatOutpoint((await index.liveNode('b'))?.outpoint ?? chain.madeUpCoin())).toBe(first.outpoint(0))
})

test('what is no mint is not taken for one', async () => {
  const { index, chain } = await indexed()
  const forged = chain.mint('ab', { badWork: true })
  const submitted = index.submit({ beef: beefOf(forged), txid: forged.txid, name: 'ab' })
  await expect(submitted).rejects.toMatchObject({ code: 'NOT_ADMITTED' })
})

test('what the server refuses is told in its words', async () => {
  const { index } = await indexed()
  const submitted = index.submit({ beef: Uint8Array.of(1), txid: 'ab'.repeat(32), name: 'ab' })
  await expect(submitted).rejects.toMatchObject({ code: 'BAD_INDEX' })
  await expect(submitted).rejects.toThrow(/answers 400, BAD_BODY: /)
})

describe('a server that is none of ours', () => {
  const others: { close(): Promise<void> }[] = []
  afterAll(async () => void (await Promise.all(others.map((other) => other.close()))))
  const answering = async (body: string): Promise<HttpMineIndex> => {
    const other = await listening((_request, response) => void response.end(body))
    others.push(other)
    return new HttpMineIndex(other.url)
  }
  const node = { domain: '', outpoint: parseOutpoint(`${'ab'.repeat(32)}_0`) }

  test.each([
    ['no JSON', '<p>hello'],
    ['other JSON', '{"hello":1}'],
    ['a list', '[]'],
    ['no outpoint', '{"domain":"","outpoint":"x"}'],
  ])('answers with %s', async (_, body) => {
    const index = await answering(body)
    await expect(index.liveNode('a')).rejects.toMatchObject({ code: 'BAD_INDEX' })
    await expect(index.nodeTransaction(node)).rejects.toMatchObject({ code: 'BAD_INDEX' })
  })

  test('gives what is no BEEF', async () => {
    const index = await answering('{"outputs":[{"beef":[1,2,3],"outputIndex":0}]}')
    await expect(index.nodeTransaction(node)).rejects.toMatchObject({ code: 'BAD_INDEX' })
  })

  test('does not answer', async () => {
    const index = new HttpMineIndex('http://127.0.0.1:9')
    await expect(index.liveNode('a')).rejects.toMatchObject({ code: 'NO_ANSWER' })
  })
})
