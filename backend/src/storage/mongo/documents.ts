import type { Collection, Db } from 'mongodb'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lineage } from '../read/lineages.js'
import { outpointColumns } from '../rows/columns.js'
import { answered } from './answered.js'
import type { CollectionName } from './collections.js'
import { FindCoalescer } from './find-coalescer.js'
import { whileAvailable } from './unavailable.js'

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
 * What the server of the tests does as MongoDB does, and what not: `test/support/services/mongo.ts`. One document is best asked
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
