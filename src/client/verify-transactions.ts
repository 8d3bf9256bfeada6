import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { runScripts, type ScriptSpender, TooCostlyError } from '../../backend/src/protocol/run-scripts.js'
import { DEFAULT_SCRIPT_WORK } from '../../backend/src/protocol/script-cost.js'
import type { ChainTracker } from '../../backend/src/protocol/sdk-types.js'
import type { TransactionView } from '../../backend/src/protocol/transaction.js'
import { unlessAborted } from './bounded-fetch.js'
import type { Bundle } from './bundle.js'
import { HeadersError, ProofError } from './errors.js'
import { ThreadShare } from './thread-share.js'

/** Says which blocks exist. `'scripts only'`: nobody is asked, and every merkle path is accepted, as the SDK does. */
export type Headers = Pick<ChainTracker, 'isValidRootForHeight'> | 'scripts only'

/** What the caller trusts, and what a check may cost. */
export interface Trust {
  chainTracker: Headers
  /** Refuse anything that is not in a block that the chain tracker knows. */
  requireProofs?: boolean
  /**
   * What the scripts of unproven transactions may cost together, in units of about ten nanoseconds: the model by which a
   * server prices submissions. 300,000,000 by default. A step that exceeds it is refused before it runs.
   */
  maxScriptWork?: number
  /** How long the scripts of unproven transactions may run, in milliseconds of CPU time; 10,000 by default. */
  scriptTimeout?: number
  /** Ends the check with its reason, or with a HeadersError while the chain tracker is being asked. */
  signal?: AbortSignal
}

/** The live covenant takes about 4 ms per mint; the default script work takes a few seconds. */
const DEFAULT_SCRIPT_TIMEOUT = 10_000
/** A step of this many units or more gets a time slice of its own. */
const LONG_STEP = 500_000
/** How much of the interpreter's message is quoted, in characters. */
const MAX_REASON = 200

/**
 * Verifies that transactions of a bundle are or could be in a chain, by the rules of the SDK's `Transaction.verify`: a
 * transaction with a merkle path is in the block of its root, which the chain tracker knows; any other runs its scripts
 * against the outputs it spends, whose transactions are verified in the same way. Each is verified once.
 */
export class TransactionVerifier {
  /** The verified transactions, each with the height of its block if it has one. */
  private readonly verified = new Map<string, number | undefined>()
  private readonly roots = new Map<string, boolean>()
  /** Units of script work that are left. */
  private scriptWork: number
  /** How long scripts may run in total, and have run, in milliseconds. */
  private readonly scriptTimeout: number
  private scriptTime = 0
  private readonly thread = new ThreadShare()

  /** @param anchor A transaction that the caller trusts: its ancestors are not verified. */
  constructor(
    private readonly bundle: Bundle,
    private readonly trust: Trust,
    private readonly anchor?: string,
  ) {
    this.scriptWork = trust.maxScriptWork ?? DEFAULT_SCRIPT_WORK
    this.scriptTimeout = trust.scriptTimeout ?? DEFAULT_SCRIPT_TIMEOUT
  }

  /**
   * Verifies a transaction and everything it depends on.
   *
   * @returns The height of its block, confirmed by the chain tracker; undefined if it is in none, or no headers are asked.
   * @throws ProofError `BAD_PATH`, `UNVERIFIED`, `UNPROVEN`, `BAD_SCRIPT`, `TOO_COSTLY`, `SCRIPT_TIMEOUT`; HeadersError;
   * the reason of the signal.
   */
  async verify(txid: string): Promise<number | undefined> {
    this.thread.resume()
    try {
      const pending = [txid]
      for (let next = pending.pop(); next !== undefined; next = pending.pop())
        for (const source of await this.verifyOne(next)) pending.push(source)
    } finally {
      this.thread.pause()
    }
    return this.verified.get(txid)
  }

  /** @returns The transactions that this one depends on, to be verified as well. */
  private async verifyOne(txid: string): Promise<string[]> {
    if (this.verified.has(txid)) return []
    if (this.thread.isDue) await this.thread.yield()
    this.trust.signal?.throwIfAborted()
    const height = await this.provenHeight(txid)
    if (height === undefined && this.trust.requireProofs)
      throw new ProofError('UNPROVEN', `${txid} is in no block that was checked`)
    const isAccepted = height !== undefined || this.isTrusted(txid)
    const sources = isAccepted ? [] : await this.verifyScripts(txid)
    this.verified.set(txid, height)
    return sources
  }

