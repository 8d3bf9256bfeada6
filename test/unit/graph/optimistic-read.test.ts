import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { optimisticRead, UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'

/** A count of reorganisations that goes up during a read, this many times. */
function reorganising(times: number) {
  let reorgs = 0
  let reads = 0
  return {
    reads: () => reads,
    reorgs: async () => reorgs,
    read: async (fails = false) => {
      reads++
      const state = reorgs
      if (reorgs < times) reorgs++
      if (fails && state < times) throw new Error('what is read now was never there')
      return `state ${state}`
    },
  }
}

test('what no reorganisation interrupts is read once', async () => {
  const still = reorganising(0)
  expect(await optimisticRead(still.read, still.reorgs)).toBe('state 0')
  expect(still.reads()).toBe(1)
})

test('what was read during a reorganisation is read again, until none happens', async () => {
  const world = reorganising(3)
  expect(await optimisticRead(world.read, world.reorgs)).toBe('state 3')
  expect(world.reads()).toBe(4)
})

test('an error of a state that never was is not answered, and one that lasts is', async () => {
  const world = reorganising(2)
  expect(await optimisticRead(() => world.read(true), world.reorgs)).toBe('state 2')
  const broken = async () => {
    throw new Error('the disk is gone')
  }
  await expect(optimisticRead(broken, async () => 0)).rejects.toThrow('the disk is gone')
})

test('where branches are reorganised without end the reader is asked to try again', async () => {
  const world = reorganising(Number.POSITIVE_INFINITY)
  await expect(optimisticRead(world.read, world.reorgs)).rejects.toThrow(UnstableReadError)
  expect(world.reads()).toBeLessThan(100)
})

test('of a store that does not respond, nothing more is asked', async () => {
  let asked = 0
  const reorgs = async (): Promise<number> => asked++
  const away = async () => {
    throw new StoreUnavailableError(new Error('no answer'))
  }
  await expect(optimisticRead(away, reorgs)).rejects.toThrow(StoreUnavailableError)
  expect(asked).toBe(1)
})
