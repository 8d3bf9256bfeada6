import type { Sql } from '../facts/connection.js'
import type { Fact } from '../facts/log.js'
import type { Dependency } from '../graph/dependencies.js'
import type { AdmissionRecord } from '../graph/records.js'
import { toHex } from '../protocol/bytes.js'
import type { HeaderRange } from '../protocol/header-store.js'

/** The most dependencies that one commit names. With more, as in a step of a rebuild, readers drop everything that they cached. */
const MAX_KEYS = 300
/** How many commits readers may be behind. */
const MAX_CHANGES = 1000
/** Old changes are deleted so many at a time. */
const CHANGES_A_DELETION = 100

/** Stored in `changes` by a commit that changes everything. */
export const EVERYTHING = '*'

/** The counters of an index: the row of `counts`. */
interface Counters {
  cursor: number
  /** The kind and key of the fact at the cursor. Another log has another fact there. */
  key: string
  /** The last score given, relative to the first of the log. */
  score: number
  reorgs: number
  /** How often something was blocked or unblocked. */
  blocks: number
  transactions: number
  names: number
  inscriptions: number
}

const COUNTERS = [
  ...['cursor', 'key', 'score', 'reorgs', 'blocks', 'transactions', 'names', 'inscriptions'],
] as readonly (keyof Counters)[]
/**
 * The first number is random, at a fixed distance from the next deletion. So readers notice that an index was derived again, as
 * its changes do not follow those that they know.
 */
const WRITE_CHANGES = `insert into changes (id, keys)
  values (coalesce((select max(id) from changes), abs(random() % ${2 ** 40}) * ${CHANGES_A_DELETION}) + 1, ?)`
const WRITE_COUNTERS = `update counts set ${COUNTERS.map((name) => `${name} = ?`)} where id = 1`

/** The state of a journal at some time. */
export interface JournalMark {
  counters: Counters
  lengths: number[]
  isEverything: boolean
}

/**
 * Notes what changes while facts are applied, until that is written with them: dependencies of answers, and transactions. Lists
 * only grow between two commits, so a mark is a few numbers.
 */
export class Journal {
  readonly counters: Counters
  /** New transactions, and whether each was active when it came, as those without conflicts are. */
  readonly added: { id: number; txid: string; active: number }[] = []
  readonly admitted: AdmissionRecord[] = []
  /** Transactions that became active or inactive, in order, by id. */
  readonly flips: { id: number; txid: string; active: boolean }[] = []
  /** Transactions whose rank got worse, by txid. */
  readonly lowered: string[] = []
  /** Heights whose blocks may have changed. */
  readonly blocks: HeaderRange[] = []
  private readonly keys: Dependency[] = []
  private isEverything = false
  private isTouched = false

  constructor(private readonly sql: Sql) {
    this.counters = countersIn(sql)
  }

  /** Notes that a fact was applied. */
  moveTo({ seq, kind, key }: Pick<Fact, 'seq' | 'kind' | 'key'>): void {
    if (seq > this.counters.cursor) Object.assign(this.counters, { cursor: seq, key: keyText({ kind, key }) })
    this.touch()
  }

  change(key: Dependency): void {
    if (!this.isEverything) this.keys.push(key)
  }

  /** Notes a change, also one beside the index: of pending transactions. */
  touch(): void {
    this.isTouched = true
  }

  /** Notes that results of earlier writes have changed. */
  changeAll(): void {
    this.isEverything = true
  }

  mark(): JournalMark {
    const lengths = this.lists.map(({ length }) => length)
    return { counters: { ...this.counters }, lengths, isEverything: this.isEverything }
  }

  restore({ counters, lengths, isEverything }: JournalMark): void {
    Object.assign(this.counters, counters)
    // Some may have been taken since.
    for (const [at, list] of this.lists.entries()) list.length = Math.min(list.length, lengths[at] ?? 0)
    this.isEverything = isEverything
  }

  /**
   * Writes the notes, before a commit. One that was touched always has a row in `changes`, as some answers depend on any change
   * (`dependency.all`).
   */
  flush(): void {
    const { sql } = this
    const keys = [...new Set(this.keys)]
    const isEverything = this.isEverything || keys.length > MAX_KEYS
    if (this.isEverything) this.counters.reorgs++
    sql.run(WRITE_COUNTERS, ...COUNTERS.map((name) => this.counters[name]))
    if (isEverything || this.isTouched) {
      const id = sql.insert(WRITE_CHANGES, isEverything ? EVERYTHING : JSON.stringify(keys))
      if (id !== undefined && id % CHANGES_A_DELETION === 0)
        sql.run('delete from changes where id <= ?', id - MAX_CHANGES)
    }
    this.keys.length = 0
    this.isEverything = false
    this.isTouched = false
  }

  private get lists(): unknown[][] {
    return [this.added, this.admitted, this.flips, this.lowered, this.blocks, this.keys]
  }
}

/** The stored counters of an index. */
export function countersIn(sql: Sql): Counters {
  return sql.get(`select ${COUNTERS} from counts where id = 1`) as Counters
}

/** A fact's kind and key, as the index stores those of its last one. */
export function keyText({ kind, key }: Pick<Fact, 'kind' | 'key'>): string {
  return `${kind} ${toHex(key)}`
}

/** Work left for the fact that is being applied. Each phase adds to later ones, and empties its own. */
export class Agenda {
  /** The seq of the fact, for the scores that it gives. */
  seq = 0
  /** Outputs with higher ids came with this fact. */
  lastEarlierOutput = 0
  /** Transactions whose outputs are to be derived again, by id. */
  readonly toJudge = new Set<number>()
  /** Transactions that may have become active or inactive, by id. */
  readonly toDecide = new Set<number>()
  /** Ordinals whose attributes may have changed, by the id of their first output. */
  readonly lineages = new Set<number>()
  /** Outputs without a number whose owner or spender may have changed, by id. */
  readonly unnumbered = new Set<number>()

  clear(): void {
    for (const each of [this.toJudge, this.toDecide, this.lineages, this.unnumbered]) each.clear()
  }
}
