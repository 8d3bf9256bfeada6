import type { NamesReader } from '../../graph/graph-store.js'
import type { NameRecord, NodeRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { type Domains, longestNode } from '../read/longest-node.js'
import { hexOf, outpointOf, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import { type Doc, outpointId } from './collections.js'
import { anyOutpoint, type Documents } from './documents.js'

const OUTPOINT = ['txid', 'vout']

/** The names of a store. */
export function namesIn(documents: Documents): NamesReader {
  return {
    originOf: (name) => nameOrigin(documents, name),
    liveNode: (domain) => liveNode(documents, domain),
    longestNode: (name) => longestNode(domainsIn(documents), name),
    genuineNodes: (outpoints) => genuineNodes(documents, outpoints),
    genuineOrigins: (outpoints) => genuineOrigins(documents, outpoints),
    byPrefix: (query) => namesByPrefix(documents, query),
  }
}

async function nameOrigin(documents: Documents, name: string): Promise<Outpoint | undefined> {
  const doc = await documents.first('graph_names', { name }, { fields: OUTPOINT })
  return doc && outpointOf(doc)
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

/** The domains of a database. */
function domainsIn(documents: Documents): Domains {
  return {
    async lastDomain(bound) {
      const doc = await documents.first(
        'graph_nodes',
        { domain: { $lte: bound } },
        { sort: { domain: -1 }, fields: ['domain'] },
      )
      return doc?.domain
    },
    liveNode: (domain) => liveNode(documents, domain),
  }
}

async function genuineNodes(documents: Documents, outpoints: Outpoint[]): Promise<NodeRecord[]> {
  const found: NodeRecord[] = []
  for (const part of parts(outpoints, ROWS_A_STATEMENT)) {
    const docs = await documents.all(
      'graph_nodes',
      { _id: { $in: part.map(outpointId) } },
      { fields: ['domain', ...OUTPOINT] },
    )
    for (const doc of docs) found.push({ outpoint: outpointOf(doc), domain: doc.domain })
  }
  return unique(found, ({ outpoint }) => formatOutpoint(outpoint))
}

export async function genuineOrigins(documents: Documents, outpoints: Outpoint[]): Promise<NameRecord[]> {
  const found: NameRecord[] = []
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const docs = await documents.all('graph_names', anyOutpoint(part), { fields: ['name', ...OUTPOINT] })
    found.push(...docs.map(nameOf))
  }
  return found
}

async function namesByPrefix(
  documents: Documents,
  query: { prefix: string; after?: string; limit: number },
): Promise<NameRecord[]> {
  const { prefix, after = '', limit } = query
  const docs = await documents.all(
    'graph_names',
    // All characters of names sort below DEL.
    { name: { ...(after < prefix ? { $gte: prefix } : { $gt: after }), $lt: `${prefix}\x7f` } },
    { sort: { name: 1 }, limit, fields: ['name', ...OUTPOINT] },
  )
  return docs.map(nameOf)
}

function nameOf(doc: Doc): NameRecord {
  return { outpoint: outpointOf(doc), name: doc.name }
}
