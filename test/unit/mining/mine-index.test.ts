import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { verifyNameMint, verifyNode } from '../../../src/client/verify-name.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { beefOf, FakeChain, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { serving } from '../../support/server/connections.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

const servers = useServers()

/** A server that follows a tree with the name `a` in it, and how mining sees it. */
async function indexed() {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  const submit = async (...mints: Parameters<typeof beefOf>[0][]) => {
    for (const mint of mints) await server.take(beefOf(mint))
  }
  const first = chain.mint('a')
  await submit(chain.genesis, first)
  return { chain, first, submit, index: new HttpMineIndex({ url: server.url }) }
}

test('a server says where to continue, and proves that the node is genuine', async () => {
  const { index, first, chain } = await indexed()
  const { deployment } = chain
  const outpoint = parseOutpoint(first.outpoint(1))
  expect(await index.liveNode('ab')).toEqual({ domain: 'a', outpoint })
  const shown = await index.showNode('ab')
  expect(shown?.outpoint).toEqual(outpoint)
  const { beef = new Uint8Array() } = shown ?? {}
  const node = await verifyNode({ deployment, outpoint, beef, chainTracker: 'scripts only' })
  expect(node).toMatchObject({ domain: 'a', outpoint, line: [{ name: 'a', txid: first.txid }] })
  expect(await index.liveNode('a')).toBeUndefined()
  expect(await index.showNode('a')).toBeUndefined()
})

test('a server shows the mint of a name, with all mints before it', async () => {
  const { index, first, chain } = await indexed()
  const shown = await index.showName('a')
  const { beef = new Uint8Array(), outpoint: origin = chain.deployment.genesis } = shown ?? {}
  const check = { deployment: chain.deployment, chainTracker: 'scripts only', beef, towards: 'a' } as const
  const verified = await verifyNameMint({ ...check, origin })
  expect(verified).toMatchObject({ name: 'a', origin: parseOutpoint(first.outpoint(2)), proven: false })
  expect(verified.lockingScript).toEqual(first.transaction.outputs[2]?.lockingScript)
  for (const vout of [0, 1, 3])
    await expect(verifyNameMint({ ...check, origin: { ...origin, vout } })).rejects.toMatchObject({
      code: 'NOT_IN_TREE',
    })
  expect(await index.showName('b')).toBeUndefined()
})

test('a mint is submitted once, or again; a conflicting mint has lost its node', async () => {
  const { index, chain, first } = await indexed()
  const from = chain.node('a')
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const mint = chain.mint('ab')
  const conflicting = chain.mint('ac', { from })
  const submission = (each: typeof mint, name: string) => ({ beef: beefOf(each), txid: each.txid, name })
  await index.submit(submission(mint, 'ab'))
  await index.submit(submission(mint, 'ab'))
  expect((await index.liveNode('abc'))?.outpoint).toEqual(parseOutpoint(mint.outpoint(1)))
  await expect(index.submit(submission(conflicting, 'ac'))).rejects.toMatchObject({ code: 'NODE_MOVED' })
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

test('a refusal quotes the server', async () => {
  const { index } = await indexed()
  const submitted = index.submit({ beef: Uint8Array.of(1), txid: 'ab'.repeat(32), name: 'ab' })
  await expect(submitted).rejects.toMatchObject({ code: 'BAD_INDEX' })
  await expect(submitted).rejects.toThrow(/answered 400, BAD_BODY: /)
})

describe('a server that is none of ours', () => {
  const answering = async (body: string): Promise<HttpMineIndex> => {
    const { url } = await serving((_request, response) => void response.end(body))
    return new HttpMineIndex({ url })
  }

  test.each([
    ['no JSON', '<p>hello'],
    ['other JSON', '{"hello":1}'],
    ['a list', '[]'],
    ['no outpoint', '{"domain":"","outpoint":"x"}'],
  ])('answers with %s', async (_, body) => {
    const index = await answering(body)
    await expect(index.liveNode('a')).rejects.toMatchObject({ code: 'BAD_INDEX' })
    await expect(index.showNode('a')).rejects.toMatchObject({ code: 'BAD_INDEX' })
  })

  test('says more than a line holds', async () => {
    const index = await answering(JSON.stringify({ error: 'x'.repeat(500_000), code: 'X' }))
    const error = await index.liveNode('a').catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'BAD_INDEX' })
    expect((error as Error).message.length).toBeLessThan(400)
  })
})
