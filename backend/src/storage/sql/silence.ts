import type { Knex } from 'knex'
import type { Outpoint } from '../../protocol/outpoint.js'
import {
  bytesOf,
  hashColumn,
  hexOf,
  outpointColumns,
  outpointOf,
  parts,
  ROWS_A_STATEMENT,
} from '../columns.js'
import { mapOwner } from '../merged-map.js'
import { OUTPUT, type OutputRow, outputOf } from '../output-rows.js'
import { rest } from '../rest.js'
import { type Facts, silentFactRows, silentFactsOf } from '../rows.js'
import { insertNew } from './insert-new.js'
import { type Change, stepsOf } from './lineage.js'
import { anyOf, knexReader } from './sql-reader.js'

/**
 * What transactions say that do not count stands apart, in tables that no read looks into, and comes back as it was when
 * they count again: so the tables that answer hold what counts, and nothing else.
 */

/** How many transactions are moved at once: nobody else is served meanwhile. */
const A_STEP = 25

/** What else changes with that. */
export interface Moved {
  /** The lineages that outputs left. */
  left: Change[]
  /** The outpoints whose spender counts no more, or again. */
  spent: Outpoint[]
}

/** Those of the transactions that are known and do not count. */
export async function silentAmong(trx: Knex.Transaction, txids: string[]): Promise<Set<string>> {
  const silent = new Set<string>()
  for (const part of parts([...new Set(txids)], ROWS_A_STATEMENT)) {
    const rows = await knexReader(trx).all(
      `select txid from graph_transactions where txid in (${anyOf(part)}) and silent = 1`,
      part.map(hashColumn),
    )
    for (const { txid } of rows) silent.add(hexOf(txid))
  }
  return silent
}

/** Puts facts aside whose transactions do not count. */
export async function writeSilent(trx: Knex.Transaction, facts: Facts): Promise<void> {
  await insertNew(trx, 'graph_silent_facts', silentFactRows(facts))
}

/** Takes transactions out of what answers. */
export async function silence(trx: Knex.Transaction, txids: string[]): Promise<Moved> {
  const spent = await moveSpends(trx, txids, { from: 'graph_spends', to: 'graph_silent_spends' })
  const left: Change[] = []
  for (const part of parts(txids, A_STEP)) {
    const hashes = part.map(hashColumn)
    const rows: (OutputRow & { merged_length: unknown })[] = await trx('graph_outputs')
      .whereIn('txid', hashes)
      .select([...OUTPUT, 'merged_length'])
    const outputs = rows.map(outputOf)
    const nodes = await trx('graph_nodes').whereIn('txid', hashes).select('txid', 'vout', 'domain')
    const names = await trx('graph_names').whereIn('txid', hashes).select('txid', 'vout', 'name')
    await writeSilent(trx, {
      outputs,
      nodes: nodes.map((each) => ({ outpoint: outpointOf(each), domain: each.domain })),
      names: names.map((each) => ({ outpoint: outpointOf(each), name: each.name })),
    })
    left.push(
      ...(await stepsOf(
        trx,
        outputs.map(({ outpoint }) => outpoint),
      )),
    )
    const merged = rows.filter(({ merged_length }) => merged_length !== null).map(outpointOf)
    const owners = merged.map((outpoint) => mapOwner({ outpoint, merged: true }))
    // Of none, SQLite would look through all of them.
    if (owners.length > 0) await trx('graph_pieces').whereIn('owner', owners).delete()
    for (const table of ['graph_outputs', 'graph_nodes', 'graph_names']) {
      await trx(table).whereIn('txid', hashes).delete()
      await rest()
    }
  }
  return { left, spent }
}

/** Gives back what transactions say that count again; to be written as if it were told now. */
export async function restore(
  trx: Knex.Transaction,
  txids: string[],
): Promise<{ facts: Facts; spent: Outpoint[] }> {
  const spent = await moveSpends(trx, txids, { from: 'graph_silent_spends', to: 'graph_spends' })
  const facts: Facts = { outputs: [], nodes: [], names: [] }
  for (const part of parts(txids, A_STEP)) {
    const said = () => trx('graph_silent_facts').whereIn('txid', part.map(hashColumn))
    const { outputs, nodes, names } = silentFactsOf(await said().select('kind', 'body'), part)
    facts.outputs.push(...outputs)
    facts.nodes.push(...nodes)
    facts.names.push(...names)
    await said().delete()
    await rest()
  }
  return { facts, spent }
}

async function moveSpends(
  trx: Knex.Transaction,
  spenders: string[],
  { from, to }: { from: string; to: string },
): Promise<Outpoint[]> {
  const moved: Outpoint[] = []
  for (const part of parts(spenders, A_STEP)) {
    const spends = () => trx(from).whereIn('spender', part.map(hashColumn))
    const rows = await spends().select('txid', 'vout', 'spender')
    await insertNew(
      trx,
      to,
      rows.map((row) => ({
        ...outpointColumns(outpointOf(row)),
        spender: Buffer.from(bytesOf(row.spender)),
      })),
    )
    await spends().delete()
    moved.push(...rows.map(outpointOf))
    await rest()
  }
  return moved
}
