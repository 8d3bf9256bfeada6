import { type Attribute, attribute, mapAttributes } from '../../graph/attributes.js'
import { EMPTY_MAP } from '../../graph/map-merge.js'
import type { OutputRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { Change, Lineage, Lineages } from '../read/lineages.js'
import { type Maps, mergedMap } from '../read/read-map.js'
import { hashColumn, outpointPair, parts, ROWS_A_STATEMENT, unique } from '../rows/columns.js'
import type { Row } from '../rows/record-rows.js'
import type { GraphTables, Tip } from './graph-tables.js'
import { rest } from './rest.js'

/** What a tip alone tells, and what is told of the ordinal up to there. */
const HELD: Attribute['kind'][] = ['owner']
const SAID: Attribute['kind'][] = ['contentType', 'parent', 'map']

/** The last outputs of lineages, by these as text. */
export type Tips = ReadonlyMap<string, Tip>

export async function tipsOf(tables: GraphTables, lineages: Outpoint[]): Promise<Tips> {
  const tips = await tables.outputs.tipsOf(unique(lineages, formatOutpoint))
  return new Map(tips.map((tip) => [formatOutpoint(tip.lineage), tip]))
}

/** Makes what ordinals are found by follow what has changed of their lineages, and which of their outputs are spent. */
export async function indexAttributes(
  tables: GraphTables,
  { changes, spent, tips }: { changes: Change[]; spent: Outpoint[]; tips: Tips },
): Promise<void> {
  const all = unique([...changes.map(({ lineage }) => lineage), ...spent], formatOutpoint)
  // A lineage may have lost steps and gone on otherwise at once: the first of them is where it changed.
  const from = new Map<string, number>()
  for (const change of changes) {
    const key = formatOutpoint(change.lineage)
    from.set(key, Math.min(change.from, from.get(key) ?? change.from))
  }
  const sayingMore: Outpoint[] = []
  const found: { lineage: Lineage; trait: Attribute }[] = []
  for (const outpoint of all) {
    await rest()
    const lineage = outpointPair(outpoint)
    const tip = tips.get(formatOutpoint(outpoint))
    const attributes = tip?.holder === undefined ? [] : [attribute.owner(tip.holder)]
    if (await saysMore(tables, { lineage, tip, from: from.get(formatOutpoint(outpoint)) })) {
      sayingMore.push(outpoint)
      if (tip !== undefined) attributes.push(...(await lineageAttributes(tables.rows, lineage, tip.step)))
    }
    for (const each of attributes) found.push({ lineage, trait: each })
  }
  await tables.outputs.deleteAttributes(all, HELD)
  await tables.outputs.deleteAttributes(sayingMore, SAID)
  await tables.transactions.insertNew(
    'graph_traits',
    found.map(({ lineage, trait }) => attributeRow(lineage, trait)),
  )
}

/**
 * Writes what ordinals are found by of which the first output has just come and says no MAP, and nothing is said after it:
 * most are such, and a transaction may bring thousands of them, so they are looked at together.
 *
 * @param names The outpoints of names' origins, as text: their lineages start there whatever they received.
 * @returns Those that are written, as text: the ones that are all of their lineage, of which nothing is left to do, and the
 * ones that others come after, of which it is left whose they are now. What is said of others follows from their lineages.
 */
export async function indexFirstAttributes(
  tables: GraphTables,
  { outputs, names }: { outputs: OutputRecord[]; names: ReadonlySet<string> },
): Promise<{ alone: Set<string>; quiet: Set<string> }> {
  const plain = outputs.filter(({ mapLength, carrier }) => mapLength === undefined && !carrier)
  const outpoints = plain.map(({ outpoint }) => outpoint)
  const alone = new Set((await tables.outputs.aloneAmong(outpoints)).map(formatOutpoint))
  const others = outpoints.filter((outpoint) => !alone.has(formatOutpoint(outpoint)))
  const quiet = new Set((await tables.outputs.quietAmong(others)).map(formatOutpoint))
  const spent = new Set((await tables.outputs.spentAmong(outpoints)).map(formatOutpoint))
  const rows: Row[] = []
  for (const part of parts(plain, ROWS_A_STATEMENT)) {
    for (const { outpoint, content, parent, owner, previous, unsettled } of part) {
      const key = formatOutpoint(outpoint)
      if (!alone.has(key) && !quiet.has(key)) continue
      const isWhole = names.has(key) || (previous === undefined && !unsettled)
      const attributes = [
        ...(owner !== undefined && alone.has(key) && !spent.has(key) ? [attribute.owner(owner)] : []),
        ...(isWhole && content ? [attribute.contentType(content.contentType)] : []),
        ...(isWhole && content && parent ? [attribute.parent(parent)] : []),
      ]
      rows.push(...attributes.map((each) => attributeRow(outpointPair(outpoint), each)))
    }
    await rest()
  }
  await tables.transactions.insertNew('graph_traits', rows)
  return { alone, quiet }
}

function attributeRow([txid, vout]: Lineage, { kind, hash }: Attribute): Row {
  return { trait: hashColumn(hash), lineage_txid: txid, lineage_vout: vout, kind }
}

/** Whether content, a parent or MAP may be new from a step on. A transfer brings none. */
async function saysMore(
  tables: GraphTables,
  { lineage, tip, from }: { lineage: Lineage; tip: Tip | undefined; from: number | undefined },
): Promise<boolean> {
  if (from === undefined || from === 0) return from === 0
  if (from === tip?.step) return tip.says
  return await tables.outputs.saysFrom({ lineage, from })
}

/** What an ordinal whose origin is known says of itself where it stands now, at a step of its lineage. */
export async function lineageAttributes(
  store: Lineages & Maps,
  lineage: Lineage,
  to: number,
): Promise<Attribute[]> {
  const origin = await store.firstContentOf(lineage)
  if (origin === undefined || !(await store.isWhole(lineage))) return []
  const stretch = { lineage, from: origin.step, to }
  const content = (await store.latestContent(stretch))?.content
  const parent = await store.latestParent(stretch)
  const map = await mergedMap(store, stretch)
  return [
    ...(content ? [attribute.contentType(content.contentType)] : []),
    ...(parent ? [attribute.parent(parent)] : []),
    ...mapAttributes(map ?? EMPTY_MAP),
  ]
}
