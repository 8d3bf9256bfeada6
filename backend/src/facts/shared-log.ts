import { randomBytes } from 'node:crypto'
import { answeredWithin } from '../graph/answered-within.js'
import { DamagedError, StoreUnavailableError } from '../graph/errors.js'
import { sha256 } from '../graph/native-hash.js'
import { CHUNK_BYTES } from '../graph/records.js'
import { joinBytes, toHex } from '../protocol/bytes.js'
import { CodedError, GeneralError, messageOf } from '../protocol/coded-error.js'
import { type FactKind, uint32 } from './log.js'

/**
 * A log that several gateways share. A batch is inserted right after the last place that its writer has read, or not at all if
 * another batch is there by then. So a writer knows every fact before its own, no place is ever empty, and a writer that was
 * suspended, or decided on an old state of the log, inserts nothing.
 */
export interface SharedLog {
  /** Random: every log has its own. */
  readonly id: string
  /** A warning about the database, for the operator. */
  readonly warning?: string | undefined
  /**
   * Inserts a whole batch or nothing. The caller has read all places before it, and passes no fact that the log has.
   *
   * @returns Whether the log has the batch, also from an earlier attempt. If not, another batch is at that place.
   * @throws StoreUnavailableError: it is unknown whether the batch was, or will be, inserted.
   * @throws OtherLogError if the log does not have the place that the batch follows.
   */
  insert(batch: Batch): Promise<boolean>
  /**
   * The rows after a place, in order.
   *
   * @param page.limit Approximate number of rows.
   * @param page.maxBytes Stops at about this many bytes, but returns at least one row if there is any.
   * @throws OtherLogError if this is not the log in which that place was read.
   */
  after(place: Place, page: RowsPage): Promise<LogRow[]>
  /** The last place; 0 if there is no row. */
  last(): Promise<number>
  /** The latest row of a kind and key. */
  get(kind: RowKind, key: Uint8Array): Promise<LogRow | undefined>
  /** Notes after a name, ordered by name, up to a limit. */
  notes(after: string, limit: number): Promise<Note[]>
  /** Writes or overwrites notes; deletes those without a value. */
  note(notes: readonly Note[]): Promise<void>
  /**
   * Replaces a note if it has the expected value: of several gateways that try, one succeeds.
   *
   * @param change.from The expected value; undefined if there must be no such note.
   * @returns Whether it was written.
   */
  replaceNote(name: string, change: { from: string | undefined; to: string }): Promise<boolean>
  /** Drops the bodies at some places, of replaced changes and of removed facts. The rows stay. */
  discard(seqs: readonly number[]): Promise<void>
  /** Overwrites the body of a row with one of the same length. */
  overwrite(row: Pick<LogRow, 'kind' | 'key' | 'seq' | 'first'>, body: Uint8Array): Promise<void>
  /**
   * Deletes orphaned chunks: those of batches that were to begin in this range but were never inserted.
   *
   * @param range.from The last place of a batch, or 0; exclusive.
   * @param range.to The last place of a batch; inclusive. Any batch up to here is in the log by now, or never will be.
   */
  collect(range: { from: number; to: number }): Promise<void>
  /** Marks a copy as complete: gateways may open it. */
  complete(): Promise<void>
  close(): Promise<void>
}

/** A text stored beside the log: who holds a job, and its progress. Nothing is derived from it. */
export interface Note {
  /** Up to 1,024 bytes. */
  name: string
  value: string | undefined
}

/** Bounds of one read. */
export interface RowsPage {
  limit: number
  maxBytes: number
  /** Called with each row whose body is damaged; the row is then returned without it. By default, the first one throws. */
  onDamage?: ((row: Pick<LogRow, 'seq' | 'kind' | 'key'>) => void) | undefined
}

/** A change of pending or held transactions: no fact, as nothing is derived from it. It has a place, as the first to come counts. */
export const CHANGE = 6

export type RowKind = FactKind | typeof CHANGE

export interface NewRow {
  kind: RowKind
  /** Unique within its kind. */
  key: Uint8Array
  body: Uint8Array
  /** When it was first inserted, if into another log. */
  at?: number
}

export interface Batch {
  /** The place of its first row. */
  first: number
  /** 8 random bytes, which distinguish batches for the same place. */
  id: Uint8Array
  /** When it is inserted, in milliseconds since 1970. */
  at: number
  rows: readonly NewRow[]
  /** The last place that its writer has read, if it has not looked since: the batch is inserted only if nothing follows that place. */
  after?: Place
}

/** Whether rows follow the place that the writer of a batch has read. @throws OtherLogError */
export async function isBehind(log: Pick<SharedLog, 'after'>, { after }: Batch): Promise<boolean> {
  return after !== undefined && (await log.after(after, { limit: 1, maxBytes: 0 })).length > 0
}

/** A batch of rows right after a place. */
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

