import type { NamesReader } from '../../graph/graph-store.js'
import type { NameRecord, NodeRecord } from '../../graph/records.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import { sharedPrefix } from '../../protocol/mine-node.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { inParts, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { anyOutpoint, type Row, type RowReader } from '../rows/rows.js'
import type { Lookups } from './lookups.js'

const OUTPOINT = ['txid', 'vout']

/** The names of a store. */
export function namesIn(rows: RowReader, { liveNode }: Pick<Lookups, 'liveNode'>): NamesReader {
  return {
    async originOf(name) {
      const row = await rows.first('graph_names', { name }, { fields: OUTPOINT })
      return row && outpointOf(row)
    },
    async claimed(names) {
      const fields = ['name', ...OUTPOINT]
      const asked = unique(names, String)
      return (
        await inParts(asked, (part) => rows.all('graph_names', { name: { $in: part } }, { fields }))
      ).map(nameOf)
    },
    liveNode,
    async longestNode(name, filter) {
      if (filter?.seen) return await longestSeenNode(rows, liveNode, name)
      // The greatest domain that sorts at or before the name is its longest mined prefix, or shares that prefix with it: in
      // a tree that holds all its prefixes, the shared prefix is itself a domain, and the longest. If it is not, try the next.
      for (let bound = name; ; ) {
        const upTo = { domain: { $lte: bound } }
        const last = await rows.first('graph_nodes', upTo, { sort: { domain: -1 }, fields: ['domain'] })
        if (last === undefined) return undefined
        const domain = sharedPrefix(last.domain, name)
        const outpoint = await liveNode(domain)
        if (outpoint !== undefined) return { outpoint, domain }
        if (domain === last.domain) return undefined
        bound = domain
      }
    },
    async genuineNodes(outpoints) {
      const nodes = await among(rows, 'graph_nodes', outpoints)
      return nodes.map((row) => ({ outpoint: outpointOf(row), domain: row.domain }))
    },
    genuineOrigins: (outpoints) => genuineOrigins(rows, outpoints),
    async byPrefix({ prefix, after = '', limit }) {
      // Only the larger lower bound: with both, an engine may seek the smaller and read all the way to the other.
      const lower = after < prefix ? { $gte: prefix } : { $gt: after }
      // All characters of names sort below DEL.
      const within = { name: { ...lower, $lt: `${prefix}\x7f` } }
      const fields = ['name', ...OUTPOINT]
      return (await rows.all('graph_names', within, { sort: { name: 1 }, limit, fields })).map(nameOf)
    },
  }
}

/** The tiers pass to what a mint is built on: if a domain has a seen node, so does each of its prefixes. */
async function longestSeenNode(
  rows: RowReader,
  liveNode: Lookups['liveNode'],
  name: string,
): Promise<NodeRecord | undefined> {
  const upTo = { domain: { $lte: name } }
  const last = await rows.first('graph_nodes', upTo, { sort: { domain: -1 }, fields: ['domain'] })
  if (last === undefined) return undefined
  let longest: NodeRecord | undefined
  let [shortest, most] = [0, sharedPrefix(last.domain, name).length]
  for (let length = most; shortest <= most; length = (shortest + most) >> 1) {
    const domain = name.slice(0, length)
    const outpoint = await liveNode(domain, { seen: true })
    if (outpoint !== undefined) {
      longest = { outpoint, domain }
      shortest = length + 1
    } else most = length - 1
  }
  return longest
}

/** Those of the outpoints that are origins of names. */
export async function genuineOrigins(rows: RowReader, outpoints: Outpoint[]): Promise<NameRecord[]> {
  return (await among(rows, 'graph_names', outpoints)).map(nameOf)
}

async function among(
  rows: RowReader,
  table: 'graph_names' | 'graph_nodes',
  outpoints: Outpoint[],
): Promise<Row[]> {
  const found: Row[] = []
  const slice = new TimeSlice()
  const fields = [table === 'graph_names' ? 'name' : 'domain', ...OUTPOINT]
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    found.push(...(await rows.all(table, anyOutpoint(part), { fields })))
    await slice.yieldIfOver()
  }
  return found
}

function nameOf(row: Row): NameRecord {
  return { outpoint: outpointOf(row), name: row.name }
}
