import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, outpointOf, parts, ROWS_A_STATEMENT } from '../columns.js'
import { mapOwner } from '../merged-map.js'
import { outputOf } from '../output-rows.js'
import { rest } from '../rest.js'
import { type Facts, silentFactRows, silentFactsOf } from '../rows.js'
import { type Change, stepsOf } from './lineage.js'
import type { PendingDocuments } from './pending-documents.js'
import { deletePieces } from './piece-writes.js'

/**
 * What transactions say that do not count stands apart, in collections that no read looks into, and comes back as it was
 * when they count again: so the collections that answer hold what counts, and nothing else.
 */

/** How many transactions are moved at once: nobody else is served meanwhile. */
const A_STEP = 25

/** What else changes with that. */
interface Moved {
  /** The lineages that outputs left. */
  left: Change[]
  /** The outpoints whose spender counts no more, or again. */
  spent: Outpoint[]
}

type Spends = 'graph_spends' | 'graph_silent_spends'

/** Those of the transactions that are known and do not count. */
export async function silentAmong(pending: PendingDocuments, txids: string[]): Promise<Set<string>> {
  const silent = new Set<string>()
  for (const part of parts([...new Set(txids)], ROWS_A_STATEMENT)) {
    const docs = await pending.all(
      'graph_transactions',
      { _id: { $in: part.map(hashColumn) }, silent: true },
      { fields: ['txid'] },
    )
    for (const { txid } of docs) silent.add(hexOf(txid))
  }
  return silent
}

/** Puts facts aside whose transactions do not count. */
export async function writeSilent(pending: PendingDocuments, facts: Facts): Promise<void> {
  await pending.insertNew('graph_silent_facts', silentFactRows(facts))
}

/** Takes transactions out of what answers. */
export async function silence(pending: PendingDocuments, txids: string[]): Promise<Moved> {
  const spent = await moveSpends(pending, txids, { from: 'graph_spends', to: 'graph_silent_spends' })
  const left: Change[] = []
  for (const part of parts(txids, A_STEP)) {
    const theirs = { txid: { $in: part.map(hashColumn) } }
    const docs = await pending.all('graph_outputs', theirs)
    const outputs = docs.map(outputOf)
    const nodes = await pending.all('graph_nodes', theirs)
    const names = await pending.all('graph_names', theirs)
    await writeSilent(pending, {
      outputs,
      nodes: nodes.map((each) => ({ outpoint: outpointOf(each), domain: each.domain })),
      names: names.map((each) => ({ outpoint: outpointOf(each), name: each.name })),
    })
    left.push(
      ...(await stepsOf(
        pending,
        outputs.map(({ outpoint }) => outpoint),
      )),
    )
    for (const doc of docs)
      if (doc.merged_length !== null)
        await deletePieces(pending, mapOwner({ outpoint: outpointOf(doc), merged: true }))
    for (const collection of ['graph_outputs', 'graph_nodes', 'graph_names'] as const)
      await pending.delete(collection, theirs)
    await rest()
  }
  return { left, spent }
}

/** Gives back what transactions say that count again; to be written as if it were told now. */
export async function restore(
  pending: PendingDocuments,
  txids: string[],
): Promise<{ facts: Facts; spent: Outpoint[] }> {
  const spent = await moveSpends(pending, txids, { from: 'graph_silent_spends', to: 'graph_spends' })
  const found: { kind: string; body: unknown }[] = []
  for (const part of parts(txids, A_STEP)) {
    const said = { txid: { $in: part.map(hashColumn) } }
    found.push(...(await pending.all('graph_silent_facts', said, { fields: ['kind', 'body'] })))
    await pending.delete('graph_silent_facts', said)
    await rest()
  }
  return { facts: silentFactsOf(found, txids), spent }
}

async function moveSpends(
  pending: PendingDocuments,
  spenders: string[],
  { from, to }: { from: Spends; to: Spends },
): Promise<Outpoint[]> {
  const moved: Outpoint[] = []
  for (const part of parts(spenders, A_STEP)) {
    const spends = { spender: { $in: part.map(hashColumn) } }
    const docs = await pending.all(from, spends, { fields: ['txid', 'vout', 'spender'] })
    await pending.insertNew(to, docs)
    await pending.delete(from, spends)
    moved.push(...docs.map(outpointOf))
    await rest()
  }
  return moved
}
