import { randomUUID } from 'node:crypto'
import type { AnyBulkWriteOperation, Collection, Db } from 'mongodb'
import type { CollectionName, Doc } from './collections.js'
import { collectionIn, withTimeout } from './documents.js'
import type { DocumentChange } from './pending-documents.js'
import { type CommittedEntry, DURABLE, LostLeaseError, type WriteLease } from './write-lease.js'

/**
 * A write-ahead journal, which makes a write of many documents atomic on a server that changes one document at a time. An
 * entry consists of as many parts as it takes, and is committed when the writer state names it. It replaces and deletes whole
 * documents by key, so that applying it twice is the same as once. `docs/mongo.md` says why it is needed.
 */
interface JournalPart {
  _id: string
  entry: string

  changes: (
    | { collection: CollectionName; put: Doc }
    | { collection: CollectionName; remove: Buffer | string }
  )[]
}

/** The greatest size of a part: far below the 16 MiB of a document. */
const PART_BYTES = 8 * 1024 * 1024
/** How many changes are sent at once. */
const A_BATCH = 500

/** Referenced documents are written before those that refer to them, so that readers find no dangling reference. */
const ORDER: CollectionName[] = [
  'graph_pieces',
  'graph_transactions',
  'graph_silent_facts',
  'graph_silent_spends',
  'graph_outputs',
  'graph_nodes',
  'graph_spends',
  'graph_names',
  'graph_traits',
  'graph_admissions',
  'graph_applied',
  'graph_pending',
  'graph_held',
  'graph_blocked',
  'graph_hook_notes',
  'graph_headers',
  'graph_interactions',
  'graph_settings',
]

interface Committed {
  entry: CommittedEntry
  parts: Iterable<JournalPart> | AsyncIterable<JournalPart>
}

export class Journal {
  private readonly parts: Collection<JournalPart>

  constructor(private readonly db: Db) {
    this.parts = db.collection('graph_journal', { ...DURABLE, promoteBuffers: true })
  }

  /** Creates the index by which parts are deleted. */
  async open(): Promise<void> {
    await this.parts.createIndex({ entry: 1 })
  }

  /** Commits changes atomically. @throws LostLeaseError if the lease is lost; then nothing is committed. */
  async commit(lease: WriteLease, changes: DocumentChange[]): Promise<Committed> {
    const ordered = changes.toSorted((a, b) => ORDER.indexOf(a.collection) - ORDER.indexOf(b.collection))
    const id = randomUUID()
    const parts = [...partsOf(id, ordered)]
    for (const part of parts) {
      await lease.renew()
      await withTimeout((options) => this.parts.insertOne(part, { ...DURABLE, ...options }))
    }
    const entry = { id, parts: parts.length, turns: changes.some(({ isStored }) => isStored) }
    const { version } = lease.before
    try {
      await lease.update(
        { version, entry: null },
        { $set: { entry }, $inc: { version: 1, turns: entry.turns ? 1 : 0 } },
      )
    } catch (error) {
      // Not committed. After any other error, it may be.
      if (error instanceof LostLeaseError) await this.remove({ entry: id })
      throw error
    }
    return { entry, parts }
  }

  /** Applies a committed entry. */
  async finish(lease: WriteLease, { entry, parts }: Committed): Promise<void> {
    for await (const part of parts) await this.apply(lease, part)
    await lease.update({ 'entry.id': entry.id } as object, { $set: { entry: null } })
    await this.remove({ entry: entry.id })
  }

  /** Applies an entry that another writer committed and did not apply, and deletes one that it did not commit. */
  async recover(lease: WriteLease): Promise<void> {
    const { entry } = lease.before
    if (entry !== null) {
      await this.finish(lease, { entry, parts: this.partsOf(entry) })
      lease.before.entry = null
    }
    if (!lease.wasReleased) await this.remove({})
  }

  private async remove(parts: { entry?: string }): Promise<void> {
    await withTimeout((options) => this.parts.deleteMany(parts, { ...DURABLE, ...options }))
  }

  private async *partsOf({ id, parts }: CommittedEntry): AsyncGenerator<JournalPart> {
    for (let at = 0; at < parts; at++) {
      const part = await withTimeout((options) => this.parts.findOne({ _id: partId(id, at) }, options))
      if (part === null)
        throw new Error(`part ${at} of the committed entry ${id} is missing from the journal`)
      yield part
    }
  }

  private async apply(lease: WriteLease, { changes }: JournalPart): Promise<void> {
    for (let at = 0; at < changes.length; ) {
      const name = changes[at]?.collection
      if (name === undefined) return
      const batch: AnyBulkWriteOperation<Doc>[] = []
      for (
        let next = changes[at];
        next?.collection === name && batch.length < A_BATCH;
        next = changes[++at]
      ) {
        if ('put' in next)
          batch.push({ replaceOne: { filter: { _id: next.put._id }, replacement: next.put, upsert: true } })
        else batch.push({ deleteOne: { filter: { _id: next.remove } } })
      }
      await lease.renew()
      await withTimeout((options) => collectionIn(this.db, name).bulkWrite(batch, { ...DURABLE, ...options }))
    }
  }
}

function* partsOf(entry: string, changes: DocumentChange[]): Generator<JournalPart> {
  let at = 0
  let part: JournalPart = { _id: partId(entry, at), entry, changes: [] }
  let size = 0
  for (const { isStored: _, ...change } of changes) {
    const bytes = bsonBytes(change)
    if (part.changes.length > 0 && size + bytes > PART_BYTES) {
      yield part
      part = { _id: partId(entry, ++at), entry, changes: [] }
      size = 0
    }
    part.changes.push(change)
    size += bytes
  }
  yield part
}

/**
 * At least what a value takes as BSON, and not much more. The driver computes it exactly, but only the host knows which copy
 * of the driver it has.
 */
export function bsonBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + 5
  if (value instanceof Uint8Array) return value.length + 5
  if (typeof value !== 'object' || value === null) return 8
  const fields = Object.entries(value).map(([key, each]) => Buffer.byteLength(key) + 2 + bsonBytes(each))
  return fields.reduce((sum, bytes) => sum + bytes, 5)
}

function partId(entry: string, at: number): string {
  return `${entry} ${at}`
}
