import { randomBytes } from 'node:crypto'
import type { Binary, Collection, Db } from 'mongodb'
import { CHUNK_BYTES } from '../graph/graph-store.js'
import { toHex } from '../protocol/bytes.js'
import {
  asked,
  type Batch,
  bodyOf,
  CHANGE,
  type Chunk,
  chunksOf,
  grouped,
  type LogRow,
  layOut,
  type Note,
  OtherLogError,
  type Place,
  type RowKind,
  type SharedLog,
  type SharedLogOptions,
} from './shared-log.js'

/** A batch is one document: it is there as a whole, or not at all. Bytes are Buffers both ways. */
interface BatchDocument {
  /** Its first place. */
  _id: number
  /** Its last one. */
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
}

interface ChunkDocument {
  /** The owner in hex, and the position. */
  _id: string
  bytes: Buffer
  checksum: Buffer
}

/** Of the log itself, or a note. */
interface TextDocument {
  _id: string
  value: string
}

const DUPLICATE = 11000
/** Whatever the host's client says: what is answered is on the disks of most servers, and so is what is read. */
const OPTIONS = {
  readPreference: 'primary',
  readConcern: { level: 'majority' },
  writeConcern: { w: 'majority', journal: true },
  promoteBuffers: true,
  promoteLongs: true,
  promoteValues: true,
} as const

/** A log in MongoDB, or in a server that speaks its protocol: no sessions, no transactions, no pipelines. */
export class MongoLog implements SharedLog {
  private constructor(
    private readonly batches: Collection<BatchDocument>,
    private readonly chunks: Collection<ChunkDocument>,
    private readonly texts: Collection<TextDocument>,
    readonly id: string,
    private readonly options: SharedLogOptions,
  ) {}

  /**
   * Opens the log of a database, or makes it.
   *
   * @throws What the driver throws.
   */
  static async open(db: Db, options: SharedLogOptions = {}): Promise<MongoLog> {
    const meta = db.collection<TextDocument>('minetree_log_meta', OPTIONS)
    const batches = db.collection<BatchDocument>('minetree_log', OPTIONS)
    const idOf = async (): Promise<string | undefined> => (await meta.findOne({ _id: 'id' }))?.value
    let id = await idOf()
    if (id === undefined) {
      await batches.createIndex({ 'rows.key': 1 })
      const random = randomBytes(16).toString('hex')
      await unlessThere(() => meta.insertOne({ _id: 'id', value: random }))
      id = (await idOf()) ?? random
    }
    const collection = <Document extends object>(name: string): Collection<Document> =>
      db.collection<Document>(name, OPTIONS)
    return new MongoLog(batches, collection('minetree_chunk'), collection('minetree_note'), id, options)
  }

  async insert({ first, id, at, rows }: Batch): Promise<boolean> {
    const stored = layOut(rows)
    for (const chunks of grouped(chunksOf(stored)))
      await this.asked(() =>
        unlessThere(() =>
          this.chunks.insertMany(
            chunks.map(({ owner, position, bytes, checksum }) => ({
              _id: chunkId(toHex(owner), position),
              ...{ bytes: buffer(bytes), checksum: buffer(checksum) },
            })),
            { ordered: false },
          ),
        ),
      )
    const document: BatchDocument = {
      _id: first,
      ...{ last: first + rows.length - 1, batch: buffer(id), at },
      rows: stored.map(({ kind, key, body, chunks }) => ({
        ...{ kind, key: buffer(key), length: body.length },
        ...(chunks === undefined ? { body: buffer(body) } : { chunks: toHex(chunks) }),
      })),
    }
    if (await this.asked(() => unlessThere(() => this.batches.insertOne(document)))) return true
    const there = await this.asked(() => this.batches.findOne({ _id: first }, { projection: { batch: 1 } }))
    return there !== null && bytesOf(there.batch).equals(id)
  }

  async after(place: Place, { limit, maxBytes }: { limit: number; maxBytes: number }): Promise<LogRow[]> {
    const { seq, first, batch } = place
    const found = await this.asked(async () => {
      const documents: BatchDocument[] = []
      let [rows, bytes] = [0, 0]
      for await (const document of this.batches
        .find({ _id: { $gte: first } })
        .sort({ _id: 1 })
        .limit(limit + 1)) {
        documents.push(document)
        rows += document.rows.length
        bytes += document.rows.reduce((sum, { length }) => sum + length, 0)
        if (document.last > seq && (rows >= limit || bytes >= maxBytes)) break
      }
      return documents
    })
    const own = seq === 0 ? undefined : found[0]
    if (seq > 0 && (own?._id !== first || bytesOf(own.batch).toString('hex') !== batch || own.last < seq))
      throw new OtherLogError(place)
    return await this.rowsOf(found, (row) => row.seq > seq)
  }

  async get(kind: RowKind, key: Uint8Array): Promise<LogRow | undefined> {
    const found = await this.asked(() => this.batches.find({ 'rows.key': buffer(key) }).toArray())
    const rows = await this.rowsOf(found, (row) => row.kind === kind && Buffer.from(row.key).equals(key))
    return rows.sort((one, other) => other.seq - one.seq)[0]
  }

  async discard(keys: readonly Uint8Array[]): Promise<void> {
    for (const key of keys) {
      const found = await this.asked(() => this.batches.find({ 'rows.key': buffer(key) }).toArray())
      const ids = found
        .flatMap(({ rows }) => rows)
        .filter((row) => row.kind === CHANGE && bytesOf(row.key).equals(key))
        .flatMap(chunkIds)
      if (ids.length > 0) await this.asked(() => this.chunks.deleteMany({ _id: { $in: ids } }))
    }
  }

  async last(): Promise<number> {
    const find = this.batches.find({}, { projection: { last: 1 } })
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

  async close(): Promise<void> {
    await this.options.close?.()
  }

  private async asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return await asked(ask, this.options)
  }

  private async rowsOf(
    documents: readonly BatchDocument[],
    isWanted: (row: Pick<LogRow, 'seq' | 'kind' | 'key'>) => boolean,
  ): Promise<LogRow[]> {
    const stored = documents.flatMap(({ _id: first, batch, at, rows }) =>
      rows
        .map(({ key, ...row }, index) => ({
          ...row,
          ...{ seq: first + index, first, at, batch: bytesOf(batch).toString('hex'), key: bytesOf(key) },
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
          ? bytesOf(body)
          : bodyOf(row, { length, chunks: chunksIn(chunks, { owner, length }) }),
    }))
  }
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

/** @returns Whether it was inserted; not if its key is there. */
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

/** What was read: a Buffer if the collection is asked so, and a `Binary` in documents within others, whatever it is asked. */
function bytesOf(value: Buffer | Binary | undefined): Buffer {
  if (value === undefined) return Buffer.alloc(0)
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer)
}
