import { EMPTY_MAP } from '../../../backend/src/graph/map-merge.js'
import type { HistoryStep } from '../../../backend/src/read/listings.js'
import { stepViews } from '../../../src/explorer/ordinal-parts.js'

test('while the MAP of many steps is read for a page, others have their turns', async () => {
  const steps = Array.from(
    { length: 12 },
    (_, sequence): HistoryStep => ({ sequence, outpoint: { txid: 'ab'.repeat(32), vout: 0 }, hasMap: true }),
  )
  let turns = 0
  let isDone = false
  const taken = (): void => {
    turns++
    if (!isDone) setImmediate(taken)
  }
  setImmediate(taken)
  const turnsAtReads: number[] = []
  // As long as a slice, without waiting for anything: as an embedded store does with the longest MAP.
  const own = () => {
    turnsAtReads.push(turns)
    for (const end = performance.now() + 11; performance.now() < end; );
    return EMPTY_MAP
  }
  const metadata = { own, merged: () => EMPTY_MAP }
  const views = await stepViews({ store: { metadata } }, steps, () => undefined)
  isDone = true
  expect(views.map(({ map }) => map)).toEqual(steps.map(() => EMPTY_MAP))
  expect(new Set(turnsAtReads).size).toBe(steps.length)
})
