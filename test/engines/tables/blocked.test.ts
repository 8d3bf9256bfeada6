import type { BlockedSubject } from '../../../backend/src/graph/blocklist.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { blocked as migration } from '../../../backend/src/storage/sql/migrations/003-blocked.js'
import { onEachSqlEngine } from '../../support/storage/stores.js'

const at = { txid: 'ab'.repeat(32), vout: 0 }

onEachSqlEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('what was evicted under the schema before is blocked by its outpoint, and is on the way back', async () => {
    const { store, database } = await openStore()
    const { writer } = database
    const name: BlockedSubject = { kind: 'name', value: 'a' }
    await store.blocklist.add({ ...name, reason: 'a test', since: 5 })
    await store.evict(at)
    await migration.down(writer)
    expect(await writer('graph_evictions').count('* as count').first()).toEqual({ count: 1 })
    // Twice: the two lookup services of a host both bring it.
    for (let times = 0; times < 2; times++) await migration.up(writer)
    await store.blocklist.refresh()
    expect(await store.blocklist.page({ limit: 5 })).toEqual([
      { kind: 'outpoint', value: formatOutpoint(at), reason: 'evicted', since: expect.any(Number) },
    ])
    expect(await writer.schema.hasTable('graph_evictions')).toBe(false)
  })
})
