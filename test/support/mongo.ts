import { MISSING_FOR_MONGO, type Mongo, startMongo } from '../services/mongo.js'

/** A MongoDB for the tests of one group. */
export interface UsedMongo {
  server(): Mongo
  /** Gives the URL of a database of its own. It looks for a server no longer than a test can wait. */
  database(): string
}

/** Once it is away, it is looked for all the time. */
const QUICK = 'directConnection=true&serverSelectionTimeoutMS=2000&minHeartbeatFrequencyMS=20'

/** A group of tests with a MongoDB; where the machine has none they are skipped, and their name says so. */
export function describeWithMongo(name: string, tests: (mongo: UsedMongo) => void): void {
  let started: Mongo | undefined
  let databases = 0
  const server = (): Mongo => {
    if (started === undefined) throw new Error('MongoDB was not started')
    return started
  }
  const mongo: UsedMongo = {
    server,
    database: () => `${server().url(`database_${databases++}`)}?${QUICK}`,
  }
  if (MISSING_FOR_MONGO.length > 0) {
    describe.skip(`${name} (there is no ${MISSING_FOR_MONGO.join(', no ')} here)`, () => tests(mongo))
    return
  }
  describe(name, () => {
    beforeAll(async () => {
      started = await startMongo()
    })
    tests(mongo)
    // After whatever the tests have on it.
    afterAll(async () => {
      await started?.stop()
    })
  })
}
