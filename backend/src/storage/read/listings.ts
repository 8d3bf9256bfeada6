import { type AttributesReader, type OrdinalsReader, TIP } from '../../graph/graph-store.js'
import {
  heightIn,
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
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, inParts, numberIn, outpointOf, outpointPair, unique } from '../rows/columns.js'
import { contentOf, OUTPUT, outputOf } from '../rows/record-rows.js'
import { anyOf, type Filter, inLineage, type Row, type RowReader } from '../rows/rows.js'
import { blockTimesIn } from './header-rows.js'
import type { Lineages } from './lineages.js'
import type { Lookups } from './lookups.js'

export interface ListingsOptions {
  rows: RowReader
  lineages: Lineages
  lookups: Pick<Lookups, 'spenderOf' | 'nodesOf'>
  ordinals: Pick<OrdinalsReader, 'at' | 'output'>
  attributes: AttributesReader
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
]

/** The lists of a store. */
export function listingsIn({
  rows,
  lineages,
  lookups,
  ordinals,
  attributes,
}: ListingsOptions): ListingsReader {
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
            ...(row.parent_txid !== null && {
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
    history: (query) => historyOf({ rows, lineages, ordinals }, query),
    async ordinalsWith(query) {
      const tips = await attributes.tipsWith(query)
      const found = await Promise.all(tips.map((tip) => listedOrdinal(ordinals, tip)))
      const heights = await heightsOf(
        rows,
        tips.map(({ txid }) => txid),
      )
      return found.map((each) => ({ ...each, ...heightAt(heights, each.outpoint) }))
    },
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
  { rows, lineages, ordinals }: Pick<ListingsOptions, 'rows' | 'lineages' | 'ordinals'>,
  { outpoint, order, from, limit }: Parameters<ListingsReader['history']>[0],
): Promise<OrdinalHistory | undefined> {
  const summary = await lineages.summaryOf(outpoint)
  if (summary === undefined || summary.isCarrier) return undefined
  if (summary.satoshis !== 1) {
    const alone = await ordinals.at(outpoint, TIP)
    if (alone === undefined) return undefined
    const isAsked = from === undefined || from === 0 || (order === 'newest' && from > 0)
    return { origin: outpoint, last: 0, steps: isAsked ? await stepsOf(rows, [[0, alone.output]]) : [] }
  }
  const { lineage, isComplete, origin, last } = summary
  if (!isComplete || origin === undefined) return undefined
  const isForward = order === 'oldest'
  const first = Math.min(isForward ? origin + (from ?? 0) : origin + (from ?? last - origin), last + 1)
  const step = isForward ? { $gte: first } : { $gte: origin, $lte: first }
  const [page, start] = await Promise.all([
    rows.all(
      'graph_outputs',
      { ...inLineage(lineage), step },
      { sort: { step: isForward ? 1 : -1 }, limit, fields: [...OUTPUT, 'step'] },
    ),
    summary.outputs?.get(origin) ?? lineages.outputsAt({ lineage, steps: [origin] }),
  ])
  const begin = start instanceof Map ? start.get(origin) : (start as OutputRecord)
  if (begin === undefined) return undefined
  const steps = page.map((row): [number, OutputRecord] => [Number(row.step) - origin, outputOf(row)])
  return { origin: begin.outpoint, last: last - origin, steps: await stepsOf(rows, steps) }
}

async function stepsOf(rows: RowReader, outputs: [number, OutputRecord][]): Promise<OrdinalHistory['steps']> {
  const heights = await heightsOf(
    rows,
    outputs.map(([, { outpoint }]) => outpoint.txid),
  )
  return outputs.map(([sequence, { outpoint, owner, content, parent, mapLength }]) => ({
    sequence,
    outpoint,
    ...heightAt(heights, outpoint),
    ...(owner !== undefined && { owner }),
    ...(content && { content }),
    ...(parent && { parent }),
    hasMap: mapLength !== undefined,
  }))
}

/** The heights of the transactions that are proven. */
async function heightsOf(rows: RowReader, txids: string[]): Promise<Map<string, number>> {
  const found = await inParts([...new Set(txids)], (part) =>
    rows.all('graph_transactions', { txid: anyOf(part) }, { fields: ['txid', 'height'] }),
  )
  return new Map(
    found.flatMap(({ txid, height }): [string, number][] => {
      const known = numberIn(height)
      return known === undefined ? [] : [[hexOf(txid), known]]
    }),
  )
}

function heightAt(heights: Map<string, number>, { txid }: Outpoint): { height?: number } {
  const height = heights.get(txid)
  return height === undefined ? {} : { height }
}

async function listedOrdinal(
  ordinals: Pick<OrdinalsReader, 'at' | 'output'>,
  tip: Outpoint,
): Promise<ListedOrdinal> {
  const step = await ordinals.at(tip, TIP)
  if (step === undefined) {
    const owner = (await ordinals.output(tip))?.owner
    return { outpoint: tip, ...(owner !== undefined && { owner }) }
  }
  const { output, origin, sequence, content } = step
  return {
    outpoint: output.outpoint,
    origin,
    sequence,
    ...(output.owner !== undefined && { owner: output.owner }),
    contentOutpoint: content.outpoint,
    ...(content.content && { content: content.content }),
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
