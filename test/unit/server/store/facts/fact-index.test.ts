import { steadyTime } from '../../../../../backend/src/protocol/monotonic.js'
import type { WriterStatus } from '../../../../../backend/src/writer/writer.js'
import { FactIndex } from '../../../../../src/server/store/facts/fact-index.js'
import { incompleteError, notReadyReason } from '../../../../../src/server/store/index-maintenance.js'
import { SILENT } from '../../../../support/server/test-server.js'

function statusOf(status: WriterStatus) {
  const writer = { status, opened: Promise.resolve() }
  return new FactIndex({ writer, facts: () => 0, logger: SILENT }).status
}

const heard = (seconds: number): WriterStatus => ({
  ...{ state: 'equal', done: 1 },
  heardAt: steadyTime() - seconds * 1000,
})

test.each([
  ['a log of its own', { state: 'equal', done: 1 } as const, 'equal'],
  ['a log that was read just now', heard(0), 'equal'],
  ['a log that was read 5 seconds ago', heard(5), 'equal'],
  ['a log that was read 15 seconds ago', heard(15), 'behind'],
  ['a log that was read 65 seconds ago', heard(65), 'stale'],
  ['an index that is derived', { ...heard(65), state: 'rebuilding' as const }, 'rebuilding'],
])('the index of %s', (_, given, state) => {
  const status = statusOf(given)
  expect(status.state).toBe(state)
  expect(notReadyReason(status) === undefined).toBe(state === 'equal')
  expect(incompleteError(status) === undefined).toBe(state === 'equal' || state === 'behind')
})
