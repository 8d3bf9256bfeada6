import type { AdmissionsReader } from '../../graph/graph-store.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import { admissionOf } from '../read/admissions.js'
import { placeIn, SHORT, SHORT_LINEAGE, shortLineage } from '../read/lineages.js'
import { LINEAGE_STEP, type LineageSummary, type Lookups, MAP_ROW } from '../read/lookups.js'
import type { Direction } from '../read/read-streams.js'
import { PROOF } from '../read/transactions.js'
import {
  countInParts,
  hashColumn,
  hexOf,
  isComplete,
  type Lineage,
  lineageOf,
  numberIn,
  outpointOf,
  outpointPair,
} from '../rows/columns.js'
import { anyOutpoint, type Row, SPENDS } from '../rows/rows.js'
import { anyOf, type SqlReader, type SqlValue } from './database.js'
import { conditionOf, rowReader } from './rows.js'

/** See {@link Lookups}. @param isMysql Whether the database plans each subquery of a statement again whenever it runs. */
export function lookupsIn(reader: SqlReader, isMysql: boolean): Lookups {
  return {
    transactionHead: (owner) =>
      reader.first(
        `select ${PROOF.join(', ')}, bytes, checksum from graph_transactions as transactions
         join graph_pieces as chunks on chunks.owner = transactions.txid
         where transactions.txid = ? and position = 0`,
        [owner],
      ),
    async lastChunk(owner) {
      const last = await reader.first(
        'select position, length(bytes) as length from graph_pieces where owner = ? order by position desc limit 1',
        [owner],
      )
      return last && { position: Number(last.position), length: Number(last.length) }
    },
    async blocksBetween({ from, to }) {
      const rows = await reader.all(
        `select distinct height, merkle_root from graph_transactions
         where height >= ? ${to === undefined ? '' : 'and height <= ?'} order by height desc, merkle_root`,
        to === undefined ? [from] : [from, to],
      )
      return rows.map((row) => ({ height: Number(row.height), root: hexOf(row.merkle_root) }))
    },
    async sharedWith(txid) {
      const rows = await reader.all(SHARED, Array(4).fill(hashColumn(txid)))
      return rows.map((row) => ({ spender: hexOf(row.spender), isNode: Number(row.is_node) === 1 }))
    },
    async spenderOf(outpoint) {
      const row = await reader.first(SPENDER, outpointPair(outpoint))
      return row && hexOf(row.spender)
    },
    async liveNode(domain, { seen = false } = {}) {
      const row = await reader.first(seen ? LIVE_SEEN_NODE : LIVE_NODE, [domain])
      return row && outpointOf(row)
    },
    async nodesOf(domains) {
      const sql = (isMysql ? mysqlNodes : sqliteNodes)(domains)
      const rows = await reader.all(sql, domains)
      return rows.map((row) => ({
        domain: String(row.domain),
        ...(row.txid !== null && { outpoint: outpointOf(row) }),
        children: Number(row.nodes) - 1,
      }))
    },
    unspentOfTopic: (query) => unspentOfTopic(reader, query),
    workBehind: ({ txids, limit }) => countInParts(txids, limit, (part) => workBehind(reader, part, limit)),
    summaryOf: (outpoint) => (isMysql ? mysqlSummary : summary)(reader, outpointPair(outpoint)),
    async mapRows({ lineage, from, to, limit, order }) {
      const rows = await reader.all(
        `select ${MAP_ROW.join(', ')} from graph_outputs
         where lineage_txid = ? and lineage_vout = ? and map_step >= ? ${to === undefined ? '' : 'and map_step <= ?'}
         and ${UNBLOCKED} order by map_step ${order === 1 ? '' : 'desc'} limit ?`,
        [...lineage, from, ...(to === undefined ? [] : [to]), limit],
      )
      return { rows, last: rows.length < limit ? undefined : Number(rows.at(-1).map_step) }
    },
    async lineageSteps({ lineage, from, to, order, limit }) {
      const sql = `select ${LINEAGE_STEP.map((column) => `outputs.${column}`).join(', ')}, height
        from graph_outputs as outputs left join graph_transactions as own on own.txid = outputs.txid
        where lineage_txid = ? and lineage_vout = ? and step >= ? and step <= ?
        order by step ${order === 1 ? '' : 'desc'} limit ?`
      return await reader.all(sql, [...lineage, from, to, limit])
    },
    async lineageEnds(firsts) {
      const values: SqlValue[] = []
      const sql = `select txid, vout, lineage_txid, lineage_vout, ${edge('step', 'desc')} as step,
        ${edge('content_step', 'asc')} as first_content, ${edge('content_step', 'desc')} as content_step
        from graph_outputs as place where ${conditionOf(anyOutpoint(firsts), values)}`
      const rows = await reader.all(sql, values)
      return rows.map((row) => ({
        ...{ first: outpointOf(row), lineage: lineageOf(row), last: Number(row.step) },
        ...{ origin: numberIn(row.first_content), content: numberIn(row.content_step) },
      }))
    },
    lineagesWith: (query) => lineagesWith(reader, query),
    async streamPage({ outpoint, direction, from, limit }) {
      const rows = await reader.all(PAGES[direction], [...outpointPair(outpoint), from, limit])
      return rows.map((row) => ({ ...row, away: Number(row.away) }))
    },
  }
}

