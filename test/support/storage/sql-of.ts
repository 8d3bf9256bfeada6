import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import type { Node } from '../../../src/server/node.js'

/** The store of a node on SQL, with its connections. */
export function sqlOf({ graph: { store } }: Pick<Node, 'graph'>): SqlGraphStore {
  if (!(store instanceof SqlGraphStore)) throw new TypeError('the node is not on SQL')
  return store
}
