import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'
import { type Database, openSqlite } from '../../src/server/open-database.js'

/** A store on a SQLite file of its own. */
export interface OpenStore {
  store: SqlGraphStore
  database: Database
}

const opened: { database: Database; folder: string }[] = []

/** Opens a fresh store. The test closes it with {@link closeStores}. */
export async function openStore(): Promise<OpenStore> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
  const database = await openSqlite(folder)
  opened.push({ database, folder })
  const store = new SqlGraphStore(database)
  await store.open()
  return { store, database }
}

/** Closes every store opened so far and removes its folder. */
export async function closeStores(): Promise<void> {
  for (const { database, folder } of opened.splice(0)) {
    await database.close()
    await rm(folder, { recursive: true })
  }
}

/** Every row of every table of the admitted graph: by table, as text, in an order of its own. */
export async function graphRows({
  database,
}: Pick<OpenStore, 'database'>): Promise<Record<string, string[]>> {
  const tables = await database.reader.all(
    "select name from sqlite_master where type = 'table' and name like 'graph!_%' escape '!' order by name",
    [],
  )
  const rows: Record<string, string[]> = {}
  for (const { name } of tables) {
    const all: object[] = await database.reader.all(`select * from ${name}`, [])
    rows[name] = all.map(textOf).sort()
  }
  return rows
}

function textOf(row: object): string {
  return JSON.stringify(row, (key, value: unknown) => {
    // When things came is told by no fact.
    if (key === 'arrival') return undefined
    if (value instanceof ArrayBuffer) return Buffer.from(value).toString('hex')
    return value
  })
}
