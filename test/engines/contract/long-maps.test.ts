import fc from 'fast-check'
import { attribute } from '../../../backend/src/graph/listings.js'
import { EMPTY_MAP, mapRecordOf } from '../../../backend/src/graph/map-merge.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { rounds } from '../../support/nightly.js'
import {
  bitcomTail,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { shuffled } from '../../support/storage/insertion-order.js'
import { type DerivingStore, openStore, record } from '../../support/storage/stores.js'

// One ordinal that changes its metadata at every step, by more than a read merges each time: what is merged up to each step.

const chain = new FakeChain()

/** What a step says, and how long the text is. */
interface Change {
  command: 'SET' | 'ADD' | 'DELETE' | 'REMOVE' | 'nothing'
  key: string
  length: number
}

const LENGTHS = [1, 10, 100, 1000, 5000]

const change: fc.Arbitrary<Change> = fc.record({
  command: fc.constantFrom('SET', 'SET', 'SET', 'ADD', 'ADD', 'DELETE', 'REMOVE', 'nothing'),
  key: fc.constantFrom('a', 'b', 'c'),
  length: fc.constantFrom(...LENGTHS),
})

const textOf = (length: number): string => 'x'.repeat(length)

function scriptOf({ command, key, length }: Change): Uint8Array {
  if (command === 'nothing') return p2pkh(1)
  const words = command === 'REMOVE' ? [key] : [key, textOf(length)]
  return concatBytes(p2pkh(1), bitcomTail([MAP_MARKER, command, ...words]))
}

/** The metadata after each step, in plain objects. */
function model(changes: Change[]): Record<string, string | string[]>[] {
  let map: Record<string, string | string[]> = {}
  return [
    {},
    ...changes.map(({ command, key, length }) => {
      map = structuredClone(map)
      const [before, text] = [map[key], textOf(length)]
      if (command === 'SET') map[key] = text
      if (command === 'REMOVE') delete map[key]
      if (command === 'ADD') map[key] = [...new Set([...[before ?? []].flat(), text])]
      if (command === 'DELETE' && Array.isArray(before)) {
        const left = before.filter((each) => each !== text)
        if (left.length === 0) delete map[key]
        else map[key] = left
      }
      return map
    }),
  ]
}

/** The coin before it, and each step: the origin, and one for each change. */
function live(changes: Change[]): FakeTransaction[] {
  const all = [chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })]
  const origin = inscriptionScript({ contentType: 'text/plain', body: utf8('origin') })
  for (const lockingScript of [origin, ...changes.map(scriptOf)]) {
    const inputs = [{ transaction: all.at(-1) as FakeTransaction, vout: 0 }]
    all.push(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] }))
  }
  return all
}

async function recordAll(opened: DerivingStore, transactions: FakeTransaction[]): Promise<DerivingStore> {
  opened.store.deriveBy({
    rules: admissionRules({ deployment: chain.deployment }),
    pending: { maxTransactions: 100, maxBytes: 1024 * 1024 },
  })
  for (const transaction of transactions) await record(opened, { transaction, height: 100 })
  return opened
}

async function merged({ store }: DerivingStore, outpoint: Outpoint): Promise<object> {
  return { ...mapRecordOf(store.metadata.merged({ output: { outpoint }, hasMap: true }) ?? EMPTY_MAP) }
}

/** How many ordinals have a text under a key where they are now. */
async function found({ store }: DerivingStore, key: string, text: string): Promise<number> {
  return (await store.listings.tipsWith({ attributes: [attribute.map(key, text)], limit: 10 })).length
}

describe('a store of facts', () => {
  test('its metadata is merged up to every step, whatever order the steps came in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { minLength: 1, maxLength: 24 }),
        fc.array(fc.nat(0xffff), { minLength: 50, maxLength: 50 }),
        async (changes, places) => {
          const all = live(changes)
          const inOrder = await recordAll(await openStore(), all)
          const anyOrder = await recordAll(await openStore(), shuffled(all, places))
          const expected = model(changes)
          for (const [step, map] of expected.entries())
            expect(await merged(anyOrder, { txid: all[step + 1]?.txid ?? '', vout: 0 })).toEqual(map)
          const tip = expected.at(-1) ?? {}
          for (const key of ['a', 'b', 'c'])
            for (const length of LENGTHS) {
              const has = [tip[key] ?? []].flat().includes(textOf(length))
              expect([key, length, await found(anyOrder, key, textOf(length))]).toEqual([
                key,
                length,
                Number(has),
              ])
            }
          expect(anyOrder.rows()).toEqual(inOrder.rows())
          for (const store of [inOrder, anyOrder]) await store.close()
        },
      ),
      { numRuns: rounds(8, 40), endOnFailure: true },
    )
  })
})
