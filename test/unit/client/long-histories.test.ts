import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { LookupNameSource } from '../../../src/client/lookup-source.js'
import { HttpNameSource, type NameSource } from '../../../src/client/name-source.js'
import { type ResolveOptions, resolveName } from '../../../src/client/resolve.js'
import { MemorySegmentStore } from '../../../src/client/segment-store.js'
import { Segments } from '../../../src/client/segments.js'
import { ownersMint, verifiedLiveNode } from '../../../src/mining/live-node.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { solveNext } from '../../../src/mining/mine-name.js'
import { FakeHeaders } from '../../support/client/name-proofs.js'
import { beefOf, FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { useHeaderWorlds } from '../../support/server/header-world.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

const worlds = useHeaderWorlds()
const servers = useServers()
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
  const index = new HttpMineIndex({ url: server.url })
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

describe('a name whose way is longer than one answer may be', () => {
  const chain = new FakeChain({ covenantVersion: 1, difficulty: 1 })
  const trailing = [{ satoshis: 1, lockingScript: new Uint8Array(150_000).fill(0x51) }]
  const mints = ['a', 'b', 'c', 'd', 'q', 'qr', 'qs', 'qt'].map((name) => chain.mint(name, { trailing }))
  const transactions = [chain.genesis, ...mints]
  const headers = new FakeHeaders(transactions)
  const { deployment } = chain
  let server: TestServer
  beforeAll(async () => {
    server = await servers.start(treeOf(deployment))
    for (const each of transactions) await server.take(beefOf(each), ['tm_names', 'tm_ordinals'])
  })
  const resolver = () => ({ networkPreset: 'local' as const, hostOverrides: { ls_names: [server.url] } })

  describe.each<[by: string, source: () => NameSource]>([
    ['its routes', () => new HttpNameSource({ url: server.url })],
    ['a lookup', () => new LookupNameSource({ resolver: resolver(), maxHosts: 1 })],
  ])('by %s', (_, source) => {
    const resolve = async (name: string, more: Partial<ResolveOptions> = {}) =>
      await resolveName({
        ...{ name, deployment, chainTracker: headers, sources: [source()], maxTotalBytes: 1_000_000 },
        ...more,
      })

    test('is resolved part by part', async () => {
      const { origin, proven } = await resolve('qt')
      expect([proven, ...origin.line.map(({ txid }) => txid)]).toEqual([
        true,
        ...mints.map(({ txid }) => txid),
      ])
    })

    test('is kept as far as it was read, and goes on from there', async () => {
      const segments = new Segments({ store: new MemorySegmentStore() })
      expect((await resolve('d', { segments })).origin.line).toHaveLength(4)
      expect((await resolve('qt', { segments })).origin.line).toHaveLength(8)
    })

    test('whose mints are in no block has to be shown at once', async () => {
      const chainTracker = { isValidRootForHeight: async () => false }
      await expect(resolve('qt', { chainTracker })).rejects.toMatchObject({ code: 'NO_PROOF' })
    })
  })
})
