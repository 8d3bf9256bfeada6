import { randomBytes } from 'node:crypto'
import type { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT, type Fact } from '../../../../backend/src/facts/log.js'
import { makeCopy } from '../../../../backend/src/facts/log-file.js'
import {
  type PurgedValue,
  readNumberedKey,
  readRegisterFact,
  register,
  registerFact,
} from '../../../../backend/src/facts/registers.js'
import {
  CHANGE,
  grouped,
  type LogRow,
  type NewRow,
  type Place,
  type SharedLog,
  START,
} from '../../../../backend/src/facts/shared-log.js'
import { Pending, State } from '../../../../backend/src/facts/state.js'
import { DamagedError } from '../../../../backend/src/graph/errors.js'
import { equalBytes, toHex } from '../../../../backend/src/protocol/bytes.js'
import { goneRow, Mirror, stateRows } from '../../../../backend/src/writer/mirror.js'
import {
  assertOwn,
  assertSound,
  type Copied,
  type CopyOptions,
  cleanedAt,
  endCopy,
  isBegun,
  markBegun,
  raisedBase,
  raiseScores,
  scoresOf,
} from './copied-log.js'
import { readLog } from './folder.js'
import { type DatabasePlace, shownPlace, withSharedLog } from './log-place.js'
import { MaintenanceError } from './maintenance-error.js'
import { removeBody, removePurged } from './purge-shared.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

type Copying = Pick<CopyOptions, 'signal' | 'onProgress'>

/** What is read and inserted at once. */
const PAGE = { limit: 250, maxBytes: 8 * 1024 * 1024 }
/** Rows of state, each of which may be long, that are inserted at once. */
const STATE_AT_ONCE = 20

/** Copies a log out of a database into the file of one in a folder, up to its last place by now. */
export async function fromDatabase(from: DatabasePlace, sql: Sql, copying: Copying): Promise<Copied> {
  return await withSharedLog(from, { exists: true }, async (shared) => {
    if (!isBegun(sql, shared.id)) {
      makeCopy(sql, shared.id)
      markBegun(sql, shared.id)
    }
    const log = new LocalLog(sql)
    const files = { logFile: sql, log, pending: new Pending(sql), state: new State(sql) }
    await fill(new Mirror({ shared, ...files }), await shared.last(), copying)
    const facts = verify(log)
    sql.exec('begin')
    raiseScores(log)
    sql.run('delete from log where kind = ?', CHANGE)
    sql.run("delete from log_meta where name = 'place'")
    const id = endCopy(sql)
    sql.exec('commit')
    return { facts, id }
  })
}

async function fill(mirror: Mirror, last: number, { signal, onProgress }: Copying): Promise<void> {
  for (let seq = mirror.place.seq; seq < last; seq = mirror.place.seq) {
    signal.throwIfAborted()
    const { rows } = await mirror.read()
    mirror.store(rows.filter((row) => row.seq <= last))
    onProgress({ facts: mirror.place.seq, share: mirror.place.seq / last })
  }
}

/** @returns How many facts a log has. @throws DamagedError if one is not what its key says. */
function verify(log: LocalLog): number {
  let facts = 0
  for (let page = log.after(0, PAGE); page.length > 0; page = log.after(page.at(-1)?.seq ?? 0, PAGE))
    for (const fact of page) {
      if ((fact.kind as number) === CHANGE) continue
      assertSound(fact, log)
      facts++
    }
  return facts
}

