import type { Knex } from 'knex'
import pRetry from 'p-retry'
import { driverCode, isMysql, knexReader, type SqlReader, whileAvailable } from './database.js'

/** Counts the writes. Whoever counts has the row until the end of the write, and everybody else waits for it. */
const NEXT_WRITE = `insert into graph_settings (name, value) values ('writes', '1')
  on duplicate key update value = cast(value as unsigned) + 1`

/** How many writes there were on a database that several processes have; 0 where only one has it. */
export async function writesOf(reader: SqlReader): Promise<number> {
  const row = await reader.first("select value from graph_settings where name = 'writes'", [])
  return Number(row?.value ?? 0)
}

/** What MySQL and MariaDB undo a transaction with that may be tried again: a deadlock, a lock that was waited for too long. */
const MAY_TRY_AGAIN = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT'])

const TRIES = { retries: 5, minTimeout: 20, maxTimeout: 500, randomize: true }

/**
 * Writes all of something or none of it, with nobody else writing meanwhile: what is read on the way is what the write is
 * decided on. SQLite has one writer. On MySQL, where processes have connections of their own, each write first counts
 * itself in a row, before it reads anything: that locks the row until the end, so that writers take turns.
 *
 * @throws what `write` throws, and what the driver throws; then nothing is written. StoreUnavailableError where the
 * database is away: where that was at the very end, all may be written, and may be told again.
 */
export async function exclusiveWrite<Result>(
  knex: Knex,
  write: (trx: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  if (!isMysql(knex)) return await knex.transaction(write)
  const inTurn = () =>
    whileAvailable(() =>
      knex.transaction(async (trx) => {
        await trx.raw(NEXT_WRITE)
        return await write(trx)
      }),
    )
  return await pRetry(inTurn, { ...TRIES, shouldRetry: ({ error }) => mayTryAgain(error) })
}

function mayTryAgain({ cause }: Error): boolean {
  return MAY_TRY_AGAIN.has(driverCode(cause) ?? '')
}

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
