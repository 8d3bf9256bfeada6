import { existsSync } from 'node:fs'
import { access, constants, mkdir, rename } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { FACT } from '../../../../backend/src/facts/log.js'
import { makeCopy } from '../../../../backend/src/facts/log-file.js'
import {
  type PurgedValue,
  readNumberedKey,
  readRegisterFact,
  register,
  registerFact,
} from '../../../../backend/src/facts/registers.js'
import {
  appended,
  CHANGE,
  COPIED_FROM,
  endOf,
  grouped,
  IS_COPIED,
  type LogRow,
  type NewRow,
  type Place,
  START,
} from '../../../../backend/src/facts/shared-log.js'
import { clearPending } from '../../../../backend/src/facts/state.js'
import { DamagedError } from '../../../../backend/src/graph/errors.js'
import { equalBytes, toHex } from '../../../../backend/src/protocol/bytes.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { goneRow } from '../../../../backend/src/writer/mirror.js'
import { isState } from '../../../../backend/src/writer/shared-state.js'
import { changeRow, EMPTY, prunedBy } from '../../../../backend/src/writer/state-changes.js'
import { ConfigError, reasonOf, StartError } from '../../config/errors.js'
import { syncFolder } from '../durable-file.js'
import { OLD_STORE, readFolder } from './folder.js'
import { type CommandLog, FolderLog, type FoundRow, PAGE, pagesOf } from './folder-log.js'
import { type LogPlace, logPlaceOf, readLog, shownPlace, withSharedLog } from './log-place.js'
import { raisedBase } from './log-settings.js'
import { removeBody, removePurged } from './purge.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

export interface CopyOptions {
  /** A folder, or the URL of a database (`logPlaceOf`). */
  from: string
  to: string
  signal: AbortSignal
  onProgress: (copied: { facts: number; share: number }) => void
}

export interface Copied {
  facts: number
  id: string
}

/**
 * Copies a log with pending and held transactions, registers and the progress of jobs, while services run. Each fact is verified on
 * the way. The copy has its own id, so that a gateway derives its index again, and higher scores than the log has by now: peers may
 * have passed those that the log gives from here on. The same command continues an interrupted copy: its contents are compared with
 * the log, which may have grown.
 *
 * @throws ConfigError for a place that is neither a folder nor the URL of a database, or a target within the store; GeneralError if
 * there is no log, or the target holds one; StartError if the target cannot be written; as {@link readLog}; DamagedError; the reason
 * of the signal.
 */
export async function copyLog({ from, to, ...options }: CopyOptions): Promise<Copied> {
  const [source, target] = [logPlaceOf(from), logPlaceOf(to)]
  return await readLog(source, async (log) => {
    const copy = (into: CommandLog): Promise<Copied> => new Copy(log, into, target).run(options)
    if (log instanceof FolderLog) assertOwn(shownPlace(source), log.sql)
    if (!('folder' in target)) return await withSharedLog(target, { copyOf: log.id }, copy)
    if ('folder' in source && resolve(to).startsWith(join(resolve(from), sep)))
      throw new ConfigError(`${to} is within the store itself: choose a folder elsewhere`)
    return await intoFolder(target.folder, { copyOf: log.id, copy })
  })
}

/** @throws ConfigError if a folder holds a gateway's copy of a shared log. */
function assertOwn(folder: string, sql: Sql): void {
  if (sql.get("select 1 as one from log_meta where name = 'place'") !== undefined)
    throw new ConfigError(`${folder} is a gateway copy of a log in a database: name that database instead`)
}

