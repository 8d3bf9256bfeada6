import type { Sighting, SightingRecord, Tier } from '../../../../backend/src/graph/conflict-resolution.js'
import { Sightings } from '../../../../src/chain/follow/sightings.js'
import { ChainSourceError } from '../../../../src/chain/sources/errors.js'
import { until } from '../../../support/server/waiting.js'

// What a host asks the network about, and how much of it.

const txidOf = (index: number): string => index.toString(16).padStart(64, '0')

interface World {
  sightings: Sightings
  /** What was asked, a list for each question. */
  asked: string[][]
  recorded: SightingRecord[]
  tiers: Map<string, Tier>
  said: Map<string, Sighting>
  /** What the source throws instead of an answer. */
  failing: { error?: Error }
  warnings: unknown[]
  /** Holds back answers until it is called. */
  hold(): () => void
}

function world(): World {
  const asked: string[][] = []
  const recorded: SightingRecord[] = []
  const tiers = new Map<string, Tier>()
  const said = new Map<string, Sighting>()
  const failing: World['failing'] = {}
  const warnings: unknown[] = []
  let held: Promise<void> | undefined
  const sightings = new Sightings({
    store: {
      transactions: {
        tiers: (txids) => new Map(txids.map((txid) => [txid, tiers.get(txid) ?? 'unseen'])),
      },
    },
    source: {
      canSight: true,
      async sightings(txids) {
        asked.push([...txids])
        await held
        if (failing.error) throw failing.error
        return new Map(txids.flatMap((txid) => (said.has(txid) ? [[txid, said.get(txid) as Sighting]] : [])))
      },
    },
    async record(records) {
      recorded.push(...records)
      return records.length > 0
    },
    logger: { warn: (...line: unknown[]) => void warnings.push(line) },
  })
  return {
    ...{ sightings, asked, recorded, tiers, said, failing, warnings },
    hold() {
      let release = (): void => {}
      held = new Promise((resolve) => (release = resolve))
      return release
    },
  }
}

test('new transactions are asked about in batches, one question at a time, and each once', async () => {
  const { sightings, asked, recorded, said, hold } = world()
  const release = hold()
  said.set(txidOf(0), 'seen').set(txidOf(1), 'rejected')
  const txids = Array.from({ length: 50 }, (_, index) => txidOf(index))
  sightings.notice(txids)
  await until(() => asked.length > 0)
  sightings.notice(txids)
  expect(asked).toHaveLength(1)
  release()
  await until(() => recorded.length > 0 && asked.length >= 3)
  expect(asked.map(({ length }) => length).slice(0, 2)).toEqual([20, 20])
  // Those of the first question were noticed again before it was answered.
  sightings.notice(txids)
  await sightings.stop()
  const unknown = asked.flat().filter((txid) => txid === txidOf(40))
  expect(unknown).toHaveLength(1)
  expect(recorded).toContainEqual({ txid: txidOf(0), status: 'seen' })
  expect(recorded).toContainEqual({ txid: txidOf(1), status: 'rejected' })
})

test('nothing is asked about what is proven or seen', async () => {
  const { sightings, asked, tiers } = world()
  tiers.set(txidOf(1), 'proven').set(txidOf(2), 'seen')
  sightings.notice([1, 2, 3].map(txidOf))
  await until(() => asked.length > 0)
  expect(asked).toEqual([[txidOf(3)]])
})

test('of thousands that strangers submit, a bounded number waits', async () => {
  const { sightings, asked, hold } = world()
  const release = hold()
  sightings.notice(Array.from({ length: 5000 }, (_, index) => txidOf(index)))
  await until(() => asked.length > 0)
  release()
  await until(() => asked.flat().length === 1000)
  await sightings.stop()
  expect(asked.flat()).toHaveLength(1000)
})

test('of many conflicts at once, a few are asked about, and the others are answered without', async () => {
  const { sightings, asked, said, hold } = world()
  const release = hold()
  for (let index = 0; index < 10; index++) said.set(txidOf(index), 'seen')
  const answers = Array.from({ length: 10 }, (_, index) => sightings.ask([txidOf(index)]))
  expect(await Promise.all(answers.slice(4))).toEqual([false, false, false, false, false, false])
  expect(asked).toHaveLength(2)
  release()
  expect(await Promise.all(answers.slice(0, 4))).toEqual([true, true, true, true])
})

test('a source that does not answer changes nothing, and the log says nothing of it', async () => {
  const { sightings, recorded, warnings, failing } = world()
  failing.error = new ChainSourceError('NO_ANSWER', 'it does not answer')
  sightings.notice([txidOf(1)])
  expect(await sightings.ask([txidOf(1)])).toBe(false)
  await sightings.stop()
  expect([recorded, warnings]).toEqual([[], []])
})
