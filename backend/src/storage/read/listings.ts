import { type OrdinalsReader, TIP } from '../../graph/graph-store.js'
import {
  heightIn,
  historyStep,
  type ListedOrdinal,
  type ListedTransaction,
  type ListingsReader,
  type NewestQuery,
  type OrdinalHistory,
  type StoreCounts,
  type TransactionOutput,
} from '../../graph/listings.js'
import type { OutputRecord } from '../../graph/records.js'
import { MAX_NAME_LENGTH, NAME_CHARACTERS } from '../../protocol/mine-node.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  formatLineage,
  hashColumn,
  hexOf,
  inParts,
  isComplete,
  type Lineage,
  lineageOf,
  numberIn,
  outpointOf,
  outpointPair,
  unique,
} from '../rows/columns.js'
import { contentOf, OUTPUT, outputOf } from '../rows/record-rows.js'
import { type Filter, inLineage, type Row, type RowReader } from '../rows/rows.js'
import { firstsWith } from './attributes.js'
import { blockTimesIn } from './header-rows.js'
import type { Lineages } from './lineages.js'
import type { LineageEnds, Lookups } from './lookups.js'
import { heightsOf } from './transactions.js'

export interface ListingsOptions {
  rows: RowReader
  lineages: Lineages
  lookups: Pick<Lookups, 'spenderOf' | 'nodesOf' | 'lineageSteps' | 'lineageEnds' | 'lineagesWith'>
  ordinals: Pick<OrdinalsReader, 'at' | 'output'>
}

/** The setting that holds {@link StoreCounts}. */
export const COUNTS = { name: 'counts' }
const OUTPOINT = ['txid', 'vout']
/** The columns of an output that lists show: decoding a column takes the driver longer than finding the row. */
const LISTED = [
  ...OUTPOINT,
  'satoshis',
  'content_sha256',
  'content_type',
  'content_length',
  'owner',
  'parent_txid',
  'parent_vout',
  'parent_step',
]

/** Those that {@link listedOrdinals} reads. */
const ORDINAL = [
  ...OUTPOINT,
  'content_sha256',
  'content_type',
  'content_length',
  'carrier',
  'owner',
  'lineage_txid',
  'lineage_vout',
  'step',
]

/** The lists of a store. */
export function listingsIn(options: ListingsOptions): ListingsReader {
  const { rows, lookups } = options
  return {
    counts: () => storedCounts(rows),
    async newestNames(query) {
      const found = await newest(rows, query, { table: 'graph_names', fields: ['name', ...OUTPOINT] })
      return found.map((row) => ({ name: String(row.name), outpoint: outpointOf(row), ...recencyIn(row) }))
    },
    async newestInscriptions(query) {
      const found = await newest(rows, query, { table: 'graph_outputs', fields: LISTED })
      return found.flatMap((row) => {
        const content = contentOf(row)
        if (content === undefined) return []
        return [
          {
            outpoint: outpointOf(row),
            satoshis: Number(row.satoshis),
            content,
            ...(row.owner !== null && { owner: hexOf(row.owner) }),
            ...(row.parent_step !== null && {
              parent: outpointOf({ txid: row.parent_txid, vout: row.parent_vout }),
            }),
            ...recencyIn(row),
          },
        ]
      })
    },
    async childNodes(domain) {
      if (domain.length >= MAX_NAME_LENGTH) return []
      const found = await lookups.nodesOf(CHARACTERS.map((character) => domain + character))
      return found.sort((one, other) => (one.domain < other.domain ? -1 : 1))
    },
    history: (query) => historyOf(options, query),
    ordinalsWith: (query) => ordinalsWith(options, query),
    transaction: (query) => transactionOf(rows, lookups, query),
    blockTimes: (heights) => blockTimesIn(rows, heights),
  }
}

const CHARACTERS = [...NAME_CHARACTERS]

export async function storedCounts(rows: RowReader): Promise<StoreCounts> {
  const row = await rows.first('graph_settings', COUNTS, { fields: ['name', 'value'] })
  return row === undefined ? { names: 0, inscriptions: 0, transactions: 0 } : JSON.parse(String(row.value))
}