/** Makes a log in a folder that has none, in a file that is renamed once it is complete. */
async function intoFolder(
  folder: string,
  { copyOf, copy }: { copyOf: string; copy: (into: FolderLog) => Promise<Copied> },
): Promise<Copied> {
  const { log: target } = storeFiles(folder)
  if (existsSync(target) && (await readFolder(folder, async ({ sql }) => sql.get(FROM)?.value)) === copyOf)
    throw new GeneralError('FAILED', `${folder} ${IS_COPIED}`)
  if (existsSync(target) || existsSync(join(folder, OLD_STORE)))
    throw new GeneralError('FAILED', `${folder} holds a store already: choose an empty folder`)
  await makeWritable(folder)
  const part = join(folder, 'log.db.part')
  const sql = new Sql(part)
  try {
    // No other process reads the part, and after a power loss the copy continues from what was last synced. What the log has removed
    // meanwhile must not be found in free space.
    sql.exec('pragma journal_mode = delete; pragma synchronous = full; pragma secure_delete = on;')
    if (makeCopy(sql, copyOf) !== copyOf)
      throw new GeneralError('FAILED', 'the folder holds part of a copy of another log: empty it')
    // Pending transactions are written again.
    clearPending(sql)
    const copied = await copy(new FolderLog(sql))
    sql.close()
    await rename(part, target)
    await syncFolder(folder)
    return copied
  } finally {
    sql.close()
  }
}

const FROM = `select value from log_meta where name = '${COPIED_FROM}'`

async function makeWritable(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
  } catch (error) {
    throw new StartError(`cannot write to ${folder}: ${reasonOf(error)}`, { cause: error })
  }
}

const BASE = register.setting('base')

function isBase({ kind, key }: Pick<NewRow, 'kind' | 'key'>): boolean {
  return kind === FACT.register && readNumberedKey(key).subject === BASE
}

class Copy {
  /** The last row of the copy that was read or written, and the rows read but not compared yet. */
  private place: Place = START
  private readonly there: LogRow[] = []
  private isAtEnd = false
  /** The numbers of pending and held transactions in the copy, if the log does not have them as rows. */
  private readonly known = new Map<string, number>()
  /** The base of scores: its last number in log and copy, that in the copy alone, and the highest value in the log. */
  private readonly bases = { all: 0, own: 0, highest: 0 }
  /** Facts of the log that do not match their keys, except those from which content was removed. */
  private readonly unsound = new Map<string, string>()
  /** The hashes of removed bodies, by outpoint. */
  private readonly purged = new Map<string, string>()
  private readonly counts = { looked: 0, facts: 0, inserted: 0 }

  constructor(
    private readonly log: CommandLog,
    private readonly into: CommandLog,
    private readonly target: LogPlace,
  ) {}

  async run({ signal, onProgress }: Pick<CopyOptions, 'signal' | 'onProgress'>): Promise<Copied> {
    const { log, into, counts, bases } = this
    const total = await log.last()
    for await (const rows of pagesOf(log)) {
      const missing: NewRow[] = []
      for (const row of rows) missing.push(...(await this.missing(this.checked(row))))
      await this.insert(missing)
      counts.inserted += missing.length
      counts.looked += rows.length
      signal.throwIfAborted()
      onProgress({ facts: counts.inserted, share: Math.min(1, counts.looked / total) })
      await setImmediate()
    }
    for (const [key, kind] of this.unsound) throw new DamagedError(key, kind)
    await this.toEnd()
    // Transactions that are no longer pending or held.
    await this.insert([...this.known].map(([subject, n]) => changeRow(subject, n + 1)))
    const base = raisedBase({ base: bases.highest, last: total })
    await this.insert([registerFact(BASE, bases.all + 1, base)])
    await this.copyNotes()
    // Removes from the copy what the log removed after it was copied.
    await removePurged(into, this.purged.keys())
    for (const hash of new Set(this.purged.values())) await removeBody(into, hash)
    await into.complete()
    return { facts: counts.facts + 1, id: into.id }
  }

  private checked({ kind, key, body, at, seq = 0 }: FoundRow): NewRow {
    const time = at !== undefined && { at }
    if (kind === CHANGE) return { kind, key, body: body ?? EMPTY, ...time }
    if (body === undefined) return { ...goneRow({ kind, key, seq }), ...time }
    const fact = { kind, key, body, at: at ?? 0, seq }
    if (!isSound(fact)) this.unsound.set(toHex(key), FACT_NAMES[kind])
    else if (kind === FACT.register) this.look(fact)
    if (!isBase(fact)) this.counts.facts++
    return fact
  }

