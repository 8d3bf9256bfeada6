import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { SqlReader, SqlValue } from '../../../backend/src/storage/sql/database.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { SqlIndexMaintenance } from '../../../backend/src/storage/sql/index-maintenance.js'
import { StoredHookOutbox } from '../../../backend/src/storage/write/hook-outbox.js'
import { rebuild } from './arrival.js'
import { withCanonicalLineages } from './canonical-lineages.js'
import type { Engine, OpenedStore } from './engine.js'
import { withoutLife, withoutOrder } from './insertion-order.js'
import { openSqlite, type SqlConnections } from './sqlite-database.js'

export interface OpenedSqlStore extends OpenedStore {
  store: SqlGraphStore
  database: SqlConnections
}

export interface SqlEngine extends Engine {
  open(): Promise<OpenedSqlStore>
}

/** A store over open connections, and what tests do to it in SQL. */
export async function openSqlStore(
  { writer, reader: own }: SqlConnections,
  dialect: { tables: string; trigger: (table: string) => string; close: () => Promise<void> },
): Promise<OpenedSqlStore> {
  let reads = 0
  const reader = watchedReader(own, () => reads++)
  const store = new SqlGraphStore({ writer, reader })
  await store.open()
  const maintenance = new SqlIndexMaintenance({ writer, reader: own })
  return {
    store,
    database: { writer, reader: own },
    notes: new StoredHookOutbox(store.database),
    maintenance,
    rebuild: () => rebuild({ store, maintenance }),
    another: () => new SqlGraphStore({ writer }),
    reads: () => reads,
    async rows() {
      const rows: Record<string, string[]> = {}
      for (const { name } of await own.all(dialect.tables, [])) {
        const all: { name?: unknown }[] = await own.all(`select * from ${name}`, [])
        rows[name] = (name === 'graph_outputs' ? withCanonicalLineages(all) : withoutLife(name, all))
          .map(textOf)
          .sort()
      }
      return rows
    },
    async breakInserts(table) {
      await writer.raw(dialect.trigger(table))
      return async () => {
        await writer.raw('drop trigger broken')
      }
    },
    async removeOutput({ txid, vout }: Outpoint) {
      await writer('graph_outputs')
        .where({ txid: Buffer.from(txid, 'hex'), vout })
        .delete()
    },
    async removeBytes(txid) {
      await writer('graph_pieces')
        .where({ owner: Buffer.from(txid, 'hex') })
        .delete()
    },
    close: dialect.close,
  }
}

/** A reader that tells of everything that it is asked. */
export function watchedReader(reader: SqlReader, ask: (sql: string, values: SqlValue[]) => void): SqlReader {
  return {
    all: async (sql, values) => {
      ask(sql, values)
      return await reader.all(sql, values)
    },
    first: async (sql, values) => {
      ask(sql, values)
      return await reader.first(sql, values)
    },
  }
}

function textOf(row: object): string {
  const columns = Object.entries(row)
    .map(([column, value]) => [column, withoutOrder(column, value)] as const)
    .map(([column, value]) => [column, isBytes(value) ? Buffer.from(value).toString('hex') : value])
  return JSON.stringify(Object.fromEntries(columns))
}

/** Not by `instanceof`: each test file has globals of its own. */
function isBytes(value: unknown): value is Uint8Array {
  return Buffer.isBuffer(value) || Object.prototype.toString.call(value) === '[object ArrayBuffer]'
}

/** Each store is a file in a folder of its own. */
export const sqlite: SqlEngine = {
  name: 'SQLite',
  missing: [],
  share: 1,
  async start() {},
  async stop() {},
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
    const { close, ...connections } = await openSqlite(folder)
    return await openSqlStore(connections, {
      tables:
        "select name from sqlite_master where type = 'table' and name like 'graph!_%' escape '!' order by name",
      trigger: (table) =>
        `create trigger broken before insert on ${table} begin select raise(abort, 'the disk is full'); end`,
      async close() {
        await close()
        await rm(folder, { recursive: true })
      },
    })
  },
}
