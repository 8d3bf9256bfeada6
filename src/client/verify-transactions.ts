import {
  type ChainPosition,
  COINBASE_MATURITY,
  isOver,
  lockIn,
  positionAt,
  reasonAgainst,
} from '../../backend/src/protocol/block-rules.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import {
  DEFAULT_SCRIPT_WORK,
  runScripts,
  type ScriptSpender,
  TooCostlyError,
} from '../../backend/src/protocol/run-scripts.js'
import type { ChainTracker } from '../../backend/src/protocol/sdk-types.js'
import { isCoinbase, type TransactionView } from '../../backend/src/protocol/transaction.js'
import { unlessAborted } from './bounded-fetch.js'
import type { Bundle } from './bundle.js'
import { HeadersError, ProofError, SourceError } from './errors.js'
import { ThreadShare } from './thread-share.js'

/**
 * Decides which blocks exist. `'scripts only'`: nobody is asked, and every merkle path is accepted, as in the SDK. A chain
 * tracker without `currentHeight` shows that the chain has come as far as the blocks that it confirms.
 */
export type Headers =
  | (Pick<ChainTracker, 'isValidRootForHeight'> & Partial<Pick<ChainTracker, 'currentHeight'>>)
  | 'scripts only'

/** What the caller trusts, and what a check may cost. */
export interface Trust {
  chainTracker: Headers
  /** Refuses anything that is not in a block that the chain tracker knows. */
  requireProofs?: boolean
  /**
   * The limit on the cost of the scripts of unproven transactions together, in units of about ten nanoseconds, by the model with
   * which a server prices submissions. 300,000,000 by default. A step that exceeds it is refused before it runs.
   */
  maxScriptWork?: number
  /** How long the scripts of unproven transactions may run, in milliseconds of CPU time; 10,000 by default. */
  scriptTimeout?: number
  /** Ends the check at once, with its reason. */
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
 * transaction with a merkle path is in the block of its root, which the chain tracker knows; any other runs its scripts against
 * the outputs it spends, whose transactions are verified in the same way. Each is verified once. In addition, a transaction in no
 * block must keep the rules for submissions (`block-rules.ts`): the next block could hold it.
 */
export class TransactionVerifier {
  /** The verified transactions, each with the height of its block if it has one. */
  private readonly verified = new Map<string, number | undefined>()
  private readonly roots = new Map<string, boolean>()
  /** Units of script work that are left. */
  private scriptWork: number
  /** The limit on the time of all scripts, and the time that they took, in milliseconds. */
  private readonly scriptTimeout: number
  private scriptTime = 0
  private readonly thread = new ThreadShare()
  /** Positions of the chain that unproven transactions wait for, each with its transaction and the reason. */
  private readonly waits: (ChainPosition & { txid: string; why: string })[] = []
  private tip: Promise<number> | undefined

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
   * @throws ProofError `BAD_PATH`, `UNVERIFIED`, `UNPROVEN`, `BAD_SCRIPT`, `NOT_FINAL`, `TOO_COSTLY`, `SCRIPT_TIMEOUT`;
   * HeadersError; the reason of the signal.
   */
  async verify(txid: string): Promise<number | undefined> {
    this.thread.resume()
    try {
      const pending = [txid]
      for (let next = pending.pop(); next !== undefined; next = pending.pop())
        for (const source of await this.verifyOne(next)) pending.push(source)
      await this.requireFinal()
    } finally {
      this.thread.pause()
    }
    return this.verified.get(txid)
  }

  /** @returns The transactions that this one depends on, to be verified as well. */
  private async verifyOne(txid: string): Promise<string[]> {
    if (this.verified.has(txid)) return []
    if (this.thread.isOver) await this.thread.yield()
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
    return txid === this.anchor || (this.trust.chainTracker === 'scripts only' && this.bundle.paths.has(txid))
  }

  private async provenHeight(txid: string): Promise<number | undefined> {
    const { chainTracker, signal } = this.trust
    if (chainTracker === 'scripts only') return undefined
    const block = this.bundle.paths.claimedBlock(txid)
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
    const reason = reasonAgainst(view)
    if (reason !== undefined) throw new ProofError('BAD_SCRIPT', `${txid} is in no block, and ${reason}`)
    const lock = lockIn(view)
    if (lock !== undefined) this.waits.push({ ...lock, txid, why: `has the lock time ${view.lockTime}` })
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
    const spent = [...new Set(inputs.map((input) => input.txid))]
    for (const source of spent) this.requireMature(source, txid)
    return spent
  }

