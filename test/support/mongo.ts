import { MongoClient } from 'mongodb'
import { MISSING_FOR_MONGO, type Mongo, startMongo } from '../services/mongo.js'
import { describeWithService } from './with-service.js'

/** A MongoDB for the tests of one group. */
export interface UsedMongo {
  server(): Mongo
  /** The one that all tests of the group have, which is closed behind them. */
  client(): MongoClient
  /** Gives the URL of a database of its own. It looks for a server no longer than a test can wait. */
  database(): string
}

/** Once it is away, it is looked for all the time. */
const QUICK = 'directConnection=true&serverSelectionTimeoutMS=2000&minHeartbeatFrequencyMS=20'

/** A group of tests with a MongoDB. */
export function describeWithMongo(name: string, tests: (mongo: UsedMongo) => void): void {
  const service = { name, missing: MISSING_FOR_MONGO, start: () => startMongo() }
  describeWithService(service, (server) => {
    let client: MongoClient | undefined
    let databases = 0
    tests({
      server,
      client() {
        client ??= new MongoClient(server().url(''))
        return client
      },
      database: () => `${server().url(`database_${databases++}`)}?${QUICK}`,
    })
    afterAll(async () => {
      await client?.close()
    })
  })
}
