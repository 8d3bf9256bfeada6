import { ORIGIN, TIP } from '../../../backend/src/graph/graph-store.js'
import { encodeMap } from '../../../backend/src/graph/map-coder.js'
import { graphRecords, type OutputRecord } from '../../../backend/src/graph/records.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

// Lineages of every length: a store may read short ones otherwise than long ones.

const LONGEST = 12

const at = (ordinal: number, step: number) => ({
  txid: `${ordinal.toString(16).padStart(2, '0')}${step.toString(16).padStart(2, '0')}`.padStart(64, 'a'),
  vout: 0,
})

/** Step 1 is the origin; each third has content from there on, each fourth a parent, and each fifth says something. */
function life(ordinal: number, length: number) {
  const steps = Array.from({ length }, (_, step) => step)
  const outputs = steps.map(
    (step): OutputRecord => ({
      outpoint: at(ordinal, step),
      satoshis: 1,
      ...(step > 0 && { previous: at(ordinal, step - 1) }),
      ...(step % 3 === 1 && { content: { sha256: 'ab'.repeat(32), contentType: `text/${step}`, length: 1 } }),
      ...(step % 4 === 2 && { parent: at(0xff, step) }),
      ...(step % 5 === 3 && { mapLength: mapOf(step).length }),
    }),
  )
  const saying = steps.filter((step) => step % 5 === 3)
  const maps = saying.map((step) => ({ outpoint: at(ordinal, step), bytes: mapOf(step) }))
  return { outputs, maps }
}

function mapOf(step: number): Uint8Array {
  return encodeMap([
    {
      command: 'SET',
      entries: [
        [`said at ${step}`, 'yes'],
        ['level', String(step)],
      ],
    },
  ])
}

/** The last step up to one that leaves so much where it is divided. */
const lastOf = (step: number, divisor: number, rest: number): number | undefined =>
  Array.from({ length: step + 1 }, (_, each) => step - each).find((each) => each % divisor === rest)

onEachTableEngine(({ openStore, closeStores }) => {
  afterAll(closeStores)

  test('an ordinal is what it is at each of its steps, however long it has lived', async () => {
    const { store } = await openStore()
    const lengths = Array.from({ length: LONGEST }, (_, index) => index + 1)
    const lives = lengths.map((length) => life(length, length))
    await store.record(
      graphRecords({
        outputs: lives.flatMap(({ outputs }) => outputs),
        maps: lives.flatMap(({ maps }) => maps),
      }),
    )
    for (const length of lengths) {
      const last = length - 1
      const asked = at(length, Math.floor(last / 2))
      if (last === 0) {
        expect(await store.ordinals.at(asked, TIP)).toBeUndefined()
        continue
      }
      for (const step of Array.from({ length: last }, (_, index) => index + 1)) {
        const content = lastOf(step, 3, 1) ?? Number.NaN
        const parent = lastOf(step, 4, 2)
        const expected = {
          sequence: step - 1,
          origin: at(length, 1),
          output: { outpoint: at(length, step) },
          content: { outpoint: at(length, content), content: { contentType: `text/${content}` } },
          tip: step === last,
        }
        const found = await store.ordinals.at(asked, step - 1)
        expect(found).toMatchObject(expected)
        expect(found?.parent).toEqual(parent === undefined ? undefined : at(0xff, parent))
        if (step === last) expect(await store.ordinals.at(asked, TIP)).toEqual(found)
        if (step === 1) expect(await store.ordinals.at(asked, ORIGIN)).toEqual(found)
        const said = Array.from({ length: step + 1 }, (_, each) => each).filter((each) => each % 5 === 3)
        const map = new Map(said.map((each) => [`said at ${each}`, 'yes']))
        if (said.length > 0) map.set('level', String(said.at(-1)))
        expect(await store.metadata.merged(at(length, step))).toEqual(map)
      }
      expect(await store.ordinals.at(asked, last)).toBeUndefined()
    }
  })
})
