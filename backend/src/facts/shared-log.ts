import { randomBytes } from 'node:crypto'
import { answeredWithin } from '../graph/answered-within.js'
import { DamagedError, StoreUnavailableError } from '../graph/errors.js'
import { sha256 } from '../graph/native-hash.js'
import { CHUNK_BYTES } from '../graph/records.js'
import { joinBytes, toHex } from '../protocol/bytes.js'
import { CodedError, GeneralError, messageOf } from '../protocol/coded-error.js'
import { type FactKind, uint32 } from './log.js'

/**
 * A log that several gateways share. A batch is inserted at the places right after the last one that its writer has read, or not at
 * all if another batch is there by then: so a writer knows everything that stands before its facts, no place is ever empty, and a
 * writer that was stopped, or decided by an old state of the log, inserts nothing.
 */
export interface SharedLog {
  /** Random: another log has another one. */
  readonly id: string
  /** What the operator should know of the database. */
  readonly warning?: string | undefined
  /**
   * Inserts a batch, all of it or nothing. The caller has read all places before it, and gives no fact that is there.
   *
   * @returns Whether it is there: also if an earlier try brought it there. Otherwise another one is at that place.
   * @throws StoreUnavailableError: it may be there, or may yet come to be.
   * @throws OtherLogError if the log does not have what the batch is to stand after.
   */
  insert(batch: Batch): Promise<boolean>
  /**
   * The rows after a place, in order.
   *
   * @param page.limit About how many.
   * @param page.maxBytes No further row is read once they have about so many bytes: at least one is, if there is any.
   * @throws OtherLogError if this is not the log in which that place was read.
   */
  after(place: Place, page: RowsPage): Promise<LogRow[]>
  /** The last place; 0 if there is no row. */
  last(): Promise<number>
  /** The row of that kind and key that came last. */
  get(kind: RowKind, key: Uint8Array): Promise<LogRow | undefined>
  /** The notes after a name, in the order of names: about so many. */
  notes(after: string, limit: number): Promise<Note[]>
  /** Writes notes over what they said; deletes those without a value. */
  note(notes: readonly Note[]): Promise<void>
  /**
   * Writes a note if it says what is expected: of several gateways that try, one succeeds.
   *
   * @param change.from Undefined: there is no such note.
   * @returns Whether it was written.
   */
  replaceNote(name: string, change: { from: string | undefined; to: string }): Promise<boolean>
  /** Forgets the bodies at some places: of changes that other ones have replaced, and of facts that are removed. Their rows stay. */
  discard(seqs: readonly number[]): Promise<void>
  /** Overwrites the body of a row with one of the same length. */
  overwrite(row: Pick<LogRow, 'kind' | 'key' | 'seq' | 'first'>, body: Uint8Array): Promise<void>
  /**
   * Deletes the chunks of batches that did not come to be, and that their writer has left, as one does that ends: of those which
   * were to begin at one of these places.
   *
   * @param range.from The last place of a batch, or 0; its own is not among them.
   * @param range.to The last place of a batch. A batch is there, or never will be.
   */
  collect(range: { from: number; to: number }): Promise<void>
  /** Says that a copy is complete: gateways may open it. */
  complete(): Promise<void>
  close(): Promise<void>
}

/** A text beside the log: who does a job, and how far it has come. Nothing is derived from it. */
export interface Note {
  /** Up to 1,024 bytes. */
  name: string
  value: string | undefined
}

/** How much is read at once. */
export interface RowsPage {
  limit: number
  maxBytes: number
  /** Gets rows whose bodies are damaged, which are then without; if missing, the first of them is thrown. */
  onDamage?: ((row: Pick<LogRow, 'seq' | 'kind' | 'key'>) => void) | undefined
}

/** A change of what is pending or held: no fact, as nothing is derived from it. It has a place, as what comes first counts. */
export const CHANGE = 6

export type RowKind = FactKind | typeof CHANGE

export interface NewRow {
  kind: RowKind
  /** Unique within its kind. */
  key: Uint8Array
  body: Uint8Array
  /** When it was inserted first, if that was into another log. */
  at?: number
}

export interface Batch {
  /** Where its first row is to stand. */
  first: number
  /** Random, 8 bytes: tells one batch from another at the same place. */
  id: Uint8Array
  /** When it is inserted, in milliseconds since 1970. */
  at: number
  rows: readonly NewRow[]
  /** What its writer has read, who has not looked since: it is inserted if nothing stands after that. */
  after?: Place
}

/** Whether rows follow the place that the writer of a batch has read. @throws OtherLogError */
export async function isBehind(log: Pick<SharedLog, 'after'>, { after }: Batch): Promise<boolean> {
  return after !== undefined && (await log.after(after, { limit: 1, maxBytes: 0 })).length > 0
}

/** Rows as a batch behind a place. */
export function appended(seq: number, rows: readonly NewRow[]): Batch {
  return { first: seq + 1, id: randomBytes(8), at: Date.now(), rows }
}

