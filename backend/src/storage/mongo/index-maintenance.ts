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
  loggedAfter,
  markOf,
  markText,
  placeOf,
  REBUILD_CHECKPOINT,
  REBUILD_PAGE,
  type TransactionLogRows,
} from '../rebuild/index-maintenance.js'
import { hashColumn, hexOf, inParts, outpointOf, unique } from '../rows/columns.js'
import { type CollectionName, chunkOwner } from './collections.js'
import { heldChunks } from './content.js'
import {
  answered,
  collectionIn,
  countIn,
  type Doc,
  type Documents,
  dbDocuments,
  type Filter,
  whileAvailable,
} from './documents.js'
import { transactionRecord } from './transactions.js'
import { DURABLE, stateIn, type Turn, WriteLeases } from './write-lease.js'
import type { MongoWriter } from './writer.js'

/** Compares the index of a database with what topics hold, and empties it for a rebuild. */
export class MongoIndexMaintenance implements IndexComparison, IndexRebuild {
  private readonly db: Db
  private readonly writer: MongoWriter
  private readonly documents: Documents
  /** Beside those of writers: a rebuild is many writes, and others have turns between them. */
  private readonly turns: WriteLeases
  /** While this process is at it. */
  private turn: Turn | undefined

  /** @param options.lease For how long another process is waited for that is at it and is not heard of, in milliseconds. */
  constructor({ db, writer, lease }: { db: Db; writer: MongoWriter; lease?: number }) {
    this.db = db
    this.writer = writer
    this.documents = dbDocuments(db)
    this.turns = new WriteLeases({ state: stateIn(db), id: 'upkeep', ...(lease !== undefined && { lease }) })
  }

  /**
   * As a turn that lasts as long as the work, and is lost when the process ends: every step that follows makes sure of it.
   *
   * @throws LeaseTakenError where another process is at it.
   */
  async alone(work: () => Promise<void>): Promise<void> {
    const atIt = (turn: Turn) =>
      turn.keepDuring(async () => {
        this.turn = turn
        try {
          await work()
        } finally {
          this.turn = undefined
        }
      })
    await whileAvailable(() => this.turns.take(atIt, { patience: this.turns.lease }))
  }

  /** While it is this writer's turn to write, so that all reads are of one moment. */
  async compare(after: string | undefined): Promise<ComparedPart> {
    return await this.writer.write((pending) => comparePart(pending, after))
  }

  async unadmit(txid: string): Promise<void> {
    await this.turn?.keep()
    await this.writer.write(async (pending) => {
      for (const name of ['graph_admissions', 'graph_applied'] as const)
        await pending.delete(name, { txid: hashColumn(txid) })
    })
  }

  async rebuild(): Promise<RebuildCheckpoint | undefined> {
    const setting = await this.documents.first('graph_settings', { _id: REBUILD_CHECKPOINT })
    return setting && markOf(setting.value)
  }

  async setRebuildCheckpoint(mark: RebuildCheckpoint | undefined): Promise<void> {
    await this.turn?.keep()
    await this.writer.write(async (pending) => {
      if (mark === undefined) await pending.delete('graph_settings', { _id: REBUILD_CHECKPOINT })
      else await pending.put('graph_settings', { name: REBUILD_CHECKPOINT, value: markText(mark) })
    })
  }

  async empty(): Promise<void> {
    const { db, documents } = this
    await this.writer.inTurn(async (turn) => {
      const keep = async (): Promise<void> => {
        await turn.keep()
        await this.turn?.keep()
      }
      await emptyIndex({ db, documents, keep })
    })
  }

  transactionLog(after: string): AsyncIterable<LoggedTransaction> {
    return loggedAfter(transactionLogIn(this.documents), after)
  }

  async transactionsLeft(after: string): Promise<number> {
    return await transactionsLeft(this.db, after)
  }
}

/**
 * Whether topics and index agree, a part of the txids at a time: what a topic holds is found among what the index has of
 * these transactions, and that has no more of them.
 */

/** The txids of a part. */
interface Part {
  $gt: Buffer
  $lte?: Buffer
}

const OUTPOINT = { fields: ['txid', 'vout'] }

/**
 * Compares the part that comes after a txid; the first, where none is given.
 *
 * @param documents Those of one moment, with nobody who writes meanwhile.
 */
