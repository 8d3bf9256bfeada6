import { steadyTime } from '../../../../backend/src/protocol/monotonic.js'
import type { WriterStatus } from '../../../../backend/src/writer/writer.js'
import { incompleteError, NodeIndex, notReadyReason } from '../../../../src/server/store/index-status.js'
import { SILENT } from '../../../support/server/test-server.js'

function statusOf(status: WriterStatus) {
  const writer = { status, opened: Promise.resolve() }
  return new NodeIndex({ writer, facts: () => 0, logger: SILENT }).status
}

/** That of an index which was complete before. */
async function statusAfter(status: WriterStatus) {
  const index = new NodeIndex({
    writer: { status, opened: Promise.resolve() },
    facts: () => 0,
    logger: SILENT,
  })
  await index.open()
  return index.status
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

test.each([
  ['whose writer has ended', { ...heard(5), state: 'ended' as const }, 'resuming'],
  ['whose copy of the log is read again', { ...heard(5), state: 'reading' as const }, 'resuming'],
  ['whose writer has ended long ago', { ...heard(65), state: 'ended' as const }, 'stale'],
  ['that was emptied', { ...heard(5), state: 'reading' as const, isEmptied: true }, 'rebuilding'],
])('an index that was complete, and %s', async (_, given, state) => {
  const status = await statusAfter(given)
  expect(status.state).toBe(state)
  expect(notReadyReason(status)).toBeDefined()
  expect(incompleteError(status) === undefined).toBe(state === 'resuming')
})
