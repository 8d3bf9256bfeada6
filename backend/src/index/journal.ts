import type { Sql } from '../facts/connection.js'
import type { Changes, Dependency } from '../graph/dependencies.js'
import type { AdmissionRecord } from '../graph/records.js'

/** How many dependencies one write may name: beyond that, readers drop everything that they cached. */
const MAX_KEYS = 1000
/** How many writes readers may be behind. */
const MAX_CHANGES = 10_000

/** What stands in `changes` for a write that changes everything. */
export const EVERYTHING = '*'

/** Numbers that an index counts on from. A copy restores them. */
interface Counters {
  cursor: number
  /** The last score given, above the first one of the log. */
  score: number
  reorgs: number
  transactions: number
  names: number
  inscriptions: number
}

const COUNTERS = ['cursor', 'score', 'reorgs', 'transactions', 'names', 'inscriptions'] as const

/** How far a journal was at some time. */
export interface JournalMark {
  counters: Counters
  lengths: number[]
  isEverything: boolean
}

/**
 * What is noted while facts are applied, until it is written with them: what answers it changes, and which transactions. Lists only
 * grow between two commits, so that a mark is a few numbers.
 */
export class Journal {
  readonly counters: Counters
  /** New transactions, by id. */
  readonly added: number[] = []
  readonly admitted: AdmissionRecord[] = []
  /** Transactions that became active or inactive, in order, by id. */
  readonly flips: { id: number; txid: string; active: boolean }[] = []
  /** Transactions whose rank changed, by txid. */
  readonly ranked: string[] = []
  private readonly keys: Dependency[] = []
  private isEverything = false
  private flushed: Changes = []
  /** As they stand in the file, as far as that is known. */
  private written: Partial<Counters> = {}

  constructor(private readonly sql: Sql) {
    const stored = new Map(sql.all('select name, value from meta').map(({ name, value }) => [name, value]))
    const counters = COUNTERS.map((name) => [name, Number(stored.get(name) ?? 0)])
    this.counters = Object.fromEntries(counters) as Counters
  }

  change(key: Dependency): void {
    if (!this.isEverything) this.keys.push(key)
  }

  /** Notes that what earlier writes had derived has changed. */
  changeAll(): void {
    this.isEverything = true
  }

  mark(): JournalMark {
    const lengths = this.lists.map(({ length }) => length)
    return { counters: { ...this.counters }, lengths, isEverything: this.isEverything }
  }

  restore({ counters, lengths, isEverything }: JournalMark): void {
    Object.assign(this.counters, counters)
    this.written = {}
    // Some may have been taken since.
    for (const [at, list] of this.lists.entries()) list.length = Math.min(list.length, lengths[at] ?? 0)
    this.isEverything = isEverything
    // What was written since may have been rolled back.
    this.written = {}
  }

  /** Writes what was noted, before a commit. */
  flush(): void {
    const { sql } = this
    const keys = [...new Set(this.keys)]
    const isEverything = this.isEverything || keys.length > MAX_KEYS
    if (this.isEverything) this.counters.reorgs++
    for (const name of COUNTERS)
      if (this.counters[name] !== this.written[name])
        sql.run('insert or replace into meta (name, value) values (?, ?)', name, this.counters[name])
    this.written = { ...this.counters }
    if (isEverything || keys.length > 0) {
      sql.run('insert into changes (keys) values (?)', isEverything ? EVERYTHING : JSON.stringify(keys))
      sql.run('delete from changes where id <= (select max(id) from changes) - ?', MAX_CHANGES)
    }
    this.flushed = isEverything || this.flushed === undefined ? undefined : [...this.flushed, ...keys]
    this.keys.length = 0
    this.isEverything = false
  }

  /** What was flushed since the last time. */
  takeChanges(): Changes {
    const { flushed } = this
    this.flushed = []
    return flushed
  }

  private get lists(): unknown[][] {
    return [this.added, this.admitted, this.flips, this.ranked, this.keys]
  }
}
