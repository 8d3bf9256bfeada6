import type { OutputRecord } from '../graph/records.js'
import { type Trait, trait } from '../graph/traits.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { hashColumn, outpointPair, parts, ROWS_A_STATEMENT, unique } from './columns.js'
import type { GraphTables } from './graph-tables.js'
import type { Change, Lineage } from './lineages.js'
import { rest } from './rest.js'
import type { Row } from './rows.js'
import { saidTraits } from './said-traits.js'

/** What a tip alone tells, and what is told of the ordinal up to there. */
const HELD: Trait['kind'][] = ['owner']
const SAID: Trait['kind'][] = ['contentType', 'parent', 'map']

/** Makes what ordinals are found by follow what has changed of their lineages, and which of their outputs are spent. */
export async function keepTraits(
  tables: GraphTables,
  { changes, spent }: { changes: Change[]; spent: Outpoint[] },
): Promise<void> {
  const all = unique([...changes.map(({ lineage }) => lineage), ...spent], formatOutpoint)
  // A lineage may have lost steps and gone on otherwise at once: the first of them is where it changed.
  const from = new Map<string, number>()
  for (const change of changes) {
    const key = formatOutpoint(change.lineage)
    from.set(key, Math.min(change.from, from.get(key) ?? change.from))
  }
  const sayingMore: Lineage[] = []
  const found: { lineage: Lineage; trait: Trait }[] = []
  for (const outpoint of all) {
    await rest()
    const lineage = outpointPair(outpoint)
    const tip = await tables.rows.lastOf(lineage)
    const traits = tip === undefined ? [] : await heldTraits(tables, tip.outpoint)
    if (await saysMore(tables, lineage, from.get(formatOutpoint(outpoint)))) {
      sayingMore.push(lineage)
      if (tip !== undefined) traits.push(...(await saidTraits(tables.rows, lineage, tip.step)))
    }
    for (const trait of traits) found.push({ lineage, trait })
  }
  await tables.outputs.deleteTraits(all.map(outpointPair), HELD)
  await tables.outputs.deleteTraits(sayingMore, SAID)
  await tables.transactions.insertNew(
    'graph_traits',
    found.map(({ lineage, trait }) => traitRow(lineage, trait)),
  )
}

/**
 * Writes what ordinals are found by of which the first output has just come and says no MAP: most are such, and a transaction
 * may bring thousands of them, so they are looked at together.
 *
 * @param names The outpoints of names' origins, as text: their lineages start there whatever they received.
 * @returns Those that are written, as text. What is said of others follows from their lineages.
 */
export async function keepFirstTraits(
  tables: GraphTables,
  { outputs, names }: { outputs: OutputRecord[]; names: ReadonlySet<string> },
): Promise<Set<string>> {
  const plain = outputs.filter(({ mapLength, carrier }) => mapLength === undefined && !carrier)
  const outpoints = plain.map(({ outpoint }) => outpoint)
  const alone = new Set((await tables.outputs.aloneAmong(outpoints)).map(formatOutpoint))
  const spent = new Set((await tables.outputs.spentAmong(outpoints)).map(formatOutpoint))
  const rows: Row[] = []
  for (const part of parts(plain, ROWS_A_STATEMENT)) {
    for (const { outpoint, content, parent, owner, previous, unsettled } of part) {
      const key = formatOutpoint(outpoint)
      if (!alone.has(key)) continue
      const isWhole = names.has(key) || (previous === undefined && !unsettled)
      const traits = [
        ...(owner !== undefined && !spent.has(key) ? [trait.owner(owner)] : []),
        ...(isWhole && content ? [trait.contentType(content.contentType)] : []),
        ...(isWhole && content && parent ? [trait.parent(parent)] : []),
      ]
      rows.push(...traits.map((each) => traitRow(outpointPair(outpoint), each)))
    }
    await rest()
  }
  await tables.transactions.insertNew('graph_traits', rows)
  return alone
}

function traitRow([txid, vout]: Lineage, { kind, hash }: Trait): Row {
  return { trait: hashColumn(hash), lineage_txid: txid, lineage_vout: vout, kind }
}

/** Whose a tip is that nothing spends. */
async function heldTraits(tables: GraphTables, tip: Outpoint): Promise<Trait[]> {
  const holder = await tables.outputs.holderOf(tip)
  return holder === undefined ? [] : [trait.owner(holder)]
}

/** Whether content, a parent or MAP may be new from a step on. A transfer brings none. */
async function saysMore(tables: GraphTables, lineage: Lineage, from: number | undefined): Promise<boolean> {
  if (from === undefined || from === 0) return from === 0
  return await tables.outputs.saysFrom({ lineage, from })
}