  /** Whether an unproven transaction is accepted without running its scripts. */
  private isTrusted(txid: string): boolean {
    return txid === this.anchor || (this.trust.chainTracker === 'scripts only' && this.bundle.hasPath(txid))
  }

  private async provenHeight(txid: string): Promise<number | undefined> {
    const { chainTracker, signal } = this.trust
    if (chainTracker === 'scripts only') return undefined
    const block = this.bundle.claimedBlock(txid)
    if (block === undefined) return undefined
    const { root, height } = block
    const key = `${height} ${root}`
    let known = this.roots.get(key)
    if (known === undefined) {
      this.thread.pause()
      known = await isKnownRoot(chainTracker, { root, height, signal })
      this.thread.resume()
      this.roots.set(key, known)
    }
    if (!known)
      throw new ProofError(
        'BAD_PATH',
        `${txid} is in no block at height ${height}: no block has its merkle root`,
      )
    return height
  }

  /** @returns The transactions whose outputs it spends, to be verified as well. */
  private async verifyScripts(txid: string): Promise<string[]> {
    const view = this.bundle.transaction(txid)
    if (view === undefined) throw new ProofError('UNVERIFIED', `${txid} is not in the proof`)
    const { inputs, outputs } = view
    // A loop over the inputs would accept a transaction that has none.
    if (inputs.length === 0) throw new ProofError('BAD_SCRIPT', `${txid} is in no block, and has no inputs`)
    if (outputs.length === 0) throw new ProofError('BAD_SCRIPT', `${txid} has no outputs`)
    const sources = inputs.map((input) => {
      const source = this.bundle.output(input)
      if (source !== undefined) return source
      throw new ProofError(
        'UNVERIFIED',
        `${txid} is in no block, and the output it spends is missing: ${formatOutpoint(input)}`,
      )
    })
    if (total(outputs) > total(sources))
      throw new ProofError('BAD_SCRIPT', `${txid} pays out more than it spends`)
    await this.runScripts({ txid, raw: view.raw, spent: sources })
    return inputs.map((input) => input.txid)
  }

  private async runScripts(spender: ScriptSpender): Promise<void> {
    const { thread, scriptTimeout, trust } = this
    const start = thread.used - this.scriptTime
    try {
      // The cost of a step is known before it runs.
      for (const { units } of runScripts([spender], { maxWork: this.scriptWork })) {
        this.scriptWork -= units
        if (thread.used - start >= scriptTimeout)
          throw new ProofError(
            'SCRIPT_TIMEOUT',
            `the scripts of the proof ran longer than ${scriptTimeout} ms`,
          )
        if (!thread.isDue && units < LONG_STEP) continue
        await thread.yield()
        trust.signal?.throwIfAborted()
      }
    } catch (cause) {
      trust.signal?.throwIfAborted()
      throw scriptError(spender.txid, cause)
    }
    this.scriptTime = thread.used - start
  }
}

/** The interpreter throws both for a failing script and for one it cannot parse: no block holds either. */
function scriptError(txid: string, cause: unknown): ProofError {
  if (cause instanceof ProofError) return cause
  if (cause instanceof TooCostlyError)
    return new ProofError('TOO_COSTLY', `the scripts of ${txid} cost too much to run`, { cause })
  const [reason = ''] = messageOf(cause).split('\n')
  return new ProofError('BAD_SCRIPT', `a script of ${txid} fails: ${reason.slice(0, MAX_REASON)}`, { cause })
}

/** Whether a block of the chain has a merkle root. @throws HeadersError if the chain tracker does not answer. */
export async function isKnownRoot(
  tracker: Exclude<Headers, string>,
  { root, height, signal }: { root: string; height: number; signal?: AbortSignal | undefined },
): Promise<boolean> {
  try {
    const answer = tracker.isValidRootForHeight(root, height)
    return await (signal === undefined ? answer : unlessAborted(answer, signal))
  } catch (cause) {
    const reason = signal?.aborted ? TRACKER_TIMEOUT : messageOf(cause)
    throw new HeadersError(`no block header at height ${height}: ${reason.slice(0, MAX_REASON)}`, { cause })
  }
}

/** What is reported when the deadline passes while the chain tracker is being asked. */
export const TRACKER_TIMEOUT = 'the chain tracker did not answer in time'

type Output = TransactionView['outputs'][number]

function total(outputs: readonly Output[]): number {
  return outputs.reduce((sum, { satoshis }) => sum + satoshis, 0)
}
