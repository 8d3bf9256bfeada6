import fc from 'fast-check'
import { MongoGraphStore } from '../../backend/src/storage/mongo/graph-store.js'
import { describeWithMongo } from '../../test/support/storage/databases.js'
import { asText, rawDocuments } from '../../test/support/storage/mongo-documents.js'
import { doAgain, recordWrites } from '../../test/support/storage/recorded-writes.js'
import { grow, planting } from './forest.js'
import { happening } from './happenings.js'
import { ForestLife } from './life.js'
import { type ForestNode, openForestNode } from './node.js'

// Whatever is written to SQLite while branches and blocks are reorganised and proofs come and go is written to MongoDB,
// too, and every collection has to hold what the table does.

const RUNS = Number(process.env.RUNS ?? 6)
const run = fc.record({
  plantings: fc.array(planting, { minLength: 5, maxLength: 14 }),
  happenings: fc.array(happening, { minLength: 8, maxLength: 25 }),
})

describeWithMongo('a forest on MongoDB', (mongo) => {
  let node: ForestNode

  beforeAll(async () => {
    node = await openForestNode()
  })
  afterAll(async () => {
    await node?.close()
  })

  test('is document by document what it is row by row on SQLite', async () => {
    const writes = recordWrites(node.graph, node.admission)
    const property = fc.asyncProperty(run, async ({ plantings, happenings }) => {
      writes.length = 0
      const life = await ForestLife.start(grow(plantings), node)
      for (const each of happenings) await life.happen(each)
      await life.follow()
      const db = mongo.db()
      const store = new MongoGraphStore({ db })
      for (const write of writes) await doAgain(write, store)
      const { graph_settings: _, ...documents } = await rawDocuments(db)
      const rows: Record<string, object[]> = {}
      for (const name of Object.keys(documents))
        rows[name] = await node.database.reader.all(`select * from ${name}`, [])
      // When an output was admitted is the clock's to say.
      for (const admissions of [documents.graph_admissions, rows.graph_admissions])
        for (const admission of admissions ?? []) Object.assign(admission, { score: 0 })
      const [onMongo, onSqlite] = [asText(documents), asText(rows)]
      for (const name of Object.keys(onSqlite)) expect([name, onMongo[name]]).toEqual([name, onSqlite[name]])
      await db.dropDatabase()
    })
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  }, 3_600_000)
})
