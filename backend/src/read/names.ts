import type { Sql } from '../facts/connection.js'
import type { NameRecord, NodeRecord } from '../graph/records.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import { sharedPrefix } from '../protocol/mine-node.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { atOnce } from '../protocol/steps.js'
import { type Guard, NAME_AT } from './guard.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** Which mints count for a question about live nodes. */
export interface NodeFilter {
  /** Only mints that are proven or seen: an unseen one neither makes a node nor spends one. */
  seen?: boolean
}

/** Names, and the nodes that they are mined from. A blocked prefix still has its nodes: longer names are not blocked with it. */
export class Names {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
  ) {}

  originOf(name: string): Outpoint | undefined {
    const { guard, reader } = this
    guard.refuseName(name)
    const origin = reader.answer((sql) => originOf(sql, name))
    if (origin !== undefined) guard.refuse([origin])
    return origin
  }

  /** Those of the names that are claimed, in no order. */
  claimed(names: string[]): NameRecord[] {
    const found = this.reader.all([...new Set(names)], (sql, name): NameRecord[] => {
      const outpoint = originOf(sql, name)
      return outpoint === undefined ? [] : [{ outpoint, name }]
    })
    return this.guard.served(found)
  }

  /** The node of a domain that no admitted mint has spent. */
  liveNode(domain: string, filter?: NodeFilter): Outpoint | undefined {
    const { guard, reader } = this
    guard.refuseName(domain)
    const node = reader.answer((sql) => liveNode(sql, domain, filter))
    if (node !== undefined) guard.refuse([node])
    return node
  }

  /** The live node whose domain is the longest prefix of `name`, including `name` itself. */
  longestNode(name: string, filter?: NodeFilter): NodeRecord | undefined {
    const { guard, reader } = this
    guard.refuseName(name)
    return guard.passing(reader.answer((sql) => longestNode(sql, name, filter)))
  }

  /** The genuine node in an outpoint, spent or live. */
  genuineNode(outpoint: Outpoint): NodeRecord | undefined {
    return this.reader.answer((sql) => nodeAt(sql, outpoint))
  }

  /** Those of the outpoints that are genuine nodes, spent or live, in no order. Yields if they are many. */
  genuineNodes(outpoints: Outpoint[]): Awaitable<NodeRecord[]> {
    return this.reader.each(distinct(outpoints), (sql, outpoint) => nodeAt(sql, outpoint) ?? [])
  }

  /** Those of the outpoints that are origins of genuine names, in no order. */
  genuineOrigins(outpoints: Outpoint[]): NameRecord[] {
    const found = this.reader.all(distinct(outpoints), (sql, outpoint): NameRecord[] => {
      const row = sql.get(NAME_AT, blobOf(outpoint.txid), outpoint.vout)
      return row === undefined ? [] : [{ outpoint, name: String(row.name) }]
    })
    return this.guard.served(found)
  }

  /** Names that start with `prefix` and come after `after`, in byte order. */
  byPrefix({ prefix, after, limit }: { prefix: string; after?: string; limit: number }): NameRecord[] {
    // All characters of names sort below DEL.
    const end = `${prefix}\x7f`
    const steps = this.guard.filled<NameRecord>({
      limit,
      outputsOf: ({ outpoint }) => [outpoint],
      page: (last, size) => {
        const from = last?.name ?? after ?? ''
        const rows = this.reader.answer((sql) =>
          from < prefix ? sql.all(NAMES_FROM, prefix, end, size) : sql.all(NAMES_AFTER, from, end, size),
        )
        return rows.map((row) => ({ outpoint: outpointOf(row), name: String(row.name) }))
      },
    })
    // Few are left out, as the operator blocks names one by one.
    return atOnce(steps)
  }
}

const ORIGIN_OF = 'select txid, vout from name cross join tx on id = tid where name = ? and name.active = 1'
const DOMAIN_AT =
  'select domain from tx cross join node on tid = id where txid = ? and vout = ? and node.active = 1'
const namesWithin = (bounds: string): string =>
  `select name, txid, vout from name cross join tx on id = tid where ${bounds} and name.active = 1 order by name limit ?`
const NAMES_FROM = namesWithin('name >= ? and name < ?')
const NAMES_AFTER = namesWithin('name > ? and name < ?')

const isSeen = (tx: string): string => `(${tx}.seen = 1 or ${tx}.mined is not null)`

/** A condition on `node`: no mint spends it. */
const isLive = (isMint: string): string => `node.active = 1 and not exists (
  select 1 from spend cross join tx as minting on minting.id = sid
  where pid = node.tid and spend.vout = node.vout and minting.active = 1 and minting.mint = 1 and ${isMint})`

/** Each mint of a node leaves another one with the same domain: the live one is usually the last. */
const liveNodeBy = (isNode: string, isMint: string): string =>
  `select txid, node.vout from node cross join tx on tx.id = node.tid
   where domain = ? and ${isNode} and ${isLive(isMint)} order by node.tid desc limit 1`

const LIVE_NODE = liveNodeBy('1', '1')
/** Ignores mints that nobody has seen. */
const LIVE_SEEN_NODE = liveNodeBy(isSeen('tx'), isSeen('minting'))

const LAST_DOMAIN = 'select domain from node where domain <= ? and active = 1 order by domain desc limit 1'

function originOf(sql: Sql, name: string): Outpoint | undefined {
  const row = sql.get(ORIGIN_OF, name)
  return row && outpointOf(row)
}

function nodeAt(sql: Sql, outpoint: Outpoint): NodeRecord | undefined {
  const row = sql.get(DOMAIN_AT, blobOf(outpoint.txid), outpoint.vout)
  return row && { outpoint, domain: String(row.domain) }
}

/** The node of a domain that no active mint has spent. */
export function liveNode(sql: Sql, domain: string, filter?: NodeFilter): Outpoint | undefined {
  const row = sql.get(filter?.seen ? LIVE_SEEN_NODE : LIVE_NODE, domain)
  return row && outpointOf(row)
}

/**
 * All prefixes of a domain are domains, each with a live node. Ancestors of a seen mint are seen, too: if a domain has a seen node,
 * so does each of its prefixes.
 */
function longestNode(sql: Sql, name: string, filter?: NodeFilter): NodeRecord | undefined {
  // The greatest domain that sorts at or before the name shares the longest mined prefix with it.
  const last: string | undefined = sql.get(LAST_DOMAIN, name)?.domain
  if (last === undefined) return undefined
  let longest: NodeRecord | undefined
  let [shortest, most] = [0, sharedPrefix(last, name).length]
  for (let length = most; shortest <= most; length = (shortest + most) >> 1) {
    const domain = name.slice(0, length)
    const outpoint = liveNode(sql, domain, filter)
    if (outpoint !== undefined) {
      longest = { outpoint, domain }
      shortest = length + 1
    } else most = length - 1
  }
  return longest
}

function distinct(outpoints: Outpoint[]): Outpoint[] {
  return [...new Map(outpoints.map((outpoint) => [formatOutpoint(outpoint), outpoint])).values()]
}
