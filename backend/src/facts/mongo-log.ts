import type { Binary, Collection, Db, UpdateFilter } from 'mongodb'
import { DamagedError } from '../graph/errors.js'
import { CHUNK_BYTES } from '../graph/records.js'
import { toHex } from '../protocol/bytes.js'
import {
  asked,
  type Batch,
  bodyOf,
  CHANGE,
  type Chunk,
  COPIED_FROM,
  COPY_OF,
  chunkGroups,
  chunksAt,
  grouped,
  identify,
  isBehind,
  type LogMeta,
  type LogRow,
  layOut,
  type Note,
  OtherLogError,
  orMissingGrant,
  type Place,
  type RowKind,
  type RowsPage,
  type SharedLog,
  type SharedLogOptions,
} from './shared-log.js'

/** A batch is one document, so it is stored as a whole or not at all. Bytes are written and read as Buffers. */
interface BatchDocument {
  /** Its first place. */
  _id: number
  /** Its last place. */
  last: number
  batch: Buffer
  at: number
  rows: StoredRow[]
}

interface StoredRow {
  kind: RowKind
  key: Buffer
  length: number
  /** The name of its chunks, in hex. */
  chunks?: string
  body?: Buffer
  /** If it differs from the batch's. */
  at?: number
}

interface ChunkDocument {
  /** The owner in hex, and the position. */
  _id: string
  bytes: Buffer
  checksum: Buffer
  first: number
}

/** A meta value of the log, or a note. */
interface TextDocument {
  _id: string
  value: string
}

const DUPLICATE = 11000
/** Overrides the host's client: acknowledged writes, and everything read, are on the disks of a majority of servers. */
const OPTIONS = {
  readPreference: 'primary',
  readConcern: { level: 'majority' },
  writeConcern: { w: 'majority', journal: true },
  promoteBuffers: true,
  promoteLongs: true,
  promoteValues: true,
} as const

/** A log in MongoDB or a compatible server. It uses no sessions, transactions or pipelines. */
export class MongoLog implements SharedLog {
  private readonly batches: Collection<BatchDocument>
  private readonly chunks: Collection<ChunkDocument>
  private readonly texts: Collection<TextDocument>

  private constructor(
    private readonly collections: {
      batches: Collection<BatchDocument>
      chunks: Collection<ChunkDocument>
      texts: Collection<TextDocument>
      meta: Collection<TextDocument>
    },
    readonly id: string,
    private readonly options: SharedLogOptions,
  ) {
    this.batches = collections.batches
    this.chunks = collections.chunks
    this.texts = collections.texts
  }

  /**
   * Opens the log of a database, or creates it.
   *
   * @throws GeneralError `MISSING_GRANT` if the database user lacks a right; else what the driver throws.
   */
  static async open(db: Db, options: SharedLogOptions = {}): Promise<MongoLog> {
    const role = options.isRead ? 'read' : 'readWrite'
    return await orMissingGrant(`the role ${role}`, () => MongoLog.openAllowed(db, options))
  }

  private static async openAllowed(db: Db, options: SharedLogOptions): Promise<MongoLog> {
    const notes = db.collection<TextDocument>('minetree_log_meta', OPTIONS)
    const batches = db.collection<BatchDocument>('minetree_log', OPTIONS)
    const meta: LogMeta = {
      get: async (name) => (await notes.findOne({ _id: name }))?.value,
      async add(name, value) {
        await unlessThere(() => notes.insertOne({ _id: name, value }))
      },
      async make() {
        await batches.createIndex({ 'rows.key': 1 })
        await db.collection('minetree_chunk', OPTIONS).createIndex({ first: 1 })
      },
      isEmpty: async () => (await batches.findOne({}, { projection: { _id: 1 } })) === null,
    }
    const id = await identify(meta, options)
    // Deletes nothing, but needs the right to: with a read-only user the gateway would be ready, and refuse every write.
    if (!options.isRead) await notes.deleteOne({ _id: '' })
    const collection = <Document extends object>(name: string): Collection<Document> =>
      db.collection<Document>(name, OPTIONS)
    const collections = { batches, chunks: collection<ChunkDocument>('minetree_chunk'), meta: notes }
    return new MongoLog({ ...collections, texts: collection<TextDocument>('minetree_note') }, id, options)
  }

