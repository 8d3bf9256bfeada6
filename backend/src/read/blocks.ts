import type { Sql } from '../facts/connection.js'
import type { BlocksReader } from '../graph/graph-store.js'
import type { Block } from '../graph/records.js'
import { blobOf, hexOf, type Reader } from './reader.js'

/** See {@link BlocksReader}. Only of proofs that count. */
export function blocksIn(reader: Reader): BlocksReader {
  return {
    from: async ({ from }) => reader.answer((sql) => blocksBetween(sql, from, Number.MAX_SAFE_INTEGER)),
    lastHeight: async () => Number(reader.single((sql) => sql.get(LAST_HEIGHT))?.height ?? 0),
    async ofConflicts(spends) {
      const heights = await reader.each(spends, (sql, { outpoint: { txid, vout }, spender }) =>
        sql
          .all(MINED_SPENDERS, blobOf(txid), vout, Buffer.from(spender, 'hex'))
          .map(({ mined }) => Number(mined)),
      )
      const found = await reader.each([...new Set(heights)], (sql, height) =>
        blocksBetween(sql, height, height),
      )
      return found
    },
  }
}

const LAST_HEIGHT = 'select height from proof where ok = 1 order by height desc limit 1'
const MINED_SPENDERS = `select spender.mined from tx cross join spend on pid = tx.id
  cross join tx as spender on spender.id = sid
  where tx.txid = ? and vout = ? and spender.txid <> ? and spender.mined is not null`

/** Highest first, then by root. */
function blocksBetween(sql: Sql, from: number, to: number): Block[] {
  const rows = sql.all(
    'select distinct height, root from proof where height >= ? and height <= ? and ok = 1 order by height desc, root',
    from,
    to,
  )
  return rows.map(({ height, root }) => ({ height, root: hexOf(root) }))
}
