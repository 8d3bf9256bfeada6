import { createConnection } from 'mysql2/promise'
import { type Mariadb, MISSING_FOR_MARIADB, startMariadb } from '../services/mariadb.js'

/** A MariaDB for the tests of one group. */
export interface UsedMariadb {
  server(): Mariadb
  /** Makes a database, and gives its URL. */
  database(): Promise<string>
}

/** A group of tests with a MariaDB; where the machine has none they are skipped, and their name says so. */
export function describeWithMariadb(name: string, tests: (mariadb: UsedMariadb) => void): void {
  let started: Mariadb | undefined
  let databases = 0
  const server = (): Mariadb => {
    if (started === undefined) throw new Error('MariaDB was not started')
    return started
  }
  const mariadb: UsedMariadb = {
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
  }
  if (MISSING_FOR_MARIADB.length > 0) {
    describe.skip(`${name} (there is no ${MISSING_FOR_MARIADB.join(', no ')} here)`, () => tests(mariadb))
    return
  }
  describe(name, () => {
    beforeAll(async () => {
      started = await startMariadb()
    })
    tests(mariadb)
    // After whatever the tests have on it.
    afterAll(async () => {
      await started?.stop()
    })
  })
}
