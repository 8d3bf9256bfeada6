import { rmSync } from 'node:fs'
import { Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import { FACT, type Fact, type FactKind, type NewFact } from '../facts/log.js'
import {
  lastOf,
  numberedKey,
  type PurgedValue,
  readNumberedKey,
  readRegisterFact,
} from '../facts/registers.js'
import {
  appended,
  CHANGE,
  endOf,
  type LogRow,
  type NewRow,
  type Place,
  type SharedLog,
  START,
} from '../facts/shared-log.js'
import { clearPending, type Pending, type State } from '../facts/state.js'
import { equalBytes, fromHex, toHex } from '../protocol/bytes.js'
import { parseOutpoint } from '../protocol/outpoint.js'
import { readTransaction } from '../protocol/transaction.js'
import { holdersOf, withoutContent } from './purged-content.js'
import {
  applyChange,
  changeRow,
  EMPTY,
  heldChange,
  type PrunedFact,
  pendingChange,
  prunedBy,
} from './state-changes.js'

export interface MirrorOptions {
  shared: SharedLog
  logFile: Sql
  log: LocalLog
  pending: Pending
  state: State
  /** The folder of images made from content. */
  images: string
}

/** How much is read at once: a host reads in its main thread. */
const PAGE = { limit: 250, maxBytes: 1024 * 1024 }
/** Milliseconds: an answer reads for less, and `minetree check` for minutes. */
const WAL_PATIENCE = 25

/** Records which rows of state a transaction changes. */
const CAPTURE = `
create temp table if not exists captured (place integer primary key, subject text not null, txid blob not null, is_new integer not null);
create temp trigger if not exists pending_added after insert on main.pending
  begin insert into captured (subject, txid, is_new) values ('pending', new.txid, 1); end;
create temp trigger if not exists pending_changed after update on main.pending
  begin insert into captured (subject, txid, is_new) values ('pending', new.txid, 0); end;
create temp trigger if not exists pending_deleted after delete on main.pending
  begin insert into captured (subject, txid, is_new) values ('pending', old.txid, 0); end;
create temp trigger if not exists held_added after insert on main.held
  begin insert into captured (subject, txid, is_new) values ('held', new.txid, 1); end;
create temp trigger if not exists held_deleted after delete on main.held
  begin insert into captured (subject, txid, is_new) values ('held', old.txid, 0); end;
`
const CAPTURED =
  'select subject, txid, max(is_new) as is_new from captured group by subject, txid order by min(place)'

const MOVE = 'update pending set arrived = (select max(arrived) + 1 from pending) where txid = ?'

/** A change of a pending or held transaction. */
interface Change {
  txid: Uint8Array
  /** Undefined if other gateways know it already, or need not know. As with registers, the highest number of a subject counts. */
  row?: NewRow
  /** The keys of earlier changes whose bytes nobody needs any more. */
  replaces: Uint8Array[]
  /** Whether this makes it pending for other gateways, and whether it was pending here before. */
  isAdded?: boolean
  isMoved?: boolean
}

/**
 * This gateway's copy of a shared log, which readers and the door use like a log of their own. Pending and held transactions are the
 * same on all gateways, as each change has a place among the facts; only those that were refused and wait belong to one gateway.
 */
export class Mirror {
  /** Places of changes that were replaced, to be discarded after the commit. */
  private replaced: number[] = []
  /** Whether the WAL may hold content that was removed: at first, as the process before may have been killed. */
  private mayHoldRemoved = true

  constructor(private readonly options: MirrorOptions) {
    // Deleted bytes are zeroed, as they may be content that the operator has removed.
    options.logFile.exec(`pragma secure_delete = on; ${CAPTURE}`)
  }

  /** How far the shared log was read. */
  get place(): Place {
    return placeIn(this.options.logFile)
  }

  /**
   * Reads rows that the shared log has after this copy, without storing them.
   *
   * @throws as `SharedLog.after`.
   */
  async read(): Promise<{ rows: LogRow[]; isLast: boolean }> {
    this.emptyWal()
    const { place } = this
    const rows = await this.options.shared.after(place, PAGE)
    for (const [index, { seq }] of rows.entries())
      if (seq !== place.seq + 1 + index)
        throw new Error(`the log has no row at place ${place.seq + 1 + index}, but one at ${seq}`)
    const bytes = rows.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)
    return { rows, isLast: rows.length < PAGE.limit && bytes < PAGE.maxBytes / 2 }
  }

  /** Whether rows remove facts of this copy, so that the index must be derived again. */
  isPrunedBy(rows: readonly LogRow[]): boolean {
    return rows.some((row) => {
      const pruned = prunedBy(row)
      return pruned !== undefined && (pruned.seq > this.place.seq || this.isAt(pruned))
    })
  }

  private isAt({ seq, kind, key }: PrunedFact): boolean {
    const fact = this.options.log.keyAt(seq)
    return fact?.kind === kind && equalBytes(fact.key, key)
  }

  /** Stores rows that were read, in a transaction of its own. */
  store(rows: readonly LogRow[]): void {
    const { logFile, pending } = this.options
    const last = rows.at(-1)
    if (last === undefined) return
    const totals = pending.mark()
    let isPurged = false
    logFile.exec('begin immediate')
    try {
      const purged = new Set(rows.flatMap((row) => this.storeRow(row) ?? []))
      isPurged = purged.size > 0
      if (isPurged) {
        this.forgetOwn(purged)
        this.removeImages()
      }
      this.end(last)
      logFile.run('delete from captured')
      logFile.exec('commit')
    } catch (error) {
      if (logFile.inTransaction) logFile.exec('rollback')
      pending.restore(totals)
      throw error
    }
    if (!isPurged) return
    // Until the commit, images may have been made of removed content.
    this.removeImages()
    this.mayHoldRemoved = true
    this.emptyWal()
  }

  /** Until then the WAL has removed content, and the file as well. A long read prevents it: it is tried again with each reading. */
  private emptyWal(): void {
    if (!this.mayHoldRemoved) return
    const sql = new Sql(this.options.logFile.filename, WAL_PATIENCE)
    try {
      this.mayHoldRemoved = sql.get('pragma wal_checkpoint(truncate)')?.busy !== 0
    } finally {
      sql.close()
    }
  }

  private removeImages(): void {
    // An image may be written meanwhile.
    rmSync(this.options.images, { recursive: true, force: true, maxRetries: 5 })
  }

  /**
   * Appends what this gateway wrote in its open transaction to the shared log: facts at their places here, then changes of state.
   *
   * @param options.isLate Whether others may have written since the log was read.
   * @returns Whether it was appended. If not, others were faster: roll back, and try again after theirs.
   * @throws as `SharedLog.insert`.
   */
  async append({ isLate = false } = {}): Promise<boolean> {
    const { shared, log } = this.options
    const { place } = this
    const { seq } = place
    const all = this.takeChanges()
    const changes = all.flatMap(({ row }) => row ?? [])
    const facts = log.after(seq)
    if (facts.length + changes.length === 0) return !isLate || (await this.read()).rows.length === 0
    for (const change of changes) log.insert(placeOf(change))
    const batch = { ...appended(seq, [...facts, ...changes]), ...(isLate && { after: place }) }
    if (facts.at(-1) !== undefined && facts.at(-1)?.seq !== seq + facts.length)
      throw new Error(`the copy of the log has a gap after place ${seq}`)
    if (!(await shared.insert(batch))) return false
    this.end(endOf(batch))
    const replaced = all.flatMap(({ replaces }) => replaces)
    this.replaced.push(...replaced.flatMap((key) => log.get(CHANGE as FactKind, key)?.seq ?? []))
    return true
  }

  /** Whether a pending transaction was refused here and is unknown to other gateways. */
  isOwn(txid: string): boolean {
    return !this.latest(`pending ${txid}`).isThere
  }

  /** Discards bytes in the shared log that nobody needs any more. If it cannot be reached, they stay. */
  async tidy(): Promise<void> {
    const seqs = this.replaced.splice(0)
    if (seqs.length > 0) await this.options.shared.discard(seqs).catch(() => {})
  }

  /** Empties the copy, because the log is another one. */
  clear(): void {
    const { logFile, pending } = this.options
    logFile.exec('begin immediate')
    for (const table of ['log', 'chunk']) logFile.run(`delete from ${table}`)
    clearPending(logFile)
    logFile.run("delete from log_meta where name = 'place'")
    logFile.run('delete from captured')
    logFile.exec('commit')
    pending.restore(undefined)
  }

  private end({ seq, first, batch }: Place): void {
    const { logFile } = this.options
    const value = JSON.stringify({ seq, first, batch })
    logFile.run(
      "insert into log_meta values ('place', ?) on conflict (name) do update set value = excluded.value",
      value,
    )
  }

  /** @returns The hash of a body that was removed, if the row says so. */
  private storeRow(row: LogRow): string | undefined {
    const { log, pending } = this.options
    const { kind, key, body, at } = row
    const placed = log.insert(standIn(row), at)
    if (placed?.seq !== row.seq) throw new Error(`the log has the fact at place ${row.seq} twice`)
    if (kind === CHANGE) {
      applyChange(this.options, row)
      const pruned = prunedBy(row)
      if (pruned !== undefined && this.isAt(pruned)) this.remove(pruned)
    } else if (kind === FACT.transaction) pending.delete(toHex(key))
    else if (kind === FACT.register && body !== undefined) return this.applyPurge({ key, body })
    return undefined
  }

  /** Overwrites content that the operator has removed. */
  private applyPurge(fact: Pick<LogRow, 'key'> & { body: Uint8Array }): string | undefined {
    const { log } = this.options
    const { subject, value } = readRegisterFact(fact)
    if (!subject.startsWith(PURGED)) return undefined
    const { txid, vout } = parseOutpoint(subject.slice(PURGED.length))
    const key = fromHex(txid)
    const found = log.get(FACT.transaction, key)
    if (found !== undefined) {
      log.overwrite(FACT.transaction, key, withoutContent(found, vout))
    }
    const { sha256, position } = value as PurgedValue
    const body = position === null ? log.get(FACT.body, fromHex(sha256)) : undefined
    if (body !== undefined) this.remove(body)
    return sha256
  }

  /** Deletes a fact, but keeps its place. */
  private remove(fact: Pick<Fact, 'kind' | 'key' | 'seq'>): void {
    const { logFile } = this.options
    logFile.run('delete from chunk where kind = ? and key = ?', fact.kind, fact.key)
    const gone = goneRow(fact)
    logFile.run(
      'update log set kind = ?, key = ?, length = 0, body = ? where seq = ?',
      ...[gone.kind, gone.key, gone.body, fact.seq],
    )
  }

  /** Deletes transactions that were refused here, and are unknown to others, if they contain a removed body. */
  private forgetOwn(hashes: ReadonlySet<string>): void {
    const { logFile, pending } = this.options
    for (const { txid: key } of logFile.all('select txid from pending where waiting = 1')) {
      const txid = toHex(key)
      const raw = pending.get(txid)?.raw
      if (raw !== undefined && holdersOf(readTransaction(raw, { txid }), hashes).length > 0)
        pending.delete(txid)
    }
  }

  /** The changes of state that the open transaction has captured, which it forgets. */
  private takeChanges(): Change[] {
    const changes = this.options.logFile
      .all(CAPTURED)
      .map(({ subject, txid, is_new }) => this.changeOf(subject, txid, is_new === 1))
    // Transactions that were refused here, and count now, come last for all gateways.
    if (changes.some(({ isMoved }) => isMoved))
      for (const { isAdded, txid } of changes) if (isAdded) this.options.logFile.run(MOVE, txid)
    // Otherwise each later write would look at refused transactions again.
    if (changes.length > 0) this.options.logFile.run('delete from captured')
    return changes
  }

  private changeOf(table: 'pending' | 'held', key: Buffer, isNew: boolean): Change {
    const { logFile, log } = this.options
    const subject = `${table} ${toHex(key)}`
    const { n, isThere } = this.latest(subject)
    const row = logFile.get(`select * from ${table} where txid = ?`, key)
    const change = (body: Uint8Array): Pick<Change, 'txid' | 'row'> => ({
      ...{ txid: key, row: changeRow(subject, n + 1, body) },
    })
    if (row === undefined) {
      const replaces = Array.from({ length: n }, (_, index) => numberedKey(subject, index + 1))
      // A fact implies that the transaction is no longer pending.
      const isSaid = !isThere || (table === 'pending' && log.has(FACT.transaction, key))
      return { txid: key, replaces, ...(!isSaid && change(EMPTY)) }
    }
    if (table === 'held') return { replaces: [], ...change(heldChange(row)) }
    if (!isThere && row.waiting === 1) return { txid: key, replaces: [] }
    const isAdded = isNew || !isThere
    return {
      ...change(pendingChange(logFile, row, isAdded ? row.raw : EMPTY)),
      ...{ replaces: [], isAdded, isMoved: isAdded && !isNew },
    }
  }

  /** The number of a subject's last change, and whether the subject exists after it. */
  private latest(subject: string): { n: number; isThere: boolean } {
    const last = lastOf(this.options.log, CHANGE as FactKind, subject)
    if (last === undefined) return { n: 0, isThere: false }
    return { n: readNumberedKey(last.key).n, isThere: last.body.length > 0 }
  }
}

/** How far the log was read into a copy. */
export function placeIn(logFile: Sql): Place {
  const stored = logFile.get("select value from log_meta where name = 'place'")
  return stored === undefined ? START : (JSON.parse(stored.value) as Place)
}

const PURGED = 'purged '

/** A row as the copy of the log has it. */
function standIn(row: LogRow): NewFact {
  const { kind, key, body } = row
  if (kind === CHANGE) return placeOf({ key, body })
  return body === undefined ? (goneRow(row) as NewFact) : { kind, key, body }
}

/** Fills the place of a fact whose body was discarded: it is no fact any more, and may be inserted again. */
export function goneRow({ kind, key, seq }: Pick<LogRow, 'kind' | 'key' | 'seq'>): NewRow {
  return changeRow(`gone ${kind} ${toHex(key)}`, seq)
}

/** Represents a change in the copy of the log: its place, and whether its subject exists after it. */
function placeOf({ key, body }: Pick<LogRow, 'key' | 'body'>): NewFact {
  return { kind: CHANGE as FactKind, key, body: body?.length === 0 ? EMPTY : Uint8Array.of(1) }
}
