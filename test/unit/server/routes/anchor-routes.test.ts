import { MerklePath } from '@bsv/sdk'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { headersSettings, startHeaderService } from '../../../support/server/header-service.js'
import {
  type Answer,
  OPERATOR,
  posted,
  type TestServer,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'

// What peers ask that compare what they have of each block (BRC-136).

const { start } = useServers()
const ZEROS = '00'.repeat(32)

async function asked(server: TestServer, path: string, body: unknown, topic = 'tm_names'): Promise<Answer> {
  return await server.ask(path, posted(body, { 'x-bsv-topic': topic }))
}

/** Two hosts of one chain, which take its transactions in these orders, and one that takes none but the genesis. */
async function hosts() {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  const { url } = await startHeaderService(headers)
  const [a, ab, b] = [chain.mint('a'), chain.mint('ab'), chain.mint('b')]
  const burn = chain.spend({
    inputs: [{ transaction: ab, vout: 1 }],
    outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }],
  })
  const genesis = headers.mine([chain.genesis])
  const block = headers.mine([b, ab, a])
  const last = headers.mine([burn])
  const env = { ...treeOf(chain.deployment), ...headersSettings(headers, url), ...OPERATOR }
  const host = async (transactions: FakeTransaction[]): Promise<TestServer> => {
    const server = await start(env)
    await untilReady(server)
    for (const transaction of transactions)
      await server.take(headers.branch.beef(transaction, [chain.genesis]))
    return server
  }
  return {
    ...{ genesis, block, last, a, ab, b, burn },
    server: await host([chain.genesis, a, ab, b, burn]),
    other: await host([burn, b, ab, chain.genesis, a]),
    behind: await host([chain.genesis, a]),
  }
}

test('hosts with the same names have the same anchors, and one that lacks some gets them block by block', async () => {
  const { server, other, behind, genesis, block, last, a, ab, b, burn } = await hosts()
  const tips = await Promise.all(
    [server, other, behind].map((each) => asked(each, '/requestTopicAnchorTip', {})),
  )
  const [tip, same, lower] = tips.map(({ json }) => json as Record<string, unknown>)
  expect(tip).toEqual({
    ...{ topic: 'tm_names', blockHeight: last.header.height, blockHash: last.header.hash },
    ...{ basmRoot: burn.txid, admittedCount: 1, tac: expect.stringMatching(/^[0-9a-f]{64}$/) },
  })
  expect(same).toEqual(tip)
  expect(lower).toMatchObject({ blockHeight: last.header.height, basmRoot: ZEROS, admittedCount: 0 })
  const blocks = { fromHeight: genesis.header.height - 1, toHeight: last.header.height + 1 }
  const { anchors } = (await asked(server, '/requestTopicAnchorRange', blocks)).json as { anchors: object[] }
  expect(anchors).toMatchObject([
    { blockHash: genesis.header.hash, basmRoot: ZEROS, admittedCount: 0 },
    { blockHash: block.header.hash, admittedCount: 3 },
    tip,
  ])
  const { height: blockHeight, hash: blockHash, root } = block.header
  const list = await asked(server, '/requestAdmittedList', { blockHeight, blockHash })
  const txids = [b, ab, a].map(({ txid }) => txid)
  const admitted = txids.map((txid, at) => ({ txid, blockIndex: at + 1 }))
  expect(list.json).toEqual({ topic: 'tm_names', blockHeight, blockHash, admitted })
  const proof = await asked(server, '/requestCompoundMerklePath', { blockHeight, txids })
  expect(proof.json).toMatchObject({ topic: 'tm_names', blockHeight, txids })
  const path = MerklePath.fromHex((proof.json as { merklePath: string }).merklePath)
  expect(path.blockHeight).toBe(blockHeight)
  expect(txids.map((txid) => path.computeRoot(txid))).toEqual([root, root, root])
  const unknown = 'ab'.repeat(32)
  const wanted = [burn.txid, unknown, ...txids]
  const raw = await server.ask('/requestRawTransactions', posted({ txids: wanted }))
  expect(raw.json).toEqual({
    transactions: [burn, b, ab, a].map(({ txid, raw }) => ({ txid, rawTx: toHex(raw) })),
    missing: [unknown],
  })
  expect(raw.headers['content-length']).toBe(String(raw.body.length))
})

test('what is blocked counts, and is not sent', async () => {
  const { server, a, b, last } = await hosts()
  const before = (await asked(server, '/requestTopicAnchorTip', {})).json
  await server.block({ name: 'a' })
  expect((await asked(server, '/requestTopicAnchorTip', {})).json).toEqual(before)
  const { json } = await server.ask('/requestRawTransactions', posted({ txids: [a.txid, b.txid] }))
  expect(json).toEqual({ transactions: [{ txid: b.txid, rawTx: toHex(b.raw) }], missing: [a.txid] })
  expectError(
    await asked(server, '/requestAdmittedList', { blockHeight: last.header.height, blockHash: ZEROS }),
    { status: 404, code: 'NOT_FOUND', overlay: true },
  )
})

test('a host without block headers has none', async () => {
  const chain = new FakeChain()
  const server = await start(treeOf(chain.deployment))
  const nothing = { topic: 'tm_names', blockHeight: -1, tac: ZEROS, blockHash: ZEROS, basmRoot: ZEROS }
  expect((await asked(server, '/requestTopicAnchorTip', {})).json).toEqual({ ...nothing, admittedCount: 0 })
  expectError(await asked(server, '/requestTopicAnchorTip', {}, 'tm_ordinals'), {
    ...{ status: 400, code: 'BAD_BODY', overlay: true },
  })
})
