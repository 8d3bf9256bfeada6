import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { BeefContents } from '../../backend/src/graph/read-beef.js'
import { type GraphRecords, graphRecords, type TransactionRecord } from '../../backend/src/graph/records.js'
import { placingRecords, transactionRecords } from '../../backend/src/graph/transaction-records.js'
import { equalBytes } from '../../backend/src/protocol/bytes.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'

interface LaterWordOptions {
  contents: BeefContents
  graph: Pick<GraphStore, 'transaction' | 'isApplied'>
}

/**
 * What a submission that the engine has verified tells beside what it admits: proofs of transactions that the store knows,
 * be they its subject or where verification ended, and what places the ordinals of a proven subject. The engine passes
 * over a transaction that it has, and so over whatever came with it this time.
 */
export async function laterWord({ contents, graph }: LaterWordOptions): Promise<GraphRecords[]> {
  const verified = transactionRecords(contents).transactions.filter(({ proof }) => proof !== undefined)
  const told = [graphRecords({ transactions: await newsAmong(verified, graph) })]
  const placing = placingRecords(contents)
  if (placing.transactions.length === 0) return told
  // Of what is held for the sake of another transaction alone, the sources are nobody's concern here.
  return (await graph.isApplied(TOPICS.ordinals, contents.subject.txid)) ? [...told, placing] : told
}

/** Those that the store holds, and with another proof or none. */
async function newsAmong(
  verified: TransactionRecord[],
  graph: LaterWordOptions['graph'],
): Promise<TransactionRecord[]> {
  const news: TransactionRecord[] = []
  for (const record of verified) {
    const { txid, proof } = record
    const kept = await graph.transaction(txid)
    const same = kept?.proof && proof && equalBytes(kept.proof.merklePath, proof.merklePath)
    if (kept !== undefined && !same) news.push(record)
  }
  return news
}
