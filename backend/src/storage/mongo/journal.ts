import { randomUUID } from 'node:crypto'
import { type AnyBulkWriteOperation, BSON, type Collection, type Db } from 'mongodb'
import type { CollectionName } from './collections.js'
import { answered, collectionIn, type Doc } from './documents.js'
import type { Change } from './pending-documents.js'
import { type CommittedEntry, DURABLE, LostLeaseError, type Turn } from './write-lease.js'

/**
 * What is about to be written, before any of it is: so that what one write says, which is many documents, is there as a
 * whole or not at all on a server that changes one document at a time. An entry stands in as many documents as it takes,
 * and counts from the moment at which the state of the writers names it. Whole documents are put by their keys, or taken
 * away: to do so twice is to do it once.
 */
interface JournalPart {
  _id: string
  entry: string
  /** A document to put in, or the key of one to take out. */
  changes: (
    | { collection: CollectionName; put: Doc }
    | { collection: CollectionName; remove: Buffer | string }
  )[]
}

/** How long a part is at the most: far below the 16 MiB of a document. */
const PART_BYTES = 8 * 1024 * 1024
/** How many changes are sent at once. */
const A_BATCH = 500

/**
 * What is pointed at stands before what points at it: whoever reads while documents are only added sees what is there to
 * its end, or does not see it yet.
 */
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

  /** Makes the index by which parts are taken away. */
  async open(): Promise<void> {
    await this.parts.createIndex({ entry: 1 })
  }

  /** Commits changes, all or none of them. @throws LostLeaseError where it is not this writer's turn; then none. */
  async commit(turn: Turn, changes: Change[]): Promise<Committed> {
    const ordered = changes.toSorted((a, b) => ORDER.indexOf(a.collection) - ORDER.indexOf(b.collection))
    const id = randomUUID()
    const parts = [...partsOf(id, ordered)]
    for (const part of parts) {
      await turn.keep()
      await answered((within) => this.parts.insertOne(part, { ...DURABLE, ...within }))
    }
    const entry = { id, parts: parts.length, turns: changes.some(({ isStored }) => isStored) }
    const { version } = turn.before
    try {
      await turn.change(
        { version, entry: null },
        { $set: { entry }, $inc: { version: 1, turns: entry.turns ? 1 : 0 } },
      )
    } catch (error) {
      // Nobody else knows of it. After any other error it may be committed.
      if (error instanceof LostLeaseError) await this.remove({ entry: id })
      throw error
    }
    return { entry, parts }
  }

  /** Puts what is committed where it is read. */
  async finish(turn: Turn, { entry, parts }: Committed): Promise<void> {
    for await (const part of parts) await this.apply(turn, part)
    await turn.change({ 'entry.id': entry.id } as object, { $set: { entry: null } })
    await this.remove({ entry: entry.id })
  }

  /** Finishes what another writer has committed and not applied, and throws away what it has not committed. */
  async recover(turn: Turn): Promise<void> {
    const { entry } = turn.before
    if (entry !== null) {
      await this.finish(turn, { entry, parts: this.partsOf(entry) })
      turn.before.entry = null
    }
    if (!turn.isClean) await this.remove({})
  }

  private async remove(parts: { entry?: string }): Promise<void> {
    await answered((within) => this.parts.deleteMany(parts, { ...DURABLE, ...within }))
  }

  private async *partsOf({ id, parts }: CommittedEntry): AsyncGenerator<JournalPart> {
    for (let at = 0; at < parts; at++) {
      const part = await answered((within) => this.parts.findOne({ _id: partId(id, at) }, within))
      if (part === null) throw new Error(`part ${at} of the committed entry ${id} is not in the journal`)
      yield part
    }
  }

  private async apply(turn: Turn, { changes }: JournalPart): Promise<void> {
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
      await turn.keep()
      await answered((within) => collectionIn(this.db, name).bulkWrite(batch, { ...DURABLE, ...within }))
    }
  }
}

function* partsOf(entry: string, changes: Change[]): Generator<JournalPart> {
  let at = 0
  let part: JournalPart = { _id: partId(entry, at), entry, changes: [] }
  let size = 0
  for (const { isStored: _, ...change } of changes) {
    const bytes = BSON.calculateObjectSize(change)
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

function partId(entry: string, at: number): string {
  return `${entry} ${at}`
}
