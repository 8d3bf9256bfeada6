import { Blocklist } from '../../../backend/src/graph/blocklist.js'
import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import { lazyStore } from '../../../backend/src/host/lazy-store.js'

/** A store of which nothing is asked but its blocklist, and how often it was opened. */
function closed() {
  const list = new Blocklist([])
  const blocklist = {
    list: () => list,
    async add(record: { kind: 'name'; value: string }) {
      list.set(record, true)
      return record
    },
  }
  const counts = { opened: 0 }
  let store: HostStore | undefined
  const open = async (): Promise<HostStore> => {
    counts.opened++
    store = { blocklist } as unknown as HostStore
    return store
  }
  return { counts, lazy: lazyStore(() => store, open) }
}

const NAME = { kind: 'name', value: 'a', reason: '', since: 1 } as const

test('what is written first opens the store', async () => {
  const { counts, lazy } = closed()
  await lazy.blocklist.add(NAME)
  expect(lazy.blocklist.list().has('name', 'a')).toBe(true)
  await lazy.opened?.()
  expect(counts.opened).toBe(1)
})

test('what is read at once throws until it is open', async () => {
  const { counts, lazy } = closed()
  expect(() => lazy.blocklist.list()).toThrow(StoreUnavailableError)
  expect(counts.opened).toBe(0)
  await lazy.opened?.()
  expect(lazy.blocklist.list().isEmpty).toBe(true)
})
