import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { ownersMint, verifiedLiveNode } from '../../../src/mining/live-node.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { solveNext } from '../../../src/mining/mine-name.js'
import { FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { useHeaderWorlds } from '../../support/server/header-world.js'

const worlds = useHeaderWorlds()
const chainTracker = 'scripts only' as const

/** A tree with mints at its root, in blocks, of which each has so many bytes. */
async function tree(bytes: number, names: string[]) {
  const world = await worlds.start({}, { chain: new FakeChain({ covenantVersion: 1, difficulty: 1 }) })
  const { chain } = world
  // The trailing outputs stand in the unlocking script, too.
  const trailing = [{ satoshis: 1, lockingScript: new Uint8Array(bytes / 2).fill(0x51) }]
  const mints = names.map((name) => chain.mint(name, { trailing, ownerLock: p2pkh(7) }))
  await world.mined(...mints)
  return { ...world, mints }
}

test('mints of 9.3 MB at the root, more than one answer holds, keep nobody from mining', async () => {
  const { chain, server, mints } = await tree(9_300_000, ['a', 'b', 'c'])
  const { deployment } = chain
  const index = new HttpMineIndex(server.url)
  const solved = await solveNext({
    ...{ name: 'q', deployment, index, chainTracker, workers: 0 },
    ownerLock: async () => p2pkh(1),
  })
  expect(solved.node).toMatchObject({ domain: '', line: mints.map(({ txid }) => ({ txid })) })
  expect(formatOutpoint(solved.node.outpoint)).toBe(mints.at(-1)?.outpoint(0))

  // Who knows a node on the way gets what follows.
  const [first] = mints
  const from = await verifiedLiveNode({ name: 'ax', deployment, index, chainTracker })
  expect(from && formatOutpoint(from.outpoint)).toBe(first?.outpoint(1))
  const nameScript = mints[2]?.transaction.outputs[2]?.lockingScript ?? new Uint8Array()
  expect(await ownersMint({ name: 'c', nameScript, deployment, index, chainTracker })).toEqual({
    txid: mints[2]?.txid,
    proven: false,
  })
})
