import type { Db } from 'mongodb'
import { utf8 } from '../../protocol/bytes.js'
import { hexOf } from '../rows/columns.js'
import { type FieldValue, type Filter, isComparison, KEYS, type Row, type Table } from '../rows/rows.js'

/**
 * The admitted graph on MongoDB: a collection for each SQL table (`docs/schema.md`), with the same names of fields. The key of
 * a table becomes one value, `_id`, made of the same columns in the same order; it starts with a txid, a hash or a name, so
 * that documents spread over a sharded cluster.
 */

/** A document with the fields of its table. */
export type Doc = Row

/** The fields of an ascending index, in order; servers read it in both directions. */
type Index = string[]

interface CollectionPlan {
  /** The fields that may be null. */
  nullable?: string[]
  /** The `_id` of a document. */
  idOf(doc: Doc): Buffer | string
  /** Beside that of `_id`. */
  indexes: Index[]
}

/** Numbers in keys, an output index or the position of a chunk, take this many bytes. */
const PLACE_BYTES = 4
const LAST_PLACE = 2 ** 32 - 1

const LINEAGE = ['lineage_txid', 'lineage_vout']
const RECENCY = ['recency', 'txid', 'vout']

export const COLLECTIONS = {
  graph_transactions: {
    nullable: ['merkle_path', 'height', 'merkle_root', 'mined'],
    idOf: ({ txid }) => txid,
    indexes: [
      ['height', 'merkle_root', 'txid'],
      ['arrival', 'txid'],
    ],
  },
  graph_pieces: {
    nullable: ['checksum'],
    idOf: ({ owner, position }) => chunkId(owner, position),
    indexes: [],
  },
  graph_spends: {
    nullable: ['satoshis'],
    idOf: spendId,
    indexes: [['txid', 'vout'], ['spender']],
  },
  graph_silent_spends: {
    nullable: ['satoshis'],
    idOf: spendId,
    indexes: [['txid', 'vout'], ['spender']],
  },
  graph_silent_facts: {
    nullable: ['content_sha256'],
    idOf: ({ txid, vout, kind }) => Buffer.concat([txid, place(vout), utf8(kind)]),
    indexes: [['txid', 'vout', 'kind'], ['content_sha256']],
  },
  graph_outputs: {
    nullable: [
      'content_sha256',
      'content_type',
      'content_length',
      'previous_txid',
      'previous_vout',
      'content_step',
      'owner',
      'parent_txid',
      'parent_vout',
      'parent_step',
      'map_length',
      'map_step',
      'merged_length',
      'recency',
    ],
    idOf: outputId,
    indexes: [
      ['txid', 'vout'],
      ['previous_txid', 'previous_vout'],
      ['parent_txid', 'parent_vout'],
      ['content_sha256'],
      [...LINEAGE, 'step'],
      [...LINEAGE, 'content_step'],
      [...LINEAGE, 'parent_step'],
      [...LINEAGE, 'map_step'],
      RECENCY,
    ],
  },
  graph_traits: {
    idOf: ({ trait, lineage_txid, lineage_vout }) =>
      Buffer.concat([trait, lineage_txid, place(lineage_vout)]),
    indexes: [
      ['trait', ...LINEAGE],
      [...LINEAGE, 'kind'],
    ],
  },
  graph_nodes: {
    idOf: outputId,
    indexes: [['txid', 'vout'], ['domain']],
  },
  graph_names: {
    idOf: ({ name, txid, vout }) => `${name} ${hexOf(txid)}_${vout}`,
    indexes: [['name'], ['txid', 'vout'], RECENCY],
  },
  graph_admissions: {
    idOf: ({ txid, vout, topic }) => Buffer.concat([txid, place(vout), utf8(topic)]),
    indexes: [
      ['txid', 'vout', 'topic'],
      ['topic', 'score', 'txid', 'vout'],
    ],
  },
  graph_applied: {
    idOf: ({ txid, topic }) => Buffer.concat([txid, utf8(topic)]),
    indexes: [['txid', 'topic']],
  },
  graph_blocked: {
    nullable: ['txid', 'vout'],
    idOf: ({ kind, value }) => `${kind} ${value}`,
    indexes: [
      ['kind', 'value'],
      ['txid', 'vout'],
    ],
  },
  graph_pending: {
    nullable: ['client'],
    idOf: ({ txid }) => txid,
    indexes: [['waiting', 'proven', 'arrival', 'txid']],
  },
  graph_sightings: {
    idOf: ({ txid }) => txid,
    indexes: [],
  },
  graph_backlog: {
    idOf: ({ kind, txid, vout }) => Buffer.concat([txid, place(vout), utf8(kind)]),
    indexes: [['kind']],
  },
  graph_held: {
    idOf: ({ txid }) => txid,
    indexes: [['lock_height', 'lock_time', 'txid']],
  },
  graph_ancestors: {
    idOf: outputId,
    indexes: [['hole', 'due', 'arrival'], ['txid']],
  },
  graph_hook_notes: {
    nullable: ['topic', 'spender', 'beef'],
    idOf: ({ subject }) => subject,
    indexes: [['service', 'subject'], ['beef']],
  },
  graph_headers: {
    idOf: ({ position }) => place(position),
    indexes: [['position']],
  },
  graph_interactions: {
    idOf: ({ host, topic }) => `${host} ${topic}`,
    indexes: [],
  },
  graph_settings: {
    idOf: ({ name }) => name,
    indexes: [],
  },
} as const satisfies Record<Table, CollectionPlan>

