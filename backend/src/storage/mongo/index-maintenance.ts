import type { Db } from 'mongodb'
import type { ComparedPart } from '../../graph/index-maintenance.js'
import { heldChunks } from '../read/read-blobs.js'
import {
  COMPARED_PART,
  COMPARED_SIDES,
  type ComparedSide,
  DERIVED,
  REBUILD_PAGE,
  StoredIndex,
} from '../rebuild/index-maintenance.js'
import { hashColumn, hexOf, outpointOf, unique } from '../rows/columns.js'
import type { RowReader, RowWriter } from '../rows/rows.js'
import { type CollectionName, chunkOwner, type Doc } from './collections.js'
import { collectionIn, whileAvailable, withTimeout } from './documents.js'
import { lookupsIn } from './lookups.js'
import { DURABLE, stateIn, type WriteLease, WriteLeases } from './write-lease.js'
import type { MongoWriter } from './writer.js'

/** Compares the index of a database with the admitted set, and empties it for a rebuild. */
export class MongoIndexMaintenance extends StoredIndex {
  private readonly db: Db
  private readonly writer: MongoWriter
  /** Not the writers' lease: a rebuild is many writes, with those of others in between. */
  private readonly leases: WriteLeases
  /** Held while this process does the work. */
  private lease: WriteLease | undefined

  /** @param options.lease How long a lease lasts without a heartbeat, in milliseconds. */
  constructor({ db, writer, lease }: { db: Db; writer: MongoWriter; lease?: number }) {
    super(writer.database, lookupsIn(writer.database))
    this.db = db
    this.writer = writer
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

  protected override async write(work: (rows: RowWriter) => Promise<void>): Promise<void> {
    await this.lease?.renew()
    await super.write(work)
  }

  /**
   * Empties the index in steps that can be repeated, without the journal: a process that finds it half empty also finds the
   * checkpoint, and empties it again.
   *
   * The spends of transactions without bytes stay: nothing else records them.
   */
  async empty(): Promise<void> {
    await this.uncount()
    await this.writer.withLease(async (lease) => {
      for (const name of DERIVED)
        await this.onEach(lease, { name, fields: ['_id'] }, (docs) => this.remove(name, docs))
      await this.onEach(lease, { name: 'graph_silent_spends' }, async (docs) => {
        const puts = docs.map((doc) => ({
          replaceOne: { filter: { _id: doc._id }, replacement: doc, upsert: true },
        }))
        await withTimeout((options) =>
          collectionIn(this.db, 'graph_spends').bulkWrite(puts, { ...DURABLE, ...options }),
        )
        await this.remove('graph_silent_spends', docs)
      })
      await this.onEach(lease, { name: 'graph_spends', fields: ['_id', 'spender'] }, async (docs) => {
        const spenders = new Set(docs.map(({ spender }) => hexOf(spender)))
        const held = await heldChunks(this.database, [...spenders])
        const known = docs.filter(({ spender }) => held.has(hexOf(spender)))
        await this.remove('graph_spends', known)
      })
      await this.onEach(lease, { name: 'graph_pieces', fields: ['_id'] }, async (docs) => {
        const owners = docs.map(({ _id }) => chunkOwner(_id))
        const kept = await this.keptOwners(unique(owners, hexOf))
        await this.remove(
          'graph_pieces',
          docs.filter(({ _id }) => !kept.has(hexOf(chunkOwner(_id)))),
        )
      })
      await this.onEach(lease, { name: 'graph_transactions', fields: ['_id'] }, async (docs) => {
        // Statuses are decided again; insertion order and proofs stay.
        const undecided = { $set: { mined: null, seen: false, rejected: false, silent: false } }
        const transactions = collectionIn(this.db, 'graph_transactions')
        await withTimeout((options) =>
          transactions.updateMany(idsOf(docs), undecided, { ...DURABLE, ...options }),
        )
      })
    })
  }

  /** Runs work on all documents of a collection, a page at a time in the order of their keys; renews the leases before each. */
  private async onEach(
    lease: WriteLease,
    { name, fields }: { name: CollectionName; fields?: string[] },
    work: (docs: Doc[]) => Promise<void>,
  ): Promise<void> {
    for (let last: Doc; ; ) {
      const docs = await this.database.all(name, last === undefined ? {} : { _id: { $gt: last._id } }, {
        sort: { _id: 1 },
        limit: REBUILD_PAGE,
        ...(fields && { fields }),
      })
      if (docs.length === 0) return
      await lease.renew()
      await this.lease?.renew()
      await work(docs)
      last = docs.at(-1)
    }
  }

  private async remove(name: CollectionName, docs: Doc[]): Promise<void> {
    await withTimeout((options) =>
      collectionIn(this.db, name).deleteMany(idsOf(docs), { ...DURABLE, ...options }),
    )
  }
}

function idsOf(docs: Doc[]): { _id: { $in: (Buffer | string)[] } } {
  return { _id: { $in: docs.map(({ _id }) => _id) } }
}

/** The txids of a part. */
interface Part {
  $gt: Buffer
  $lte?: Buffer
}

const OUTPOINT = { fields: ['txid', 'vout'] }

/** Compares the part after a txid. @param documents Nobody may write to them meanwhile. */
async function comparePart(documents: RowReader, after: string | undefined): Promise<ComparedPart> {
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
async function indexedIn(documents: RowReader, { tables, kinds }: ComparedSide, part: Part): Promise<Doc[]> {
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
async function lostIn(documents: RowReader, part: Part): Promise<string[]> {
  const applied = await documents.all('graph_applied', { txid: { ...part } }, { fields: ['txid'] })
  const txids = [...new Set(applied.map(({ txid }) => hexOf(txid)))]
  const held = await heldChunks(documents, txids)
  return txids.filter((txid) => !held.has(txid))
}
