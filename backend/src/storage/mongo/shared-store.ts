import type { Db } from 'mongodb'
import { MongoGraphStore } from './graph-store.js'

const stores = new WeakMap<Db, MongoGraphStore>()

/**
 * The one store of this process over a host's database: each store keeps a copy of what is blocked, and what a lookup
 * service or the host blocks through one of several would be served from the others; and writers of one process need not
 * ask the database for their turns.
 */
export function sharedStore(db: Db): MongoGraphStore {
  let store = stores.get(db)
  if (store === undefined) {
    store = new MongoGraphStore({ db })
    stores.set(db, store)
  }
  return store
}
