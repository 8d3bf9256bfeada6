import type { Collection, Db } from 'mongodb'
import { COLLECTIONS } from '../../../backend/src/storage/mongo/collections.js'
import { withCanonicalLineages } from './canonical-lineages.js'
import { withoutLife, withoutOrder } from './insertion-order.js'

/** The documents of every collection of the admitted graph, as they are. */
export async function rawDocuments(db: Db): Promise<Record<string, object[]>> {
  const documents: Record<string, object[]> = {}
  for (const name of Object.keys(COLLECTIONS))
    documents[name] = await db.collection(name, { promoteBuffers: true }).find().toArray()
  return documents
}

/**
 * The rows of tables, or the documents of collections, as text in an order of its own, so that the one may be held against
 * the other.
 *
 * @param leftOut Fields that are not compared.
 */
export function asText(rows: Record<string, object[]>, leftOut: string[] = []): Record<string, string[]> {
  const textOf = (row: object, without: ReadonlySet<string>): string =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(row)
          .filter(([field]) => !without.has(field))
          .sort(([one], [other]) => (one < other ? -1 : 1))
          .map(([field, value]) => [field, plain(withoutOrder(field, value))]),
      ),
    )
  return Object.fromEntries(
    Object.entries(rows).map(([name, all]) => {
      const comparable = name === 'graph_outputs' ? withCanonicalLineages(all) : withoutLife(name, all)
      // Elsewhere, `arrival` is an order; in the queue of ancestors, a time.
      const times = name === 'graph_ancestors' ? ['arrival'] : []
      const without = new Set(['_id', ...times, ...leftOut])
      return [name, comparable.map((row) => textOf(row, without)).sort()]
    }),
  )
}

/** SQLite has numbers for what is true or not, and other bytes than MongoDB. */
function plain(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  // Not by `instanceof`: each test file has globals of its own.
  const isBytes = Buffer.isBuffer(value) || Object.prototype.toString.call(value) === '[object ArrayBuffer]'
  return isBytes ? Buffer.from(value as ArrayBuffer).toString('hex') : value
}

/** A call to a database, before it is sent. */
export interface DbCall {
  collection: string
  method: string
  args: unknown[]
}

type Watcher = (call: DbCall) => void | Promise<void>

const CALLS = new Set([
  'bulkWrite',
  'createIndex',
  'createIndexes',
  'deleteMany',
  'find',
  'findOne',
  'findOneAndUpdate',
  'insertOne',
  'updateMany',
  'updateOne',
])

/**
 * A database that reports every call to a watcher. The call is not sent where the watcher throws, and is delayed until its
 * promise resolves where it returns one, except for calls that return a cursor.
 */
export function watchedDb(db: Db, watcher: Watcher): Db {
  return replacing(db, {
    collection: (...args: Parameters<Db['collection']>) => watchedCollection(db.collection(...args), watcher),
  })
}

function watchedCollection(collection: Collection, watcher: Watcher): Collection {
  const name = collection.collectionName
  const methods = [...CALLS].map((method) => {
    const call = Reflect.get(collection, method).bind(collection)
    return [
      method,
      (...args: unknown[]) => {
        const wait = watcher({ collection: name, method, args })
        return wait instanceof Promise ? wait.then(() => call(...args)) : call(...args)
      },
    ]
  })
  return replacing(collection, Object.fromEntries(methods))
}

/** An object with some of its methods replaced. */
function replacing<Original extends object>(original: Original, methods: Record<string, unknown>): Original {
  return new Proxy(original, {
    get(target, key) {
      if (typeof key === 'string' && key in methods) return methods[key]
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