/** How far a log was read: the place of a row, and the first place and id of its batch. */
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
    super(
      `the log has another row at place ${seq} than before: it was replaced, or restored from an earlier backup`,
    )
  }
}

/** About the most bytes of one statement or document. */
const MAX_INLINE = 4 * 1024 * 1024
/** The longest bodies stored in their row: larger batches use smaller limits. A MongoDB document has at most 16 MiB. */
const INLINE = [CHUNK_BYTES, 1024, 100]
/** The same for changes, whose bodies are deleted one day. */
const CHANGES_INLINE = 100
/** Approximate bytes of a row beside its body. */
const ROW_BYTES = 150

/** A row as it is stored: its body is in it, or in chunks under a name. */
export interface StoredRow extends NewRow {
  /** Name of its chunks: 32 bytes, the same for the same row of the same batch. */
  chunks: Uint8Array | undefined
}

export interface Chunk {
  owner: Uint8Array
  position: number
  bytes: Uint8Array
  checksum: Uint8Array
}

/** Decides which bodies of a batch are stored in chunks. Batches share none, so those of one that was not inserted can be deleted. */
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

export function* chunksAt(owner: Uint8Array, body: Uint8Array): Generator<Chunk> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    const bytes = body.subarray(at, at + CHUNK_BYTES)
    yield { owner, position: at / CHUNK_BYTES, bytes, checksum: sha256(bytes) }
  }
}

/** The chunks of these rows, in groups small enough for one statement. */
export function chunkGroups(rows: readonly StoredRow[]): Generator<Chunk[]> {
  return grouped(chunksOf(rows), MAX_INLINE, ({ bytes }) => bytes.length + ROW_BYTES)
}

function* chunksOf(rows: readonly StoredRow[]): Generator<Chunk> {
  for (const { chunks: owner, body } of rows) if (owner !== undefined) yield* chunksAt(owner, body)
}

/** How many chunks one statement asks for. */
const CHUNKS_AT_ONCE = MAX_INLINE / CHUNK_BYTES

/** Splits items into groups, one for each statement, of so many or of such a weight; a heavier item is alone. */
export function* grouped<Item>(
  items: Iterable<Item>,
  most = CHUNKS_AT_ONCE,
  weightOf = (_: Item): number => 1,
): Generator<Item[]> {
  let [group, weight]: [Item[], number] = [[], 0]
  for (const item of items) {
    const own = weightOf(item)
    if (group.length > 0 && weight + own > most) {
      yield group
      ;[group, weight] = [[], 0]
    }
    group.push(item)
    weight += own
  }
  if (group.length > 0) yield group
}

/**
 * The body of a row, joined from its chunks.
 *
 * @returns Undefined if it is that of a change and was discarded, or if damage was reported.
 * @throws DamagedError if a chunk is missing or corrupt and there is no `onDamage`.
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
  /** Closes the connections, if the log owns them. */
  close?: () => Promise<void>
  /** How long a call may take, in milliseconds. */
  patience?: number
  /** Identifies the source of a copy, up to 200 characters. The log is empty or holds part of that copy, and no gateway opens it. */
  copyOf?: string | undefined
  /** Whether the log must exist: none is created. */
  exists?: boolean
  /** Read-only: the database user needs no right to write. */
  isRead?: boolean
}

export interface LogMeta {
  get(name: string): Promise<string | undefined>
  /** Keeps an existing value. */
  add(name: string, value: string): Promise<void>
  /** Creates missing tables. */
  make(): Promise<void>
  isEmpty(): Promise<boolean>
}

/** Names under which the source of a copy is noted: while the copy is incomplete, and afterwards. */
export const COPY_OF = 'copy of'
export const COPIED_FROM = 'copied from'
/** Message for a copy that an interrupted command had already completed. */
export const IS_COPIED = 'holds a complete copy of that log already'

/**
 * The id of a log; assigns one if it has none.
 *
 * @throws CopyError if the log may not be opened or copied into.
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

/** A database holds an incomplete copy, a log where an empty database is needed, or no log. */
export class CopyError extends GeneralError<'FAILED' | 'NOT_FOUND'> {
  override readonly name = 'CopyError'
}

/** How long a database may take for one call, in milliseconds. */
const PATIENCE = 15_000

/**
 * Calls a database.
 *
 * @throws StoreUnavailableError for any error of the driver, or if there is no answer in time.
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
 * Opens a database.
 *
 * @param needed The rights its user needs.
 * @throws GeneralError `MISSING_GRANT`, which names the right that its user lacks; else what `open` throws.
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

/** The right that the user lacks, according to the database; undefined for any other error. */
function missingGrant(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  const text = messageOf(error)
  if (MYSQL_CODES.has(code)) return /([A-Z][A-Z ,]+) command denied/.exec(text)?.[1]?.trim() ?? ANY
  if (code === MONGO_CODE) return /execute command \{ (\w+)/.exec(text)?.[1] ?? ANY
  return undefined
}

const ANY = 'use the database'