/** Copies the log in a folder into a database. */
export async function folderToDatabase(
  { folder }: { folder: string },
  to: DatabasePlace,
  copying: Copying,
): Promise<Copied> {
  const read = async (log: LocalLog, sql: Sql): Promise<Copied> => {
    assertOwn(folder, sql)
    // What was removed from its source since is not to be found in a copy.
    const copyOf = [log.id, cleanedAt(sql)].join(' ')
    return await withSharedLog(to, { copyOf }, async (shared) => {
      const source: Source = {
        ...{ total: sql.get('select count(*) as count from log')?.count ?? 0, rows: factsOf(log, sql) },
        state: (known) => stateRows(sql, known),
        base: () => raisedBase(scoresOf(log)),
      }
      return await new CopyToDatabase(to, shared, source).run(copying)
    })
  }
  // Not all of it from one snapshot: a service that writes meanwhile could not keep its WAL short.
  return await readLog(folder, read, { isSnapshot: false })
}

/** All facts of a log. From the end of what was there at first on, they and whatever is read afterwards are of one moment. */
async function* factsOf(log: LocalLog, sql: Sql): AsyncGenerator<NewRow[]> {
  for (let place = 0; ; ) {
    const facts = log.after(place, PAGE)
    if (facts.length === 0 && sql.inTransaction) return
    if (facts.length === 0) sql.exec('begin')
    for (const fact of facts) assertSound(fact, log)
    place = facts.at(-1)?.seq ?? place
    yield facts
  }
}

/** Copies a log from one database into another one, up to its last place by now. */
export async function betweenDatabases(
  from: DatabasePlace,
  to: DatabasePlace,
  copying: Copying,
): Promise<Copied> {
  return await withSharedLog(from, { exists: true }, (source) =>
    withSharedLog(to, { copyOf: source.id }, async (shared) => {
      const total = await source.last()
      const rows = new SharedRows(source, total)
      const base = (): string => raisedBase({ base: rows.given, last: total })
      // What was removed after it was copied is removed from the copy.
      const prepare = async (): Promise<void> => {
        await removePurged(shared, rows.purged.keys())
        for (const hash of new Set(rows.purged.values())) await removeBody(shared, hash)
      }
      return await new CopyToDatabase(to, shared, { total, rows: rows.pages(), base, prepare }).run(copying)
    }),
  )
}

/** The rows of a log in a database, verified. */
class SharedRows {
  private readonly unsound = new Map<string, Pick<Fact, 'kind' | 'key'>>()
  /** What its scores are counted from. */
  given = 0
  /** The hashes of bodies that were removed, by outpoint. */
  readonly purged = new Map<string, string>()

  constructor(
    private readonly source: SharedLog,
    private readonly last: number,
  ) {}

  /** @throws DamagedError after the last, if a fact is not what its key says, and nothing was removed from it. */
  async *pages(): AsyncGenerator<NewRow[]> {
    for (let place: Place = START; place.seq < this.last; ) {
      const rows = await this.source.after(place, PAGE)
      place = rows.at(-1) ?? { ...place, seq: this.last }
      yield rows.filter(({ seq }) => seq <= this.last).map((row) => this.checked(row))
    }
    for (const { kind, key } of this.unsound.values()) throw new DamagedError(toHex(key), FACT_NAMES[kind])
  }

  private checked(row: LogRow): NewRow {
    const { kind, key, body, at } = row
    if (kind === CHANGE) return { kind, key, body: body ?? new Uint8Array(), at }
    if (body === undefined) return { ...goneRow(row), at }
    const fact = { kind, key, body, at, seq: row.seq }
    if (!isSound(fact)) this.unsound.set(toHex(key), fact)
    else if (kind === FACT.register) this.look(fact)
    return fact
  }

  private look(fact: Fact): void {
    const { subject, value } = readRegisterFact(fact)
    if (subject === BASE) this.given = Math.max(this.given, Number(value))
    const [kind, outpoint = ''] = subject.split(' ')
    if (kind !== 'purged') return
    this.unsound.delete(outpoint.split('_')[0] ?? '')
    this.purged.set(outpoint, (value as PurgedValue).sha256)
  }
}

