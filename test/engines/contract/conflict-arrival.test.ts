import fc from 'fast-check'
import { LostConflictError, UnstableReadError } from '../../../backend/src/graph/errors.js'
import { deedOf, type HistoryTransaction, historyOf, type Shape, weighted } from '../../histories/history.js'
import { recordOf } from '../../support/protocol/block.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'
import { type Arrival, record, rowsOf } from '../../support/storage/arrival.js'
import type { DerivingStore } from '../../support/storage/engine.js'
import { shuffled } from '../../support/storage/insertion-order.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// Double spends that arrive in any order, unproven, proven, in the wrong block and again, so that transactions become
// inactive and active any number of times.

const SHAPE: Shape = {
  covenantVersion: 2,
  purses: [
    [1, 1, 50, 1],
    [50, 1, 1, 50],
  ],
}

const servers = useServers()
let admission: Parameters<DerivingStore['store']['deriveBy']>[0]

beforeAll(async () => {
  const { deployment } = new FakeChain({ difficulty: 1, covenantVersion: SHAPE.covenantVersion })
  const { node } = await servers.start({ ...treeOf(deployment), CHAIN_TRACKER: 'scripts-only' })
  admission = node.overlay.admission
})

const deed = deedOf({
  kind: weighted({ mint: 2, move: 5, inscribe: 1 }),
  from: weighted({ free: 3, spent: 1, all: 1 }),
  paysFrom: weighted({ free: 6, spent: 1 }),
  paysAt: weighted({ last: 2, first: 1, nowhere: 3 }),
  carries: fc.constantFrom(true, true, false),
  flow: weighted({ 'goes on': 3, free: 1 }),
  unlocking: fc.constant(Number.POSITIVE_INFINITY),
  foreign: fc.constant(Number.POSITIVE_INFINITY),
  coins: { minLength: 1, maxLength: 3 },
})

/** What becomes known of a transaction; numbers choose. */
interface Fate {
  isKnown: boolean
  /** Whether it is in no block, if that leaves no double spend undecided. */
  isUnproven: boolean
  /** How many blocks after those that it spends from. */
  later: number
  /** How else it arrives: before it is in a block, in a block that is revoked, or twice. */
  before: ('unproven' | 'again' | { revoked: number })[]
}

const fate: fc.Arbitrary<Fate> = fc.record({
  isKnown: fc.nat(11).map((chance) => chance > 0),
  isUnproven: fc.nat(2).map((chance) => chance === 0),
  later: fc.nat(40),
  before: fc.uniqueArray(
    fc.oneof(
      { weight: 2, arbitrary: fc.constant('unproven' as const) },
      { weight: 1, arbitrary: fc.constant('again' as const) },
      // Before all others, or after them.
      {
        weight: 2,
        arbitrary: fc.record({ revoked: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(9999)) }),
      },
    ),
    { maxLength: 2 },
  ),
})

interface KnownTransaction extends Arrival {
  fate: Fate
}

/** The known transactions, parents first, each in a block of its own, so that it does not matter which arrived first. */
function knownOf(transactions: HistoryTransaction[], fates: Fate[]): KnownTransaction[] {
  const known = transactions.flatMap((transaction, at) => {
    const fate = fates[at % fates.length]
    return fate && (fate.isKnown || at === 0) ? [{ transaction, fate }] : []
  })
  const spenders = new Map<string, number>()
  for (const { transaction } of known)
    for (const spent of transaction.spends) spenders.set(spent, (spenders.get(spent) ?? 0) + 1)
  const heights = new Map<string, number>()
  const taken = new Set<number>()
  const disputed = new Set<string>()
  return known.map(({ transaction, fate }) => {
    const { txid, spends } = transaction
    const parents = spends.map((spent) => spent.slice(0, 64))
    let height = Math.max(100, ...parents.map((parent) => heights.get(parent) ?? 0)) + 1 + fate.later
    while (taken.has(height)) height++
    taken.add(height)
    heights.set(txid, height)
    if (spends.some((spent) => spenders.get(spent) !== 1) || parents.some((parent) => disputed.has(parent)))
      disputed.add(txid)
    return { transaction, fate, height: fate.isUnproven && !disputed.has(txid) ? undefined : height }
  })
}

/** Records what the store takes. */
async function submit(opened: DerivingStore, [arrival, ...along]: Arrival[]): Promise<void> {
  if (arrival === undefined) return
  try {
    await record(opened, arrival, ...along)
  } catch (error) {
    if (!(error instanceof LostConflictError || error instanceof UnstableReadError)) throw error
  }
}

const { RUNS = '8', SEED = '1' } = process.env

describe('a store of facts', () => {
  afterEach(closeStores)

  async function inOrder(known: KnownTransaction[]): Promise<DerivingStore> {
    const opened = await openStore()
    opened.store.deriveBy(admission)
    for (const each of known) await record(opened, each)
    return opened
  }

  test('whatever the order in which double spends and their proofs arrive, rows are the same', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(deed, { minLength: 3, maxLength: 14 }),
        fc.array(fate, { minLength: 20, maxLength: 20, size: 'max' }),
        fc.infiniteStream(fc.nat(0xffff)),
        // How many transactions arrive together.
        fc.array(fc.constantFrom(1, 1, 1, 2, 3), { minLength: 8, maxLength: 8 }),
        async (deeds, fates, seed, sizes) => {
          const known = knownOf(historyOf(deeds, SHAPE).transactions, fates)
          const arrivals = known.flatMap(({ transaction, height, fate }) => [
            { transaction, height },
            ...fate.before.map((how) => {
              if (how === 'again') return { transaction, height }
              return how === 'unproven'
                ? { transaction }
                : { transaction, height: how.revoked, isRevoked: true }
            }),
          ])
          const opened = await openStore()
          opened.store.deriveBy(admission)
          const revoked: Arrival[] = []
          const revoke = async (): Promise<void> => {
            for (const { transaction, height } of revoked.splice(0)) {
              const { proof } = recordOf(transaction, height)
              if (proof) await opened.store.disprove(proof)
            }
          }
          const order = shuffled(arrivals, seed)
          for (let at = 0; order.length > 0; at++) {
            const group = order.splice(0, sizes[at % sizes.length])
            await submit(opened, group)
            revoked.push(...group.filter((arrival) => 'isRevoked' in arrival))
            if (at % 3 === 0) await revoke()
          }
          await revoke()
          // Some were refused meanwhile, and some proofs were replaced by others.
          for (const arrival of known) await record(opened, arrival)
          const rows = await rowsOf(opened)
          expect(rows).toEqual(await rowsOf(await inOrder(known)))
          await opened.rebuild()
          expect(await rowsOf(opened)).toEqual(rows)
          await closeStores()
        },
      ),
      { numRuns: Number(RUNS), seed: Number(SEED), endOnFailure: true },
    )
  }, 300_000)
})
