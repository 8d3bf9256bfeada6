import type { Collection, Db } from 'mongodb'

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
 * A database that tells of every call. It is not sent where the one who is told throws, and later where that one gives a
 * promise, save for what answers with a cursor.
 */
export function watchedDb(db: Db, told: Watcher): Db {
  return replacing(db, {
    collection: (...args: Parameters<Db['collection']>) => watchedCollection(db.collection(...args), told),
  })
}

function watchedCollection(collection: Collection, told: Watcher): Collection {
  const name = collection.collectionName
  const methods = [...CALLS].map((method) => {
    const call = Reflect.get(collection, method).bind(collection)
    return [
      method,
      (...args: unknown[]) => {
        const wait = told({ collection: name, method, args })
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
