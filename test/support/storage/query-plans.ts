import type { Knex } from 'knex'
import type { SqlReader, SqlValue } from '../../../backend/src/storage/sql/database.js'

/** How an engine goes through a table to answer: all of it, or along an index; `other` for what is no table. */
export interface Step {
  kind: 'scan' | 'search' | 'other'
  /** Whether what is found is sorted after that, or kept in a table meanwhile. */
  sorts: boolean
  /** What the engine says. */
  detail: string
}

/** How an engine is made to say how it would answer. */
export interface Explain {
  steps(reader: SqlReader, sql: string, values: SqlValue[]): Promise<Step[]>
  /** Fills tables, where the engine reads small ones from end to end. */
  fill(writer: Knex): Promise<void>
}

/** So many rows that reading them all costs more than an index. */
const ROWS = 3000

/** By the names of the engines. */
export const EXPLAINS: Record<string, Explain> = {
  SQLite: {
    async steps(reader, sql, values) {
      const rows = await reader.all(`explain query plan ${sql}`, values)
      return rows.map(({ detail }: { detail: string }) => ({
        // `found` is what a subquery with a limit has found.
        kind: /^SCAN (?!CONSTANT ROW|found$)/.test(detail)
          ? 'scan'
          : detail.startsWith('SEARCH')
            ? 'search'
            : 'other',
        sorts: detail.includes('TEMP B-TREE'),
        detail,
      }))
    },
    async fill() {},
  },
  MariaDB: {
    async steps(reader, sql, values) {
      const rows = await reader.all(`explain ${sql}`, values)
      return rows.map((row: Record<string, unknown>) => ({
        kind: kindOf(row),
        sorts: /filesort|temporary/i.test(String(row.Extra)),
        detail: JSON.stringify(row),
      }))
    },
    fill,
  },
}

/** `ALL` reads a table, `index` an index, from end to end; what is between angle brackets was found by another step. */
function kindOf({ type, table, Extra }: Record<string, unknown>): Step['kind'] {
  if (type === null) return /const table|tables optimized away/i.test(String(Extra)) ? 'search' : 'other'
  if (String(table).startsWith('<')) return 'other'
  return type === 'ALL' || type === 'index' ? 'scan' : 'search'
}

/** Rows whose txids are all over the place. */
async function fill(writer: Knex): Promise<void> {
  const from = `from seq_1_to_${ROWS}`
  const hash = (salt: string): string => `unhex(sha2(concat('${salt}', seq), 256))`
  const tables: Record<string, Record<string, string>> = {
    graph_transactions: {
      txid: hash(''),
      height: 'seq',
      merkle_root: hash('root'),
      arrival: 'seq',
      silent: 'seq % 9 = 0',
    },
    graph_pieces: {
      owner: hash(''),
      position: '0',
      bytes: `repeat('x', 200)`,
      checksum: `unhex(sha2(repeat('x', 200), 256))`,
    },
    graph_spends: { txid: hash('parent'), vout: '0', spender: hash('') },
    graph_silent_spends: { txid: hash('parent'), vout: '0', spender: hash('conflicting') },
    graph_silent_facts: { txid: hash('conflicting'), vout: '0', kind: `'node'`, body: `'{}'` },
    graph_outputs: {
      txid: hash(''),
      vout: '0',
      satoshis: '1',
      unsettled: '0',
      lineage_txid: hash(''),
      lineage_vout: '0',
      step: '0',
      content_step: '0',
      content_sha256: hash('body'),
      recency: 'seq',
    },
    graph_traits: { trait: hash('trait'), lineage_txid: hash(''), lineage_vout: '0', kind: `'map'` },
    graph_nodes: { txid: hash(''), vout: '0', domain: `concat('node', seq)` },
    graph_names: { name: `concat('name', seq)`, txid: hash(''), vout: '0', recency: 'seq' },
    graph_admissions: {
      txid: hash(''),
      vout: '0',
      topic: `if(seq % 2, 'tm_names', 'tm_ordinals')`,
      score: 'seq',
    },
    graph_applied: { txid: hash(''), topic: `'tm_names'` },
    graph_blocked: { kind: `'name'`, value: `concat('name', seq)`, reason: `''`, since: '0' },
    graph_interactions: { host: `concat('host', seq)`, topic: `'tm_names'`, since: '0' },
    graph_ancestors: {
      txid: hash(''),
      vout: '0',
      hole: 'seq % 2',
      due: 'seq',
      arrival: 'seq',
      tries: '1',
      transactions: '0',
      bytes: '0',
    },
    graph_headers: { position: '20 + seq', height: '2000 + 100 * seq', headers: `repeat('x', 8000)` },
    graph_settings: { name: `concat('name', seq)`, value: `''` },
  }
  for (const [table, columns] of Object.entries(tables)) {
    await writer.raw(
      `insert into ${table} (${Object.keys(columns)}) select ${Object.values(columns)} ${from}`,
    )
    await writer.raw(`analyze table ${table}`)
  }
}