export type CollectionName = Table

export function chunkId(owner: Buffer, position: number): Buffer {
  return Buffer.concat([owner, place(position)])
}

/** The owner of a chunk, by its `_id`. */
export function chunkOwner(id: Buffer): Buffer {
  return id.subarray(0, -PLACE_BYTES)
}

/** The chunks of an owner: they sort by `_id`. */
export function chunksOf(owner: Buffer): { _id: { $gte: Buffer; $lte: Buffer } } {
  return { _id: { $gte: chunkId(owner, 0), $lte: chunkId(owner, LAST_PLACE) } }
}

function outputId({ txid, vout }: Doc): Buffer {
  return Buffer.concat([txid, place(vout)])
}

function spendId({ txid, vout, spender }: Doc): Buffer {
  return Buffer.concat([txid, place(vout), spender])
}

function place(count: number): Buffer {
  const bytes = Buffer.alloc(PLACE_BYTES)
  bytes.writeUInt32BE(count)
  return bytes
}

/** A filter by the fields of the key as one by `_id`, which finds a document fast on every server. */
export function byKey(name: CollectionName, filter: Filter): Filter {
  const key: readonly string[] = KEYS[name]
  if (filter.$or !== undefined) {
    const { $or, ...others } = filter
    const fields = Object.entries(others)
    const own = Object.fromEntries(fields.filter(([field]) => key.includes(field)))
    const branches = $or.map((branch) => byKey(name, { ...own, ...branch }))
    if (!branches.every((branch) => Object.keys(branch).join() === '_id')) return filter
    const ids = branches.flatMap(({ _id }) => equalValues(_id) ?? [])
    return { _id: { $in: ids }, ...Object.fromEntries(fields.filter(([field]) => !key.includes(field))) }
  }
  if (name === 'graph_pieces' && Buffer.isBuffer(filter.owner) && filter.position === undefined)
    return chunksOf(filter.owner)
  let docs: Doc[] = [{}]
  for (const field of key) {
    const values = equalValues(filter[field])
    if (values === undefined) return filter
    docs = docs.flatMap((doc) => values.map((value) => ({ ...doc, [field]: value })))
  }
  const ids: FieldValue[] = docs.map((doc) => COLLECTIONS[name].idOf(doc))
  const [only = null] = ids
  const others = Object.entries(filter).filter(([field]) => !key.includes(field))
  return { _id: ids.length === 1 ? only : { $in: ids }, ...Object.fromEntries(others) }
}

/** The values that a field may equal; undefined if the condition is not an equality. */
export function equalValues(wanted: Filter[string]): FieldValue[] | undefined {
  if (!isComparison(wanted)) return Array.isArray(wanted) || wanted === undefined ? undefined : [wanted]
  return wanted.$in
}

/**
 * Adds the key to a document.
 *
 * @throws TypeError if a field is null that may not be, as SQL tables do.
 */
export function withId(collection: CollectionName, doc: Doc): Doc {
  const { idOf, nullable = [] }: CollectionPlan = COLLECTIONS[collection]
  for (const [field, value] of Object.entries(doc))
    if ((value === null || value === undefined) && !nullable.includes(field))
      throw new TypeError(`${field} of a document of ${collection} is null`)
  return { _id: idOf(doc), ...doc }
}

/** Creates missing collections and indexes. */
export async function openCollections(db: Db): Promise<void> {
  for (const [name, { indexes }] of Object.entries(COLLECTIONS)) {
    const keys = indexes.map((fields) => ({
      key: Object.fromEntries(fields.map((field) => [field, 1 as const])),
    }))
    // No timeout: indexing existing documents may take long.
    if (keys.length > 0) await db.collection(name).createIndexes(keys)
  }
}
