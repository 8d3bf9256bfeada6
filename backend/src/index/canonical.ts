import type { Row, Sql } from '../facts/connection.js'
import { sha256 } from '../graph/native-hash.js'

/** Longer values are compared by their hashes. */
const MAX_SHOWN = 40

/** Columns with ids of transactions or outputs, which depend on the order of the facts. */
const TRANSACTIONS = new Set(['tid', 'pid', 'sid', 'ptid'])
const OUTPUTS = new Set(['oid', 'run', 'head', 'lin', 'latest', 'latestparent', 'lastmap', 'mprev', 'snap'])

/** Everything that follows from the set of facts, in any order. Scores do not, and neither do counters of writes. */
const TABLES: Record<string, string> = {
  tx: 'select txid, seq, length, ord, own, mined, seen, said, sighting, active, mint from tx where seq is not null or said is not null',
  spend: 'select * from spend',
  proof: 'select * from proof',
  header: `select height / 100 as hundred, cast(group_concat(hex(header) || seq || best) as blob) as headers
    from (select * from header order by height, header) group by height / 100`,
  header_hash: `select height / 100 as hundred, cast(group_concat(hex(start)) as blob) as starts
    from (select * from header_hash order by height, start) group by height / 100`,
  register: 'select * from register',
  node: 'select * from node',
  name: 'select * from name',
  out: 'select o.*, r.head as run, r.head is not null as has_run from out o left join run r on r.id = o.run',
  run: 'select head, size from run',
  snap: 'select * from snap',
  found: 'select attribute, okey, vout, abs(lin) as lin from found',
  admission: 'select tid, vout, topic from admission',
  missing: 'select * from missing',
  tally: 'select * from tally where n <> 0 or bytes <> 0',
  counts: 'select transactions, names, inscriptions from counts',
}

const SCORES = {
  admission: 'select tid, vout, topic, score from admission',
  score: 'select score from counts',
}

/**
 * The rows of an index by table, as sorted text without the ids that the index assigned: the same facts give the same text.
 *
 * @param options.scores Whether to include scores, which are the same if the facts came in the same order as well.
 */
export function canonicalRows(sql: Sql, options: { scores?: boolean } = {}): Record<string, string[]> {
  const txids = new Map<number, string>()
  for (const { id, txid } of sql.all('select id, txid from tx')) txids.set(id, txid.toString('hex'))
  const outpoints = new Map<number, string>()
  for (const { oid, tid, vout } of sql.all('select oid, tid, vout from out'))
    outpoints.set(oid, `${txids.get(tid)}_${vout}`)
  const canonical = (column: string, value: Row[string]): unknown => {
    if (Buffer.isBuffer(value)) return (value.length > MAX_SHOWN ? sha256(value) : value).toString('hex')
    if (value === null) return null
    if (TRANSACTIONS.has(column)) return txids.get(value) ?? `none ${value}`
    if (OUTPUTS.has(column)) return outpoints.get(value) ?? `none ${value}`
    return value
  }
  const textOf = (row: Row): string =>
    JSON.stringify(
      Object.fromEntries(Object.entries(row).map(([column, value]) => [column, canonical(column, value)])),
    )
  return Object.fromEntries(
    Object.entries({ ...TABLES, ...(options.scores && SCORES) }).map(([table, statement]) => [
      table,
      sql.all(statement).map(textOf).sort(),
    ]),
  )
}
