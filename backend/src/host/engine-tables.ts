import type { SqlDatabase } from '../host/host-database.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { topicNames } from '../protocol/profile.js'
import type { FactStore } from '../read/fact-store.js'
import { type Ask, askKnex, isMysql, type SqlRow } from './host-database.js'

/** An output that an engine admitted to a topic, as its own storage has it. */
export interface EngineOutput {
  /** Later outputs have higher ids; of several that are stored at once, a lower one may become visible last. */
  id: number
  outpoint: Outpoint
}

/** The storage of a host's engine: what the engine verified, even if it was killed before it called the hooks. */
export interface EngineTables {
  /** The outputs of some topics after an id, by id. */
  page(query: { topics: readonly string[]; after: number; limit: number }): Promise<EngineOutput[]>
  /** The transactions among these that it applied to one of these topics: verified, and not refused afterwards. */
  applied(txids: readonly string[], topics: readonly string[]): Promise<Set<string>>
  /** The BEEF with which a transaction was submitted, if an output of it was admitted. */
  beefOf(txid: string): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

/** Opens the storage of the host's engine; undefined if the database has none of a known form. */
export type OpenEngine = () => Promise<EngineTables | undefined>

/** Columns that the `KnexStorage` of every engine has had so far. */
const COLUMNS = [
  ...['outputs.id', 'outputs.txid', 'outputs.outputindex', 'outputs.topic'],
  ...['transactions.txid', 'transactions.beef', 'applied_transactions.txid', 'applied_transactions.topic'],
]
const TABLES = ['outputs', 'transactions', 'applied_transactions']
const COLUMNS_ON_MYSQL = `select concat(table_name, '.', column_name) as name from information_schema.columns
  where table_schema = database() and table_name in (${TABLES.map((table) => `'${table}'`)})`
const COLUMNS_ON_SQLITE = TABLES.map(
  (table) => `select '${table}.' || name as name from pragma_table_info('${table}')`,
).join(' union all ')

/** The storage of an engine on the host's knex. */
export function engineOn(knex: SqlDatabase): OpenEngine {
  return () => opened({ ask: askKnex(knex), isOnMysql: isMysql(knex), close: async () => {} })
}

/** The storage of an engine beside an index on MongoDB; undefined if it cannot be reached. */
export function engineBeside(database: SqlDatabase | undefined): OpenEngine | undefined {
  if (database !== undefined) return engineOn(database)
  // LARS and CARS pass nothing else to a factory, and take the engine's database from here.
  const { KNEX_URL: url = '' } = process.env
  return url.startsWith('mysql:') ? () => connected(url) : undefined
}

/** @param url `mysql://user:password@host:port/database`. */
async function connected(url: string): Promise<EngineTables | undefined> {
  // Imported only here: others need no SQL driver.
  const { mysqlPool } = await import('../facts/mysql-pool.js')
  const { query, close } = mysqlPool({ uri: url, connectionLimit: 1 })
  const ask: Ask = async (sql, values) => ((await query(sql, [...values])) as [SqlRow[]])[0]
  return await opened({ ask, isOnMysql: true, close })
}

async function opened(options: {
  ask: Ask
  isOnMysql: boolean
  close: () => Promise<void>
}): Promise<EngineTables | undefined> {
  const { ask, isOnMysql, close } = options
  try {
    const columns = await ask(isOnMysql ? COLUMNS_ON_MYSQL : COLUMNS_ON_SQLITE, [])
    const names = new Set(columns.map(({ name }) => String(name).toLowerCase()))
    if (COLUMNS.every((name) => names.has(name))) return { ...tablesOf(ask, isOnMysql), close }
  } catch (error) {
    await close()
    throw error
  }
  await close()
  return undefined
}

function tablesOf(ask: Ask, isOnMysql: boolean): Omit<EngineTables, 'close'> {
  // With an index on topics, MySQL would sort all rows for each page.
  const outputs = isOnMysql ? 'outputs force index (primary)' : 'outputs'
  return {
    async page({ topics, after, limit }) {
      const rows = await ask(
        `select id, txid, outputIndex as vout from ${outputs}
         where id > ? and topic in (${listOf(topics)}) order by id limit ${limit}`,
        [after, ...topics],
      )
      return rows.map(({ id, txid, vout }) => ({ id: Number(id), outpoint: { txid, vout: Number(vout) } }))
    },
    async applied(txids, topics) {
      // MySQL takes no empty list.
      if (txids.length === 0) return new Set()
      const rows = await ask(
        `select txid from applied_transactions where txid in (${listOf(txids)}) and topic in (${listOf(topics)})`,
        [...txids, ...topics],
      )
      return new Set(rows.map(({ txid }) => String(txid)))
    },
    async beefOf(txid) {
      const [row] = await ask('select beef from transactions where txid = ?', [txid])
      return row?.beef ? new Uint8Array(row.beef) : undefined
    },
  }
}

function listOf(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ')
}

/** How many outputs are compared with the index at once. */
const PAGE = 250
/**
 * How many ids before the last known one are read again. An engine on several connections, or in several processes, may have
 * stored an output with a higher id before one with a lower id was visible.
 */
const OVERLAP = 1000

interface Missing {
  engine: EngineTables
  /** Aliases are included. */
  topic: string
  index: Pick<FactStore, 'admissions' | 'settings'>
}

/**
 * The BEEFs of transactions that an engine has admitted to a topic and the index lacks, one at a time, oldest first.
 *
 * The index also lacks outputs that an engine keeps in case they are ordinals, and forged mints. So that these are not read again
 * at each start, the place up to which everything was passed on is stored, and the next pass starts shortly before it.
 */
export async function* missed({ engine, topic, index }: Missing): AsyncGenerator<Uint8Array> {
  const topics = topicNames(topic)
  const setting = `engine outputs of ${topic}`
  const known = await index.settings.get(setting)
  let after = await startAfter(engine, { topics, known })
  for (;;) {
    const page = await engine.page({ topics, after, limit: PAGE })
    for (const txid of await notAdmitted(page, { topic, index })) {
      const beef = await engine.beefOf(txid)
      if (beef !== undefined) yield beef
    }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.id
    // By now, the caller has recorded all of the page.
    if (placeOf(last) !== known) await index.settings.set(setting, placeOf(last))
    if (page.length < PAGE) return
  }
}

/** The id to continue after: shortly before the known place, if the engine still has the same output there. */
async function startAfter(
  engine: EngineTables,
  { topics, known = '' }: { topics: readonly string[]; known: string | undefined },
): Promise<number> {
  const id = Number.parseInt(known, 10)
  if (Number.isNaN(id)) return 0
  // It is another output if the database was emptied or replaced.
  const [output] = await engine.page({ topics, after: id - 1, limit: 1 })
  return output !== undefined && placeOf(output) === known ? Math.max(id - OVERLAP, 0) : 0
}

function placeOf({ id, outpoint }: EngineOutput): string {
  return `${id} ${formatOutpoint(outpoint)}`
}

/** The transactions of a page with an output that the index does not hold. */
async function notAdmitted(
  page: EngineOutput[],
  { topic, index }: Pick<Missing, 'topic' | 'index'>,
): Promise<Set<string>> {
  const held = new Set<string>()
  for (const each of await index.admissions.among(page.map(({ outpoint }) => outpoint)))
    if (each.topic === topic) held.add(formatOutpoint(each.outpoint))
  return new Set(page.flatMap(({ outpoint }) => (held.has(formatOutpoint(outpoint)) ? [] : [outpoint.txid])))
}