export async function comparePart(documents: Documents, after: string | undefined): Promise<ComparedPart> {
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
    const shown = await shownIn(documents, side, part)
    const known = new Set(shown.map(keyOf))
    const held = admitted.filter(({ topic }) => topic === side.topic)
    const missing = held.filter((doc) => !known.has(keyOf(doc)))
    found.missing.push(...missing.map((doc) => ({ topic: side.topic, outpoint: outpointOf(doc) })))
    found.extra += shown.length - (held.length - missing.length)
  }
  return found
}

/** The outputs of a topic that the index has, and those of which something is said silently. */
async function shownIn(documents: Documents, { tables, kinds }: ComparedSide, part: Part): Promise<Doc[]> {
  const silent = { txid: { ...part }, kind: { $in: kinds } }
  const shown = await documents.all('graph_silent_facts', silent, OUTPOINT)
  for (const table of tables) {
    const admitted = table === 'graph_outputs' ? { carrier: { $ne: true } } : {}
    shown.push(...(await documents.all(table, { txid: { ...part }, ...admitted }, OUTPOINT)))
  }
  return shown
}

function keyOf({ txid, vout }: Doc): string {
  return `${hexOf(txid)}_${vout}`
}

/** The transactions that are done for a topic, without their bytes. */
async function lostIn(documents: Documents, part: Part): Promise<string[]> {
  const applied = await documents.all('graph_applied', { txid: { ...part } }, { fields: ['txid'] })
  const txids = [...new Set(applied.map(({ txid }) => hexOf(txid)))]
  const held = await heldChunks(documents, txids)
  return txids.filter((txid) => !held.has(txid))
}

export interface Emptying {
  db: Db
  documents: Documents
  /** Called before each step: says that whoever empties lives, and throws where it is somebody else's turn. */
  keep: () => Promise<void>
}

/**
 * Empties the index, a little at a time and past the journal: whoever sees it half empty sees the mark of a rebuild, too,
 * and empties it again, and each step may be done twice.
 *
 * What a transaction spends whose bytes are not here is known from a notice alone, and stays.
 */
export async function emptyIndex(emptying: Emptying): Promise<void> {
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
    await answered((within) => collectionIn(db, 'graph_spends').bulkWrite(puts, { ...DURABLE, ...within }))
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
    // Where each stands is decided anew; when it came is not, nor what proves it.
    const undecided = { $set: { mined: null, silent: false } }
    await answered((within) =>
      collectionIn(db, 'graph_transactions').updateMany(idsOf(docs), undecided, { ...DURABLE, ...within }),
    )
  })
}

/** Does something with all documents of a collection, some at a time in the order of their keys. */
async function onEach(
  { documents, keep }: Emptying,
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
    await keep()
    await work(docs)
    last = docs.at(-1)
  }
}

async function remove(db: Db, name: CollectionName, docs: Doc[]): Promise<void> {
  await answered((within) => collectionIn(db, name).deleteMany(idsOf(docs), { ...DURABLE, ...within }))
}

function idsOf(docs: Doc[]): { _id: { $in: (Buffer | string)[] } } {
  return { _id: { $in: docs.map(({ _id }) => _id) } }
}

/** Of the owners of pieces, those that are a raw transaction or the BEEF of a note, as hex. */
async function keptOwners(documents: Documents, pieces: Doc[]): Promise<Set<string>> {
  const owners = unique(
    pieces.map(({ _id }) => chunkOwner(_id)),
    hexOf,
  )
  const transactions = await inParts(owners, (part) =>
    documents.all('graph_transactions', { _id: { $in: part } }, { fields: ['txid'] }),
  )
  const notes = await inParts(owners, (part) =>
    documents.all('graph_hook_notes', { beef: { $in: part } }, { fields: ['beef'] }),
  )
  return new Set([...transactions.map(({ txid }) => hexOf(txid)), ...notes.map(({ beef }) => hexOf(beef))])
}

function behind(place: string): Filter {
  const { arrival, txid } = placeOf(place)
  return { arrival: { $gte: arrival }, $or: [{ arrival: { $gt: arrival } }, { txid: { $gt: txid } }] }
}

/** The transactions of a database in the order in which they came. */
export function transactionLogIn(documents: Documents): TransactionLogRows {
  return {
    page: (place, limit) =>
      documents.all('graph_transactions', behind(place), {
        sort: { arrival: 1, txid: 1 },
        limit,
        fields: ['txid', 'arrival'],
      }),
    admissions: (txids) => documents.all('graph_admissions', { txid: { $in: txids } }),
    transaction: (txid) => transactionRecord(documents, txid),
  }
}

export async function transactionsLeft(db: Db, after: string): Promise<number> {
  return await countIn(db, 'graph_transactions', behind(after))
}
