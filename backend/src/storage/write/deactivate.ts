import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import type { Change } from '../read/lineages.js'
import { mapOwner } from '../read/read-map.js'
import { parts, unique } from '../rows/columns.js'
import { type Facts, inactiveFactRows, inactiveFactsOf, spendRow } from '../rows/record-rows.js'
import type { GraphTables, Spends, TransactionTables } from './graph-tables.js'
import { rest } from './rest.js'

/**
 * What transactions say that do not count stands apart, in tables that no read looks into, and comes back as it was when
 * they count again: so the tables that answer hold what counts, and nothing else.
 */

/** How many transactions, and how many of their rows, are moved at once: nobody else is served meanwhile. */
const A_STEP = 25
const ROWS = 200

/** What else changes with that. */
interface Moved {
  /** The lineages that outputs left. */
  left: Change[]
  /** The outpoints of these. */
  gone: Outpoint[]
  /** The outpoints whose spender counts no more, or again. */
  spent: Outpoint[]
}

/** Puts facts aside whose transactions do not count. */
export async function writeInactive(tables: TransactionTables, facts: Facts): Promise<void> {
  await tables.insertNew('graph_silent_facts', inactiveFactRows(facts))
}

/** Takes transactions out of what answers. */
export async function deactivate({ transactions, outputs }: GraphTables, txids: string[]): Promise<Moved> {
  const spent = await moveSpends(transactions, txids, { from: 'graph_spends', to: 'graph_silent_spends' })
  const left: Change[] = []
  const gone: Outpoint[] = []
  for (const part of parts(txids, A_STEP)) {
    await inPages(async () => {
      const { merged, ...facts } = await transactions.factsOf(part, ROWS)
      await writeInactive(transactions, facts)
      const own = facts.outputs.map(({ outpoint }) => outpoint)
      for (const change of await outputs.stepsOf(own)) left.push(change)
      for (const outpoint of own) gone.push(outpoint)
      await transactions.deleteChunks(merged.map((outpoint) => mapOwner({ outpoint, merged: true })))
      const others = [...facts.nodes, ...facts.names].map(({ outpoint }) => outpoint)
      await transactions.deleteFacts(unique([...own, ...others], formatOutpoint))
      return own.length
    })
  }
  return { left, gone, spent }
}

/** Gives back what transactions say that count again; to be written as if it were told now. */
export async function restore(
  tables: TransactionTables,
  txids: string[],
): Promise<{ facts: Facts; spent: Outpoint[] }> {
  const spent = await moveSpends(tables, txids, { from: 'graph_silent_spends', to: 'graph_spends' })
  const facts: Facts = { outputs: [], nodes: [], names: [] }
  for (const part of parts(txids, A_STEP)) {
    const found: { kind: string; body: unknown }[] = []
    await inPages(async () => {
      const rows = await tables.takeInactiveFacts(part, ROWS)
      for (const row of rows) found.push(row)
      return rows.length
    })
    const { outputs, nodes, names } = inactiveFactsOf(found, part)
    for (const output of outputs) facts.outputs.push(output)
    facts.nodes.push(...nodes)
    facts.names.push(...names)
  }
  return { facts, spent }
}

async function moveSpends(
  tables: TransactionTables,
  txids: string[],
  { from, to }: { from: Spends; to: Spends },
): Promise<Outpoint[]> {
  const moved: Outpoint[] = []
  for (const spenders of parts(txids, A_STEP)) {
    await inPages(async () => {
      const spends = await tables.takeSpends({ from, spenders, limit: ROWS })
      await tables.insertNew(to, spends.map(spendRow))
      for (const { outpoint } of spends) moved.push(outpoint)
      return spends.length
    })
  }
  return moved
}

/** Moves rows, {@link ROWS} at a time, until there are fewer. @param move Returns how many it has moved. */
async function inPages(move: () => Promise<number>): Promise<void> {
  for (let moved = ROWS; moved === ROWS; await rest()) moved = await move()
}
