import { EMPTY_MAP } from '../../../backend/src/graph/map-merge.js'
import type { HistoryStep } from '../../../backend/src/read/listings.js'
import { stepViews } from '../../../src/explorer/ordinal-parts.js'

test('no more MAP of steps is read for a page than takes some milliseconds', () => {
  const lengths = [1000, 200 * 1024, 100 * 1024, undefined, 50 * 1024, 10 * 1024]
  const steps = lengths.map(
    (mapLength, sequence): HistoryStep => ({
      ...{ sequence, outpoint: { txid: 'ab'.repeat(32), vout: sequence } },
      ...(mapLength !== undefined && { mapLength }),
    }),
  )
  const read: number[] = []
  const own = ({ vout }: { vout: number }) => {
    read.push(vout)
    return EMPTY_MAP
  }
  const views = stepViews({ store: { metadata: { own } } }, steps, () => undefined)
  expect(read).toEqual([0, 1, 4])
  expect(views.map(({ map }) => map !== undefined)).toEqual([true, true, false, false, true, false])
})