/** What is copied into a database. */
interface Source {
  /** About how many rows. */
  total: number
  /** Pages of them, verified. What scores are counted from is left out of the copy. */
  rows: AsyncGenerator<NewRow[]>
  /** What is pending and held, if that is not among the rows. */
  state?: (known: ReadonlyMap<string, number>) => Iterable<NewRow>
  /** What the scores of the copy are counted from. */
  base: () => string
  /** What is to be done before the copy is complete. */
  prepare?: () => Promise<void>
}

const BASE = register.setting('base')

function isBase({ kind, key }: Pick<NewRow, 'kind' | 'key'>): boolean {
  return kind === FACT.register && readNumberedKey(key).subject === BASE
}

/** A copy into a database: what an interrupted one has inserted is compared with the source, and the rest follows. */
class CopyToDatabase {
  private place: Place = START
  private page: NewRow[] = []
  private copied = 0
  /** The numbers of the state that is there, and how often it says what scores are counted from. */
  private readonly known = new Map<string, number>()
  private bases = 0

  constructor(
    private readonly to: DatabasePlace,
    private readonly shared: SharedLog,
    private readonly source: Source,
  ) {}

  async run({ signal, onProgress }: Copying): Promise<Copied> {
    const { shared, source } = this
    const report = (): void => {
      signal.throwIfAborted()
      onProgress({ facts: this.copied, share: Math.min(1, this.copied / source.total) })
    }
    for (let there = await this.there(); there.length > 0; there = await this.there()) {
      for (const row of there) await this.compare(row)
      this.place = there.at(-1) ?? this.place
      report()
    }
    for (let rows = this.page; ; ) {
      const wanted = rows.filter((row) => !isBase(row))
      await this.insert(wanted)
      this.copied += countFacts(wanted)
      report()
      const next = await source.rows.next()
      if (next.done) break
      rows = next.value
    }
    for (const rows of grouped(source.state?.(this.known) ?? [], STATE_AT_ONCE)) await this.insert(rows)
    await this.insert([registerFact(BASE, this.bases + 1, source.base())])
    await source.prepare?.()
    await shared.complete()
    return { facts: this.copied + 1, id: shared.id }
  }

  private async there(): Promise<LogRow[]> {
    return await this.shared.after(this.place, PAGE)
  }

  private async compare(row: LogRow): Promise<void> {
    if (isBase(row)) {
      this.bases++
      return
    }
    if (row.kind === CHANGE && this.source.state !== undefined) {
      const { subject, n } = readNumberedKey(row.key)
      this.known.set(subject, n)
      return
    }
    const own = await this.next()
    if (own?.kind !== row.kind || !equalBytes(own.key, row.key) || !isStored(row, own))
      throw new MaintenanceError(
        `${shownPlace(this.to)} holds something else at place ${row.seq} than the log: empty the database`,
      )
    this.copied += countFacts([row])
  }

  private async next(): Promise<NewRow | undefined> {
    for (;;) {
      for (let row = this.page.shift(); row !== undefined; row = this.page.shift())
        if (!isBase(row)) return row
      const next = await this.source.rows.next()
      if (next.done) return undefined
      this.page = [...next.value]
    }
  }

  private async insert(rows: readonly NewRow[]): Promise<void> {
    if (rows.length === 0) return
    const [first, id, at] = [this.place.seq + 1, randomBytes(8), Date.now()]
    if (!(await this.shared.insert({ first, id, at, rows })))
      throw new MaintenanceError(`another process writes to ${shownPlace(this.to)}`)
    this.place = { seq: this.place.seq + rows.length, first, batch: toHex(id) }
  }
}

function countFacts(rows: readonly Pick<NewRow, 'kind'>[]): number {
  return rows.filter(({ kind }) => kind !== CHANGE).length
}

/** Whether a row of a copy says what its source does: changes may have been discarded there since. */
function isStored({ kind, key, body, ...row }: LogRow, own: NewRow): boolean {
  if (kind === CHANGE || body === undefined) return true
  return equalBytes(body, own.body) || isSound({ ...row, kind, key, body })
}
