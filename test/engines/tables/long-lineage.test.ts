import fc from 'fast-check'
import { type Attribute, attribute } from '../../../backend/src/graph/attributes.js'
import { EMPTY_MAP, mapRecordOf } from '../../../backend/src/graph/map-merge.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { History } from '../../support/graph/history.js'
import {
  bitcomTail,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { shuffled } from '../../support/storage/insertion-order.js'
import { onEachSqlEngine, onEachTableEngine } from '../../support/storage/stores.js'

// One ordinal that changes its metadata at every step: what is kept of the merged MAP, and what it costs.

/** What a step says, and how long the text is. */
interface Change {
  command: 'SET' | 'ADD' | 'DELETE' | 'REMOVE' | 'nothing'
  key: string
  length: number
}

const change: fc.Arbitrary<Change> = fc.record({
  command: fc.constantFrom('SET', 'SET', 'SET', 'ADD', 'ADD', 'DELETE', 'REMOVE', 'nothing'),
  key: fc.constantFrom('a', 'b', 'c'),
  length: fc.constantFrom(1, 10, 100, 1000, 5000),
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

async function live(changes: Change[]) {
  const history = new History()
  const { chain } = history
  const coin = history.know(chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] }))
  const origin = inscriptionScript({ contentType: 'text/plain', body: utf8('origin') })
  const steps: FakeTransaction[] = []
  for (const lockingScript of [origin, ...changes.map(scriptOf)]) {
    const transaction = steps.at(-1) ?? coin
    const outputs = [{ satoshis: 1, lockingScript }]
    steps.push(await history.submit(chain.spend({ inputs: [{ transaction, vout: 0 }], outputs }), 'later'))
  }
  return { history, steps }
}

async function recorded<Opened extends OpenedStore>(
  opened: Opened,
  notices: History['notices'],
): Promise<Opened> {
  const service = new OrdinalsLookupService({ reader: opened.store, writer: opened.store })
  for (const notice of notices) {
    if ('spent' in notice) {
      await service.outputSpent(notice.spent)
    } else if (notice.admitted.mode === 'whole-tx') {
      const { atomicBEEF, ...rest } = notice.admitted
      await service.outputAdmittedByTopic({ ...rest, atomicBEEF: atomicBEEF.slice() })
    }
  }
  return opened
}

const growing = Array.from(
  { length: 120 },
  (_, step): Change => ({ command: 'ADD', key: 'a', length: step + 1 }),
)

onEachTableEngine(({ openStore, closeStores, runs }) => {
  afterEach(closeStores)

  test('its metadata is merged up to every step, whatever order the steps came in', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { minLength: 1, maxLength: 24 }),
        fc.array(fc.nat(0xffff), { minLength: 50, maxLength: 50 }),
        async (changes, places) => {
          const { history, steps } = await live(changes)
          const inOrder = await recorded(await openStore(), history.notices)
          const anyOrder = await recorded(await openStore(), shuffled(history.notices, places))
          for (const [step, expected] of model(changes).entries()) {
            const outpoint = parseOutpoint(steps[step]?.outpoint(0) ?? '')
            const map = await anyOrder.store.metadata.merged(outpoint)
            expect({ ...mapRecordOf(map ?? EMPTY_MAP) }).toEqual(expected)
          }
          expect(await anyOrder.rows()).toEqual(await inOrder.rows())
          await closeStores()
        },
      ),
      { numRuns: runs(8), endOnFailure: true },
    )
  })
})

onEachSqlEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('what is kept of it grows with what was said, and a read takes little more than it answers with', async () => {
    const { history, steps } = await live(growing)
    const { store, database } = await recorded(await openStore(), history.notices)
    const [sums] = await database.reader.all(
      'select sum(map_length) as said, sum(merged_length) as kept, count(merged_length) as count from graph_outputs',
      [],
    )
    expect(sums.count).toBeGreaterThan(3)
    expect(Number(sums.kept)).toBeLessThan(4 * Number(sums.said))
    const tip = parseOutpoint(steps.at(-1)?.outpoint(0) ?? '')
    const answer = JSON.stringify(mapRecordOf((await store.metadata.merged(tip)) ?? EMPTY_MAP)).length
    expect(await store.metadata.merged(tip, 2 * answer)).toBeDefined()
    expect(await store.metadata.merged(tip, answer / 4)).toBeUndefined()
  })

  test('what was said in an output that is evicted is forgotten, at that step and after it', async () => {
    const changes: Change[] = [
      { command: 'SET', key: 'a', length: 3000 },
      { command: 'SET', key: 'b', length: 3000 },
      { command: 'SET', key: 'c', length: 10 },
    ]
    const { history, steps } = await live(changes)
    const { store, database } = await recorded(await openStore(), history.notices)
    const at = (step: number) => parseOutpoint(steps[step]?.outpoint(0) ?? '')
    const found = async (each: Attribute) =>
      (await store.attributes.tipsWith({ attributes: [each], limit: 10 })).length
    const [said, kept] = [attribute.map('b', textOf(3000)), attribute.map('c', textOf(10))]
    expect([await found(said), await found(kept)]).toEqual([1, 1])
    await store.evict(at(2))
    expect({ ...mapRecordOf((await store.metadata.merged(at(3))) ?? EMPTY_MAP) }).toEqual({
      a: textOf(3000),
      c: textOf(10),
    })
    expect([await found(said), await found(kept)]).toEqual([0, 1])
    const owners = await database.reader.all('select distinct owner from graph_pieces', [])
    // Four transactions and the coin before them, one body, three outputs that say something, one with all up to it.
    expect(owners).toHaveLength(5 + 1 + 3 + 1)
    await store.blocklist.remove({ kind: 'outpoint', value: formatOutpoint(at(2)) })
    expect([await found(said), await found(kept)]).toEqual([1, 1])
    expect((await store.metadata.merged(at(3)))?.get('b')).toBe(textOf(3000))
  })
})
