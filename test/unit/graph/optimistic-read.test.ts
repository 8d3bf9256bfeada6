import { optimisticRead, UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'

/** A count of turns that goes up while a read is under way, as often as is said. */
function turning(times: number) {
  let turns = 0
  let reads = 0
  return {
    reads: () => reads,
    turns: async () => turns,
    read: async (fails = false) => {
      reads++
      const state = turns
      if (turns < times) turns++
      if (fails && state < times) throw new Error('what is read now was never there')
      return `state ${state}`
    },
  }
}

test('what nothing turned under is read once', async () => {
  const still = turning(0)
  expect(await optimisticRead(still.read, still.turns)).toBe('state 0')
  expect(still.reads()).toBe(1)
})

test('what was read while branches turned is read again, until nothing turns', async () => {
  const world = turning(3)
  expect(await optimisticRead(world.read, world.turns)).toBe('state 3')
  expect(world.reads()).toBe(4)
})

test('an error of a state that never was is not answered, and one that lasts is', async () => {
  const world = turning(2)
  expect(await optimisticRead(() => world.read(true), world.turns)).toBe('state 2')
  const broken = async () => {
    throw new Error('the disk is gone')
  }
  await expect(optimisticRead(broken, async () => 0)).rejects.toThrow('the disk is gone')
})

test('where branches turn without end the reader is told to come again', async () => {
  const world = turning(Number.POSITIVE_INFINITY)
  await expect(optimisticRead(world.read, world.turns)).rejects.toThrow(UnstableReadError)
  expect(world.reads()).toBeLessThan(100)
})