/** The rows of a page: the rest of the same transaction, the rest of the same block, and what is older. */
async function newest(
  rows: RowReader,
  { after, limit }: NewestQuery,
  { table, fields }: { table: 'graph_names' | 'graph_outputs'; fields: readonly string[] },
): Promise<Row[]> {
  const sort = { recency: -1, txid: -1, vout: -1 } as const
  const read = (filter: Filter, count: number): Promise<Row[]> =>
    rows.all(table, filter, { sort, limit: count, fields: [...fields, 'recency'] })
  if (after === undefined) return await read({ recency: { $gte: 0 } }, limit)
  const { recency } = after
  const [txid, vout] = outpointPair(after.outpoint)
  const found: Row[] = []
  for (const older of [
    { recency, txid, vout: { $lt: vout } },
    { recency, txid: { $lt: txid } },
    { recency: { $gte: 0, $lt: recency } },
  ])
    if (found.length < limit) found.push(...(await read(older, limit - found.length)))
  return found
}

function recencyIn(row: Row): { recency: number; height?: number } {
  const recency = Number(row.recency)
  const height = heightIn(recency)
  return { recency, ...(height !== undefined && { height }) }
}

/** See `ListingsReader.history`. */
async function historyOf(
  { rows, lineages, lookups, ordinals }: ListingsOptions,
  { outpoint, order, from, limit }: Parameters<ListingsReader['history']>[0],
): Promise<OrdinalHistory | undefined> {
  const summary = await lineages.summaryOf(outpoint)
  if (summary === undefined || summary.isCarrier) return undefined
  if (summary.satoshis !== 1) {
    const alone = await ordinals.at(outpoint, TIP)
    if (alone === undefined) return undefined
    const isAsked = from === undefined || from === 0 || (order === 'newest' && from > 0)
    const { txid } = outpoint
    const step = async () => historyStep(alone.output, (await heightsOf(rows, [txid])).get(txid))
    return { origin: outpoint, last: 0, steps: isAsked ? [{ sequence: 0, ...(await step()) }] : [] }
  }
  const { lineage, isComplete, origin, last } = summary
  if (!isComplete || origin === undefined) return undefined
  const isForward = order === 'oldest'
  const first = Math.min(isForward ? origin + (from ?? 0) : origin + (from ?? last - origin), last + 1)
  const [page, begin] = await Promise.all([
    lookups.lineageSteps({
      ...{ lineage, order: isForward ? 1 : -1, limit },
      ...(isForward ? { from: first, to: last } : { from: origin, to: first }),
    }),
    outpointAt(lineages, { lineage, step: origin }),
  ])
  if (begin === undefined) return undefined
  const steps = page.map((row) => ({
    sequence: Number(row.step) - origin,
    ...historyStep(outputOf(row), numberIn(row.height)),
  }))
  return { origin: begin, last: last - origin, steps }
}

/** The outpoint of a step; that of the first one is the key of a complete lineage. */
async function outpointAt(
  lineages: Lineages,
  { lineage, step }: { lineage: Lineage; step: number },
): Promise<Outpoint | undefined> {
  const [txid, vout] = lineage
  if (step === 0) return outpointOf({ txid, vout })
  return (await lineages.outputsAt({ lineage, steps: [step] })).get(step)?.outpoint
}

function heightAt(heights: Map<string, number>, { txid }: Outpoint): { height?: number } {
  const height = heights.get(txid)
  return height === undefined ? {} : { height }
}

/** See `ListingsReader.ordinalsWith`. */
async function ordinalsWith(
  { rows, lineages, lookups }: ListingsOptions,
  query: Parameters<ListingsReader['ordinalsWith']>[0],
): Promise<ListedOrdinal[]> {
  const { lineagesWith, lineageEnds } = lookups
  const firsts = (await firstsWith({ rows, lineages, lineagesWith }, query)).map(([txid, vout]) =>
    outpointOf({ txid, vout }),
  )
  const ends = await inParts(firsts, lineageEnds)
  const outputs = await outputsAtEnds(rows, ends)
  const byFirst = new Map(ends.map((each) => [formatOutpoint(each.first), listedOrdinal(each, outputs)]))
  const listed = firsts.flatMap((first) => byFirst.get(formatOutpoint(first)) ?? [])
  const heights = await heightsOf(
    rows,
    listed.map(({ outpoint }) => outpoint.txid),
  )
  return listed.map((each) => ({ ...each, ...heightAt(heights, each.outpoint) }))
}

