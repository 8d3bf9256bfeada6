import { outpointLabel } from '../../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { directory, text } from '../../../support/gateway/site.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../../support/protocol/fake-chain.js'
import { type HeaderWorld, useHeaderWorlds } from '../../../support/server/header-world.js'

// What hosts show while the chain is reorganised, from memory too.

const worlds = useHeaderWorlds()

/** What a host answers to everyone, twice: the second answer may be one that is kept. */
async function shown({ server }: HeaderWorld, host: string): Promise<unknown> {
  const [first, second] = [1, 2].map(() => server.ask('/', { headers: { Host: `${host}.localhost` } }))
  const { status, body } = (await first) as NonNullable<Awaited<typeof first>>
  const again = await second
  expect([again?.status, again?.body.toString()]).toEqual([status, body.toString()])
  return status === 200 ? body.toString() : status
}

/** The chain goes on without its last blocks, in a longer branch whose first block holds these; the server hears of it. */
async function reorganise(world: HeaderWorld, blocks: number, transactions: FakeTransaction[]) {
  const { headers } = world
  const branch = headers.fork(headers.bestTip.height - blocks)
  branch.mine(transactions)
  while (branch.tip.height <= headers.bestTip.height) branch.mine()
  headers.reorg(branch)
  expect((await world.tell()).status).toBe(200)
}

test('a name whose block is reorganised away goes to the mint of the new branch, and comes back with the next', async () => {
  const world = await worlds.start()
  const { chain, headers, server } = world
  const root = chain.node('')
  const mint = chain.mint('a', { from: root })
  const other = chain.mint('b', { from: root, ownerLock: p2pkh(9) })
  const files = [directory({ '.': '_1' }), text('of a')].map((file) => ({
    satoshis: 1,
    lockingScript: inscriptionScript(file),
  }))
  const site = chain.spend({ inputs: [{ transaction: mint, vout: 2 }], outputs: files })
  const submitted = async (transaction: FakeTransaction, topic: string): Promise<number> =>
    (await server.submit(headers.branch.beef(transaction), [topic])).status
  const label = `${outpointLabel(parseOutpoint(site.outpoint(1)))}.c`
  const all = async (): Promise<unknown[]> => [
    await shown(world, 'a'),
    await shown(world, label),
    await shown(world, 'b'),
  ]

  headers.mine([mint, site])
  expect([await submitted(mint, 'tm_names'), await submitted(site, 'tm_ordinals')]).toEqual([200, 200])
  expect(await all()).toEqual(['of a', 'of a', 404])

  // Unproven, it still counts: nothing else is known to spend the node.
  await reorganise(world, 1, [other])
  expect([await all(), await submitted(other, 'tm_names')]).toEqual([['of a', 'of a', 404], 200])
  expect(await all()).toEqual([404, 404, 302])

  await reorganise(world, 2, [mint, site])
  expect([await submitted(mint, 'tm_names'), await submitted(site, 'tm_ordinals')]).toEqual([200, 200])
  expect(await all()).toEqual(['of a', 'of a', 404])
})
