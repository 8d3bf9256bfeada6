import { StoreUnavailableError } from '../../graph/errors.js'

/**
 * What the driver says where no server can be reached, by the names of its errors: a host may have a driver of its own,
 * whose classes are others.
 */
const AWAY = new Set([
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoServerSelectionError',
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoClientClosedError',
  'MongoServerClosedError',
  'MongoPoolClosedError',
  'MongoPoolClearedError',
  'PoolClearedOnNetworkError',
  'MongoWaitQueueTimeoutError',
  'MongoOperationTimeoutError',
  'UnansweredError',
  // There was no turn for a write, again and again.
  'LostLeaseError',
])

/** What the system says of a connection that breaks while something is sent: the driver hands that on. */
const BROKEN = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

/**
 * What servers say that are about to end, or are not the one that takes writes any more
 * (https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml, NotPrimaryError and ShutdownError).
 */
const CODES = new Set([91, 189, 10058, 10107, 11600, 11602, 13435, 13436])

/** Does something with a database. @throws StoreUnavailableError where it is away, and what the driver throws else. */
export async function whileAvailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw isAway(error) ? new StoreUnavailableError(error) : error
  }
}

function isAway(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown }
  // Of many documents at once it is an error of that call, which has a code only where a server gave one.
  if (name === 'MongoBulkWriteError' && code === undefined) return true
  return AWAY.has(String(name)) || BROKEN.has(String(code)) || CODES.has(Number(code))
}
