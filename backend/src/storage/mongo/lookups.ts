import type { NodeFilter } from '../../graph/graph-store.js'
import type { AdmissionRecord, Block } from '../../graph/records.js'
import { TimeSlice } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { admissionOf, lastScore } from '../read/admissions.js'
import { Lineages, SHORT, SHORT_LINEAGE, shortLineage, unblocked } from '../read/lineages.js'
import { LINEAGE_STEP, type LineageSummary, type Lookups, MAP_ROW, type Place } from '../read/lookups.js'
import { CHUNK } from '../read/read-blobs.js'
import type { StreamPageQuery } from '../read/read-streams.js'
import { seenAmong, spendsOf } from '../read/transaction-status.js'
import { heightsOf, PROOF } from '../read/transactions.js'
import {
  countInParts,
  groupBy,
  hashColumn,
  hexOf,
  inParts,
  isComplete,
  type Lineage,
  lineageOf,
  outpointOf,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import { anyOf, anyOutpoint, type Filter, inLineage, type Row, type RowReader, SPENDS } from '../rows/rows.js'
import { chunksOf } from './collections.js'

const OUTPOINT = ['txid', 'vout']
const LINEAGE = ['lineage_txid', 'lineage_vout']
const OUTPUTS = 'graph_outputs'

/** See {@link Lookups}. */
export function lookupsIn(rows: RowReader): Lookups {
  const lookups: Lookups = {
    async transactionHead(owner) {
      const [head, chunk] = await Promise.all([
        rows.first('graph_transactions', { txid: owner }, { fields: PROOF }),
        rows.first('graph_pieces', { owner, position: 0 }, { fields: CHUNK }),
      ])
      return head && chunk && { ...head, ...chunk }
    },
    async lastChunk(owner) {
      const last = { sort: { _id: -1 }, fields: ['position', 'bytes'] } as const
      const chunk = await rows.first('graph_pieces', chunksOf(owner), last)
      return chunk && { position: chunk.position, length: chunk.bytes.length }
    },
    blocksBetween: (heights) => blocksBetween(rows, heights),
    async sharedWith(txid) {
      const own = await rows.all(SPENDS, { spender: hashColumn(txid) }, { fields: OUTPOINT })
      const spends = await spendsOf(rows, own.map(outpointOf))
      const shared = spends.filter(({ spender }) => spender !== txid)
      const nodes = await nodesAmong(
        rows,
        shared.map(({ outpoint }) => outpoint),
      )
      const found = shared.map(({ outpoint, spender }) => ({
        spender,
        isNode: nodes.has(formatOutpoint(outpoint)),
      }))
      return unique(found, ({ spender, isNode }) => `${spender} ${isNode}`)
    },
    async spenderOf(outpoint) {
      const spends = await rows.all('graph_spends', anyOutpoint([outpoint]), { fields: ['spender'] })
      const spenders = spends.map(({ spender }) => hexOf(spender))
      if (spenders.length === 0) return undefined
      const node = await rows.first('graph_nodes', anyOutpoint([outpoint]), { fields: ['txid'] })
      if (node === undefined) return spenders[0]
      // Only a mint spends a node, and a transaction without a node is no mint.
      const mints = await withNodes(rows, spenders)
      return spenders.find((spender) => mints.has(spender))
    },
    async liveNode(domain, { seen = false } = {}) {
      const all = (await rows.all('graph_nodes', { domain }, { fields: OUTPOINT })).map(outpointOf)
      const made = seen
        ? await seenAmong(
            rows,
            all.map(({ txid }) => txid),
          )
        : undefined
      const nodes = all.filter(({ txid }) => made?.has(txid) ?? true)
      const spent = await minted(rows, nodes, { seen })
      return nodes.find((outpoint) => !spent.has(formatOutpoint(outpoint)))
    },
    async nodesOf(domains) {
      const fields = ['domain', ...OUTPOINT]
      const nodes = await rows.all('graph_nodes', { domain: { $in: domains } }, { fields })
      const spent = await minted(rows, nodes.map(outpointOf))
      return [...groupBy(nodes, ({ domain }) => String(domain))].map(([domain, same]) => {
        const live = same.map(outpointOf).find((outpoint) => !spent.has(formatOutpoint(outpoint)))
        return { domain, ...(live && { outpoint: live }), children: same.length - 1 }
      })
    },
    async unspentOfTopic({ topic, since, limit = Number.POSITIVE_INFINITY, always }) {
      const sort = { score: 1, txid: 1, vout: 1 } as const
      const found: AdmissionRecord[] = []
      // A write is applied document by document: what is above this may not be all that comes before what else there is.
      const given = { $lte: (await lastScore(rows)) ?? 0 }
      for (let filter: Filter = { topic, score: { $gte: since, ...given } }; found.length < limit; ) {
        const page = await rows.all('graph_admissions', filter, { sort, limit: PAGE })
        found.push(...(await unspent(rows, page, always)).map(admissionOf))
        const last = page.at(-1)
        if (last === undefined || page.length < PAGE) break
        const { score, txid, vout } = last
        const isAfter = [{ score: { $gt: score } }, { txid: { $gt: txid } }, { txid, vout: { $gt: vout } }]
        filter = { topic, score: { $gte: score, ...given }, $or: isAfter }
      }
      return found.slice(0, limit)
    },
    workBehind: ({ txids, limit }) => countInParts(txids, limit, (part) => workBehind(rows, part, limit)),
    async summaryOf(outpoint) {
      const place = await lineages.placeOf(outpoint)
      if (place === undefined) return undefined
      // Nothing else is asked about it.
      if (!isComplete(place.lineage)) return { ...place, isComplete: false, last: place.step, ...NO_STEPS }
      const first = { ...inLineage(place.lineage), step: { $lt: SHORT } }
      const outputs = await rows.all(OUTPUTS, first, { fields: SHORT_LINEAGE })
      return outputs.length < SHORT ? shortLineage(rows, place, outputs) : await longLineage(rows, place)
    },
    async mapRows({ lineage, from, to, limit, order }) {
      const within = { $gte: from, ...(to !== undefined && { $lte: to }) }
      const page = await rows.all(
        OUTPUTS,
        { ...inLineage(lineage), map_step: within },
        { sort: { map_step: order }, limit, fields: MAP_ROW },
      )
      return {
        rows: await unblocked(rows, page),
        last: page.length < limit ? undefined : page.at(-1).map_step,
      }
    },
    async lineageSteps({ lineage, from, to, order, limit }) {
      const steps = await rows.all(
        OUTPUTS,
        { ...inLineage(lineage), step: { $gte: from, $lte: to } },
        { sort: { step: order }, limit, fields: LINEAGE_STEP },
      )
      const heights = await heightsOf(
        rows,
        steps.map(({ txid }) => hexOf(txid)),
      )
      return steps.map((row) => ({ ...row, height: heights.get(hexOf(row.txid)) ?? null }))
    },
    async lineageEnds(firsts) {
      const places = await rows.all(OUTPUTS, anyOutpoint(firsts), { fields: [...OUTPOINT, ...LINEAGE] })
      return await Promise.all(
        places.map(async (place) => {
          const lineage = lineageOf(place)
          const { last = 0, ...ends } = await endsOf(rows, lineage)
          return { first: outpointOf(place), lineage, last, ...ends }
        }),
      )
    },
    lineagesWith: (query) => lineagesWith(rows, query),
    async streamPage(query) {
      for (let place = await lineages.placeOf(query.outpoint); place !== undefined; ) {
        const page = await pageFrom(rows, place, query)
        // If the output has moved meanwhile, this page may belong to neither place.
        const now = await lineages.placeOf(query.outpoint)
        if (now !== undefined && isSame(place, now)) return page
        place = now
      }
      return []
    },
  }
  const lineages = new Lineages(rows, lookups)
  return lookups
}

const NO_STEPS = { origin: undefined, content: undefined, parent: undefined }

/** How many transactions of blocks are read at once: a block may hold any number. */
const BLOCKS_PAGE = 500

async function blocksBetween(rows: RowReader, { from, to }: { from: number; to?: number }): Promise<Block[]> {
  const found = new Map<string, Block>()
  const above = { $gte: from, ...(to !== undefined && { $lte: to }) }
  for (let filter: Filter = { height: above }; ; ) {
    const page = await rows.all('graph_transactions', filter, {
      sort: { height: -1, merkle_root: -1 },
      limit: BLOCKS_PAGE,
      fields: ['height', 'merkle_root'],
    })
    for (const { height, merkle_root } of page) {
      const root = hexOf(merkle_root)
      found.set(`${height} ${root}`, { height, root })
    }
    const last = page.at(-1)
    if (last === undefined || page.length < BLOCKS_PAGE) break
    // The transactions of all blocks that come after the last one.
    filter = {
      height: { $gte: from, $lte: last.height },
      $or: [{ height: { $lt: last.height } }, { merkle_root: { $lt: last.merkle_root } }],
    }
  }
  return [...found.values()].sort((a, b) => b.height - a.height || (a.root < b.root ? -1 : 1))
}

/** Those of the outpoints that are nodes, as text. */
async function nodesAmong(rows: RowReader, outpoints: Outpoint[]): Promise<Set<string>> {
  const nodes = await inParts(unique(outpoints, formatOutpoint), async (part) => {
    const own = anyOutpoint(part)
    const inactive = await rows.all('graph_silent_facts', { ...own, kind: 'node' }, { fields: OUTPOINT })
    return [...inactive, ...(await rows.all('graph_nodes', own, { fields: OUTPOINT }))]
  })
  return outpointSet(nodes)
}

function outpointSet(docs: Row[]): Set<string> {
  return new Set(docs.map((doc) => formatOutpoint(outpointOf(doc))))
}

/** Those of the nodes that a mint has spent, as text. */
async function minted(
  rows: RowReader,
  nodes: Outpoint[],
  { seen = false }: NodeFilter = {},
): Promise<Set<string>> {
  const fields = [...OUTPOINT, 'spender']
  const spends = await inParts(nodes, (part) => rows.all('graph_spends', anyOutpoint(part), { fields }))
  const mints = await withNodes(
    rows,
    spends.map(({ spender }) => hexOf(spender)),
  )
  const counting = seen ? await seenAmong(rows, [...mints]) : mints
  return outpointSet(spends.filter(({ spender }) => counting.has(hexOf(spender))))
}

/** Those of the transactions that are active and have a node. */
async function withNodes(rows: RowReader, txids: string[]): Promise<Set<string>> {
  const nodes = await inParts(txids, (part) =>
    rows.all('graph_nodes', { txid: anyOf(part) }, { fields: ['txid'] }),
  )
  return new Set(nodes.map(({ txid }) => hexOf(txid)))
}

/** How many admissions are checked for spends, or lineages for further attributes, at once. */
const PAGE = 200

/** Those that no active transaction spends, or that have the index, and whose own transaction is active. */
async function unspent(rows: RowReader, admissions: Row[], always: number | undefined): Promise<Row[]> {
  if (admissions.length === 0) return []
  const [spends, transactions] = await Promise.all([
    rows.all('graph_spends', anyOutpoint(admissions.map(outpointOf)), { fields: OUTPOINT }),
    rows.all(
      'graph_transactions',
      { txid: { $in: admissions.map(({ txid }) => txid) }, silent: true },
      { fields: ['txid'] },
    ),
  ])
  const spent = outpointSet(spends)
  const inactive = new Set(transactions.map(({ txid }) => hexOf(txid)))
  return admissions.filter((admission) => {
    const outpoint = outpointOf(admission)
    const isSpent = outpoint.vout !== always && spent.has(formatOutpoint(outpoint))
    return !isSpent && !inactive.has(outpoint.txid)
  })
}

/** See `Backlog.workBehind`. */
async function workBehind(rows: RowReader, txids: string[], limit: number): Promise<number> {
  const fields = ['spender']
  const found = await rows.all('graph_spends', { txid: anyOf(txids) }, { fields, limit })
  if (found.length === 0) return 0
  const spenders = unique(
    found.map(({ spender }) => spender as Buffer),
    hexOf,
  )
  return (await rows.all('graph_spends', { spender: { $in: spenders } }, { fields, limit })).length
}

/** The summary of a complete lineage. */
async function longLineage(rows: RowReader, place: Place): Promise<LineageSummary> {
  const { lineage } = place
  const [{ last = place.step, ...ends }, parent] = await Promise.all([
    endsOf(rows, lineage),
    edge(rows, { lineage, step: 'parent_step', order: -1 }),
  ])
  return { ...place, isComplete: true, last, ...ends, parent }
}

async function endsOf(rows: RowReader, lineage: Lineage) {
  const [last, origin, content] = await Promise.all([
    edge(rows, { lineage, step: 'step', order: -1 }),
    edge(rows, { lineage, step: 'content_step', order: 1 }),
    edge(rows, { lineage, step: 'content_step', order: -1 }),
  ])
  return { last, origin, content }
}

/** The first or the last step of a kind. */
async function edge(
  rows: RowReader,
  { lineage, step, order }: { lineage: Lineage; step: string; order: 1 | -1 },
): Promise<number | undefined> {
  // Every output has a step, and before a missing start there are negative ones.
  const filter = { ...inLineage(lineage), ...(step !== 'step' && { [step]: { $gte: 0 } }) }
  return (await rows.first(OUTPUTS, filter, { sort: { [step]: order }, fields: [step] }))?.[step]
}

async function* lineagesWith(
  rows: RowReader,
  { hashes: [trait, ...others], from, limit }: Parameters<Lookups['lineagesWith']>[0],
): AsyncGenerator<Lineage> {
  if (trait === undefined) return
  const size = others.length === 0 ? limit : PAGE
  const slice = new TimeSlice()
  let found = 0
  for (let last = from; ; ) {
    const docs = await rows.all(
      'graph_traits',
      { trait, ...(last && after(last)) },
      { sort: { lineage_txid: 1, lineage_vout: 1 }, limit: size, fields: LINEAGE },
    )
    const page = docs.map(lineageOf)
    for (const lineage of await havingAll(rows, others, page)) {
      yield lineage
      if (++found === limit) return
    }
    last = page.at(-1)
    if (last === undefined || page.length < size) return
    await slice.yieldIfOver()
  }
}

function after([txid, vout]: Lineage): Filter {
  return {
    lineage_txid: { $gte: txid },
    $or: [{ lineage_txid: { $gt: txid } }, { lineage_vout: { $gt: vout } }],
  }
}

/** Those of the lineages that have all of the attributes. */
async function havingAll(rows: RowReader, hashes: Buffer[], lineages: Lineage[]): Promise<Lineage[]> {
  const keyOf = ([txid, vout]: Lineage): string => `${hexOf(txid)} ${vout}`
  let left = lineages
  for (const trait of hashes) {
    const having: Lineage[] = []
    for (const part of parts(left, ROWS_A_STATEMENT)) {
      const wanted = { trait, $or: part.map(inLineage) }
      const docs = await rows.all('graph_traits', wanted, { fields: LINEAGE })
      const found = new Set(docs.map((doc) => keyOf(lineageOf(doc))))
      having.push(...part.filter((lineage) => found.has(keyOf(lineage))))
    }
    left = having
  }
  return left
}

async function pageFrom(
  rows: RowReader,
  { lineage, step }: Place,
  { direction, from, limit }: StreamPageQuery,
): Promise<Row[]> {
  const isForward = direction === 'forward'
  const docs = await rows.all(
    OUTPUTS,
    { ...inLineage(lineage), step: isForward ? { $gte: step + from } : { $lte: step - from } },
    { sort: { step: isForward ? 1 : -1 }, limit, fields: STREAM },
  )
  return docs.map((doc) => ({ ...doc, away: doc.step - step }))
}

const STREAM = [...OUTPOINT, 'satoshis', 'content_sha256', 'content_type', 'content_length', 'step']

function isSame(one: Place, other: Place): boolean {
  const [txid, vout] = one.lineage
  return one.step === other.step && vout === other.lineage[1] && txid.equals(other.lineage[0])
}