/** The outputs at the ends of lineages, by lineage and step as text. */
async function outputsAtEnds(rows: RowReader, ends: LineageEnds[]): Promise<Map<string, OutputRecord>> {
  const found = await inParts(ends, (part) => {
    const places = part.map(({ lineage, last, origin, content }) => ({
      ...inLineage(lineage),
      step: { $in: unique([last, origin ?? last, content ?? last], String) },
    }))
    return rows.all('graph_outputs', { $or: places }, { fields: ORDINAL })
  })
  return new Map(found.map((row) => [placeOf(lineageOf(row), Number(row.step)), outputOf(row)]))
}

function placeOf(lineage: Lineage, step: number): string {
  return `${formatLineage(lineage)} ${step}`
}

/** The ordinal in a lineage, without its height; undefined if the lineage was changed between two reads. */
function listedOrdinal(
  { lineage, last, origin, content }: LineageEnds,
  outputs: ReadonlyMap<string, OutputRecord>,
): ListedOrdinal | undefined {
  const at = (step: number | undefined): OutputRecord | undefined =>
    step === undefined ? undefined : outputs.get(placeOf(lineage, step))
  const [tip, first, shown] = [at(last), at(origin), at(content)]
  if (tip === undefined) return undefined
  const { outpoint, owner, carrier } = tip
  // A coin in front of an ordinal is part of no answer.
  if (carrier) return { outpoint }
  const held = { outpoint, ...(owner !== undefined && { owner }) }
  if (!isComplete(lineage) || origin === undefined || first === undefined || shown === undefined) return held
  return {
    ...held,
    ...{ origin: first.outpoint, sequence: last - origin, contentOutpoint: shown.outpoint },
    ...(shown.content && { content: shown.content }),
  }
}

/** See `ListingsReader.transaction`. */
async function transactionOf(
  rows: RowReader,
  { spenderOf }: Pick<Lookups, 'spenderOf'>,
  { txid, after = -1, limit }: Parameters<ListingsReader['transaction']>[0],
): Promise<ListedTransaction | undefined> {
  const own = { txid: hashColumn(txid) }
  const status = await rows.first('graph_transactions', own, { fields: ['height', 'silent'] })
  if (status === undefined) return undefined
  const [outputs, nodes, names] = await Promise.all([
    rows.all(
      'graph_outputs',
      { ...own, vout: { $gt: after }, carrier: false },
      { sort: { vout: 1 }, limit: limit + 1, fields: OUTPUT },
    ),
    rows.all('graph_nodes', own, { fields: ['domain', ...OUTPOINT] }),
    rows.all('graph_names', own, { fields: ['name', ...OUTPOINT] }),
  ])
  const all = [...outputs, ...nodes, ...names].map(({ vout }) => Number(vout)).filter((vout) => vout > after)
  const vouts = unique(all, String).sort((a, b) => a - b)
  const shown = vouts.slice(0, limit)
  const spends = await inParts(shown, (part) =>
    rows.all('graph_spends', { ...own, vout: { $in: part } }, { fields: ['vout', 'spender'] }),
  )
  const at = (found: Row[], vout: number): Row | undefined => found.find((row) => Number(row.vout) === vout)
  const listed: TransactionOutput[] = []
  for (const vout of shown) {
    const output = at(outputs, vout)
    const node = at(nodes, vout)
    const name = at(names, vout)
    const spend = at(spends, vout)
    // Only a mint spends a node.
    const spender = node ? await spenderOf({ txid, vout }) : spend && hexOf(spend.spender)
    listed.push({
      vout,
      ...(output && { output: outputOf(output) }),
      ...(node && { domain: String(node.domain) }),
      ...(name && { name: String(name.name) }),
      ...(spender !== undefined && { spender }),
    })
  }
  const height = numberIn(status.height)
  const last = shown.at(-1)
  return {
    txid,
    ...(height !== undefined && { height }),
    isActive: Number(status.silent) === 0,
    outputs: listed,
    ...(vouts.length > limit && last !== undefined && { next: last }),
  }
}
