import type { Knex } from 'knex'
import { isMysql } from './dialect.js'
import { knexReader } from './reader.js'

export interface NamedLock {
  /** What it is for, in a word. */
  name: string
  /** For how long another process may have it, in seconds. */
  patience: number
}

/**
 * Does something that one process at a time may do on a database: on MySQL under a lock of its own, which ends with the
 * connection that has it, so that a process that ends half-way leaves none. SQLite has one process.
 *
 * @throws Error where another process has the lock for too long, and what `work` throws.
 */
export async function holdingLock<Result>(
  knex: Knex,
  { name, patience }: NamedLock,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!isMysql(knex)) return await work()
  // A name is the server's, not the database's.
  const lock = `concat('minetree ${name} ', sha1(database()))`
  return await knex.transaction(async (trx) => {
    const [row] = await knexReader(trx).all(`select get_lock(${lock}, ?) as locked`, [patience])
    if (Number(row?.locked) !== 1) throw new Error(`another process has the lock for ${name}`)
    try {
      return await work()
    } finally {
      await trx.raw(`do release_lock(${lock})`)
    }
  })
}