export function endOf({ first, id, rows }: Batch): Place {
  return { seq: first + rows.length - 1, first, batch: toHex(id) }
}

/** A row in its place, counted from 1. */
export interface LogRow extends Place, Omit<NewRow, 'body'> {
  at: number
  /** Undefined if it was discarded. */
  body: Uint8Array | undefined
}

/** How far a log was read: the place of a row, the first place of its batch, and which batch that was. */
export interface Place {
  seq: number
  first: number
  /** In hex. */
  batch: string
}

export const START: Place = { seq: 0, first: 0, batch: '' }

/** The log is another one, or an earlier backup of it was restored. */
export class OtherLogError extends CodedError {
  override readonly name = 'OtherLogError'
  readonly code = 'OTHER_LOG'

  constructor({ seq }: Place) {
    super(`the log does not have at place ${seq} what was read there: another one was restored`)
  }
}

/** Rows up to this many bytes stand in one statement or document with the others of their batch. */
const MAX_INLINE = 4 * 1024 * 1024
/** The longest bodies stored in their row: of any batch, then of larger and larger ones. A document has 16 MiB at most. */
const INLINE = [CHUNK_BYTES, 1024, 100]
/** Those of what is to be deleted one day. */
const CHANGES_INLINE = 100
/** What a row takes beside its body, about. */
const ROW_BYTES = 150

/** A row as it is stored: its body stands in it, or in chunks under a name. */
export interface StoredRow extends NewRow {
  /** 32 bytes, the same for the same row of the same batch. */
  chunks: Uint8Array | undefined
}

export interface Chunk {
  owner: Uint8Array
  position: number
  bytes: Uint8Array
  checksum: Uint8Array
}

/**
 * Decides which bodies of a batch stand in chunks. No other batch has the same chunks: those of one that does not come to be are
 * nobody's.
 */
export function layOut({ id, rows }: Pick<Batch, 'id' | 'rows'>): StoredRow[] {
  const inline = (row: NewRow, most: number): number =>
    row.body.length > mostInline(row, most) ? 0 : row.body.length
  const total = (most: number): number => rows.reduce((sum, row) => sum + ROW_BYTES + inline(row, most), 0)
  const most = INLINE.find((each) => total(each) <= MAX_INLINE) ?? CHANGES_INLINE
  return rows.map((row, index) => ({
    ...row,
    chunks: row.body.length > mostInline(row, most) ? sha256(joinBytes([id, uint32(index)])) : undefined,
  }))
}

function mostInline({ kind }: NewRow, most: number): number {
  return kind === CHANGE ? CHANGES_INLINE : most
}

function* chunksOf(rows: readonly StoredRow[]): Generator<Chunk> {
  for (const { chunks: owner, body } of rows) if (owner !== undefined) yield* chunksAt(owner, body)
}

export function* chunksAt(owner: Uint8Array, body: Uint8Array): Generator<Chunk> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    const bytes = body.subarray(at, at + CHUNK_BYTES)
    yield { owner, position: at / CHUNK_BYTES, bytes, checksum: sha256(bytes) }
  }
}

/** The chunks of the rows that have any, as many as are sent at once. */
export function* chunkGroups(rows: readonly StoredRow[]): Generator<Chunk[]> {
  let [group, bytes]: [Chunk[], number] = [[], 0]
  for (const chunk of chunksOf(rows)) {
    const own = chunk.bytes.length + ROW_BYTES
    if (group.length > 0 && bytes + own > MAX_INLINE) {
      yield group
      ;[group, bytes] = [[], 0]
    }
    group.push(chunk)
    bytes += own
  }
  if (group.length > 0) yield group
}

/** How many chunks are asked for at once. */
const CHUNKS_AT_ONCE = MAX_INLINE / CHUNK_BYTES

/** In groups that are asked for at once. */
export function* grouped<Item>(items: Iterable<Item>, size = CHUNKS_AT_ONCE): Generator<Item[]> {
  let group: Item[] = []
  for (const item of items) {
    group.push(item)
    if (group.length < size) continue
    yield group
    group = []
  }
  if (group.length > 0) yield group
}

/**
 * The body of a row whose chunks were read.
 *
 * @returns Undefined if it is that of a change, and was discarded.
 * @throws DamagedError if a chunk is missing, or is not what was stored, unless that is reported.
 */
export function bodyOf(
  row: Pick<LogRow, 'seq' | 'kind' | 'key'>,
  stored: { length: number; chunks: readonly Omit<Chunk, 'owner'>[] },
  onDamage?: RowsPage['onDamage'],
): Uint8Array | undefined {
  try {
    return joined(row, stored)
  } catch (error) {
    if (onDamage === undefined) throw error
    onDamage(row)
    return undefined
  }
}

