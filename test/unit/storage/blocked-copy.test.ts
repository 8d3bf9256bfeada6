import type { BlockedSubject } from '../../../backend/src/graph/blocklist.js'
import { BlocklistCopy } from '../../../backend/src/storage/read/blocklist-copy.js'

const SUBJECT: BlockedSubject = { kind: 'content', value: '00'.repeat(32) }

test('a read that began earlier and ends later does not undo a later one', async () => {
  const answers: ((subjects: BlockedSubject[]) => void)[] = []
  const copy = new BlocklistCopy(() => new Promise((resolve) => answers.push(resolve)))
  const earlier = copy.read()
  const later = copy.read()
  // Another process blocks between the two: only the later one sees it.
  answers[1]?.([SUBJECT])
  expect((await later).has(SUBJECT.kind, SUBJECT.value)).toBe(true)
  answers[0]?.([])
  expect((await earlier).has(SUBJECT.kind, SUBJECT.value)).toBe(true)
  expect((await copy.get()).has(SUBJECT.kind, SUBJECT.value)).toBe(true)
})
