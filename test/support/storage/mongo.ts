import { type Db, MongoClient } from 'mongodb'
import { MISSING_FOR_MONGO, mongoUrl } from '../services/mongo.js'
import { freshDatabaseName, portOfShared } from '../services/shared.js'
import { describeWithService } from './with-service.js'

/** The shared MongoDB, as the tests of one group use it. */
export interface UsedMongo {
  port(): number
  /** A new database, by the client of the group. Databases are dropped after it. */
  db(): Db
  /** The URL of a new database. The server is looked for no longer than a test can wait. */
  database(): string
}

/** Once it is away, it is looked for all the time. */
const QUICK = 'directConnection=true&serverSelectionTimeoutMS=2000&minHeartbeatFrequencyMS=20'

/** A group of tests with MongoDB. */
export function describeWithMongo(name: string, tests: (mongo: UsedMongo) => void): void {
  describeWithService({ name, missing: MISSING_FOR_MONGO }, () => {
    const created: string[] = []
    let port: number
    let client: MongoClient
    beforeAll(async () => {
      port = await portOfShared('mongo')
      client = await new MongoClient(mongoUrl(port, '')).connect()
    })
    const create = (): string => {
      const name = freshDatabaseName()
      created.push(name)
      return name
    }
    tests({
      port: () => port,
      db: () => client.db(create()),
      database: () => `${mongoUrl(port, create())}?${QUICK}`,
    })
    afterAll(async () => {
      for (const name of created) await client.db(name).dropDatabase()
      await client.close()
    })
  })
}
