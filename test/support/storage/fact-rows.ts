import { Sql } from '../../../backend/src/facts/connection.js'
import { heightIn } from '../../../backend/src/graph/listings.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'

/** What follows from the order in which facts came, and what counts writes. */
const OF_ORDER = new Set(['seq', 'ord', 'n', 'at', 'arrived', 'place'])
/** What tests ask for by name, of tables in which only rows of transactions that count are meant. */
const NAMES: Record<string, string> = {
  names: 'name',
  nodes: 'node',
  admissions: 'admission',
  outputs: 'out',
}

/** What the store in a folder holds, read past its server, as text: the index without its own numbers, the keys of all facts, and the state. */
export function storedRows(dataDir: string): Record<string, string[]> {
  const files = storeFiles(dataDir)
  const [index, log] = [new Sql(files.index), new Sql(files.log)]
  try {
    const indexed = canonicalRows(index)
    const rows: Record<string, string[]> = {}
    for (const [table, texts] of Object.entries(indexed)) rows[table] = texts.map(withoutOrder).sort()
    // When the log was made.
    rows.register = (rows.register ?? []).filter((row) => JSON.parse(row).subject !== 'setting base')
    for (const [name, table] of Object.entries(NAMES))
      rows[name] = (rows[table] ?? []).filter((row) => JSON.parse(row).active !== 0)
    const keys = (where: string): string[] =>
      log
        .all(`select kind, lower(hex(key)) as key from log where ${where} order by key`)
        .map((row) => JSON.stringify(row))
    // Each log has a base of its own.
    rows.log = keys("kind <> 5 or cast(key as text) not like 'setting %'")
    const state = (table: string, columns: string): string[] =>
      log.all(`select ${columns} from ${table}`).map(textOf).sort()
    rows.pending = [...state('pending', 'txid, waiting'), ...state('pending_proof', 'txid, height')]
    rows.held = state('held', 'txid, lock_height, lock_time')
    rows.transactions = [
      ...log.all('select key as txid from log where kind = 1').map(textOf),
      ...log.all('select txid from pending').map(textOf),
    ].sort()
    return rows
  } finally {
    index.close()
    log.close()
  }
}

function withoutOrder(row: string): string {
  const columns = Object.entries(JSON.parse(row)).filter(([column]) => !OF_ORDER.has(column))
  const lasting = columns.map(([column, value]) =>
    column === 'recency' && value !== null ? [column, heightIn(Number(value)) ?? null] : [column, value],
  )
  return JSON.stringify(Object.fromEntries(lasting))
}

function textOf(row: object): string {
  return JSON.stringify(
    Object.fromEntries(
      Object.entries(row).map(([column, value]) => [
        column,
        Buffer.isBuffer(value) ? value.toString('hex') : value,
      ]),
    ),
  )
}
