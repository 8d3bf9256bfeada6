import type { Sql } from '../facts/connection.js'
import type { Note, SharedLog } from '../facts/shared-log.js'
import { OWN_STATE } from '../facts/state.js'
import type { Proof } from '../graph/records.js'
import { fromHex, toHex } from '../protocol/bytes.js'

/**
 * Progress of background jobs: rows of the tables `state` and `ancestor` of the copy are notes beside the shared log, so that another
 * gateway can continue a job. `ancestor` sorts first: only a gateway that takes over reads it.
 */
const ANCESTORS = 'ancestor '
const STATE = 'state '
/** The first name after those of ancestors. */
export const WITHOUT_ANCESTORS = 'ancestor~'

/**
 * Proofs of transactions that a gateway does not have: a refused transaction waits at the gateway that refused it, which takes
 * the proof from here. There are this many slots; later proofs overwrite earlier ones.
 */
const PROOF = 'proof '
const PROOFS = 64
/** The longest merkle path that is passed on, in bytes: that of one transaction in a block of 2^32. */
const MAX_PATH_BYTES = 2048

/** The setting by which gateways that share a log pass on a verified proof; undefined if it is too long. */
export function passedProof(txid: string, proof: Proof): { name: string; value: string } | undefined {
  const { height, root, merklePath } = proof
  if (merklePath.length > MAX_PATH_BYTES) return undefined
  const name = `${PROOF}${Number.parseInt(txid.slice(0, 8), 16) % PROOFS}`
  return { name, value: JSON.stringify({ txid, height, root, merklePath: toHex(merklePath) }) }
}

/** The proof in a note, with its txid; undefined for any other note. */
export function proofInNote({ name, value = '' }: Note): { txid: string; proof: Proof } | undefined {
  if (!name.startsWith(STATE + PROOF)) return undefined
  const { txid, merklePath, ...block } = JSON.parse(value)
  return { txid, proof: { ...block, merklePath: fromHex(merklePath) } }
}

/** How many notes are read or written at once. */
const PAGE = 500

const ANCESTOR_NAME = "'ancestor ' || lower(hex(each.txid)) || ' ' || each.vout"
const own = OWN_STATE.map((name) => `'${name}'`).join(', ')
const capture = (table: string, name: string, where = ''): string =>
  ['insert', 'update', 'delete']
    .map((event) => {
      const row = event === 'delete' ? 'old' : 'new'
      return `create temp trigger if not exists ${table}_${event} after ${event} on main.${table} ${where.replaceAll('each', row)}
        begin insert into noted (name) values (${name.replaceAll('each', row)}); end;`
    })
    .join('\n')
const CAPTURE = `
create temp table if not exists noted (place integer primary key, name text not null);
${capture('state', "'state ' || each.name", `when each.name not in (${own})`)}
${capture('ancestor', ANCESTOR_NAME)}`

/** Shares the progress of jobs between gateways. */
export class SharedState {
  /** Notes to publish, by name. */
  private readonly due = new Map<string, string | undefined>()
  private publishing: Promise<void> = Promise.resolve()

  constructor(private readonly options: { log: Pick<SharedLog, 'notes' | 'note'>; logFile: Sql }) {
    options.logFile.exec(CAPTURE)
  }

  /** Publishes committed changes. What cannot be published now follows with the next. */
  async publish(): Promise<void> {
    const { logFile } = this.options
    const changed = logFile.all('select name from noted')
    if (changed.length > 0) logFile.run('delete from noted')
    for (const { name } of changed) this.due.set(name, valueIn(logFile, name))
    if (this.due.size === 0) return
    this.publishing = this.publishing.then(() => this.publishAll()).catch(() => {})
    await this.publishing
  }

  /**
   * The notes that others have published.
   *
   * @param after Only notes after this name.
   * @throws StoreUnavailableError
   */
  async read(after: string): Promise<Note[]> {
    const found: Note[] = []
    for (let from = after; ; ) {
      const page = await this.options.log.notes(from, PAGE)
      found.push(...page)
      if (page.length < PAGE) return found
      from = page.at(-1)?.name ?? from
    }
  }

  /**
   * Stores notes of others, in a transaction of its own. Rows that this gateway has yet to publish stay.
   *
   * @returns The new ones.
   */
  take(notes: readonly Note[]): Note[] {
    const { logFile } = this.options
    const news = notes.filter(
      ({ name, value = '' }) => !this.due.has(name) && value !== valueIn(logFile, name) && isState(name),
    )
    if (news.length === 0) return news
    logFile.exec('begin immediate')
    try {
      for (const { name, value = '' } of news) writeNote(logFile, name, value)
      logFile.run('delete from noted')
      logFile.exec('commit')
      return news
    } finally {
      if (logFile.inTransaction) logFile.exec('rollback')
    }
  }

  private async publishAll(): Promise<void> {
    while (this.due.size > 0) {
      const some = [...this.due].slice(0, PAGE)
      await this.options.log.note(some.map(([name, value]) => ({ name, value })))
      // What has changed meanwhile is published again.
      for (const [name, value] of some) if (this.due.get(name) === value) this.due.delete(name)
    }
  }
}

/** The value of the row that a note stands for, in the file of a log; undefined if there is none. */
function valueIn(sql: Sql, name: string): string | undefined {
  const [, one = '', two = ''] = name.split(' ')
  if (name.startsWith(STATE))
    return sql.get('select value from state where name = ?', name.slice(STATE.length))?.value
  if (!name.startsWith(ANCESTORS)) return undefined
  const row = sql.get('select * from ancestor where txid = ? and vout = ?', fromHex(one), Number(two))
  return row && JSON.stringify(Object.values({ ...row, txid: toHex(row.txid) }).slice(2))
}

/** Writes a note into the row that it stands for, in the file of a log; ignores other notes. */
export function writeNote(sql: Sql, name: string, value: string): void {
  const [, one = '', two = ''] = name.split(' ')
  if (name.startsWith(STATE))
    sql.run('insert or replace into state values (?, ?)', name.slice(STATE.length), value)
  else if (name.startsWith(ANCESTORS))
    sql.run(
      'insert or replace into ancestor values (?, ?, ?, ?, ?, ?, ?, ?)',
      ...[fromHex(one), Number(two), ...(JSON.parse(value) as number[])],
    )
}

/** The notes in the file of a log, except those that its host keeps about itself. */
export function notesIn(sql: Sql): Note[] {
  const names = sql.all(
    `select ${ANCESTOR_NAME} as name from ancestor as each union all select 'state ' || name from state where name not in (${own})`,
  )
  return names.map(({ name }) => ({ name, value: valueIn(sql, name) }))
}

/** Whether a note stands for a row in the file of a log. */
export function isState(name: string): boolean {
  return [ANCESTORS, STATE].some((start) => name.startsWith(start))
}
