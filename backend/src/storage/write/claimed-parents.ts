import { attribute } from '../../graph/attributes.js'
import { PARTS_OF_ONE } from '../../graph/conflict-resolution.js'
import { dependency } from '../../graph/dependencies.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint } from '../../protocol/outpoint.js'
import { formatLineage } from '../rows/columns.js'
import type { Claim, GraphTables, PlacedOutput } from './graph-tables.js'

/**
 * Decides which of the parents that outputs name count: those whose ordinal their transaction spends (BRC-160). It spends the
 * named output itself, or another output of its lineage, so the answer changes when lineages do.
 *
 * @param claims.txids Transactions whose outputs name parents.
 * @param claims.limit About how many to look at; a large one counts for several.
 * @returns The outputs whose parent counts now or no longer, at their places, and the transactions that are left.
 */
export async function decideParents(
  tables: GraphTables,
  { txids, limit }: { txids: string[]; limit: number },
): Promise<{ changed: PlacedOutput[]; left: string[] }> {
  const changed: PlacedOutput[] = []
  const left = [...txids]
  for (let effort = 0; effort < limit; ) {
    const txid = left.pop()
    if (txid === undefined) break
    const claims = await tables.outputs.claimsOf(txid)
    const counting = await countingClaims(tables, { txid, claims })
    effort += 1 + Math.floor((claims.length + counting.spent) / PARTS_OF_ONE)
    for (const claim of claims) {
      const counts = counting.isCounting(claim)
      if (counts === claim.counts) continue
      await tables.outputs.setParentCounts(claim.place, counts)
      changed.push(claim.place)
      // Those that are found by a parent only become more, except for this.
      if (!counts)
        tables.transactions.listings.outdated.add(dependency.children(attribute.parent(claim.parent)))
    }
    await yieldBetweenStatements()
  }
  return { changed, left }
}

/** Whether claims of a transaction count, and how many outputs it spends. */
async function countingClaims(
  { transactions, outputs }: GraphTables,
  { txid, claims }: { txid: string; claims: Claim[] },
): Promise<{ isCounting: (claim: Claim) => boolean; spent: number }> {
  if (claims.length === 0) return { isCounting: () => false, spent: 0 }
  const spent = (await transactions.spendsBy(txid)).map(({ outpoint }) => outpoint)
  const isSpent = new Set(spent.map(formatOutpoint))
  const isSpentLineage = new Set((await outputs.stepsOf(spent)).map(({ lineage }) => formatLineage(lineage)))
  const named = await outputs.stepsOf(claims.map(({ parent }) => parent))
  // The ordinal begins behind its carriers.
  const carriers = await outputs.carriersAmong(named.map(({ outpoint }) => outpoint))
  const isCarrier = new Set(carriers.map(formatOutpoint))
  const ofSpentOrdinals = new Set(
    named
      .filter(({ lineage, outpoint }) => {
        return isSpentLineage.has(formatLineage(lineage)) && !isCarrier.has(formatOutpoint(outpoint))
      })
      .map(({ outpoint }) => formatOutpoint(outpoint)),
  )
  return {
    isCounting: ({ parent }) => {
      const key = formatOutpoint(parent)
      return isSpent.has(key) || ofSpentOrdinals.has(key)
    },
    spent: spent.length,
  }
}
