import { createConnection } from 'mysql2/promise'
import { type Mariadb, MISSING_FOR_MARIADB, startMariadb } from '../services/mariadb.js'
import { describeWithService } from './with-service.js'

/** A MariaDB for the tests of one group. */
export interface UsedMariadb {
  server(): Mariadb
  /** Makes a database, and gives its URL. */
  database(): Promise<string>
}

/** A group of tests with a MariaDB. */
export function describeWithMariadb(name: string, tests: (mariadb: UsedMariadb) => void): void {
  const service = { name, missing: MISSING_FOR_MARIADB, start: () => startMariadb() }
  describeWithService(service, (server) => {
    let databases = 0
    tests({
      server,
      async database() {
        const made = `database_${databases++}`
        const connection = await createConnection(server().url(''))
        try {
          await connection.query(`create database ${made}`)
        } finally {
          await connection.end()
        }
        return server().url(made)
      },
    })
  })
}
