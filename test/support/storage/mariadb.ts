import { type Connection, createConnection } from 'mysql2/promise'
import { MISSING_FOR_MARIADB, mariadbUrl } from '../services/mariadb.js'
import { freshDatabaseName, portOfShared } from '../services/shared.js'
import { describeWithService } from './with-service.js'

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
