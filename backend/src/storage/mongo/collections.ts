import type { Db } from 'mongodb'
import { utf8 } from '../../protocol/bytes.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, type Lineage } from '../rows/columns.js'

/**
 * The admitted graph on MongoDB: a collection for each SQL table (`docs/schema.md`), with the same names of fields. The key of
 * a table becomes one value, `_id`, made of the same columns in the same order; it starts with a txid, a hash or a name, so
 * that documents spread over a sharded cluster.
 */

/** A document with the fields of its table. */
// biome-ignore lint/suspicious/noExplicitAny: see above; every use converts fields to records immediately.
export type Doc = any

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

export const COLLECTIONS = {
  graph_transactions: {
    nullable: ['merkle_path', 'height', 'merkle_root', 'mined'],
    idOf: ({ txid }) => txid,
    indexes: [
      ['height', 'merkle_root'],
      ['arrival', 'txid'],
    ],
  },
  graph_pieces: {
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
    ],
    idOf: outputId,
    indexes: [
      ['txid', 'vout'],
      ['previous_txid', 'previous_vout'],
      ['content_sha256'],
      [...LINEAGE, 'step'],
      [...LINEAGE, 'content_step'],
      [...LINEAGE, 'parent_step'],
      [...LINEAGE, 'map_step'],
    ],
  },
  graph_traits: {
    idOf: ({ trait, lineage_txid, lineage_vout }) => attributeId(trait, [lineage_txid, lineage_vout]),
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
    indexes: [['name'], ['txid', 'vout']],
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
    idOf: ({ txid }) => txid,
    indexes: [['proven', 'arrival', 'txid']],
  },
  graph_backlog: {
    idOf: ({ kind, txid, vout }) => Buffer.concat([txid, place(vout), utf8(kind)]),
    indexes: [['kind']],
  },
  graph_held: {
    idOf: ({ txid }) => txid,
    indexes: [['lock_height', 'lock_time', 'txid']],
  },
  graph_hook_notes: {
    nullable: ['topic', 'spender', 'beef'],
    idOf: ({ subject }) => subject,
    indexes: [['service', 'subject'], ['beef']],
  },
  graph_interactions: {
    idOf: ({ host, topic }) => `${host} ${topic}`,
    indexes: [],
  },
  graph_settings: {
    idOf: ({ name }) => name,
    indexes: [],
  },
} as const satisfies Record<string, CollectionPlan>

export type CollectionName = keyof typeof COLLECTIONS

/** The `_id` of documents that exist once per output: in `graph_outputs` and `graph_nodes`. */
export function outpointId({ txid, vout }: Outpoint): Buffer {
  return Buffer.concat([hashColumn(txid), place(vout)])
}

/** The `_id` of a chunk. */
export function chunkId(owner: Buffer, position: number): Buffer {
  return Buffer.concat([owner, place(position)])
}

/** The owner of a chunk, by its `_id`. */
export function chunkOwner(id: Buffer): Buffer {
  return id.subarray(0, -PLACE_BYTES)
}

/** The `_id` of an attribute of a lineage. */
export function attributeId(hash: Buffer, [txid, vout]: Lineage): Buffer {
  return Buffer.concat([hash, txid, place(vout)])
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
