import type { NamesReader } from '../../graph/graph-store.js'
import type { NameRecord, NodeRecord } from '../../graph/records.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { type Domains, longestNode } from '../read/longest-node.js'
import { type OutpointRow, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { anyOutpoint, outpointValues, type SqlReader } from './database.js'

/** A node that no admitted mint spends: a spender that left no node of its own was no mint. */
const LIVE = `not exists (
  select 1 from graph_spends as spends join graph_nodes as spending on spending.txid = spends.spender
  where spends.txid = nodes.txid and spends.vout = nodes.vout
)`

/** The names of a store. */
export function namesIn(reader: SqlReader): NamesReader {
  return {
    originOf: (name) => nameOrigin(reader, name),
    liveNode: (domain) => liveNode(reader, domain),
    longestNode: (name) => longestNode(domainsIn(reader), name),
    genuineNodes: (outpoints) => genuineNodes(reader, outpoints),
    genuineOrigins: (outpoints) => genuineOrigins(reader, outpoints),
    byPrefix: (query) => namesByPrefix(reader, query),
  }
}

async function nameOrigin(reader: SqlReader, name: string): Promise<Outpoint | undefined> {
  const row = await reader.first('select txid, vout from graph_names where name = ? limit 1', [name])
  return row && outpointOf(row)
}

async function liveNode(reader: SqlReader, domain: string): Promise<Outpoint | undefined> {
  const row = await reader.first(
    `select txid, vout from graph_nodes as nodes where domain = ? and ${LIVE} limit 1`,
    [domain],
  )
  return row && outpointOf(row)
}

/** The domains of a database. */
function domainsIn(reader: SqlReader): Domains {
  return {
    async lastDomain(bound) {
      const row = await reader.first(
        'select domain from graph_nodes where domain <= ? order by domain desc limit 1',
        [bound],
      )
      return row?.domain
    },
    liveNode: (domain) => liveNode(reader, domain),
  }
}

async function genuineNodes(reader: SqlReader, outpoints: Outpoint[]): Promise<NodeRecord[]> {
  const found: NodeRecord[] = []
  const slice = new TimeSlice()
  for (const part of parts(outpoints, ROWS_A_STATEMENT)) {
    const rows = await reader.all(
      `select domain, txid, vout from graph_nodes where ${anyOutpoint(part)}`,
      outpointValues(part),
    )
    for (const row of rows) found.push({ outpoint: outpointOf(row), domain: row.domain })
    await slice.yieldIfOver()
  }
  return unique(found, ({ outpoint }) => formatOutpoint(outpoint))
}

export async function genuineOrigins(reader: SqlReader, outpoints: Outpoint[]): Promise<NameRecord[]> {
  const found: NameRecord[] = []
  const slice = new TimeSlice()
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const rows = await reader.all(
      `select name, txid, vout from graph_names where ${anyOutpoint(part)}`,
      outpointValues(part),
    )
    found.push(...rows.map(nameOf))
    await slice.yieldIfOver()
  }
  return found
}

async function namesByPrefix(
  reader: SqlReader,
  query: { prefix: string; after?: string; limit: number },
): Promise<NameRecord[]> {
  const { prefix, after = '', limit } = query
  // Only the larger lower bound: with both, an engine may seek the smaller and read all the way to the other.
  const [lower, bound] = after < prefix ? ['name >= ?', prefix] : ['name > ?', after]
  const rows = await reader.all(
    `select name, txid, vout from graph_names where ${lower} and name < ? order by name limit ?`,
    // All characters of names sort below DEL.
    [bound, `${prefix}\x7f`, limit],
  )
  return rows.map(nameOf)
}

function nameOf(row: OutpointRow & { name: string }): NameRecord {
  return { outpoint: outpointOf(row), name: row.name }
}
