import type { Collection, Db } from 'mongodb'
import { answeredWithin } from '../../graph/answered-within.js'
import { StoreUnavailableError } from '../../graph/errors.js'
import { RequestCoalescer } from '../read/request-coalescer.js'
import { unique } from '../rows/columns.js'
import { type FieldValue, type Filter, type FindOptions, KEYS, type RowReader } from '../rows/rows.js'
import { byKey, type CollectionName, type Doc } from './collections.js'

/**
 * Reads through the driver: plain finds, which any server accepts, and which a write can also answer from its pending
 * changes. No read uses a pipeline, a join or a session. `test/services/mongo.ts` says how far the server of the tests behaves
 * as MongoDB.
 *
 * @throws StoreUnavailableError if the database cannot be reached.
 */
export function dbDocuments(db: Db): RowReader {
  const find: Find = (name, filter, { sort, limit, fields } = {}) => {
    const send = (options: { signal: AbortSignal }): Promise<Doc[]> => {
      const found = collectionIn(db, name).find(filter, options)
      if (sort !== undefined) found.sort(sort)
      if (limit !== undefined) found.limit(limit)
      if (fields !== undefined) found.project(projectionOf(fields))
      return found.toArray()
    }
    return whileAvailable(() => withTimeout(send))
  }
  const coalescer = new FindCoalescer(find)
  const one: Find = (name, asked, options) => {
    const filter = byKey(name, asked)
    return coalescer.all(name, filter, options) ?? find(name, filter, options)
  }
  return {
    async all(names, filter, options) {
      if (typeof names === 'string') return await one(names, filter, options)
      return (await Promise.all(names.map((name) => one(name, filter, options)))).flat()
    },
    first: async (name, filter, options) => (await one(name, filter, { ...options, limit: 1 }))[0],
    async count(name, filter, limit) {
      if (limit !== undefined) return (await one(name, filter, { limit, fields: KEYS[name] })).length
      // The `count` command needs no pipeline.
      const query = byKey(name, filter)
      const send = (options: { signal: AbortSignal }) => db.command({ count: name, query }, options)
      return Number((await whileAvailable(() => withTimeout(send))).n)
    },
  }
}

type Find = (name: CollectionName, filter: Filter, options?: FindOptions) => Promise<Doc[]>

/** A collection that returns binary values as Buffers, however the host's client is configured. */
export function collectionIn(db: Db, name: CollectionName): Collection<Doc> {
  return db.collection(name, {
    readPreference: 'primary',
    promoteBuffers: true,
    promoteLongs: true,
    promoteValues: true,
  })
}

function projectionOf(fields: readonly string[]): Record<string, 0 | 1> {
  return { _id: 0, ...Object.fromEntries(fields.map((field) => [field, 1])) }
}

/**
 * How long a call may take, in milliseconds. Less than the write lease.
 *
 * The driver's own timeouts do not end a call whose connection is closed while it is being sent: it waits forever for the
 * socket to drain.
 */
const TIMEOUT = 8000

/** A call was not answered in time. It may have taken effect, or may yet do so. */
export class DatabaseTimeoutError extends Error {
  override readonly name = 'DatabaseTimeoutError'
}

/**
 * Calls the database with a timeout.
 *
 * @param call Passes the signal on to the driver, so that it releases the connection.
 * @throws DatabaseTimeoutError if there was no answer, and what the driver throws.
 */
export async function withTimeout<Result>(
  call: (options: { signal: AbortSignal }) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const { signal } = controller
  return await answeredWithin(TIMEOUT, () => call({ signal }), {
    error: () => new DatabaseTimeoutError(`the database has not answered within ${TIMEOUT} ms`),
    giveUp: (error) => controller.abort(error),
  })
}

/** Errors of the driver if no server can be reached, by name: a host may have its own copy of the driver, with other classes. */
const UNAVAILABLE = new Set([
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
  'DatabaseTimeoutError',
  // A write lost its lease repeatedly.
  'LostLeaseError',
])

/** Errors of the system that the driver passes on if a connection breaks while something is sent. */
const BROKEN = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

/**
 * Errors of servers that are shutting down or are no longer the primary
 * (https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml, NotPrimaryError and ShutdownError).
 */
const CODES = new Set([91, 189, 10058, 10107, 11600, 11602, 13435, 13436])

/** @throws StoreUnavailableError if the database cannot be reached, and anything else that the work throws. */
export async function whileAvailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw isUnavailable(error) ? new StoreUnavailableError(error) : error
  }
}

