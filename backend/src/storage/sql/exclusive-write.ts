import type { Knex } from 'knex'
import pRetry from 'p-retry'
import { driverCode, isMysql, knexReader, type SqlReader, whileAvailable } from './database.js'

/** Counts a write, and so locks the row until the write ends: other writers wait for it. */
const NEXT_WRITE = `insert into graph_settings (name, value) values ('writes', '1')
  on duplicate key update value = cast(value as unsigned) + 1`

/** How many writes there were on a database that several processes share; 0 if only one has it. */
export async function writeCountOf(reader: SqlReader): Promise<number> {
  const row = await reader.first("select value from graph_settings where name = 'writes'", [])
  return Number(row?.value ?? 0)
}

/** MySQL and MariaDB roll back a transaction with these errors, after which it can be retried. */
const MAY_TRY_AGAIN = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT'])

const TRIES = { retries: 5, minTimeout: 20, maxTimeout: 500, randomize: true }

/**
 * Runs a write in a transaction, with no other writer meanwhile, so that nothing it reads changes before it commits. SQLite
 * has one writer. On MySQL, where other processes have connections of their own, each write first counts itself in a row:
 * that locks the row to the end.
 *
 * @throws what `write` throws, and what the driver throws; then nothing is written. StoreUnavailableError if the database
 * cannot be reached; if that was during the commit, everything may be written, and the write can be repeated.
 */
export async function exclusiveWrite<Result>(
  knex: Knex,
  write: (trx: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  if (!isMysql(knex)) return await knex.transaction(write)
  const counted = () =>
    whileAvailable(() =>
      knex.transaction(async (trx) => {
        await trx.raw(NEXT_WRITE)
        return await write(trx)
      }),
    )
  return await pRetry(counted, { ...TRIES, shouldRetry: ({ error }) => mayTryAgain(error) })
}

function mayTryAgain({ cause }: Error): boolean {
  return MAY_TRY_AGAIN.has(driverCode(cause) ?? '')
}

interface NamedLock {
  /** Its purpose, in a word. */
  name: string
  /** How long to wait for another process that has it, in seconds. */
  patience: number
}

/**
 * Runs work that only one process at a time may do: on MySQL under a named lock, which ends with its connection, so that a
 * process that dies leaves none. SQLite has one process.
 *
 * @throws Error if another process keeps the lock for too long, and what `work` throws.
 */
export async function holdingLock<Result>(
  knex: Knex,
  { name, patience }: NamedLock,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!isMysql(knex)) return await work()
  // Names of locks are global to the server.
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
