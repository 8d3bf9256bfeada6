import type { NamesReader } from '../../graph/graph-store.js'
import type { NameRecord, NodeRecord } from '../../graph/records.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { longestNode } from '../read/longest-node.js'
import { type OutpointRow, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { anyOutpoint, outpointValues, type SqlReader } from './database.js'

/** A node that no admitted mint spends: a spender without a node is no mint. */
const LIVE = `not exists (
  select 1 from graph_spends as spends join graph_nodes as spending on spending.txid = spends.spender
  where spends.txid = nodes.txid and spends.vout = nodes.vout
)`

/** The names of a store. */
export function namesIn(reader: SqlReader): NamesReader {
  const liveNode = async (domain: string): Promise<Outpoint | undefined> => {
    const sql = `select txid, vout from graph_nodes as nodes where domain = ? and ${LIVE} limit 1`
    const row = await reader.first(sql, [domain])
    return row && outpointOf(row)
  }
  const lastDomain = async (bound: string): Promise<string | undefined> => {
    const sql = 'select domain from graph_nodes where domain <= ? order by domain desc limit 1'
    return (await reader.first(sql, [bound]))?.domain
  }
  return {
    async originOf(name) {
      const row = await reader.first('select txid, vout from graph_names where name = ? limit 1', [name])
      return row && outpointOf(row)
    },
    liveNode,
    longestNode: (name) => longestNode({ lastDomain, liveNode }, name),
    async genuineNodes(outpoints) {
      const found: NodeRecord[] = []
      const slice = new TimeSlice()
      for (const part of parts(outpoints, ROWS_A_STATEMENT)) {
        const sql = `select domain, txid, vout from graph_nodes where ${anyOutpoint(part)}`
        for (const row of await reader.all(sql, outpointValues(part)))
          found.push({ outpoint: outpointOf(row), domain: row.domain })
        await slice.yieldIfOver()
      }
      return unique(found, ({ outpoint }) => formatOutpoint(outpoint))
    },
    genuineOrigins: (outpoints) => genuineOrigins(reader, outpoints),
    async byPrefix({ prefix, after = '', limit }) {
      // Only the larger lower bound: with both, an engine may seek the smaller and read all the way to the other.
      const [lower, bound] = after < prefix ? ['name >= ?', prefix] : ['name > ?', after]
      const rows = await reader.all(
        `select name, txid, vout from graph_names where ${lower} and name < ? order by name limit ?`,
        // All characters of names sort below DEL.
        [bound, `${prefix}\x7f`, limit],
      )
      return rows.map(nameOf)
    },
  }
}

export async function genuineOrigins(reader: SqlReader, outpoints: Outpoint[]): Promise<NameRecord[]> {
  const found: NameRecord[] = []
  const slice = new TimeSlice()
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const sql = `select name, txid, vout from graph_names where ${anyOutpoint(part)}`
    found.push(...(await reader.all(sql, outpointValues(part))).map(nameOf))
    await slice.yieldIfOver()
  }
  return found
}

function nameOf(row: OutpointRow & { name: string }): NameRecord {
  return { outpoint: outpointOf(row), name: row.name }
}
