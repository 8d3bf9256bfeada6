import type { Collection, Db } from 'mongodb'
import { StoreUnavailableError } from '../../graph/store-unavailable-error.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lineage } from '../read/lineages.js'
import { RequestCoalescer } from '../read/request-coalescer.js'
import { outpointColumns, unique } from '../rows/columns.js'
import type { CollectionName } from './collections.js'

/** What a field holds. Txids and hashes are Buffers, as in columns; what is absent is null. */
export type Value = string | number | boolean | Buffer | null

/** What a field is compared with, beside an equal value. As in SQL, null is neither greater nor less than anything. */
export interface Comparison {
  $in?: Value[]
  $ne?: Value
  $gt?: Value
  $gte?: Value
  $lt?: Value
  $lte?: Value
}

export interface Filter {
  $or?: Filter[]
  $and?: Filter[]
  [field: string]: Value | Comparison | Filter[] | undefined
}

/** A document: its fields are what the table of collections says they are. */
// biome-ignore lint/suspicious/noExplicitAny: see above; every use turns fields into records at once.
export type Doc = any

export interface FindOptions {
  /** In the order of its keys: 1 upwards, -1 downwards. */
  sort?: Record<string, 1 | -1>
  limit?: number
  /** The fields that are wanted; all, where nothing is said. `_id` comes with all, and where it is among them. */
  fields?: string[]
}

/**
 * Runs reads. The store's reads are finds of the plainest kind, which a server of any age and make takes, and this is all
 * they ask for: a writer answers the same filters over what it is about to write. No read takes a pipeline, a join or a
 * session, and a filter has no operator that is not in {@link Comparison}.
 *
 * Whoever matches filters in memory: binary values are Buffers in filters and documents alike, and `sift` compares those
 * by identity. It has to be given both with hex in their place, which sorts as they do where they are of one length.
 *
 * What the server of the tests does as MongoDB does, and what not: `test/services/mongo.ts`. One document is best asked
 * for by its `_id`, which is quick on every server.
 */
export interface Documents {
  all(collection: CollectionName, filter: Filter, options?: FindOptions): Promise<Doc[]>
  /** The first document; undefined where there is none. */
  first(collection: CollectionName, filter: Filter, options?: FindOptions): Promise<Doc | undefined>
}

/** Reads through the driver. @throws StoreUnavailableError where the database cannot be reached. */
export function dbDocuments(db: Db): Documents {
  const find: Documents['all'] = (name, filter, { sort, limit, fields } = {}) => {
    const send = (within: { signal: AbortSignal }): Promise<Doc[]> => {
      const found = collectionIn(db, name).find(filter, within)
      if (sort !== undefined) found.sort(sort)
      if (limit !== undefined) found.limit(limit)
      if (fields !== undefined) found.project(projectionOf(fields))
      return found.toArray()
    }
    return whileAvailable(() => answered(send))
  }
  const joined = new FindCoalescer(find)
  const all: Documents['all'] = (name, filter, options) =>
    joined.all(name, filter, options) ?? find(name, filter, options)
  return {
    all,
    first: async (name, filter, options) => (await all(name, filter, { ...options, limit: 1 }))[0],
  }
}

/** A collection as all code of the store asks for it: binary values come as Buffers, whatever the host's client is set to. */
export function collectionIn(db: Db, name: CollectionName): Collection<Doc> {
  return db.collection(name, {
    readPreference: 'primary',
    promoteBuffers: true,
    promoteLongs: true,
    promoteValues: true,
  })
}

/** How many documents match, as the server counts them: by a command that is older than pipelines. */
export async function countIn(db: Db, name: CollectionName, query: Filter = {}): Promise<number> {
  const { n } = await whileAvailable(() => answered((within) => db.command({ count: name, query }, within)))
  return Number(n)
}

function projectionOf(fields: string[]): Record<string, 0 | 1> {
  return { _id: 0, ...Object.fromEntries(fields.map((field) => [field, 1])) }
}

/** A filter that matches any of these outpoints, by the fields that an index has them by. */
export function anyOutpoint(outpoints: Outpoint[]): Filter {
  return { $or: outpoints.map(outpointColumns) }
}

/** The outputs of a lineage. */
export function inLineage([lineage_txid, lineage_vout]: Lineage): Filter {
  return { lineage_txid, lineage_vout }
}

/**
 * How long a call may take, in milliseconds: who asks is told to try again after that. Less than the lease of a writer.
 *
 * The driver has no end of its own for a call whose connection is closed while it is sent: it waits for a socket to take
 * more that is gone, whatever it is told of time limits.
 */
const WITHIN = 8000

/** A call was given up as no answer came: it may have taken effect, or take it yet. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError'
}

/**
 * Makes a call to a database that ends in time.
 *
 * @param call Hands on what it is given to the driver, among its options: so that it lets go of the connection.
 * @throws UnansweredError where no answer came, and what the driver throws.
 */
export async function answered<Result>(
  call: (options: { signal: AbortSignal }) => Promise<Result>,
): Promise<Result> {
  const waiting = new AbortController()
  const { signal } = waiting
  let timer: NodeJS.Timeout | undefined
  const givenUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new UnansweredError(`the database has not answered within ${WITHIN} ms`)
      reject(error)
      waiting.abort(error)
    }, WITHIN)
  })
  try {
    return await Promise.race([call({ signal }), givenUp])
  } finally {
    clearTimeout(timer)
  }
}

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

/** How many finds go as one: few enough for answers that are pieces of bodies, and for filters that servers take apart. */
const AT_ONCE = 16

/** Who asks for more than so many at once has them found by a call of their own. */
const MANY = AT_ONCE / 2

/**
 * Fields that lead to a few documents at the most, where each is asked to be equal to something, or below it; beside
 * `_id`.
 */
const FEW: Partial<Record<CollectionName, string[][]>> = {
  graph_outputs: [['lineage_txid', 'lineage_vout', 'step']],
  graph_names: [['name'], ['txid', 'vout']],
  graph_spends: [['txid', 'vout']],
  graph_blocked: [['txid', 'vout']],
}

/** What each of the fields is to be equal to, in their order. */
type Wanted = Value[]

/**
 * Finds of the same kind that are asked for at the same time, as one of them: of documents by their keys, and by what
 * few have.
 */
export class FindCoalescer {
  private readonly kinds = new Map<string, RequestCoalescer<Wanted, Doc[]>>()

  constructor(private readonly find: Documents['all']) {}

  /** What a find gives; undefined where it is none of those that are joined. */
  all(name: CollectionName, filter: Filter, options: FindOptions = {}): Promise<Doc[]> | undefined {
    const { sort, limit, fields } = options
    if (sort !== undefined || fields === undefined) return undefined
    const branches = '$or' in filter ? (filter.$or ?? []) : [filter]
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
        atOnce: AT_ONCE,
        ask: async (questions) => {
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

/** What finds have to have in common. */
interface Kind {
  /** The fields that are asked to be equal to something, which may be another thing in each. */
  sought: string[]
  /** What is asked of others, the same in all. */
  below: Filter
  fields: string[]
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

function isValue(wanted: Filter[string]): wanted is Value {
  return Buffer.isBuffer(wanted) || typeof wanted === 'string' || typeof wanted === 'number'
}

/** Numbers and binary values of the fields that are sought stand in no text, so that nothing is taken for another. */
function keyOf(wanted: Wanted): string {
  return wanted.map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : String(value))).join(' ')
}