  /** A coinbase can be spent after a number of confirmations, which nobody knows without headers. */
  private requireMature(source: string, txid: string): void {
    const transaction = this.bundle.transaction(source)
    if (transaction === undefined || !isCoinbase(transaction) || this.trust.chainTracker === 'scripts only')
      return
    const mined = this.bundle.paths.claimedBlock(source)
    if (mined === undefined) return
    // The height at which the next block may hold it.
    const height = mined.height + COINBASE_MATURITY - 1
    this.waits.push({ height, time: 0, txid, why: `spends the coinbase of block ${mined.height}` })
  }

  /** @throws ProofError `NOT_FINAL`; HeadersError. */
  private async requireFinal(): Promise<void> {
    if (this.waits.length === 0) return
    const position = positionAt(await this.currentHeight())
    const early = this.waits.find((lock) => !isOver(lock, position))
    if (early === undefined) return
    throw new ProofError(
      'NOT_FINAL',
      `${early.txid} is in no block, and none can hold it yet: it ${early.why}, and the chain is at ${position.height}`,
    )
  }

  /** The height of the chain as far as it is known. */
  private async currentHeight(): Promise<number> {
    const { chainTracker, signal } = this.trust
    if (chainTracker === 'scripts only') return this.bundle.paths.highest
    const confirmed = [...this.verified.values()].map((height = 0) => height)
    const shown = confirmed.reduce((most, height) => Math.max(most, height), 0)
    this.tip ??= currentHeightOf(chainTracker, signal)
    this.thread.pause()
    const height = await this.tip
    this.thread.resume()
    return Math.max(shown, height)
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
        if (!thread.isOver && units < LONG_STEP) continue
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
  const what = `no block header at height ${height}`
  try {
    return await answered(() => tracker.isValidRootForHeight(root, height), what, signal)
  } catch (error) {
    // A proof may name any height; nothing is known of one far above the chain.
    const isAnswered = error instanceof HeadersError && !signal?.aborted
    if (isAnswered && height > (await tipOf(tracker, signal)) + FAR_ABOVE) return false
    throw error
  }
}

/** The answer of a chain tracker. @throws HeadersError that says what is unknown without it. */
async function answered<Answer>(
  ask: () => Promise<Answer>,
  what: string,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  try {
    return await unlessAborted(ask(), signal)
  } catch (cause) {
    // If the deadline passes, those who were asked are at fault; if the caller cancels, the caller gets their own reason.
    if (signal?.aborted && !(signal.reason instanceof SourceError)) throw signal.reason
    const reason = signal?.aborted ? TRACKER_TIMEOUT : messageOf(cause)
    throw new HeadersError(`${what}: ${reason.slice(0, MAX_REASON)}`, { cause })
  }
}

/** How many blocks a chain tracker may be behind the chain. */
const FAR_ABOVE = 100

/** The height of the chain; infinite if the chain tracker does not say. */
async function tipOf(tracker: Exclude<Headers, string>, signal: AbortSignal | undefined): Promise<number> {
  if (tracker.currentHeight === undefined) return Number.POSITIVE_INFINITY
  return await currentHeightOf(tracker, signal).catch(() => Number.POSITIVE_INFINITY)
}

/** The height of the chain; 0 if the chain tracker cannot say. @throws HeadersError if it does not answer. */
async function currentHeightOf(
  tracker: Exclude<Headers, string>,
  signal: AbortSignal | undefined,
): Promise<number> {
  return await answered(
    async () => (await tracker.currentHeight?.()) ?? 0,
    'the height of the chain is unknown',
    signal,
  )
}

/** The message if the deadline passes while the chain tracker is being asked. */
export const TRACKER_TIMEOUT = 'the chain tracker did not answer in time'

type Output = TransactionView['outputs'][number]

function total(outputs: readonly Output[]): number {
  return outputs.reduce((sum, { satoshis }) => sum + satoshis, 0)
}
