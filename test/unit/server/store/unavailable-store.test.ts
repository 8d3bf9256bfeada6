import { setTimeout as delay } from 'node:timers/promises'
import { Blocklist } from '../../../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../../../backend/src/graph/blocklist-filter.js'
import { StoreUnavailableError } from '../../../../backend/src/graph/errors.js'
import { graphRecords, type OutputRecord } from '../../../../backend/src/graph/records.js'
import { SqlGraphStore } from '../../../../backend/src/storage/sql/graph-store.js'
import { CachingStore } from '../../../../src/server/store/caching-store.js'
import { type Database, openSqlite } from '../../../../src/server/store/open-database.js'
import { useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// A database that several processes share, and that does not respond for a while.

const servers = useServers()
let database: Database
/** Of the process that writes, and of a reader. */
let writer: SqlGraphStore
let reader: CachingStore
/** Whether the database fails at once, or answers nothing, for the reader. */
let isAway = false
let isStalled = false

beforeEach(async () => {
  isAway = false
  isStalled = false
  database = await openSqlite(await servers.folder())
  const { all, first } = database.reader
  const answering = <Asked extends unknown[], Answer>(ask: (...asked: Asked) => Promise<Answer>) => {
    return async (...asked: Asked): Promise<Answer> => {
      while (isStalled) await delay(10)
      if (isAway) throw new StoreUnavailableError(new Error('no answer'))
      return await ask(...asked)
    }
  }
  writer = new SqlGraphStore(database)
  await writer.open()
  const store = new SqlGraphStore({
    writer: database.writer,
    reader: { all: answering(all), first: answering(first) } as typeof database.reader,
  })
  reader = new CachingStore({ store, isShared: true, isReader: true })
  await reader.open()
})

afterEach(async () => {
  await reader.close()
  await database.close()
})

const output: OutputRecord = { outpoint: { txid: '1'.padStart(64, '0'), vout: 0 }, satoshis: 1 }

test('a reader that cannot read what a write has changed uses nothing from memory until it can', async () => {
  await writer.record(graphRecords({ outputs: [output] }))
  const served = new BlocklistFilter(reader)
  const read = () => served.ordinals.output(output.outpoint)
  expect(await read()).toMatchObject({ satoshis: 1 })
  await writer.blocklist.add({
    ...{ kind: 'outpoint', value: `${output.outpoint.txid}_0` },
    ...{ reason: 'a test', since: 1 },
  })
  isAway = true
  await reader.outdate('everything')
  await expect(read()).rejects.toThrow(StoreUnavailableError)
  isAway = false
  await expect(read()).rejects.toMatchObject({ code: 'BLOCKED' })
  // And from memory again, once it has looked.
  await until(() => reader.blocklist.list() instanceof Blocklist, 'the list is in memory')
  await expect(read()).rejects.toMatchObject({ code: 'BLOCKED' })
})

test('a reader does not wait long for what a write has changed: it would be taken for dead', async () => {
  isStalled = true
  await reader.outdate('everything')
  isStalled = false
})

test('no blocklist that cannot be read is left unheard: the process would end', async () => {
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
  const filter = new BlocklistFilter(Object.assign(Object.create(reader), { blocklist: { list } }))
  const { outpoint } = output
  const reads = [
    () => filter.ordinals.output(outpoint),
    () => filter.ordinals.at(outpoint, 0),
    () => filter.content.chunk('aa'.repeat(32), 0),
    () => filter.names.originOf('a'),
  ]
  for (const read of reads) await expect(read()).rejects.toThrow(StoreUnavailableError)
  expect(given).toBeGreaterThan(reads.length)
  expect(heard).toBe(given)
})
