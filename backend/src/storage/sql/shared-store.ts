import type { Knex } from 'knex'
import { SqlGraphStore } from './graph-store.js'

const stores = new WeakMap<Knex, SqlGraphStore>()

/**
 * The one store of this process over a host's connections: each store keeps a copy of what is blocked, and what a lookup
 * service or the host blocks through one of several would be served from the others.
 */
export function sharedStore(knex: Knex): SqlGraphStore {
  let store = stores.get(knex)
  if (store === undefined) {
    store = new SqlGraphStore({ writer: knex })
    stores.set(knex, store)
  }
  return store
}
