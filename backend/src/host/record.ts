import type { BeefContents } from '../graph/read-beef.js'
import { viewOf } from '../graph/stored-transaction.js'
import { isLooseMint } from '../graph/topic-rules.js'
import { admittedTransactions, knownTransactions, unsoundness } from '../graph/transaction-records.js'
import type { Deployment } from '../protocol/mint.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { FactStore } from '../read/fact-store.js'

/**
 * Stores the transactions of a verified BEEF. The store derives what the topics admit, now or when more is known.
 *
 * A mint that nodes disagree about is left out while it is not mined, and so is what no block can hold: engines only run scripts.
 */
export async function recordBeef(
  store: Pick<FactStore, 'record'>,
  beef: BeefContents,
  deployment: Deployment | undefined,
): Promise<void> {
  if (unsoundness(beef) !== undefined) return
  const rules = { deployment, sources: beef, others: new Set<string>() }
  for (const record of admittedTransactions(beef))
    if (record.proof === undefined && isLooseMint(viewOf(record), rules)) return
  await store.record(knownTransactions(beef))
}

/**
 * A verified BEEF with the further transactions of another one of the same subject, but not its proofs. An engine passes on a new
 * BEEF, which ends at the first proofs, but the values that a proven transaction spends place its ordinals. All ancestors are
 * named by their hashes; unverified proofs are not used.
 */
export function completed(verified: BeefContents, seen: BeefContents | undefined): BeefContents {
  if (seen === undefined || seen === verified || seen.subject.txid !== verified.subject.txid) return verified
  return {
    ...verified,
    transaction: (txid) => verified.transaction(txid) ?? seen.transaction(txid),
    txids: [...new Set([...seen.txids, ...verified.txids])],
  }
}

export function unproven(beef: BeefContents): BeefContents {
  return { ...beef, proof: () => undefined }
}

/**
 * Records that an engine evicts an output. If its transaction has a proof, the output is blocked. Otherwise the network has
 * rejected the transaction, as far as the engine knows (from 2.6 on, callbacks of ARC evict): a proof or a sighting brings it
 * back.
 */
export async function recordEviction(
  store: Pick<FactStore, 'evict' | 'sightings' | 'transactions'>,
  outpoint: Outpoint,
): Promise<void> {
  const { txid } = outpoint
  if ((await store.transactions.heightOf(txid)) !== undefined) await store.evict(outpoint)
  else await store.sightings.record([{ txid, status: 'rejected' }])
}
