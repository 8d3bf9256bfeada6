import type { Collection, Db } from 'mongodb'

/** A call to a database, before it is sent. */
export interface DbCall {
  collection: string
  method: string
  args: unknown[]
}

const CALLS = new Set([
  'bulkWrite',
  'createIndex',
  'createIndexes',
  'deleteMany',
  'find',
  'findOne',
  'findOneAndUpdate',
  'insertOne',
  'updateOne',
])

/** A database that tells of every call, which is not sent where the one who is told throws. */
export function watchedDb(db: Db, told: (call: DbCall) => void): Db {
  return replacing(db, {
    collection: (...args: Parameters<Db['collection']>) => watchedCollection(db.collection(...args), told),
  })
}

function watchedCollection(collection: Collection, told: (call: DbCall) => void): Collection {
  const name = collection.collectionName
  const methods = [...CALLS].map((method) => {
    const call = Reflect.get(collection, method).bind(collection)
    return [
      method,
      (...args: unknown[]) => {
        told({ collection: name, method, args })
        return call(...args)
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