  private look(fact: { key: Uint8Array; body: Uint8Array }): void {
    const { bases } = this
    const { subject, n, value } = readRegisterFact(fact)
    if (subject === BASE) {
      bases.all = Math.max(bases.all, n)
      bases.highest = Math.max(bases.highest, Number(value))
    }
    const [kind, outpoint = ''] = subject.split(' ')
    if (kind !== 'purged') return
    this.unsound.delete(outpoint.split('_')[0] ?? '')
    this.purged.set(outpoint, (value as PurgedValue).sha256)
  }

  /** The rows that the copy lacks, given the next row of the log. */
  private async missing(row: NewRow): Promise<NewRow[]> {
    const { log, into, bases, known } = this
    if (row.kind === CHANGE && log.state !== undefined) {
      await this.toEnd()
      const { subject } = readNumberedKey(row.key)
      const n = known.get(subject) ?? 0
      known.delete(subject)
      return [changeRow(subject, n + 1, row.body)]
    }
    if (row.kind === CHANGE && into.state !== undefined) {
      // A folder keeps no changes as rows. Rows after a removal may be the fact itself, which came again.
      const isDone = prunedBy(row) !== undefined && (await this.behindOwn()) !== undefined
      return isDone ? [] : [row]
    }
    let own = await this.peek()
    while (own !== undefined && !isSame(own, row) && this.isOwn(own)) own = await this.peek()
    if (own !== undefined && isSame(own, row)) {
      this.there.shift()
      return []
    }
    if (isBase(row) && readNumberedKey(row.key).n <= bases.own) return []
    if (own !== undefined) throw this.otherError(own)
    return [row]
  }

  private async toEnd(): Promise<void> {
    const own = await this.behindOwn()
    if (own !== undefined) throw this.otherError(own)
  }

  /** The next row of the copy that is not the copy's alone; undefined at its end. */
  private async behindOwn(): Promise<LogRow | undefined> {
    let own = await this.peek()
    while (own !== undefined && this.isOwn(own)) own = await this.peek()
    return own
  }

  /** Whether a row is the copy's alone; if so, it is skipped. */
  private isOwn({ kind, key }: LogRow): boolean {
    const { subject, n } = isBase({ kind, key }) || kind === CHANGE ? readNumberedKey(key) : NONE
    if (subject === BASE) {
      this.bases.own = Math.max(this.bases.own, n)
      this.bases.all = Math.max(this.bases.all, n)
    } else if (kind === CHANGE && this.log.state !== undefined) this.known.set(subject, n)
    else return false
    this.there.shift()
    return true
  }

  private async peek(): Promise<LogRow | undefined> {
    if (this.there.length === 0 && !this.isAtEnd) {
      this.there.push(...(await this.into.after(this.place, PAGE)))
      this.place = this.there.at(-1) ?? this.place
      this.isAtEnd = this.there.length === 0
    }
    return this.there[0]
  }

  private async insert(rows: readonly NewRow[]): Promise<void> {
    if (rows.length === 0) return
    const batch = appended(this.place.seq, rows)
    if (!(await this.into.insert(batch)))
      throw new StartError(`another process writes to ${shownPlace(this.target)}`)
    if (this.isAtEnd) this.place = endOf(batch)
  }

  private async copyNotes(): Promise<void> {
    for (let after = ''; ; ) {
      const notes = await this.log.notes(after, PAGE.limit)
      for (const some of grouped(notes.filter(({ name }) => isState(name)))) await this.into.note(some)
      const last = notes.at(-1)
      if (last === undefined) return
      after = last.name
    }
  }

  private otherError({ seq }: LogRow): GeneralError {
    return new GeneralError(
      'FAILED',
      `${shownPlace(this.target)} differs from the log at place ${seq}: empty it`,
    )
  }
}

const NONE = { subject: '', n: 0 }

/** Whether a row of a copy equals its source, where changes may have been discarded and content removed since. */
function isSame({ kind, key, body, ...row }: LogRow, own: NewRow): boolean {
  if (kind !== own.kind || !equalBytes(key, own.key)) return false
  if (kind === CHANGE || body === undefined) return true
  return equalBytes(body, own.body) || isSound({ ...row, kind, key, body })
}