function joined(
  { kind, key }: Pick<NewRow, 'kind' | 'key'>,
  { length, chunks }: { length: number; chunks: readonly Omit<Chunk, 'owner'>[] },
): Uint8Array | undefined {
  const byPosition = new Map(chunks.map((chunk) => [chunk.position, chunk]))
  const parts: Uint8Array[] = []
  for (let position = 0; position * CHUNK_BYTES < length; position++) {
    const chunk = byPosition.get(position)
    if (chunk === undefined && kind === CHANGE) return undefined
    if (chunk === undefined) throw new DamagedError(toHex(key), `chunk ${position} is missing`)
    if (!sha256(chunk.bytes).equals(chunk.checksum)) throw new DamagedError(toHex(key), `chunk ${position}`)
    parts.push(chunk.bytes)
  }
  return joinBytes(parts)
}

export interface SharedLogOptions {
  /** Ends the connections, if they are the log's own. */
  close?: () => Promise<void>
  /** How long a call may take, in milliseconds. */
  patience?: number
  /** What is copied into this log, up to 200 characters: it is empty, or holds part of that copy, and no gateway opens it. */
  copyOf?: string | undefined
  /** Whether there is to be a log: none is made. */
  exists?: boolean
  /** Whether nothing is written: then the user of the database needs no right to. */
  isRead?: boolean
}

export interface LogMeta {
  get(name: string): Promise<string | undefined>
  /** Unless it is there. */
  add(name: string, value: string): Promise<void>
  /** Makes the tables, if they are missing. */
  make(): Promise<void>
  isEmpty(): Promise<boolean>
}

/** What is noted while a copy into a log is not complete, and from then on. */
export const COPY_OF = 'copy of'
export const COPIED_FROM = 'copied from'
/** Said of a copy whose command was ended in its last moment. */
export const IS_COPIED = 'holds a complete copy of that log already'

/**
 * The id of a log, which gets one if it has none.
 *
 * @throws CopyError if it is no log that may be opened, or copied into.
 */
export async function identify(meta: LogMeta, { copyOf, exists = false }: SharedLogOptions): Promise<string> {
  const [known, begun] = [await meta.get('id'), await meta.get(COPY_OF)]
  if (exists && known === undefined) throw new CopyError('NOT_FOUND', 'holds no log of facts')
  if (begun !== copyOf) {
    if (copyOf === undefined)
      throw new CopyError(
        'FAILED',
        'holds part of a copy: complete it by the same minetree copy, or empty the database',
      )
    if (begun !== undefined)
      throw new CopyError(
        'FAILED',
        'holds part of another copy, or of one from before a purge: empty the database',
      )
    if ((await meta.get(COPIED_FROM)) === copyOf) throw new CopyError('FAILED', IS_COPIED)
    if (!(await meta.isEmpty()))
      throw new CopyError('FAILED', 'holds a log already: choose an empty database')
  }
  if (known === undefined) await meta.make()
  if (copyOf !== undefined) await meta.add(COPY_OF, copyOf)
  if (known !== undefined) return known
  const random = randomBytes(16).toString('hex')
  await meta.add('id', random)
  return (await meta.get('id')) ?? random
}

/** A database holds an incomplete copy, or a log where one is to be copied to, or none. */
export class CopyError extends GeneralError<'FAILED' | 'NOT_FOUND'> {
  override readonly name = 'CopyError'
}

/** How long a database may take for one call, in milliseconds. */
const PATIENCE = 15_000

/**
 * Asks a database.
 *
 * @throws StoreUnavailableError, whatever the driver throws.
 */
export async function asked<Answer>(
  ask: () => Promise<Answer>,
  { patience = PATIENCE }: SharedLogOptions,
): Promise<Answer> {
  const error = (): Error => new Error(`no answer within ${patience} ms`)
  try {
    return await answeredWithin(patience, ask, { error })
  } catch (cause) {
    throw new StoreUnavailableError(cause)
  }
}

/**
 * Opens what is in a database.
 *
 * @param needed What the user has to be granted.
 * @throws GeneralError `MISSING_GRANT` that names the right, if its user lacks one; else what `open` throws.
 */
export async function orMissingGrant<Opened>(needed: string, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (error) {
    const missing = missingGrant(error)
    if (missing === undefined) throw error
    throw new GeneralError(
      'MISSING_GRANT',
      `the database user may not ${missing}: grant it ${needed} on that database (${messageOf(error)})`,
      { cause: error },
    )
  }
}

const MYSQL_CODES = new Set<unknown>([
  // https://mariadb.com/kb/en/mariadb-error-codes/: 1044, 1142 and 1227.
  ...['ER_DBACCESS_DENIED_ERROR', 'ER_TABLEACCESS_DENIED_ERROR', 'ER_SPECIFIC_ACCESS_DENIED_ERROR'],
])
/** https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml: Unauthorized. */
const MONGO_CODE = 13

/** What a database says that its user may not do; undefined for any other error. */
function missingGrant(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  const text = messageOf(error)
  if (MYSQL_CODES.has(code)) return /([A-Z][A-Z ,]+) command denied/.exec(text)?.[1]?.trim() ?? ANY
  if (code === MONGO_CODE) return /execute command \{ (\w+)/.exec(text)?.[1] ?? ANY
  return undefined
}

const ANY = 'use the database'
