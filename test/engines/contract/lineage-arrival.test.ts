import fc from 'fast-check'
import { deed, historyOf } from '../../support/graph/history.js'
import { FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { rowsOf } from '../../support/storage/arrival.js'
import type { DerivingStore } from '../../support/storage/engine.js'
import { shuffled } from '../../support/storage/insertion-order.js'
import { fill, type Kind, lineage } from '../../support/storage/long-lineages.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// Long ordinals that arrive in any order: what writes do to link them, and that it comes to the same.

const servers = useServers()
const chain = new FakeChain()
let admission: Parameters<DerivingStore['store']['deriveBy']>[0]

beforeAll(async () => {
  const { node } = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
  admission = node.overlay.admission
})

const kind = fc.constantFrom<Kind>('plain', 'plain', 'inscribed', 'map')

describe('a store of facts', () => {
  afterEach(closeStores)

  async function filled(transactions: FakeTransaction[]): Promise<DerivingStore> {
    return await fill(await openStore(), transactions, admission)
  }

  test('whatever the order in which its steps arrive, rows are the same', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(kind, { minLength: 1, maxLength: 14 }),
        fc.infiniteStream(fc.nat(0xffff)),
        fc.nat({ max: 2 }),
        async (kinds, seed, missing) => {
          const all = lineage(chain, kinds)
          // The coin that pays for it, or its origin, too, may never arrive.
          const known = all.slice(missing)
          const inOrder = await filled(known)
          const anyOrder = await filled(shuffled(known, seed))
          const rows = await rowsOf(anyOrder)
          expect(rows).toEqual(await rowsOf(inOrder))
          await anyOrder.rebuild()
          expect(await rowsOf(anyOrder)).toEqual(rows)
          await closeStores()
        },
      ),
      { numRuns: 15, endOnFailure: true },
    )
  }, 300_000)

  // Until the parent of a mint arrives, the name is taken for the next step of an ordinal that the mint spends.
  test('whatever the order in which mints and the ordinals that they spend arrive, rows are the same', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(deed, { minLength: 4, maxLength: 12 }),
        fc.infiniteStream(fc.nat(0xffff)),
        async (deeds, seed) => {
          const { transactions } = await historyOf(deeds)
          const inOrder = await filled(transactions)
          const anyOrder = await filled(shuffled(transactions, seed))
          expect(await rowsOf(anyOrder)).toEqual(await rowsOf(inOrder))
          await closeStores()
        },
      ),
      { numRuns: 6, endOnFailure: true },
    )
  }, 300_000)
})
