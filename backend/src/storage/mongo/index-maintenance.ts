import type { Db } from 'mongodb'
import type {
  ComparedPart,
  IndexComparison,
  IndexRebuild,
  LoggedTransaction,
  RebuildCheckpoint,
} from '../../graph/index-maintenance.js'
import {
  COMPARED_PART,
  COMPARED_SIDES,
  type ComparedSide,
  DERIVED,
  formatCheckpoint,
  loggedAfter,
  parseCheckpoint,
  parsePosition,
  REBUILD_CHECKPOINT,
  REBUILD_PAGE,
  type TransactionLogRows,
} from '../rebuild/index-maintenance.js'
import { hashColumn, hexOf, inParts, outpointOf, unique } from '../rows/columns.js'
import { type CollectionName, chunkOwner, type Doc } from './collections.js'
import { heldChunks } from './content.js'
import {
  collectionIn,
  countIn,
  type Documents,
  dbDocuments,
  type Filter,
  whileAvailable,
  withTimeout,
} from './documents.js'
import { transactionRecord } from './transactions.js'
import { DURABLE, stateIn, type WriteLease, WriteLeases } from './write-lease.js'
import type { MongoWriter } from './writer.js'

/** Compares the index of a database with the admitted set, and empties it for a rebuild. */
export class MongoIndexMaintenance implements IndexComparison, IndexRebuild {
  private readonly db: Db
  private readonly writer: MongoWriter
  private readonly documents: Documents
  /** Not the writers' lease: a rebuild is many writes, with those of others in between. */
  private readonly leases: WriteLeases
  /** Held while this process does the work. */
  private lease: WriteLease | undefined

  /** @param options.lease How long a lease lasts without a heartbeat, in milliseconds. */
  constructor({ db, writer, lease }: { db: Db; writer: MongoWriter; lease?: number }) {
    this.db = db
    this.writer = writer
    this.documents = dbDocuments(db)
    this.leases = new WriteLeases({ state: stateIn(db), id: 'upkeep', ...(lease !== undefined && { lease }) })
  }

  /**
   * Holds a lease for as long as the work takes; each of its steps renews it.
   *
   * @throws LeaseTakenError if another process is doing it.
   */
  async alone(work: () => Promise<void>): Promise<void> {
    const holding = (lease: WriteLease) =>
      lease.renewDuring(async () => {
        this.lease = lease
        try {
          await work()
        } finally {
          this.lease = undefined
        }
      })
    await whileAvailable(() => this.leases.hold(holding, { patience: this.leases.duration }))
  }

  /** As a write, so that nothing changes between the reads. */
  async compare(after: string | undefined): Promise<ComparedPart> {
    return await this.writer.write((pending) => comparePart(pending, after))
  }

  async unadmit(txid: string): Promise<void> {
    await this.lease?.renew()
    await this.writer.write(async (pending) => {
      for (const name of ['graph_admissions', 'graph_applied'] as const)
        await pending.delete(name, { txid: hashColumn(txid) })
    })
  }

  async rebuild(): Promise<RebuildCheckpoint | undefined> {
    const setting = await this.documents.first('graph_settings', { _id: REBUILD_CHECKPOINT })
    return setting && parseCheckpoint(setting.value)
  }

  async setRebuildCheckpoint(checkpoint: RebuildCheckpoint | undefined): Promise<void> {
    await this.lease?.renew()
    await this.writer.write(async (pending) => {
      if (checkpoint === undefined) await pending.delete('graph_settings', { _id: REBUILD_CHECKPOINT })
      else
        await pending.put('graph_settings', { name: REBUILD_CHECKPOINT, value: formatCheckpoint(checkpoint) })
    })
  }

  async empty(): Promise<void> {
    const { db, documents } = this
    await this.writer.withLease(async (lease) => {
      const renew = async (): Promise<void> => {
        await lease.renew()
        await this.lease?.renew()
      }
      await emptyIndex({ db, documents, renew })
    })
  }