const _LINEAGE_KEYS = ['txid', 'vout', 'lineage_txid', 'lineage_vout']

/** A condition on a spend: it spends a node. */
const IS_NODE = `(exists (select 1 from graph_nodes as nodes where nodes.txid = own.txid and nodes.vout = own.vout)
  or exists (
    select 1 from graph_silent_facts as facts
    where facts.txid = own.txid and facts.vout = own.vout and facts.kind = 'node'
  ))`

const SHARED = SPENDS.flatMap((own) =>
  SPENDS.map(
    (other) => `select other.spender, ${IS_NODE} as is_node from ${own} as own join ${other} as other
      on other.txid = own.txid and other.vout = own.vout where own.spender = ? and other.spender <> own.spender`,
  ),
).join(' union ')

/** Only a mint spends a node, and a transaction without a node is no mint. */
const SPENDER = `select spender from graph_spends as spends where txid = ? and vout = ? and (
  exists (select 1 from graph_nodes as nodes where nodes.txid = spends.spender)
  or not exists (
    select 1 from graph_nodes as nodes where nodes.txid = spends.txid and nodes.vout = spends.vout
  )
)`

/** A condition on `nodes`: no mint spends it. */
const IS_LIVE = `not exists (
  select 1 from graph_spends as spends join graph_nodes as spending on spending.txid = spends.spender
  where spends.txid = nodes.txid and spends.vout = nodes.vout
)`

const LIVE_NODE = `select txid, vout from graph_nodes as nodes where domain = ? and ${IS_LIVE} limit 1`

/** As if there were no mints that nobody has seen. */
const LIVE_SEEN_NODE = `select nodes.txid, nodes.vout from graph_nodes as nodes
  join graph_transactions as own on own.txid = nodes.txid and own.seen = 1
  where domain = ? and not exists (
    select 1 from graph_spends as spends join graph_nodes as spending on spending.txid = spends.spender
    join graph_transactions as minting on minting.txid = spends.spender and minting.seen = 1
    where spends.txid = nodes.txid and spends.vout = nodes.vout
  ) limit 1`

/**
 * Each mint of a node leaves one more with its domain. SQLite looks for the live one among the last written first, where it
 * usually is. MySQL has no such order, and would read the whole table for this join.
 */
function sqliteNodes(domains: string[]): string {
  return `select found.domain, found.nodes, live.txid, live.vout
    from (select domain, count(*) as nodes from graph_nodes where domain in (${anyOf(domains)}) group by domain) as found
    left join graph_nodes as live on live.rowid = (
      select nodes.rowid from graph_nodes as nodes where nodes.domain = found.domain and ${IS_LIVE}
      order by nodes.rowid desc limit 1
    )`
}

function mysqlNodes(domains: string[]): string {
  return `select domain, count(*) as nodes,
    max(case when ${IS_LIVE} then txid end) as txid, max(case when ${IS_LIVE} then vout end) as vout
    from graph_nodes as nodes where domain in (${anyOf(domains)}) group by domain`
}

type UnspentQuery = Parameters<AdmissionsReader['unspentOfTopic']>[0]
/** No output has this index. */
const NO_OUTPUT = -1

const unspentOfTopic = async (
  reader: SqlReader,
  { topic, since, limit = Number.MAX_SAFE_INTEGER, always = NO_OUTPUT }: UnspentQuery,
) => {
  const rows = await reader.all(
    // Joins and not `exists`: for that, MariaDB would read all spends into a temporary table.
    `select admissions.txid, admissions.vout, topic, score from graph_admissions as admissions
     left join graph_spends as spends on spends.txid = admissions.txid and spends.vout = admissions.vout
     left join graph_transactions as own on own.txid = admissions.txid and own.silent = 1
     where topic = ? and score >= ? and own.txid is null
     and (spends.txid is null or admissions.vout = ?)
     order by score, admissions.txid, admissions.vout limit ?`,
    [topic, since, always, limit],
  )
  return rows.map(admissionOf)
}

/** See `Backlog.workBehind`. */
async function workBehind(reader: SqlReader, txids: string[], limit: number): Promise<number> {
  const hashes = txids.map(hashColumn)
  const spends = await reader.first(
    `select count(*) as count from (
       select 1 from graph_spends as behind
       where behind.spender in (select spender from graph_spends where txid in (${anyOf(hashes)})) limit ?
     ) as found`,
    [...hashes, limit],
  )
  return Number(spends?.count ?? 0)
}

/** The first or the last step of a kind in the lineage of `place`. */
const edge = (step: string, order: 'asc' | 'desc'): string =>
  `(select ${step} from graph_outputs as other
    where other.lineage_txid = place.lineage_txid and other.lineage_vout = place.lineage_vout and ${step} is not null
    order by ${step} ${order} limit 1)`