function isUnavailable(error: unknown): boolean {
  const { name, code } = error as { name?: unknown; code?: unknown }
  // A bulk write wraps the error, and has a code only if it comes from a server.
  if (name === 'MongoBulkWriteError' && code === undefined) return true
  return UNAVAILABLE.has(String(name)) || BROKEN.has(String(code)) || CODES.has(Number(code))
}

/** How many finds are combined: few enough for answers that are blob chunks, and for servers that split up filters. */
const BATCH_SIZE = 16

/** A find for more alternatives than this is sent by itself. */
const MANY = BATCH_SIZE / 2

/** Beside `_id`, fields that match few documents if each is compared with a value, or has an upper bound. */
const FEW: Partial<Record<CollectionName, string[][]>> = {
  graph_outputs: [['lineage_txid', 'lineage_vout', 'step']],
  graph_names: [['name'], ['txid', 'vout']],
  graph_spends: [['txid', 'vout']],
  graph_blocked: [['txid', 'vout']],
}

/** The values of the fields, in their order. */
type Wanted = FieldValue[]

/** Combines concurrent finds of the same kind: of documents by key, or by fields that match few. */
class FindCoalescer {
  private readonly kinds = new Map<string, RequestCoalescer<Wanted, Doc[]>>()

  constructor(private readonly find: Find) {}

  /** Runs a find; undefined if it is not of a kind that is combined. */
  all(name: CollectionName, filter: Filter, options: FindOptions = {}): Promise<Doc[]> | undefined {
    const { sort, limit, fields } = options
    if (sort !== undefined || fields === undefined) return undefined
    const branches = filter.$or !== undefined && Object.keys(filter).length === 1 ? filter.$or : [filter]
    const [first] = branches
    if (first === undefined || branches.length > MANY) return undefined
    const asked = Object.keys(first)
    const isAlike = branches.every((branch) => Object.keys(branch).join() === asked.join())
    const isKnown = isAlike && [['_id'], ...(FEW[name] ?? [])].some((few) => few.join() === asked.join())
    if (!isKnown) return undefined
    const below = branches.length > 1 ? [] : Object.entries(first).filter(([, wanted]) => isBelow(wanted))
    const sought = asked.filter((field) => !below.some(([other]) => other === field))
    const wanted = branches.map((branch) => sought.map((field) => branch[field]))
    if (!wanted.every((values): values is Wanted => values.every(isValue))) return undefined
    const kind = this.kind(name, { sought, below: Object.fromEntries(below), fields })
    const found = Promise.all(unique(wanted, keyOf).map((values) => kind.ask(values)))
    return found.then((docs) => docs.flat().slice(0, limit))
  }

  private kind(name: CollectionName, { sought, below, fields }: Kind): RequestCoalescer<Wanted, Doc[]> {
    const key = JSON.stringify([name, sought, below, fields])
    let kind = this.kinds.get(key)
    if (kind === undefined) {
      const all = [...new Set([...sought, ...fields])]
      kind = new RequestCoalescer({
        batchSize: BATCH_SIZE,
        query: async (questions) => {
          const found = new Map(questions.map((wanted): [string, Doc[]] => [keyOf(wanted), []]))
          const docs = await this.find(name, filterOf({ sought, below }, questions), { fields: all })
          for (const doc of docs) found.get(keyOf(sought.map((field) => doc[field])))?.push(doc)
          return questions.map((wanted) => found.get(keyOf(wanted)) ?? [])
        },
      })
      this.kinds.set(key, kind)
    }
    return kind
  }
}

/** What combined finds have in common. */
interface Kind {
  /** The fields that are compared with a value, which differs between the finds. */
  sought: string[]
  /** The conditions on other fields, the same for all. */
  below: Filter
  fields: readonly string[]
}

function filterOf({ sought, below }: Omit<Kind, 'fields'>, questions: Wanted[]): Filter {
  const each = unique(questions, keyOf)
  const [field = '_id', ...others] = sought
  if (others.length === 0 && each.length > 1) return { [field]: { $in: each.flat() }, ...below }
  const filters = each.map((wanted) => ({
    ...Object.fromEntries(sought.map((name, at) => [name, wanted[at]])),
    ...below,
  }))
  const [only, more] = filters
  return only !== undefined && more === undefined ? only : { $or: filters }
}

function isBelow(wanted: Filter[string]): boolean {
  return typeof wanted === 'object' && wanted !== null && Object.keys(wanted).join() === '$lt'
}

function isValue(wanted: Filter[string]): wanted is FieldValue {
  return Buffer.isBuffer(wanted) || typeof wanted === 'string' || typeof wanted === 'number'
}

/** Unambiguous within a kind: each field has values of one type. */
function keyOf(wanted: Wanted): string {
  return wanted.map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : String(value))).join(' ')
}
