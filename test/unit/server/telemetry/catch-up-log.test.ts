import { vi } from 'vitest'
import { CatchUpLog } from '../../../../src/server/telemetry/catch-up-log.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { saidParts } from '../../../support/server/chain-parts.js'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

const MINUTE = 60_000

test('a host that catches up logs a line a minute, and one when it has caught up', () => {
  const { logger, records } = keptLog()
  const { said, parts } = saidParts()
  const log = new CatchUpLog({ parts, logger })
  log.start()
  vi.advanceTimersByTime(MINUTE - 1)
  expect(records).toEqual([])
  vi.advanceTimersByTime(1)
  const chain = { chainHeight: 900_120, height: 900_000, lag: 120 }
  expect(records).toMatchObject([
    {
      ...{ level: 30, msg: 'catching up with the chain', ...chain, failures: 2 },
      ...{ mints: 1204, transfers: 300, requests: 6011, sweep: { asked: 512, coins: 2048 } },
      ...{ transactionsPerSecond: 25.1, requestsPerSecond: 100.2 },
    },
  ])

  said.follow.mints += 60
  for (const source of said.sources) source.requests += 300
  vi.advanceTimersByTime(MINUTE)
  expect(records).toHaveLength(2)
  expect(records[1]).toMatchObject({
    mints: 1264,
    requests: 6611,
    transactionsPerSecond: 1,
    requestsPerSecond: 10,
  })

  said.follow.state = 'keeping up'
  said.follow.height = 900_120
  vi.advanceTimersByTime(MINUTE)
  expect(records[2]).toMatchObject({ msg: 'caught up with the chain', mints: 1264, lag: 0 })
  vi.advanceTimersByTime(10 * MINUTE)
  expect(records).toHaveLength(3)

  said.follow.state = 'catching up'
  vi.advanceTimersByTime(MINUTE)
  expect(records[3]).toMatchObject({ msg: 'catching up with the chain', transactionsPerSecond: 0 })
  log.stop()
  vi.advanceTimersByTime(10 * MINUTE)
  expect(records).toHaveLength(4)
})

test('a host that does not follow the chain logs nothing of it', () => {
  const { logger, records } = keptLog()
  const { headers } = saidParts().parts
  const log = new CatchUpLog({ parts: { headers }, logger })
  log.start()
  vi.advanceTimersByTime(10 * MINUTE)
  log.stop()
  expect(records).toEqual([])
})
