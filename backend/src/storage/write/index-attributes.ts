import { type Attribute, attribute, mapAttributes } from '../../graph/attributes.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { LineageChange, Lineages, Maps } from '../read/lineages.js'
import { mergedMap } from '../read/read-map.js'
import { hashColumn, type Lineage, outpointPair, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import type { RecordRow } from '../rows/record-rows.js'
import type { GraphTables, Tip } from './graph-tables.js'

/** The attributes that follow from the tip alone, and those that follow from the lineage up to it. */
const OF_TIP: Attribute['kind'][] = ['owner']
const OF_LINEAGE: Attribute['kind'][] = ['contentType', 'parent', 'map']

/** The tips of lineages, by lineage as text. */
export type Tips = ReadonlyMap<string, Tip>

export async function tipsOf(tables: GraphTables, lineages: Outpoint[]): Promise<Tips> {
  const tips = await tables.outputs.tipsOf(unique(lineages, formatOutpoint))
  return new Map(tips.map((tip) => [formatOutpoint(tip.lineage), tip]))
}

/** Updates the attributes of lineages that changed, or whose outputs were spent. */
export async function indexAttributes(
  tables: GraphTables,
  { changes, spent, tips }: { changes: LineageChange[]; spent: Outpoint[]; tips: Tips },
): Promise<void> {
  const all = unique([...changes.map(({ lineage }) => lineage), ...spent], formatOutpoint)
  // A lineage may lose steps and gain others in one write: it changed from the earliest of them on.
  const from = new Map<string, number>()
  for (const change of changes) {
    const key = formatOutpoint(change.lineage)
    from.set(key, Math.min(change.from, from.get(key) ?? change.from))
  }
  const changed: Outpoint[] = []
  const rows: RecordRow[] = []
  for (const outpoint of all) {
    await yieldBetweenStatements()
    const lineage = outpointPair(outpoint)
    const tip = tips.get(formatOutpoint(outpoint))
    const attributes = tip?.holder === undefined ? [] : [attribute.owner(tip.holder)]
    if (await isInscribedSince(tables, { lineage, tip, from: from.get(formatOutpoint(outpoint)) })) {
      changed.push(outpoint)
      if (tip !== undefined) attributes.push(...(await lineageAttributes(tables.rows, lineage, tip.step)))
    }
    for (const each of attributes) rows.push(attributeRow(lineage, each))
  }
  await tables.outputs.deleteAttributes(all, OF_TIP)
  await tables.outputs.deleteAttributes(changed, OF_LINEAGE)
  await tables.transactions.insertNew('graph_traits', rows)
}

/**
 * Writes the attributes of new lineages whose first output has no MAP, with no inscribed output after it. Most are such, and
 * a transaction may bring thousands, so they are written in bulk.
 *
 * @param names The outpoints of names' origins, as text: a lineage starts there whatever the output received.
 * @returns The lineages that were written, as text: those with one output, which are done, and those with more, of which only
 * the owner is still to be written. All others are left to {@link indexAttributes}.
 */
export async function indexFirstAttributes(
  tables: GraphTables,
  { outputs, names }: { outputs: OutputRecord[]; names: ReadonlySet<string> },
): Promise<{ alone: Set<string>; onlyInscribed: Set<string> }> {
  const plain = outputs.filter(({ mapLength, carrier }) => mapLength === undefined && !carrier)
  const outpoints = plain.map(({ outpoint }) => outpoint)
  const alone = new Set((await tables.outputs.aloneAmong(outpoints)).map(formatOutpoint))
  const others = outpoints.filter((outpoint) => !alone.has(formatOutpoint(outpoint)))
  const onlyInscribed = new Set((await tables.outputs.onlyInscribedAmong(others)).map(formatOutpoint))
  const spent = new Set((await tables.outputs.spentAmong(outpoints)).map(formatOutpoint))
  const rows: RecordRow[] = []
  for (const part of parts(plain, ROWS_A_STATEMENT)) {
    for (const { outpoint, content, parent, owner, previous, unsettled } of part) {
      const key = formatOutpoint(outpoint)
      if (!alone.has(key) && !onlyInscribed.has(key)) continue
      const isComplete = names.has(key) || (previous === undefined && !unsettled)
      const attributes = [
        ...(owner !== undefined && alone.has(key) && !spent.has(key) ? [attribute.owner(owner)] : []),
        ...(isComplete && content ? [attribute.contentType(content.contentType)] : []),
        ...(isComplete && content && parent ? [attribute.parent(parent)] : []),
      ]
      rows.push(...attributes.map((each) => attributeRow(outpointPair(outpoint), each)))
    }
    await yieldBetweenStatements()
  }
  await tables.transactions.insertNew('graph_traits', rows)
  return { alone, onlyInscribed }
}

function attributeRow([txid, vout]: Lineage, { kind, hash }: Attribute): RecordRow {
  return { trait: hashColumn(hash), lineage_txid: txid, lineage_vout: vout, kind }
}

/** Whether a lineage may be inscribed from a changed step on. Transfers are not. */
async function isInscribedSince(
  tables: GraphTables,
  { lineage, tip, from }: { lineage: Lineage; tip: Tip | undefined; from: number | undefined },
): Promise<boolean> {
  if (from === undefined || from === 0) return from === 0
  if (from === tip?.step) return tip.isInscribed
  return await tables.outputs.isInscribedFrom({ lineage, from })
}

/** The attributes of an ordinal whose origin is known, up to a step of its lineage. */
async function lineageAttributes(rows: Lineages & Maps, lineage: Lineage, to: number): Promise<Attribute[]> {
  const origin = await rows.firstContentOf(lineage)
  if (origin === undefined || !(await rows.isComplete(lineage))) return []
  const stretch = { lineage, from: origin.step, to }
  const content = (await rows.latestContent(stretch))?.content
  const parent = await rows.latestParent(stretch)
  const map = await mergedMap(rows, stretch)
  return [
    ...(content ? [attribute.contentType(content.contentType)] : []),
    ...(parent ? [attribute.parent(parent)] : []),
    ...mapAttributes(map ?? EMPTY_MAP),
  ]
}
