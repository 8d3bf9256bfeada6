import type { ChainTracker, STEAK } from '@bsv/sdk'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { BeefContents } from '../../backend/src/graph/read-beef.js'
import {
  type GraphRecords,
  graphRecords,
  type Proof,
  type SpendRecord,
  type TransactionRecord,
} from '../../backend/src/graph/records.js'
import { placingRecords, spendsOf, transactionRecords } from '../../backend/src/graph/transaction-records.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'

/** About how many blocks the tracker is asked for the sake of sources alone. */
const MAX_SOURCE_BLOCKS = 32

export interface LaterWordOptions {
  contents: BeefContents
  steak: STEAK
  /** What {@link provenSources} gave for it. */
  sources: TransactionRecord[]
  graph: Pick<GraphStore, 'transaction' | 'isApplied'>
}

/**
 * What a submission that was verified tells beside what the engine admits of it: proofs of transactions that the store
 * knows, be they its subject or where verification ended, and what places the ordinals of a proven subject. The engine
 * passes over a transaction that it has, and so over whatever came with it this time.
 */
export async function laterWord(options: LaterWordOptions): Promise<GraphRecords[]> {
  const { contents, steak, sources, graph } = options
  const verified = transactionRecords(contents).transactions.filter(({ proof }) => proof !== undefined)
  const told = [graphRecords({ transactions: await newsAmong(verified, graph) })]
  const placing = placingRecords(contents)
  if (placing.transactions.length === 0) return told
  // Of what is held for the sake of another transaction alone, the sources are nobody's concern here.
  const admitted = (steak[TOPICS.ordinals]?.outputsToAdmit.length ?? 0) > 0
  if (!admitted && !(await graph.isApplied(TOPICS.ordinals, contents.subject.txid))) return told
  return [...told, placing, graphRecords({ transactions: sources })]
}

/** What the proven transactions of a verified submission spend, and those of the sources that are proven. */
export function provenSpends({
  contents,
  sources,
}: Pick<LaterWordOptions, 'contents' | 'sources'>): SpendRecord[] {
  const proven = transactionRecords(contents).transactions.filter(({ proof }) => proof !== undefined)
  return spendsOf([...proven, ...sources], contents)
}

/** Those that the store holds, and in another block or none. */
async function newsAmong(
  verified: TransactionRecord[],
  graph: LaterWordOptions['graph'],
): Promise<TransactionRecord[]> {
  const news: TransactionRecord[] = []
  for (const record of verified) {
    const kept = await graph.transaction(record.txid)
    if (kept !== undefined && !isSameBlock(kept.proof, record.proof)) news.push(record)
  }
  return news
}

function isSameBlock(kept: Proof | undefined, told: Proof | undefined): boolean {
  return kept?.root === told?.root && kept?.height === told?.height
}

/**
 * What places the ordinals of a proven subject, where its path leads to a block of the chain. A verifier ends at the
 * subject, so these are asked about here: with their paths, a BEEF of the subject and its sources is whole (BRC-62).
 * Where one does not hold, its source is left out here: it stays authentic, for the subject names it by its hash.
 *
 * @param options.tracker Without one, merkle paths are believed.
 * @throws ChainTrackerError where the tracker does not answer.
 */
export async function provenSources({
  contents,
  tracker,
}: {
  contents: BeefContents
  tracker: ChainTracker | undefined
}): Promise<TransactionRecord[]> {
  const proven: TransactionRecord[] = []
  const roots = new Set<string>()
  for (const { txid, raw } of placingRecords(contents).transactions) {
    const proof = soundProof(txid, contents)
    if (proof === undefined) continue
    if (!roots.has(proof.root) && roots.size === MAX_SOURCE_BLOCKS) continue
    roots.add(proof.root)
    if ((await tracker?.isValidRootForHeight(proof.root, proof.height)) ?? true)
      proven.push({ txid, raw, proof })
  }
  return proven
}

function soundProof(txid: string, { proof }: BeefContents): Proof | undefined {
  try {
    return proof(txid)
  } catch (error) {
    if (!(error instanceof BeefError)) throw error
    // Nobody has to bring a path for a source, so none is refused for it.
    return undefined
  }
}
