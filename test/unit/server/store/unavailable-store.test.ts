import type { Blocklist } from '../../../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../../../backend/src/graph/blocklist-filter.js'
import { StoreUnavailableError } from '../../../../backend/src/graph/errors.js'
import { SqlGraphStore } from '../../../../backend/src/storage/sql/graph-store.js'
import { CachingStore } from '../../../../src/server/store/caching-store.js'
import { useServers } from '../../../support/server/test-server.js'
import { openSqlite } from '../../../support/storage/sqlite-database.js'

// A database that several processes share, and that does not respond for a while.

const servers = useServers()

test('no blocklist that cannot be read is left unheard: the process would end', async () => {
  const database = await openSqlite(await servers.folder())
  const store = new CachingStore({ store: new SqlGraphStore(database), isShared: true })
  await store.open()
  let given = 0
  let heard = 0
  const list = (): Promise<Blocklist> => {
    given++
    const refused = Promise.reject(new StoreUnavailableError(new Error('no answer')))
    const then: Promise<never>['then'] = (...handlers) => {
      heard++
      return refused.then(...handlers)
    }
    return { then, catch: (onRejected) => then(undefined, onRejected) } as Promise<never>
  }
  const filter = new BlocklistFilter(Object.assign(Object.create(store), { blocklist: { list } }))
  const outpoint = { txid: '1'.padStart(64, '0'), vout: 0 }
  const reads = [
    () => filter.ordinals.output(outpoint),
    () => filter.ordinals.at(outpoint, 0),
    () => filter.content.chunk('aa'.repeat(32), 0),
    () => filter.names.originOf('a'),
  ]
  for (const read of reads) await expect(read()).rejects.toThrow(StoreUnavailableError)
  expect(given).toBeGreaterThan(reads.length)
  expect(heard).toBe(given)
  await store.close()
  await database.close()
})
