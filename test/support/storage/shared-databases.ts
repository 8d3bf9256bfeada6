import type { Environment } from '../server/test-server.js'
import { describeWithMariadb } from './mariadb.js'
import { describeWithMongo } from './mongo.js'

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
  describeWithMariadb(`${what} MariaDB`, (mariadb) => {
    tests({
      isSql: true,
      settings: async () => ({ KNEX_URL: await mariadb.database() }),
      port: () => mariadb.port(),
      through: (env, port) => atPort(env, 'KNEX_URL', port),
      lasting: 20,
    })
  })
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

function atPort(env: Environment, name: 'KNEX_URL' | 'MONGO_URL', port: number): Environment {
  const url = new URL(env[name] ?? '')
  url.port = String(port)
  return { ...env, [name]: url.href }
}
