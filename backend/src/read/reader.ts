import { type Row, Sql } from '../facts/connection.js'
import { LocalLog } from '../facts/local-log.js'
import type { Dependency } from '../graph/dependencies.js'
import { StoreUnavailableError, UnstableReadError } from '../graph/errors.js'
import { type Awaitable, inSlices, TimeSlice } from '../graph/yield-to-event-loop.js'
import { EVERYTHING } from '../index/journal.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { Steps } from '../protocol/steps.js'

/**
 * A read-only connection to the index, with the log attached as `log`: one statement reads bytes together with the row that
 * points to them. Statements are synchronous.
 */
export class Reader {
  private open: Open | undefined
  /** At least how many commits the current snapshot has. */
  private seen: number | undefined
  /** Long lists read ahead for the current answer, and at least how many commits there were before. */
  private ahead: { lists: Map<string, unknown[]>; commits: number } | undefined

  /**
   * @param files Both must exist. Without them, all reads throw StoreUnavailableError until {@link attach}.
   * @param writer Counts at least the commits that were answered; by default, SQLite is asked.
   */
  constructor(files?: { index: string; log: string }, writer?: Open['writer']) {
    if (files === undefined) return
    const sql = new Sql(files.index)
    sql.run('attach ? as log', files.log)
    sql.exec(PRAGMAS)
    this.open = { sql, log: new LocalLog(sql, 'log'), writer }
  }

  /** Switches to the connection of another reader; undefined for none. */
  attach(other: Reader | undefined): void {
    this.open = other?.open
  }

  private get opened(): Open {
    if (this.open === undefined) throw new StoreUnavailableError(new Error('the index is not open'))
    return this.open
  }

  private counted(): number {
    return this.opened.writer?.commits.value ?? this.version
  }

  /** As {@link snapshot}, with the files. `read` must be synchronous. */
  answer<Answer>(read: (sql: Sql, log: LocalLog) => Answer): Answer {
    const { sql, log } = this.opened
    return this.snapshot(() => read(sql, log))
  }

  /**
   * Runs reads that belong together, on one snapshot. Reads in one turn of the event loop share it while nothing is committed, as
   * a snapshot takes as long as a read.
   *
   * @param read Must be synchronous. Gets at least how many commits the snapshot has.
   */
  snapshot<Answer>(read: (commits: number) => Answer): Answer {
    if (this.seen !== undefined) return read(this.seen)
    const { opened } = this
    const held = hold(opened, this.counted())
    this.seen = this.ahead?.commits ?? held
    try {
      return read(this.seen)
    } finally {
      this.seen = undefined
      // Without counted commits, nothing shows that it is outdated.
      if (opened.writer === undefined) release(opened)
    }
  }

  /**
   * Runs a read of several snapshots, and repeats it if there was a reorganisation meanwhile, so that no answer mixes two states.
   *
   * @throws UnstableReadError if reorganisations keep happening.
   */
  async acrossSnapshots<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    for (let tried = 0; tried < TRIES; tried++) {
      const { reorgs } = this
      const [found] = await Promise.allSettled([read()])
      const isFailed = found.status === 'rejected'
      // Errors, too, may come from a mix of two states, except that the store is unavailable.
      if (isFailed && found.reason instanceof StoreUnavailableError) throw found.reason
      if (this.reorgs !== reorgs) continue
      if (isFailed) throw found.reason
      return found.value
    }
    throw new UnstableReadError(
      `the read was retried ${TRIES} times because the chain kept reorganising; try again`,
    )
  }

  /**
   * Reads a list. That takes few steps, unless much is left out: blocked content may be inscribed a million times.
   *
   * @param key The question.
   * @throws LongList if it takes more than a few steps; {@link afterLong} catches it.
   */
  list<Item>(key: string, steps: Steps<Item[]>): Item[] {
    const known = this.ahead?.lists.get(key)
    if (known !== undefined) return known as Item[]
    for (let taken = 0; taken < STEPS_AT_ONCE; taken++) {
      const step = steps.next()
      if (step.done === true) return step.value
    }
    throw new LongList(key, steps)
  }

  /** Makes an answer: at once, or after its long lists were read in slices, so that other requests run in between. */
  afterLong<Answer>(answer: () => Answer): Awaitable<Answer> {
    try {
      return answer()
    } catch (error) {
      if (!(error instanceof LongList)) throw error
      return this.acrossSnapshots(() => this.withLists(answer))
    }
  }

  private async withLists<Answer>(answer: () => Answer): Promise<Answer> {
    const ahead = { lists: new Map<string, unknown[]>(), commits: this.commits }
    for (;;) {
      let missing: LongList
      this.ahead = ahead
      try {
        return answer()
      } catch (error) {
        if (!(error instanceof LongList)) throw error
        missing = error
      } finally {
        this.ahead = undefined
      }
      ahead.lists.set(missing.key, await inSlices(missing.rest))
    }
  }

  /** How many commits the next read is sure to see. */
  get commits(): number {
    return this.seen ?? this.counted()
  }

  /** How often results of earlier writes changed, or what is blocked. */
  get reorgs(): number {
    return this.count('reorgs')
  }

  count(name: 'reorgs' | 'blocks' | 'names' | 'inscriptions' | 'transactions'): number {
    return this.answer((sql) =>
      Number(sql.get(`select ${name} as count from counts where id = 1`)?.count ?? 0),
    )
  }

  /** Answers a question about each of some items, from one snapshot. */
  all<Item, Found>(items: readonly Item[], find: (sql: Sql, item: Item) => Found | Found[]): Found[] {
    return this.answer((sql) => items.flatMap((item) => find(sql, item)))
  }

  /**
   * Answers a question about many items, each page of them from one snapshot, yielding in between. Synchronous if one page is
   * enough.
   */
  each<Item, Found>(
    items: readonly Item[],
    find: (sql: Sql, item: Item) => Found | Found[],
  ): Awaitable<Found[]> {
    return items.length <= PAGE ? this.all(items, find) : this.pages(items, find)
  }

  private async pages<Item, Found>(
    items: readonly Item[],
    find: (sql: Sql, item: Item) => Found | Found[],
  ): Promise<Found[]> {
    const found: Found[] = []
    const slice = new TimeSlice()
    for (let at = 0; at < items.length; at += PAGE) {
      if (at > 0) await slice.yieldIfOver()
      for (const each of this.all(items.slice(at, at + PAGE), find)) found.push(each)
    }
    return found
  }

  /** Changes with each commit of another connection (https://sqlite.org/pragma.html#pragma_data_version). */
  get version(): number {
    return Number(this.opened.sql.get('pragma data_version')?.data_version)
  }

  close(): void {
    this.open?.sql.close()
  }
}

