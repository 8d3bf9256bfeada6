import type { Sql } from '../facts/connection.js'
import type { NamesReader, NodeFilter } from '../graph/graph-store.js'
import type { NodeRecord } from '../graph/records.js'
import { sharedPrefix } from '../protocol/mine-node.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** See {@link NamesReader}. */
export function namesIn(reader: Reader): NamesReader {
  return {
    originOf: (name) => reader.single((sql) => originOf(sql, name)),
    claimed: (names) =>
      reader.all([...new Set(names)], (sql, name) => {
        const outpoint = originOf(sql, name)
        return outpoint === undefined ? [] : [{ outpoint, name }]
      }),
    liveNode: (domain, filter) => reader.single((sql) => liveNode(sql, domain, filter)),
    longestNode: (name, filter) =>
      reader.answer((sql) => (filter?.seen ? longestSeenNode(sql, name) : longestNode(sql, name))),
    genuineNode: (outpoint) => reader.single((sql) => nodeAt(sql, outpoint)),
    genuineNodes: (outpoints) =>
      reader.each(distinct(outpoints), (sql, outpoint) => nodeAt(sql, outpoint) ?? []),
    genuineOrigins: (outpoints) =>
      reader.all(distinct(outpoints), (sql, outpoint) => {
        const row = sql.get(NAME_AT, blobOf(outpoint.txid), outpoint.vout)
        return row === undefined ? [] : [{ outpoint, name: String(row.name) }]
      }),
    byPrefix: ({ prefix, after = '', limit }) => {
      // All characters of names sort below DEL.
      const end = `${prefix}\x7f`
      const rows = reader.single((sql) =>
        after < prefix ? sql.all(NAMES_FROM, prefix, end, limit) : sql.all(NAMES_AFTER, after, end, limit),
      )
      return rows.map((row) => ({ outpoint: outpointOf(row), name: String(row.name) }))
    },
  }
}

const ORIGIN_OF = 'select txid, vout from name cross join tx on id = tid where name = ? and name.active = 1'
const NAME_AT =
  'select name from tx cross join name on tid = id where txid = ? and vout = ? and name.active = 1'
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

/** Each mint of a node leaves one more with its domain: the live one is usually the last. */
const liveNodeBy = (isNode: string, isMint: string): string =>
  `select txid, node.vout from node cross join tx on tx.id = node.tid
   where domain = ? and ${isNode} and ${isLive(isMint)} order by node.tid desc limit 1`

const LIVE_NODE = liveNodeBy('1', '1')
/** As if there were no mints that nobody has seen. */
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

function longestNode(sql: Sql, name: string): NodeRecord | undefined {
  // The greatest domain that sorts at or before the name is its longest mined prefix, or shares that prefix with it: in a tree
  // that holds all its prefixes, the shared prefix is itself a domain, and the longest. If it is not, try the next.
  for (let bound = name; ; ) {
    const last: string | undefined = sql.get(LAST_DOMAIN, bound)?.domain
    if (last === undefined) return undefined
    const domain = sharedPrefix(last, name)
    const outpoint = liveNode(sql, domain)
    if (outpoint !== undefined) return { outpoint, domain }
    if (domain === last) return undefined
    bound = domain
  }
}

/** The tiers pass to what a mint is built on: if a domain has a seen node, so does each of its prefixes. */
function longestSeenNode(sql: Sql, name: string): NodeRecord | undefined {
  const last: string | undefined = sql.get(LAST_DOMAIN, name)?.domain
  if (last === undefined) return undefined
  let longest: NodeRecord | undefined
  let [shortest, most] = [0, sharedPrefix(last, name).length]
  for (let length = most; shortest <= most; length = (shortest + most) >> 1) {
    const domain = name.slice(0, length)
    const outpoint = liveNode(sql, domain, { seen: true })
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
