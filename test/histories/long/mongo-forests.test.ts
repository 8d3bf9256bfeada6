import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { describeWithMongo } from '../../support/storage/databases.js'
import { asText, rawDocuments } from '../../support/storage/mongo-documents.js'
import { doAgain, recordWrites } from '../../support/storage/recorded-writes.js'
import { FOREST, forest, growForest } from '../forest.js'
import { StoreHost } from '../store-host.js'
import { expectRuns } from '../trial.js'

// Whatever is written to SQLite while branches and blocks are reorganised and proofs come and go is written to MongoDB,
// too, and every collection has to hold what the table does.

describeWithMongo('a forest on MongoDB', (mongo) => {
  let host: StoreHost

  beforeAll(async () => {
    host = await StoreHost.open(FOREST)
  })
  afterAll(async () => {
    await host?.close()
  })

  test('is document by document what it is row by row on SQLite', async () => {
    const writes = recordWrites(host.graph, host.admission)
    await expectRuns({
      plan: forest,
      runs: 6,
      async run(plan) {
        writes.length = 0
        const run = await growForest(plan, host)
        const db = mongo.db()
        const store = new MongoGraphStore({ db })
        for (const write of writes) await doAgain(write, store)
        const { graph_settings: _, ...documents } = await rawDocuments(db)
        const rows: Record<string, object[]> = {}
        for (const name of Object.keys(documents))
          rows[name] = await host.database.reader.all(`select * from ${name}`, [])
        // When an output was admitted is the clock's to say.
        for (const admissions of [documents.graph_admissions, rows.graph_admissions])
          for (const admission of admissions ?? []) Object.assign(admission, { score: 0 })
        const [onMongo, onSqlite] = [asText(documents), asText(rows)]
        for (const name of Object.keys(onSqlite))
          expect([name, onMongo[name]]).toEqual([name, onSqlite[name]])
        await db.dropDatabase()
        return run.happened
      },
    })
  }, 3_600_000)
})
