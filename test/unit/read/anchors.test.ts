import { createHash } from 'node:crypto'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { Anchors } from '../../../backend/src/read/anchors.js'
import { Reader } from '../../../backend/src/read/reader.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { type Block, type Branch, HeaderChain } from '../../support/server/header-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

const ZEROS = '00'.repeat(32)

function hashOf(...shown: string[]): string {
  const bytes = Buffer.concat(shown.map((hash) => Buffer.from(hash, 'hex').reverse()))
  const once = createHash('sha256').update(bytes).digest()
  return createHash('sha256').update(once).digest().reverse().toString('hex')
}

/** What the rule says of blocks, of which these transactions were admitted, in the order of each block. */
function expected(blocks: Block[], admitted: FakeTransaction[]) {
  const isAdmitted = new Set(admitted.map(({ txid }) => txid))
  let tac = ZEROS
  return blocks.map(({ header: { height, hash }, txids }) => {
    const found = txids.filter((txid) => isAdmitted.has(txid))
    let level = found
    while (level.length > 1)
      level = level.flatMap((left, at) => (at % 2 === 0 ? [hashOf(left, level[at + 1] ?? left)] : []))
    const [root = ZEROS] = level
    tac = hashOf(tac, hash, root)
    return { height, hash, root, count: found.length, tac }
  })
}

async function opened(tracker = 'headers') {
  const store = new OpenedWriter()
  await store.writer.setting('tracker', tracker)
  await store.writer.setting('genesis', formatOutpoint(store.chain.deployment.genesis))
  await store.reopen()
  const headers = new HeaderChain()
  const reader = new Reader(storeFiles(store.folder))
  onTestFinished(async () => {
    reader.close()
    await store.close()
  })
  // No chain may leave out the first block that was known.
  await store.writer.change('replaceHeaders', {
    ...{ height: headers.first.height, headers: headers.first.bytes, tip: undefined },
  })
  let tip = headers.first.bytes
  return {
    ...{ store, headers, anchors: new Anchors(reader), chain: store.chain },
    /** Makes the store know a branch, in place of the blocks from a height on. */
    know: async (branch: Branch, from = headers.first.height + 1) => {
      const blocks = [...branch.blocks()].reverse().filter(({ header }) => header.height >= from)
      const bytes = Buffer.concat(blocks.map(({ header }) => header.bytes))
      await store.writer.change('replaceHeaders', { height: from, headers: bytes, tip })
      tip = branch.tip.bytes
    },
    record: async (branch: Branch, ...transactions: FakeTransaction[]) => {
      for (const { txid, raw } of transactions) {
        const proof = branch.proof(txid)
        await store.writer.record([{ txid, raw, ...(proof && { proof }) }])
      }
    },
  }
}

/** The blocks of a branch from one on. */
const from = (branch: Branch, { header }: Block): Block[] =>
  [...branch.blocks()].reverse().filter((block) => block.header.height >= header.height)

test('anchors are over mints and what spends a node, in the order of each block, from that of the genesis on', async () => {
  const { store, headers, anchors, chain, know, record } = await opened()
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: OPEN_LOCK }] })
  const [a, ab, b] = [chain.mint('a'), chain.mint('ab'), chain.mint('b')]
  const burn = chain.spend({
    inputs: [{ transaction: ab, vout: 1 }],
    outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }],
  })
  const ordinal = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array([1]) })
  expect(await anchors.tip()).toBeUndefined()
  headers.grow(2)
  const first = headers.mine([chain.genesis])
  headers.mine([b, coin, a, ordinal, ab].reverse())
  headers.grow(1)
  headers.mine([burn])
  await know(headers.branch)
  expect(await anchors.tip()).toBeUndefined()
  // Children come first, and the anchor of a block changes when what it is over becomes known.
  await record(headers.branch, burn, ab, ordinal, coin, b)
  expect(await anchors.range({ from: 0, to: 900_000 })).toEqual([])
  await record(headers.branch, chain.genesis)
  const blocks = from(headers.branch, first)
  expect(await anchors.range({ from: 0, to: 900_000 })).toEqual(expected(blocks, []))
  await record(headers.branch, a)
  const all = expected(blocks, [a, b, ab, burn])
  expect(await anchors.range({ from: 0, to: 900_000 })).toEqual(all)
  expect(all.map(({ count }) => count)).toEqual([0, 3, 0, 1])
  expect(await anchors.tip()).toEqual(all.at(-1))
  expect(await anchors.range({ from: first.header.height + 1, to: first.header.height + 2 })).toEqual(
    all.slice(1, 3),
  )
  const listed = await anchors.admitted(first.header.height + 1)
  expect(listed.map(({ txid, index }) => [txid, index])).toEqual([
    [ab.txid, 1],
    [a.txid, 3],
    [b.txid, 5],
  ])
  expect([a, burn, ordinal, coin, chain.genesis].map(({ txid }) => anchors.isAdmitted(txid))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ])
  // What is blocked is still admitted.
  await store.writer.change('block', {
    ...{ kind: 'name', value: 'a', reason: '', since: 1 },
  })
  expect(await anchors.tip()).toEqual(all.at(-1))
})

test('a block, a late proof and a reorganisation change them from there on', async () => {
  const { headers, anchors, chain, know, record } = await opened()
  const [a, b, c] = [chain.mint('a'), chain.mint('b'), chain.mint('c')]
  const first = headers.mine([chain.genesis])
  headers.mine([a])
  headers.mine([b])
  await know(headers.branch)
  await record(headers.branch, chain.genesis, a)
  const shown = async () => await anchors.range({ from: 0, to: 900_000 })
  expect(await shown()).toEqual(expected(from(headers.branch, first), [a]))
  const height = headers.bestTip.height + 1
  headers.grow(1)
  await know(headers.branch, height)
  expect(await shown()).toEqual(expected(from(headers.branch, first), [a]))
  await record(headers.branch, b)
  expect(await shown()).toEqual(expected(from(headers.branch, first), [a, b]))
  const fork = headers.fork(first.header.height + 1)
  for (const transactions of [[], [b, c], []]) fork.mine(transactions)
  await know(fork, first.header.height + 2)
  expect(await shown()).toEqual(expected(from(fork, first), [a]))
  await record(fork, b, c)
  expect(await shown()).toEqual(expected(from(fork, first), [a, b, c]))
})

test('a proof below the genesis, which only a host without a tracker takes, is in no anchor', async () => {
  const { store, headers, anchors, chain, know, record } = await opened('scripts-only')
  const [a, b] = [chain.mint('a'), chain.mint('b')]
  const first = headers.mine([chain.genesis])
  headers.mine([a])
  await know(headers.branch)
  await record(headers.branch, chain.genesis, a)
  await store.know(b, first.header.height - 1)
  expect(await anchors.range({ from: 0, to: 900_000 })).toEqual(expected(from(headers.branch, first), [a]))
})