  async insert(batch: Batch): Promise<boolean> {
    if (await isBehind(this, batch)) return false
    const { first, id, at, rows } = batch
    const stored = layOut({ id, rows })
    for (const chunks of chunkGroups(stored))
      await this.asked(() =>
        unlessThere(() =>
          this.chunks.insertMany(
            chunks.map(({ owner, position, bytes, checksum }) => ({
              _id: chunkId(toHex(owner), position),
              ...{ bytes: buffer(bytes), checksum: buffer(checksum), first },
            })),
            { ordered: false },
          ),
        ),
      )
    const document: BatchDocument = {
      _id: first,
      ...{ last: first + rows.length - 1, batch: buffer(id), at },
      rows: stored.map(({ kind, key, body, chunks, at: own }) => ({
        ...{ kind, key: buffer(key), length: body.length, ...(own !== undefined && { at: own }) },
        ...(chunks === undefined ? { body: buffer(body) } : { chunks: toHex(chunks) }),
      })),
    }
    if (await this.asked(() => unlessThere(() => this.batches.insertOne(document)))) return true
    const there = await this.asked(() => this.batches.findOne({ _id: first }, { projection: { batch: 1 } }))
    if (there !== null && bytesOf(there.batch).equals(id)) return true
    await this.deleteChunks(document.rows.flatMap(chunkIds))
    return false
  }

  async collect({ from, to }: { from: number; to: number }): Promise<void> {
    const after = { $gt: from, $lte: to }
    const found = this.chunks.find({ first: after }, { projection: { _id: 1 } })
    const chunks = await this.asked(() => found.toArray())
    if (chunks.length === 0) return
    const projection = { 'rows.chunks': 1, 'rows.length': 1 }
    const batches = await this.asked(() => this.batches.find({ _id: after }, { projection }).toArray())
    const named = new Set(batches.flatMap(({ rows }) => rows.flatMap(chunkIds)))
    await this.deleteChunks(chunks.map(({ _id }) => _id).filter((id) => !named.has(id)))
  }

  async after(place: Place, { limit, maxBytes, onDamage }: RowsPage): Promise<LogRow[]> {
    const { seq, first, batch } = place
    const found = await this.asked(async () => {
      const documents: BatchDocument[] = []
      let [rows, bytes] = [0, 0]
      for await (const document of this.batches
        .find({ _id: { $gte: first } })
        .sort({ _id: 1 })
        .limit(limit + 1)) {
        documents.push(document)
        if (!isBatch(document)) break
        rows += document.rows.length
        bytes += document.rows.reduce((sum, { length }) => sum + length, 0)
        if (document.last > seq && (rows >= limit || bytes >= maxBytes)) break
      }
      return documents
    })
    const other = found.find((each) => !isBatch(each))
    if (other !== undefined) throw new DamagedError('minetree_log', `the document ${other._id} is no batch`)
    const own = seq === 0 ? undefined : found[0]
    if (seq > 0 && (own?._id !== first || bytesOf(own.batch).toString('hex') !== batch || own.last < seq))
      throw new OtherLogError(place)
    return await this.rowsOf(found, (row) => row.seq > seq, onDamage)
  }

  async get(kind: RowKind, key: Uint8Array): Promise<LogRow | undefined> {
    const found = await this.asked(() => this.batches.find({ 'rows.key': buffer(key) }).toArray())
    const rows = await this.rowsOf(found, (row) => row.kind === kind && Buffer.from(row.key).equals(key))
    return rows.sort((one, other) => other.seq - one.seq)[0]
  }

  async discard(seqs: readonly number[]): Promise<void> {
    for (const seq of seqs) {
      const before = this.batches.find({ _id: { $lte: seq } }).sort({ _id: -1 })
      const [batch] = await this.asked(() => before.limit(1).toArray())
      const index = seq - (batch?._id ?? 0)
      const row = batch?.rows[index]
      if (batch === undefined || row === undefined) continue
      // A fact must not point at missing chunks. Changes keep their rows: all but the shortest of their bodies are in chunks.
      if (row.kind !== CHANGE)
        await this.change(batch._id, { $unset: { [`rows.${index}.body`]: '', [`rows.${index}.chunks`]: '' } })
      await this.deleteChunks(chunkIds(row))
    }
  }

  async last(): Promise<number> {
    // Foreign documents in the collection have other ids.
    const find = this.batches.find({ _id: { $gte: 1 } }, { projection: { last: 1 } })
    const [document] = await this.asked(() => find.sort({ _id: -1 }).limit(1).toArray())
    return document?.last ?? 0
  }

  async notes(after: string, limit: number): Promise<Note[]> {
    const find = this.texts.find({ _id: { $gt: after } }).sort({ _id: 1 })
    const found = await this.asked(() => find.limit(limit).toArray())
    return found.map(({ _id: name, value }) => ({ name, value }))
  }