  transactionLog(after: string): AsyncIterable<LoggedTransaction> {
    return loggedAfter(transactionLogIn(this.documents), after)
  }

  async transactionsLeft(after: string): Promise<number> {
    return await transactionsLeft(this.db, after)
  }
}

/** The txids of a part. */
interface Part {
  $gt: Buffer
  $lte?: Buffer
}

const OUTPOINT = { fields: ['txid', 'vout'] }

/** Compares the part after a txid. @param documents Nobody may write to them meanwhile. */
async function comparePart(documents: Documents, after: string | undefined): Promise<ComparedPart> {
  const from = hashColumn(after ?? '')
  const counted = await documents.all(
    'graph_admissions',
    { txid: { $gt: from } },
    { sort: { txid: 1, vout: 1, topic: 1 }, limit: COMPARED_PART + 1, fields: ['txid'] },
  )
  const last: Buffer | undefined = counted[COMPARED_PART]?.txid
  const part: Part = { $gt: from, ...(last && { $lte: last }) }
  const upTo = last && hexOf(last)
  const found: ComparedPart = { upTo, missing: [], extra: 0, lost: await lostIn(documents, part) }
  const admitted = await documents.all(
    'graph_admissions',
    { txid: { ...part } },
    { fields: ['txid', 'vout', 'topic'] },
  )
  for (const side of COMPARED_SIDES) {
    const indexed = await indexedIn(documents, side, part)
    const known = new Set(indexed.map(keyOf))
    const held = admitted.filter(({ topic }) => topic === side.topic)
    const missing = held.filter((doc) => !known.has(keyOf(doc)))
    found.missing.push(...missing.map((doc) => ({ topic: side.topic, outpoint: outpointOf(doc) })))
    found.extra += indexed.length - (held.length - missing.length)
  }
  return found
}

/** The outputs of a topic that the index has, including those of inactive transactions. */
async function indexedIn(documents: Documents, { tables, kinds }: ComparedSide, part: Part): Promise<Doc[]> {
  const inactive = { txid: { ...part }, kind: { $in: kinds } }
  const indexed = await documents.all('graph_silent_facts', inactive, OUTPOINT)
  for (const table of tables) {
    const admitted = table === 'graph_outputs' ? { carrier: { $ne: true } } : {}
    indexed.push(...(await documents.all(table, { txid: { ...part }, ...admitted }, OUTPOINT)))
  }
  return indexed
}

function keyOf({ txid, vout }: Doc): string {
  return `${hexOf(txid)}_${vout}`
}

/** The transactions that are applied to a topic but have no bytes. */
async function lostIn(documents: Documents, part: Part): Promise<string[]> {
  const applied = await documents.all('graph_applied', { txid: { ...part } }, { fields: ['txid'] })
  const txids = [...new Set(applied.map(({ txid }) => hexOf(txid)))]
  const held = await heldChunks(documents, txids)
  return txids.filter((txid) => !held.has(txid))
}

interface Emptying {
  db: Db
  documents: Documents
  /** Renews the leases before each step. */
  renew: () => Promise<void>
}

/**
 * Empties the index in steps that can be repeated, without the journal: a process that finds it half empty also finds the
 * checkpoint, and empties it again.
 *
 * The spends of transactions without bytes stay: nothing else records them.
 */
