import type { ChainTracker } from '@bsv/sdk'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { admittedTransactions, knownTransactions } from '../../../backend/src/graph/transaction-records.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'

/** About how many blocks the tracker is asked for the sake of sources alone. */
const MAX_SOURCE_BLOCKS = 32

/**
 * What places the ordinals of proven transactions, where its path leads to a block of the chain. A verifier ends at what is
 * proven, so these are asked about here: with their paths, a BEEF of the subject and its sources is whole (BRC-62). Where
 * one does not hold, its source is left out here: it stays authentic, for what spends it names it by its hash.
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
  const verified = new Set(admittedTransactions(contents).map(({ txid }) => txid))
  for (const { txid, raw } of knownTransactions(contents)) {
    if (verified.has(txid)) continue
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
