import { Leases } from '../../../backend/src/writer/leases.js'
import { MemoryLog, type MemoryRows } from '../../support/facts/memory-log.js'

/** Gateways whose clocks differ, and run on together. */
function gateways(count: number) {
  const rows: MemoryRows = { id: 'ab', rows: [] }
  let passed = 0
  const all = Array.from({ length: count }, (_, at) => {
    const log = new MemoryLog(rows)
    return { log, leases: new Leases({ log, now: () => 1e12 - 3000 * at + passed }) }
  })
  return {
    all,
    /** Some seconds later; those that live beat each five. */
    async after(seconds: number, living: readonly { leases: Leases }[] = all): Promise<void> {
      for (let second = 0; second < seconds; second += 5) {
        passed += 5000
        for (const { leases } of living) await leases.beat().catch(() => {})
      }
    },
  }
}

const holders = (all: readonly { leases: Leases }[], job: string): number[] =>
  all.flatMap(({ leases }, at) => (leases.held.includes(job) ? [at] : []))

test('a job is done by one gateway, as long as that one says so', async () => {
  const { all, after } = gateways(3)
  for (const { leases } of all) void leases.seek(['follow'])
  void all[1]?.leases.seek(['follow', 'sync'])
  await Promise.all(all.map(({ leases }) => leases.beat()))
  const [first] = holders(all, 'follow')
  expect(holders(all, 'follow')).toHaveLength(1)
  await after(600)
  expect(holders(all, 'follow')).toEqual([first])
  expect(holders(all, 'sync')).toEqual([1])
})

test('another one takes over when it has heard nothing for 30 seconds by its own clock, and not before', async () => {
  const { all, after } = gateways(2)
  for (const { leases } of all) void leases.seek(['follow'])
  await after(60)
  expect(holders(all, 'follow')).toEqual([0])
  await after(25, all.slice(1))
  // The first one, which was stopped, would not go on.
  expect(holders(all, 'follow')).toEqual([])
  await after(10, all.slice(1))
  expect(holders(all, 'follow')).toEqual([1])
  await after(60)
  expect(holders(all, 'follow')).toEqual([1])
})

test('one that cannot reach the log stops before another one begins', async () => {
  const { all, after } = gateways(2)
  for (const { leases } of all) void leases.seek(['follow'])
  await after(30)
  const [one] = all
  if (one === undefined) throw new Error('there is none')
  one.log.onTheWay = () => {
    throw new Error('the network is down')
  }
  for (let seconds = 0; seconds < 120; seconds += 5) {
    await after(5)
    expect(holders(all, 'follow').length).toBeLessThanOrEqual(1)
  }
  expect(holders(all, 'follow')).toEqual([1])
  one.log.onTheWay = () => {}
  await after(60)
  expect(holders(all, 'follow')).toEqual([1])
})

test('one that stops, or no longer seeks a job, leaves it at once', async () => {
  const { all, after } = gateways(3)
  for (const { leases } of all) void leases.seek(['follow', 'sync'])
  await after(30)
  await all[0]?.leases.seek(['sync'])
  await after(5)
  expect([holders(all, 'follow'), holders(all, 'sync')]).toEqual([[1], [0]])
  await all[0]?.leases.release()
  await after(5)
  expect([holders(all, 'follow'), holders(all, 'sync')]).toEqual([[1], [1]])
})

test('one whose job was taken over leaves what is not its own any more', async () => {
  const { all, after } = gateways(3)
  for (const { leases } of all) void leases.seek(['follow'])
  await after(30)
  await after(35, all.slice(1))
  // It hears last what the others say.
  await after(5, all.toReversed())
  expect(holders(all, 'follow')).toEqual([1])
  await all[0]?.leases.release()
  await after(5, all.slice(1).reverse())
  expect(holders(all, 'follow')).toEqual([1])
})
