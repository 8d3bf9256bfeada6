import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { startMariadb } from '../test/support/services/mariadb.js'
import { startMongo } from '../test/support/services/mongo.js'

/** A separate database, on a server that ends with the bench. */
export interface Database {
  /** A description. */
  about: string
  url: string
}

/**
 * Runs with a MariaDB.
 *
 * @param options.isDurable Whether commits are synced to the disk.
 */
export async function* withMariadb<Result>(
  options: { isDurable?: boolean },
  run: (database: Database) => AsyncGenerator<Result>,
): AsyncGenerator<Result> {
  const server = await startMariadb(options)
  try {
    const connection = await createConnection(server.url(''))
    await connection.query('create database bench')
    const [[found]] = await connection.query<RowDataPacket[]>('select version() as version')
    await connection.end()
    yield* run({ about: `version ${found?.version}`, url: server.url('bench') })
  } finally {
    await server.stop()
  }
}

/** Runs with the stand-in for MongoDB. */
export async function* withMongo<Result>(
  run: (database: Database) => AsyncGenerator<Result>,
): AsyncGenerator<Result> {
  const server = await startMongo({ isCompiled: true })
  try {
    yield* run({ about: STAND_IN, url: server.url('bench') })
  } finally {
    await server.stop()
  }
}

/** See `test/support/services/mongo.ts`. */
const STAND_IN =
  'no mongod: mongo-java-server stands in for it, in a JVM and in memory alone, with no index but of keys'
