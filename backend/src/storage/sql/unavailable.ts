import { StoreUnavailableError } from '../../graph/errors.js'

/** What the drivers say where there is no connection, or none left, and where a transaction found no turn. */
const CODES = new Set([
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ER_CON_COUNT_ERROR',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_SERVER_SHUTDOWN',
  'ER_CONNECTION_KILLED',
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
])

/** What errors of drivers have; they may be of another realm, and so no `Error` of this one. */
interface DriverError {
  name?: unknown
  code?: unknown
  fatal?: unknown
}

/** What a driver calls what went wrong, as `ER_LOCK_DEADLOCK`; undefined for what is no error of a driver. */
export function driverCode(error: unknown): string | undefined {
  const { code } = (error ?? {}) as DriverError
  return code === undefined ? undefined : String(code)
}

function isAway(error: unknown): boolean {
  const { name, fatal } = (error ?? {}) as DriverError
  // `fatal` is what mysql2 says of a connection that is not usable any more; the name, knex of a pool that has none.
  return fatal === true || name === 'KnexTimeoutError' || CODES.has(driverCode(error) ?? '')
}

/** Does something with a database. @throws StoreUnavailableError where it is away, and what the driver throws else. */
export async function whileAvailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw isAway(error) ? new StoreUnavailableError(error) : error
  }
}
