import type { Db, MongoClient } from 'mongodb'
import {
  COLLECTIONS,
  type CollectionName,
  chunkId,
  type Doc,
  withId,
} from '../../../../backend/src/storage/mongo/collections.js'
import { collectionIn, dbDocuments } from '../../../../backend/src/storage/mongo/documents.js'
import { MongoGraphStore } from '../../../../backend/src/storage/mongo/graph-store.js'
import { DURABLE } from '../../../../backend/src/storage/mongo/write-lease.js'
import { schemaNames } from '../../../../backend/src/storage/sql/migrations.js'
import { openClient } from '../open-mongo.js'
import {
  BackupError,
  type BackupRow,
  isSaved,
  isSavedTable,
  type LoadedTables,
  RESTORE_MARK,
  type SavedTables,
} from './backup-tables.js'

const NAMES = Object.keys(COLLECTIONS) as CollectionName[]
const A_BATCH = 100

/**
 * Reads a database of MongoDB. A server alone can show no single moment of several collections, so the backup holds the write
 * lease for as long as it reads: submissions to all nodes wait, and readers do not.
 *
 * @throws BackupError where there is no store; StoreUnavailableError if the lease is lost.
 */
export async function saveMongo<Result>(
  url: string,
  work: (tables: SavedTables) => Promise<Result>,
): Promise<Result> {
  return await withDatabase(url, async (db) => {
    const [store] = await db.listCollections({ name: 'graph_settings' }).toArray()
    if (store === undefined) throw new BackupError('there is no store in the database')
    const graph = new MongoGraphStore({ db })
    let result: { value: Result } | undefined
    await graph.writer.withLease((lease) =>
      lease.renewDuring(async () => {
        const value = await work({
          schema: schemaNames(),
          setting: (name) => graph.settings.get(name),
          size: async () => {
            const { dataSize } = await db.command({ dbStats: 1 }).catch(() => ({ dataSize: undefined }))
            return typeof dataSize === 'number' ? dataSize : undefined
          },
          reader: dbDocuments(db),
          async chunksAfter(last, limit) {
            await lease.renew()
            const after = last === undefined ? {} : { _id: { $gt: chunkId(last.owner, last.position) } }
            return await collectionIn(db, 'graph_pieces').find(after).sort({ _id: 1 }).limit(limit).toArray()
          },
          async *rows() {
            for (const table of NAMES.filter(isSavedTable)) {
              let count = 0
              for await (const { _id, ...row } of collectionIn(db, table).find({}, { batchSize: A_BATCH })) {
                if (count++ % A_BATCH === 0) await lease.renew()
                if (isSaved(table, row as BackupRow)) yield { table, row: row as BackupRow }
              }
            }
          },
        })
        // Fails if another writer took the lease meanwhile.
        await lease.update({}, { $inc: { beat: 1 } })
        result = { value }
      }),
    )
    if (result === undefined) throw new Error('the write lease returned no result')
    return result.value
  })
}

/**
 * Loads a backup into an empty database. A setting marks the restore as unfinished until it is complete, so that no start uses
 * a partial one.
 *
 * @throws BackupError if there is a store in it, or the backup is of another version.
 */
export async function loadMongo(
  url: string,
  schema: readonly string[],
  work: (tables: LoadedTables) => Promise<void>,
): Promise<void> {
  if (schema.join() !== schemaNames().join())
    throw new BackupError(
      'the backup is of another version of minetree: restore it with that version, or into another engine first',
    )
  await withDatabase(url, async (db) => {
    for (const name of NAMES) {
      if ((await collectionIn(db, name).findOne({})) !== null)
        throw new BackupError('it already holds a store: restore a backup into an empty one')
    }
    const graph = new MongoGraphStore({ db })
    await graph.open()
    await graph.settings.set(RESTORE_MARK, 'unfinished')
    await work({
      async load(table, rows) {
        const name = NAMES.find((each) => each === table)
        if (name === undefined)
          throw new BackupError(`the backup has an unknown table: ${JSON.stringify(table)}`)
        await collectionIn(db, name).insertMany(rows.map((row) => withId(name, row as Doc)))
      },
    })
    // Durable, and with it everything before.
    await collectionIn(db, 'graph_settings').deleteOne({ _id: RESTORE_MARK }, DURABLE)
  })
}

async function withDatabase<Result>(url: string, work: (db: Db) => Promise<Result>): Promise<Result> {
  const client: MongoClient = await openClient(url)
  try {
    return await work(client.db())
  } finally {
    await client.close()
  }
}
