import { type Db, MongoClient } from 'mongodb'
import { type Connection, createConnection } from 'mysql2/promise'
import { IS_NIGHTLY } from '../nightly.js'
import type { Environment } from '../server/test-server.js'
import { MISSING_FOR_MARIADB, mariadbUrl } from '../services/mariadb.js'
import { MISSING_FOR_MONGO, mongoUrl } from '../services/mongo.js'
import { freshDatabaseName, portOfShared } from '../services/shared.js'

/** A group of tests with a shared server. Where the machine lacks its programs they are skipped, and their name says so. */
function describeWithService(
  { name, missing }: { name: string; missing: string[] },
  tests: () => void,
): void {
  if (missing.length > 0) describe.skip(`${name} (there is no ${missing.join(', no ')} here)`, tests)
  else describe(name, tests)
}

/** The shared MariaDB, as the tests of one group use it. */
export interface UsedMariadb {
  port(): number
  /** The URL of a database, which may not exist. */
  url(database: string): string
  /** Creates a database, and gives its URL. It is dropped after the group. */
  database(): Promise<string>
}

/** A group of tests with MariaDB. */
export function describeWithMariadb(name: string, tests: (mariadb: UsedMariadb) => void): void {
  describeWithService({ name, missing: MISSING_FOR_MARIADB }, () => {
    const created: string[] = []
    let port: number
    let root: Connection
    beforeAll(async () => {
      port = await portOfShared('mariadb')
      root = await createConnection(mariadbUrl(port, ''))
    })
    tests({
      port: () => port,
      url: (database) => mariadbUrl(port, database),
      async database() {
        const name = freshDatabaseName()
        await root.query(`create database ${name}`)
        created.push(name)
        return mariadbUrl(port, name)
      },
    })
    afterAll(async () => {
      for (const name of created) await root.query(`drop database ${name}`)
      await root.end()
    })
  })
}

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

/** Databases that several processes may have, each of its own. */
export interface SharedDatabases {
  isSql: boolean
  /** The settings of hosts that have a new one. */
  settings(): Promise<Environment>
  /** Where the server listens that they are on. */
  port(): number
  /** The settings of a host that reaches the same database at another port. */
  through(env: Environment, port: number): Environment
  /** How long a connection has to last for something to be done, in milliseconds, on a machine that has little else to do. */
  lasting: number
}

/** Runs tests on each engine that several processes may have; on those that this machine has no server for, they are skipped. */
export function onEachSharedEngine(what: string, tests: (databases: SharedDatabases) => void): void {
  onMariadb(what, tests)
  describeWithMongo(`${what} MongoDB`, (mongo) => {
    tests({
      isSql: false,
      settings: async () => ({ MONGO_URL: mongo.database() }),
      port: () => mongo.port(),
      through: (env, port) => atPort(env, 'MONGO_URL', port),
      // A write is some ten calls, one after another.
      lasting: 150,
    })
  })
}

/** The same on one of them: for what a log does not decide, as all have one contract (`test/engines/logs`). */
export function onMariadb(what: string, tests: (databases: SharedDatabases) => void): void {
  describeWithMariadb(`${what} MariaDB`, (mariadb) => {
    tests({
      isSql: true,
      settings: async () => ({ KNEX_URL: await mariadb.database() }),
      port: () => mariadb.port(),
      through: (env, port) => atPort(env, 'KNEX_URL', port),
      lasting: 20,
    })
  })
}

/** On MariaDB by day, and on each at night: processes and commands over a log, beside which `test/engines` asks each engine. */
export const onOneSharedEngine = IS_NIGHTLY ? onEachSharedEngine : onMariadb

function atPort(env: Environment, name: 'KNEX_URL' | 'MONGO_URL', port: number): Environment {
  const url = new URL(env[name] ?? '')
  url.port = String(port)
  return { ...env, [name]: url.href }
}