interface Open {
  sql: Sql
  log: LocalLog
  writer: { readonly commits: { readonly value: number } } | undefined
  /** At least how many commits the held snapshot has. */
  held?: number | undefined
}

/** Reads of names use pages all over the index: with SQLite's default of 2 MiB, they take a quarter longer at 90,000 transactions. */
const PRAGMAS = 'pragma query_only = 1; pragma cache_size = -16384'

/** Begins a snapshot, unless one with as many commits is held. It ends with this turn of the event loop. */
function hold(open: Open, commits: number): number {
  const { sql } = open
  if (open.held === commits && sql.inTransaction) return commits
  if (open.held === undefined) setImmediate(() => release(open))
  release(open)
  sql.exec('begin')
  // The index comes first, so that whatever it knows is in the log: the snapshot of a file is taken when it is first read.
  sql.get('select id from counts where id = 1')
  open.held = commits
  return commits
}

function release(open: Open): void {
  open.held = undefined
  if (open.sql.inTransaction) open.sql.exec('commit')
}

/** A long list, which has to be read before the answer that it is part of. */
class LongList extends Error {
  constructor(
    readonly key: string,
    readonly rest: Steps<unknown[]>,
  ) {
    super(`${key} takes several turns of the event loop, and is not read yet`)
  }
}

/** Takes some milliseconds. */
const STEPS_AT_ONCE = 4

/** How often a long read is tried while reorganisations interrupt it. */
const TRIES = 20

/** Takes about a millisecond. */
const PAGE = 200

/** Txids and hashes as columns hold them: 32 bytes in display order. */
export function blobOf(hex: string): Buffer {
  if (hex !== last.hex) last = { hex, blob: Buffer.from(hex, 'hex') }
  return last.blob
}

/** Kept because questions about one transaction or body repeat its hash. */
let last = { hex: '', blob: Buffer.alloc(0) }

export function hexOf(blob: Buffer): string {
  return blob.toString('hex')
}

/** The outpoint in a row with the columns `txid` and `vout`. */
export function outpointOf({ txid, vout }: Row): Outpoint {
  return { txid: hexOf(txid), vout }
}

/** The id of a transaction in the index; undefined if nothing refers to it. */
export function idOf(sql: Sql, txid: string): number | undefined {
  return sql.get('select id from tx where txid = ?', blobOf(txid))?.id
}

/** How many changed keys are read: a reader that is further behind drops everything. */
const MAX_KEYS = 10_000
/** How many commits are read at once, each of which may have changed a thousand keys. */
const COMMITS = 100

interface ChangesRead {
  /** The last of these commits: where the next reading begins. */
  cursor: number
  /** Undefined if everything may have changed. */
  keys: Dependency[] | undefined
}

// The row at the cursor shows that the others follow it.
const CHANGES = 'select id, keys from changes where id >= ? order by id limit ?'
const LAST = 'select max(id) as last from changes'

/** The changes after a commit, which is given by its id in the table of changes. */
export function changesAfter(sql: Sql, cursor: number): ChangesRead {
  const everything = (): ChangesRead => ({ cursor: sql.get(LAST)?.last ?? 0, keys: undefined })
  const keys: Dependency[] = []
  for (let next = cursor; keys.length <= MAX_KEYS; ) {
    const rows = sql.all(CHANGES, next, COMMITS)
    if (next === cursor || rows.length > 0) if (rows[0]?.id !== next) return everything()
    for (const row of rows) {
      if (row.id === cursor) continue
      if (row.keys === EVERYTHING) return everything()
      for (const key of JSON.parse(row.keys)) keys.push(key)
    }
    next = (rows.at(-1)?.id ?? next - 1) + 1
    if (rows.length < COMMITS) return { cursor: next - 1, keys }
  }
  return everything()
}
