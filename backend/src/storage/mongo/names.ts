import type { NamesReader } from '../../graph/graph-store.js'
import type { NameRecord, NodeRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { longestNode } from '../read/longest-node.js'
import { hexOf, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { type Doc, outpointId } from './collections.js'
import { anyOutpoint, type Documents } from './documents.js'

const OUTPOINT = ['txid', 'vout']

/** The names of a store. */
export function namesIn(documents: Documents): NamesReader {
  const lastDomain = async (bound: string): Promise<string | undefined> => {
    const filter = { domain: { $lte: bound } }
    return (await documents.first('graph_nodes', filter, { sort: { domain: -1 }, fields: ['domain'] }))
      ?.domain
  }
  return {
    async originOf(name) {
      const doc = await documents.first('graph_names', { name }, { fields: OUTPOINT })
      return doc && outpointOf(doc)
    },
    liveNode: (domain) => liveNode(documents, domain),
    longestNode: (name) =>
      longestNode({ lastDomain, liveNode: (domain) => liveNode(documents, domain) }, name),
    async genuineNodes(outpoints) {
      const found: NodeRecord[] = []
      for (const part of parts(outpoints, ROWS_A_STATEMENT)) {
        const ids = { _id: { $in: part.map(outpointId) } }
        for (const doc of await documents.all('graph_nodes', ids, { fields: ['domain', ...OUTPOINT] }))
          found.push({ outpoint: outpointOf(doc), domain: doc.domain })
      }
      return unique(found, ({ outpoint }) => formatOutpoint(outpoint))
    },
    genuineOrigins: (outpoints) => genuineOrigins(documents, outpoints),
    async byPrefix({ prefix, after = '', limit }) {
      const docs = await documents.all(
        'graph_names',
        // All characters of names sort below DEL.
        { name: { ...(after < prefix ? { $gte: prefix } : { $gt: after }), $lt: `${prefix}\x7f` } },
        { sort: { name: 1 }, limit, fields: ['name', ...OUTPOINT] },
      )
      return docs.map(nameOf)
    },
  }
}

/** A node that no admitted mint spends. A spender without a node is no mint. */
async function liveNode(documents: Documents, domain: string): Promise<Outpoint | undefined> {
  const nodes = await documents.all('graph_nodes', { domain }, { fields: OUTPOINT })
  if (nodes.length === 0) return undefined
  const outpoints = nodes.map(outpointOf)
  const spends = await documents.all('graph_spends', anyOutpoint(outpoints), {
    fields: [...OUTPOINT, 'spender'],
  })
  const mints = await withNodes(
    documents,
    spends.map(({ spender }) => spender),
  )
  const spent = new Set(
    spends.filter(({ spender }) => mints.has(hexOf(spender))).map((doc) => formatOutpoint(outpointOf(doc))),
  )
  return outpoints.find((outpoint) => !spent.has(formatOutpoint(outpoint)))
}

/** Those of the transactions that are active and have a node, as hex. */
export async function withNodes(documents: Documents, txids: Buffer[]): Promise<Set<string>> {
  const found = new Set<string>()
  for (const part of parts(txids, ROWS_A_STATEMENT)) {
    const docs = await documents.all('graph_nodes', { txid: { $in: part } }, { fields: ['txid'] })
    for (const { txid } of docs) found.add(hexOf(txid))
  }
  return found
}

export async function genuineOrigins(documents: Documents, outpoints: Outpoint[]): Promise<NameRecord[]> {
  const found: NameRecord[] = []
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const docs = await documents.all('graph_names', anyOutpoint(part), { fields: ['name', ...OUTPOINT] })
    found.push(...docs.map(nameOf))
  }
  return found
}

function nameOf(doc: Doc): NameRecord {
  return { outpoint: outpointOf(doc), name: doc.name }
}