async function emptyIndex(emptying: Emptying): Promise<void> {
  const { db, documents } = emptying
  for (const name of DERIVED) {
    await onEach(emptying, { name, fields: ['_id'] }, async (docs) => {
      await remove(db, name, docs)
    })
  }
  await onEach(emptying, { name: 'graph_silent_spends' }, async (docs) => {
    const puts = docs.map((doc) => ({
      replaceOne: { filter: { _id: doc._id }, replacement: doc, upsert: true },
    }))
    await withTimeout((options) =>
      collectionIn(db, 'graph_spends').bulkWrite(puts, { ...DURABLE, ...options }),
    )
    await remove(db, 'graph_silent_spends', docs)
  })
  await onEach(emptying, { name: 'graph_spends', fields: ['_id', 'spender'] }, async (docs) => {
    const spenders = new Set(docs.map(({ spender }) => hexOf(spender)))
    const held = await heldChunks(documents, [...spenders])
    const known = docs.filter(({ spender }) => held.has(hexOf(spender)))
    await remove(db, 'graph_spends', known)
  })
  await onEach(emptying, { name: 'graph_pieces', fields: ['_id'] }, async (docs) => {
    const kept = await keptOwners(documents, docs)
    const derived = docs.filter(({ _id }) => !kept.has(hexOf(chunkOwner(_id))))
    await remove(db, 'graph_pieces', derived)
  })
  await onEach(emptying, { name: 'graph_transactions', fields: ['_id'] }, async (docs) => {
    // Statuses are decided again; insertion order and proofs stay.
    const undecided = { $set: { mined: null, silent: false } }
    await withTimeout((options) =>
      collectionIn(db, 'graph_transactions').updateMany(idsOf(docs), undecided, { ...DURABLE, ...options }),
    )
  })
}

/** Runs work on all documents of a collection, a page at a time in the order of their keys. */
async function onEach(
  { documents, renew }: Emptying,
  { name, fields }: { name: CollectionName; fields?: string[] },
  work: (docs: Doc[]) => Promise<void>,
): Promise<void> {
  for (let last: Doc; ; ) {
    const docs = await documents.all(name, last === undefined ? {} : { _id: { $gt: last._id } }, {
      sort: { _id: 1 },
      limit: REBUILD_PAGE,
      ...(fields && { fields }),
    })
    if (docs.length === 0) return
    await renew()
    await work(docs)
    last = docs.at(-1)
  }
}

async function remove(db: Db, name: CollectionName, docs: Doc[]): Promise<void> {
  await withTimeout((options) => collectionIn(db, name).deleteMany(idsOf(docs), { ...DURABLE, ...options }))
}

function idsOf(docs: Doc[]): { _id: { $in: (Buffer | string)[] } } {
  return { _id: { $in: docs.map(({ _id }) => _id) } }
}

/** Those of the chunks' owners whose blob is a raw transaction or the BEEF of a failed hook, as hex. */
async function keptOwners(documents: Documents, chunks: Doc[]): Promise<Set<string>> {
  const owners = unique(
    chunks.map(({ _id }) => chunkOwner(_id)),
    hexOf,
  )
  const transactions = await inParts(owners, (part) =>
    documents.all('graph_transactions', { _id: { $in: part } }, { fields: ['txid'] }),
  )
  const hooks = await inParts(owners, (part) =>
    documents.all('graph_hook_notes', { beef: { $in: part } }, { fields: ['beef'] }),
  )
  return new Set([...transactions.map(({ txid }) => hexOf(txid)), ...hooks.map(({ beef }) => hexOf(beef))])
}

function afterPosition(position: string): Filter {
  const { order, txid } = parsePosition(position)
  return { arrival: { $gte: order }, $or: [{ arrival: { $gt: order } }, { txid: { $gt: txid } }] }
}

/** The transactions of a database in insertion order. */
function transactionLogIn(documents: Documents): TransactionLogRows {
  return {
    page: (position, limit) =>
      documents.all('graph_transactions', afterPosition(position), {
        sort: { arrival: 1, txid: 1 },
        limit,
        fields: ['txid', 'arrival'],
      }),
    admissions: (txids) => documents.all('graph_admissions', { txid: { $in: txids } }),
    transaction: (txid) => transactionRecord(documents, txid),
  }
}

async function transactionsLeft(db: Db, after: string): Promise<number> {
  return await countIn(db, 'graph_transactions', afterPosition(after))
}
