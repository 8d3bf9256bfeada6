import { MongoClient } from 'mongodb'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { ENGINE_VERSIONS, type EngineVersion } from '../../support/plugin/engines.js'
import { describePluginContract } from '../../support/plugin/plugin-contract.js'
import { mongoUrl } from '../../support/services/mongo.js'
import { freshDatabaseName, portOfShared } from '../../support/services/shared.js'
import { describeWithMariadb, describeWithMongo } from '../../support/storage/databases.js'

// A host always has MySQL for its engine; the lookup services are on that, or on MongoDB.

/** Quick tests run the real one on SQLite, and `gasp.test.ts` has 2.0.2. Here, each other is run once by day, and all at night. */
const chosen = (...engines: EngineVersion[]) => (IS_NIGHTLY ? ENGINE_VERSIONS : engines)

describeWithMariadb('a host on MariaDB', (mariadb) => {
  const onSql = async () => ({
    name: freshDatabaseName(),
    KNEX_URL: await mariadb.database(),
    MONGO_URL: '',
  })
  describePluginContract(onSql, { engines: chosen('0.5.4') })

  describeWithMongo('with its lookup services on MongoDB', () => {
    const clients: MongoClient[] = []
    afterAll(async () => {
      for (const client of clients) {
        await client.db().dropDatabase()
        await client.close()
      }
    })

    const open = async () => {
      const name = freshDatabaseName()
      const MONGO_URL = mongoUrl(await portOfShared('mongo'), `${name}_lookup_services`)
      clients.push(new MongoClient(MONGO_URL))
      return { name, KNEX_URL: await mariadb.database(), MONGO_URL }
    }
    describePluginContract(open, { bans: true, engines: chosen('2.6.3') })
  })
})
