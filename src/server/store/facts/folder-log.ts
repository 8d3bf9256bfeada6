import type { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT, type Fact, type FactKind } from '../../../../backend/src/facts/log.js'
import { readNumberedKey } from '../../../../backend/src/facts/registers.js'
import {
  type Batch,
  CHANGE,
  COPIED_FROM,
  COPY_OF,
  grouped,
  type LogRow,
  type NewRow,
  type Note,
  type Place,
  type RowKind,
  type RowsPage,
  type SharedLog,
  START,
} from '../../../../backend/src/facts/shared-log.js'
import { Pending, State } from '../../../../backend/src/facts/state.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { notesIn, writeNote } from '../../../../backend/src/writer/shared-state.js'
import {
  applyChange,
  EMPTY,
  prunedBy,
  stateRow,
  stateRows,
} from '../../../../backend/src/writer/state-changes.js'

/** A log as commands use it, wherever it is. */
export interface CommandLog
  extends Pick<
    SharedLog,
    'id' | 'insert' | 'after' | 'last' | 'get' | 'notes' | 'note' | 'discard' | 'overwrite' | 'complete'
  > {
  /** Pending and held transactions, which come after the last row, if they are not among the rows. */
  state?(): Iterable<NewRow>
}

/** The log in a folder. Nobody else writes to it meanwhile, so inserts always succeed. */
export class FolderLog implements CommandLog {
  readonly log: LocalLog
  /** Whether something was removed, so that the file has to be rewritten. */
  isCleaned = false
  private isSnapshot = false
  private readonly files: { pending: Pending; state: State }

  /** @param options.isRead Whether the log is only read, while a service may run. */
  constructor(
    readonly sql: Sql,
    private readonly options: { isRead?: boolean } = {},
  ) {
    this.log = new LocalLog(sql)
    this.files = { pending: new Pending(sql), state: new State(sql) }
  }

  get id(): string {
    return this.log.id
  }

  async last(): Promise<number> {
    return this.log.last
  }

  /**
   * While a service may run, the end of the log and the state are read from one snapshot. The long part before is not, as that
   * would make the WAL of the service grow.
   */
  async after(place: Pick<Place, 'seq'>, page: RowsPage): Promise<LogRow[]> {
    const { sql, log } = this
    const rows = page.onDamage ? this.readable(place.seq, page) : log.after(place.seq, page).map(rowOf)
    if (rows.length > 0 || !this.options.isRead || this.isSnapshot) return rows
    sql.exec('begin')
    this.isSnapshot = true
    return await this.after(place, page)
  }

  *state(): Generator<NewRow> {
    yield* stateRows(this.sql)
    if (this.isSnapshot) this.sql.exec('commit')
    this.isSnapshot = false
  }

  async get(kind: RowKind, key: Uint8Array): Promise<LogRow | undefined> {
    if (kind !== CHANGE) {
      const fact = this.log.get(kind, key)
      return fact && rowOf(fact)
    }
    const { subject, n } = readNumberedKey(key)
    if (n > 1) return undefined
    const row = stateRow(this.sql, subject)
    return row && { ...START, at: 0, ...row }
  }

  async insert({ at, rows }: Batch): Promise<boolean> {
    const { sql, log, files } = this
    const isWhole = sql.inTransaction
    if (!isWhole) sql.exec('begin')
    for (const row of rows) {
      const pruned = prunedBy(row)
      if (pruned !== undefined) this.remove(pruned)
      else if (row.kind === CHANGE) applyChange(files, row)
      else log.insert({ ...row, kind: row.kind }, row.at ?? at)
    }
    if (!isWhole) sql.exec('commit')
    return true
  }

  async overwrite({ kind, key }: Pick<LogRow, 'kind' | 'key'>, body: Uint8Array): Promise<void> {
    this.isCleaned = true
    this.log.overwrite(kind as FactKind, key, body)
  }

  async discard(seqs: readonly number[]): Promise<void> {
    this.isCleaned = true
    for (const seq of seqs) {
      const fact = this.log.keyAt(seq)
      if (fact !== undefined) this.remove(fact)
    }
  }

  private remove({ kind, key }: Pick<Fact, 'kind' | 'key'>): void {
    for (const table of ['log', 'chunk'])
      this.sql.run(`delete from ${table} where kind = ? and key = ?`, kind, key)
  }

  /** Returns all notes at once. */
  async notes(after: string): Promise<Note[]> {
    return after === '' ? notesIn(this.sql) : []
  }

  async note(notes: readonly Note[]): Promise<void> {
    for (const { name, value } of notes) if (value !== undefined) writeNote(this.sql, name, value)
  }

  /** If a copy has a transaction both as pending and as a fact, it is no longer pending. */
  async complete(): Promise<void> {
    const { pending } = this.files
    const facts = 'select txid from pending where exists (select 1 from log where kind = ? and key = txid)'
    for (const { txid } of this.sql.all(facts, FACT.transaction)) pending.delete(toHex(txid))
    this.sql.run('update log_meta set name = ? where name = ?', COPIED_FROM, COPY_OF)
  }

  /** Reads rows one by one: those that are damaged, or not found by their keys, are reported, and have no body. */
  private readable(seq: number, { limit, onDamage = () => {} }: RowsPage): LogRow[] {
    const { last } = this.log
    const rows: LogRow[] = []
    for (let place = seq + 1; place <= last && rows.length < limit; place++) {
      const fact = unlessDamaged(() => this.factAt(place))
      if (fact === undefined) continue
      const row = fact === 'damaged' ? this.outlineAt(place) : rowOf(fact)
      if (fact === 'damaged') onDamage(row)
      rows.push(row)
    }
    return rows
  }

  private factAt(place: number): Fact | 'damaged' | undefined {
    if (this.log.keyAt(place) === undefined) return undefined
    const [fact] = this.log.after(place - 1, { limit: 1, maxBytes: 0 })
    return fact !== undefined && this.log.has(fact.kind, fact.key) ? fact : 'damaged'
  }

  /** A row of which perhaps only the place is readable. */
  private outlineAt(seq: number): LogRow {
    const found = unlessDamaged(() => this.log.keyAt(seq))
    const known = found === 'damaged' || found === undefined ? { kind: FACT.transaction, key: EMPTY } : found
    return { ...START, seq, at: 0, ...known, body: undefined }
  }
}

function rowOf(fact: Fact): LogRow {
  return { ...START, ...fact }
}

function unlessDamaged<Found>(read: () => Found): Found | 'damaged' {
  try {
    return read()
  } catch (error) {
    if (isDamage(error)) return 'damaged'
    throw error
  }
}

export const PAGE = { limit: 250, maxBytes: 8 * 1024 * 1024 }
/** Rows of state to read at once; each may be long. */
const STATE_AT_ONCE = 20

/** A row of a log, or of the pending and held transactions beside it. */
export type FoundRow = Omit<NewRow, 'body'> & Partial<Place> & Pick<LogRow, 'body'>

/** All rows of a log after a place, page by page, then pending and held transactions. */
export async function* pagesOf(
  log: CommandLog,
  { from = START, ...options }: { from?: Place } & Pick<RowsPage, 'onDamage'> = {},
): AsyncGenerator<FoundRow[]> {
  for (let place = from; ; ) {
    const rows = await log.after(place, { ...PAGE, ...options })
    const last = rows.at(-1)
    if (last === undefined) break
    place = last
    yield rows
  }
  yield* grouped(log.state?.() ?? [], STATE_AT_ONCE)
}