/** The place of an output, and the edges of its lineage. */
const SUMMARY = `select satoshis, carrier, lineage_txid, lineage_vout, step,
  ${edge('step', 'desc')} as last_step,
  ${edge('content_step', 'asc')} as first_content,
  ${edge('content_step', 'desc')} as last_content,
  ${edge('parent_step', 'desc')} as last_parent
  from graph_outputs as place where txid = ? and vout = ?`

async function summary(reader: SqlReader, outpoint: SqlValue[]): Promise<LineageSummary | undefined> {
  const row = await reader.first(SUMMARY, outpoint)
  if (row === undefined) return undefined
  const place = placeIn(row)
  return {
    ...place,
    isComplete: isComplete(place.lineage),
    last: Number(row.last_step),
    origin: numberIn(row.first_content),
    content: numberIn(row.last_content),
    parent: numberIn(row.last_parent),
  }
}

/** The outputs of an output's lineage, if it is complete and short; else so many that it is not. */
const FIRST = `select place.satoshis as place_satoshis, place.carrier as place_carrier, place.step as place_step, place.lineage_txid, place.lineage_vout,
  ${SHORT_LINEAGE.map((column) => `each_one.${column}`).join(', ')}
  from graph_outputs as place join graph_outputs as each_one
    on each_one.lineage_txid = place.lineage_txid and each_one.lineage_vout = place.lineage_vout
      and each_one.step < ${SHORT}
  where place.txid = ? and place.vout = ? limit ${SHORT}`

async function mysqlSummary(reader: SqlReader, outpoint: SqlValue[]): Promise<LineageSummary | undefined> {
  const rows = await reader.all(FIRST, outpoint)
  const [row] = rows
  if (row === undefined || rows.length === SHORT) return await summary(reader, outpoint)
  const { place_satoshis: satoshis, place_carrier: carrier, place_step: step } = row
  const place = placeIn({ ...row, satoshis, carrier, step })
  return isComplete(place.lineage)
    ? shortLineage(rowReader(reader), place, rows)
    : await summary(reader, outpoint)
}

/** A condition on `graph_outputs`: the MAP of a blocked output does not count at later steps either. */
const UNBLOCKED = `not exists (
  select 1 from graph_blocked as blocked where blocked.txid = graph_outputs.txid and blocked.vout = graph_outputs.vout
)`

/** How many lineages with the rarest attribute are checked for the others at once. */
const PAGE = 200

/** Yields between pages: strangers decide how many lineages have the first attribute and lack another. */
async function* lineagesWith(
  reader: SqlReader,
  { hashes, from, limit }: Parameters<Lookups['lineagesWith']>[0],
): AsyncGenerator<Lineage> {
  const [first, ...others] = hashes
  if (first === undefined) return
  const isMatch = others.length === 0 ? '1' : others.map(() => HAS_OTHER).join(' and ')
  const pageOf = (behind: string, values: SqlValue[], limit: number): Promise<Row[]> =>
    reader.all(
      `select lineage_txid as txid, lineage_vout as vout, ${isMatch} as matches from graph_traits as traits
       where trait = ? ${behind} order by lineage_txid, lineage_vout limit ?`,
      [...others, first, ...values, limit],
    )
  const size = others.length === 0 ? limit : PAGE
  const slice = new TimeSlice()
  let found = 0
  for (let last = from; found < limit; ) {
    // The remaining lineages of the same transaction, then those after it: each is one range of the key.
    const rows =
      last === undefined
        ? await pageOf('', [], size)
        : await pageOf('and lineage_txid = ? and lineage_vout > ?', last, size)
    if (last !== undefined && rows.length < size)
      rows.push(...(await pageOf('and lineage_txid > ?', [last[0]], size - rows.length)))
    for (const row of rows) {
      last = outpointPair(outpointOf(row))
      if (Number(row.matches) !== 1) continue
      yield last
      if (++found === limit) return
    }
    if (rows.length < size) return
    await slice.yieldIfOver()
  }
}

const HAS_OTHER = `exists (
  select 1 from graph_traits as other where other.trait = ?
  and other.lineage_txid = traits.lineage_txid and other.lineage_vout = traits.lineage_vout
)`

/** See `Streams`. Each statement looks up the output's place, too. */
const PAGES: Record<Direction, string> = {
  forward: pageOf('>= (select step from place) + ?', 'asc'),
  backward: pageOf('<= (select step from place) - ?', 'desc'),
}

// Not a join with the place: MariaDB would sort the steps then, though an index has them in order.
function pageOf(reach: string, order: 'asc' | 'desc'): string {
  return `with place as (select lineage_txid, lineage_vout, step from graph_outputs where txid = ? and vout = ?)
    select txid, vout, satoshis, content_sha256, content_type, content_length, step - (select step from place) as away
    from graph_outputs where lineage_txid = (select lineage_txid from place)
      and lineage_vout = (select lineage_vout from place) and step ${reach}
    order by step ${order} limit ?`
}