  async note(notes: readonly Note[]): Promise<void> {
    for (const { name, value } of notes)
      await this.asked(async () => {
        if (value === undefined) await this.texts.deleteOne({ _id: name })
        else await this.texts.updateOne({ _id: name }, { $set: { value } }, { upsert: true })
      })
  }

  async replaceNote(name: string, { from, to }: { from: string | undefined; to: string }): Promise<boolean> {
    return await this.asked(async () => {
      if (from === undefined) return await unlessThere(() => this.texts.insertOne({ _id: name, value: to }))
      const { matchedCount } = await this.texts.updateOne({ _id: name, value: from }, { $set: { value: to } })
      return matchedCount > 0
    })
  }

  async overwrite({ seq, first }: Pick<LogRow, 'seq' | 'first'>, body: Uint8Array): Promise<void> {
    const batch = await this.asked(() => this.batches.findOne({ _id: first }))
    const row = batch?.rows[seq - first]
    if (row?.chunks === undefined) {
      if (row?.body !== undefined)
        await this.change(first, { $set: { [`rows.${seq - first}.body`]: buffer(body) } })
      return
    }
    const owner = row.chunks
    for (const { position, bytes, checksum } of chunksAt(Buffer.from(owner, 'hex'), body))
      await this.asked(() =>
        this.chunks.updateOne(
          { _id: chunkId(owner, position) },
          { $set: { bytes: buffer(bytes), checksum: buffer(checksum) } },
        ),
      )
  }

  async complete(): Promise<void> {
    const { meta } = this.collections
    const { copyOf: value = '' } = this.options
    await this.asked(() => unlessThere(() => meta.insertOne({ _id: COPIED_FROM, value })))
    await this.asked(() => meta.deleteOne({ _id: COPY_OF }))
  }

  private async change(first: number, update: UpdateFilter<BatchDocument>): Promise<void> {
    await this.asked(() => this.batches.updateOne({ _id: first }, update))
  }

  async close(): Promise<void> {
    await this.options.close?.()
  }

  private async deleteChunks(ids: string[]): Promise<void> {
    if (ids.length > 0) await this.asked(() => this.chunks.deleteMany({ _id: { $in: ids } }))
  }

  private async asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return await asked(ask, this.options)
  }

  private async rowsOf(
    documents: readonly BatchDocument[],
    isWanted: (row: Pick<LogRow, 'seq' | 'kind' | 'key'>) => boolean,
    onDamage?: RowsPage['onDamage'],
  ): Promise<LogRow[]> {
    const stored = documents.flatMap(({ _id: first, batch, at, rows }) =>
      rows
        .map(({ key, ...row }, index) => ({
          at,
          ...row,
          ...{ seq: first + index, first, batch: bytesOf(batch).toString('hex'), key: bytesOf(key) },
        }))
        .filter(isWanted),
    )
    const chunks = new Map<string, ChunkDocument>()
    for (const ids of grouped(stored.flatMap(chunkIds)))
      for (const chunk of await this.asked(() => this.chunks.find({ _id: { $in: ids } }).toArray()))
        chunks.set(chunk._id, chunk)
    return stored.map(({ length, chunks: owner, body, ...row }) => ({
      ...row,
      body:
        owner === undefined
          ? body && bytesOf(body)
          : bodyOf(row, { length, chunks: chunksIn(chunks, { owner, length }) }, onDamage),
    }))
  }
}

function isBatch({ _id: first, last, batch, rows }: Partial<BatchDocument>): boolean {
  return Array.isArray(rows) && batch !== undefined && last === (first ?? 0) + rows.length - 1
}

function chunksIn(
  found: ReadonlyMap<string, ChunkDocument>,
  { owner, length }: { owner: string; length: number },
): Omit<Chunk, 'owner'>[] {
  return chunkIds({ chunks: owner, length }).flatMap((id, position) => {
    const chunk = found.get(id)
    return chunk === undefined
      ? []
      : [{ position, bytes: bytesOf(chunk.bytes), checksum: bytesOf(chunk.checksum) }]
  })
}

function chunkIds({ chunks, length }: { chunks?: string; length: number }): string[] {
  if (chunks === undefined) return []
  return Array.from({ length: Math.ceil(length / CHUNK_BYTES) }, (_, position) => chunkId(chunks, position))
}

function chunkId(owner: string, position: number): string {
  return `${owner} ${position}`
}

/** @returns False if its key exists already. */
async function unlessThere(insert: () => Promise<unknown>): Promise<boolean> {
  try {
    await insert()
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code !== DUPLICATE) throw error
    return false
  }
}

function buffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Bytes that were read: `promoteBuffers` yields a Buffer, except in nested documents, which have a `Binary`. */
function bytesOf(value: Buffer | Binary): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer)
}
