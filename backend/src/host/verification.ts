import { Transaction } from '@bsv/sdk'
import { LRUCache } from 'lru-cache'
import { answeredWithin } from '../graph/answered-within.js'
import type { RootChecker } from '../graph/overlay-interfaces.js'
import type { BeefContents } from '../graph/read-beef.js'
import type { Proof } from '../graph/records.js'
import { admittedTransactions } from '../graph/transaction-records.js'
import { yieldToEventLoop } from '../graph/yield-to-event-loop.js'

/** Whether something holds; `unknown` if the chain tracker may not have its block yet. */
export type Verdict = 'yes' | 'no' | 'unknown'

/** How many blocks a chain tracker may be behind the sender of a proof. */
const BLOCKS_BEHIND = 6

/**
 * Whether a proof is in the chain.
 *
 * @param timeout How long the chain tracker may take, in milliseconds.
 * @throws what the chain tracker throws; Error if it takes too long.
 */
export async function verdictOf(
  { root, height }: Pick<Proof, 'root' | 'height'>,
  { tracker, timeout }: { tracker: RootChecker; timeout: number },
): Promise<Verdict> {
  const asked = async (): Promise<Verdict> => {
    let failure: unknown
    const isThere = await tracker.isValidRootForHeight(root, height).catch((error: unknown) => {
      failure = error
      return false
    })
    if (isThere) return 'yes'
    const behind = height - ((await tracker.currentHeight?.()) ?? height)
    if (behind > BLOCKS_BEHIND) return 'no'
    // Checked last, as a tracker may throw anything for a block that cannot exist.
    if (failure !== undefined) throw failure
    return behind > 0 ? 'unknown' : 'no'
  }
  return await answeredWithin(timeout, asked, {
    error: () => new Error(`the chain tracker did not answer within ${timeout} ms`),
  })
}

/** How long the chain tracker may take for one question, in milliseconds. */
const TIMEOUT = 10_000
/** For how many transactions it is remembered whether their scripts pass. */
const SCRIPTS_REMEMBERED = 50_000
/** How many answers of the chain tracker are remembered, and for how many milliseconds. */
const PROOFS_REMEMBERED = { maxSize: 10_000, sizeCalculation: () => 1, ttl: 60_000 }

/**
 * Verifies untrusted BEEFs as an engine does: their proofs, and the scripts of transactions without one. A chain of unproven
 * transactions comes again with each of its members: so proofs are checked first, each once a minute, up to the first false one,
 * and the scripts of a transaction run once.
 */
export class Verification {
  private readonly proofs = new LRUCache<string, Verdict>(PROOFS_REMEMBERED)
  private readonly scripts = new LRUCache<string, boolean>({
    maxSize: SCRIPTS_REMEMBERED,
    sizeCalculation: () => 1,
  })

  /** @throws BeefError if a merkle path is invalid; what the chain tracker throws; Error if that takes too long. */
  async of(beef: BeefContents, tracker: RootChecker): Promise<Verdict> {
    const parts = admittedTransactions(beef)
    if (parts.some(({ txid }) => this.scripts.get(txid) === false)) return 'no'
    for (const { proof } of parts) {
      const verdict = proof && (await this.inChain(proof, tracker))
      if (verdict !== undefined && verdict !== 'yes') return verdict
    }
    // Ancestors come last in the list.
    for (const { txid, proof } of parts.toReversed())
      if (proof === undefined && !(await this.isUnlocked(txid, beef))) return 'no'
    return 'yes'
  }

  private async inChain(proof: Proof, tracker: RootChecker): Promise<Verdict> {
    const key = `${proof.height} ${proof.root}`
    const known = this.proofs.get(key)
    if (known !== undefined) return known
    const verdict = await verdictOf(proof, { tracker, timeout: TIMEOUT })
    if (verdict !== 'unknown') this.proofs.set(key, verdict)
    return verdict
  }

  /** Whether the scripts of an unproven transaction pass, and it spends no more than its inputs have. */
  private async isUnlocked(txid: string, beef: BeefContents): Promise<boolean> {
    const known = this.scripts.get(txid)
    if (known !== undefined) return known
    await yieldToEventLoop('submitting')
    const transaction = withSources(txid, beef)
    // Another BEEF may have the transactions that it spends from.
    if (transaction === undefined) return false
    const isUnlocked = await transaction.verify('scripts only').catch(() => false)
    this.scripts.set(txid, isUnlocked)
    return isUnlocked
  }
}

/** A transaction with those that it spends from, as if these were proven; undefined if one is missing. */
function withSources(txid: string, beef: BeefContents): Transaction | undefined {
  const read = (txid: string): Transaction | undefined => {
    const view = beef.transaction(txid)
    return view && Transaction.fromBinary(Array.from(view.raw))
  }
  const transaction = read(txid)
  const sources = new Map<string, Transaction>()
  for (const input of transaction?.inputs ?? []) {
    const { sourceTXID = '' } = input
    const source = sources.get(sourceTXID) ?? read(sourceTXID)
    if (source === undefined) return undefined
    sources.set(sourceTXID, source)
    // The SDK looks no further than a transaction with a proof.
    source.merklePath = {} as never
    input.sourceTransaction = source
  }
  return transaction
}
