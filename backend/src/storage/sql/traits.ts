import type { Knex } from 'knex'
import { type Trait, trait } from '../../graph/traits.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, outpointPair, parts, ROWS_A_STATEMENT, unique } from '../columns.js'
import { rest } from '../rest.js'
import { saidTraits } from '../said-traits.js'
import { insertNew } from './insert-new.js'
import type { Change } from './lineage.js'
import { lineagesIn } from './lineage-rows.js'
import { mapsIn } from './map-rows.js'
import { anyPair, knexReader, type SqlReader } from './sql-reader.js'

/** What a tip alone tells, and what is told of the ordinal up to there. */
const HELD: Trait['kind'][] = ['owner']
const SAID: Trait['kind'][] = ['contentType', 'parent', 'map']

/** Makes what ordinals are found by follow what has changed of their lineages, and which of their outputs are spent. */
export async function keepTraits(
  trx: Knex.Transaction,
  { changes, spent }: { changes: Change[]; spent: Outpoint[] },
): Promise<void> {
  const reader = knexReader(trx)
  const store = { ...lineagesIn(reader), ...mapsIn(reader) }
  const all = unique([...changes.map(({ lineage }) => lineage), ...spent], formatOutpoint)
  // A lineage may have lost steps and gone on otherwise at once: the first of them is where it changed.
  const from = new Map<string, number>()
  for (const change of changes) {
    const key = formatOutpoint(change.lineage)
    from.set(key, Math.min(change.from, from.get(key) ?? change.from))
  }
  const sayingMore: Outpoint[] = []
  const found: { lineage: Outpoint; trait: Trait }[] = []
  for (const lineage of all) {
    await rest()
    const tip = await store.lastOf(outpointPair(lineage))
    const traits = tip === undefined ? [] : await heldTraits(reader, tip.outpoint)
    if (await saysMore(reader, lineage, from.get(formatOutpoint(lineage)))) {
      sayingMore.push(lineage)
      if (tip !== undefined) traits.push(...(await saidTraits(store, outpointPair(lineage), tip.step)))
    }
    for (const trait of traits) found.push({ lineage, trait })
  }
  await forget(trx, all, HELD)
  await forget(trx, sayingMore, SAID)
  await insertNew(
    trx,
    'graph_traits',
    found.map(({ lineage, trait: { kind, hash } }) => ({
      trait: hashColumn(hash),
      lineage_txid: hashColumn(lineage.txid),
      lineage_vout: lineage.vout,
      kind,
    })),
  )
}

/** Whose a tip is that nothing spends. */
async function heldTraits(reader: SqlReader, tip: Outpoint): Promise<Trait[]> {
  const row = await reader.first(
    `select owner from graph_outputs as outputs where txid = ? and vout = ? and owner is not null and not exists (
       select 1 from graph_spends as spends where spends.txid = outputs.txid and spends.vout = outputs.vout
     )`,
    outpointPair(tip),
  )
  return row === undefined ? [] : [trait.owner(hexOf(row.owner))]
}

/** Whether content, a parent or MAP may be new from a step on. A transfer brings none. */
async function saysMore(reader: SqlReader, lineage: Outpoint, from: number | undefined): Promise<boolean> {
  if (from === undefined || from === 0) return from === 0
  const row = await reader.first(
    `select step from graph_outputs where lineage_txid = ? and lineage_vout = ? and step >= ?
     and (content_step is not null or parent_step is not null or map_step is not null) limit 1`,
    [...outpointPair(lineage), from],
  )
  return row !== undefined
}

async function forget(trx: Knex.Transaction, lineages: Outpoint[], kinds: Trait['kind'][]): Promise<void> {
  for (const part of parts(lineages, ROWS_A_STATEMENT)) {
    await trx('graph_traits')
      .whereRaw(anyPair(['lineage_txid', 'lineage_vout'], part), part.flatMap(outpointPair))
      .whereIn('kind', kinds)
      .delete()
    await rest()
  }
}
