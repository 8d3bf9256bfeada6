import type { ChainTracker } from '@bsv/sdk'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { runScripts, type ScriptSpender, TooCostlyError } from '../../backend/src/protocol/run-scripts.js'
import { DEFAULT_SCRIPT_WORK } from '../../backend/src/protocol/script-cost.js'
import type { TransactionView } from '../../backend/src/protocol/transaction.js'
import { unlessAborted } from './bounded-fetch.js'
import type { Bundle } from './bundle.js'
import { HeadersError, ProofError } from './errors.js'
import { ThreadShare } from './thread-share.js'

/** Who says which blocks there are; `'scripts only'`: nobody, and every merkle path is taken, as the SDK does. */
export type Headers = Pick<ChainTracker, 'isValidRootForHeight'> | 'scripts only'

/** What the caller goes by. */
export interface Trust {
  chainTracker: Headers
  /** Refuse whatever is not in a block that the chain tracker knows. */
  requireProofs?: boolean
  /**
   * What the scripts of unproven transactions may cost together, in units of some ten nanoseconds: the model by which a
   * server prices submissions, 300,000,000 unless set. A step over it is refused before it is taken.
   */
  maxScriptWork?: number
  /** How long the scripts of unproven transactions may run, in milliseconds of their own; 10,000 unless set. */
  scriptTimeout?: number
  /** Ends the check: with the signal's reason, or with a HeadersError where the chain tracker was waited for. */
  signal?: AbortSignal
}

/** The live covenant takes some 4 ms a mint; all of the work that is usually allowed, some seconds. */
const DEFAULT_SCRIPT_TIMEOUT = 10_000
/** From how many units on a step gets a slice of its own. */
const LONG_STEP = 500_000
/** Of what the interpreter says of a script, in characters. */
const MAX_REASON = 200

/**
 * Tells of transactions of a bundle whether a chain holds them, or could: one with a merkle path is in the block of its
 * root, which the chain tracker knows; any other runs its scripts against what it spends, and that is vouched for in the
 * same way (the rules of `Transaction.verify` of the SDK). Each is looked at once, however many ask.
 */
export class TransactionVerifier {
  /** The transactions that were vouched for, and the height of their block where one has them. */
  private readonly vouched = new Map<string, number | undefined>()
  private readonly roots = new Map<string, boolean>()
  /** What scripts may still cost. */
  private scriptWork: number
  /** How long they may run in all, and have run, in milliseconds. */
  private readonly scriptTimeout: number
  private scriptTime = 0
  private readonly thread = new ThreadShare()

  /**
   * @param anchor A transaction that the caller vouches for: what came before it is not asked.
   */
  constructor(
    private readonly bundle: Bundle,
    private readonly trust: Trust,
    private readonly anchor?: string,
  ) {
    this.scriptWork = trust.maxScriptWork ?? DEFAULT_SCRIPT_WORK
    this.scriptTimeout = trust.scriptTimeout ?? DEFAULT_SCRIPT_TIMEOUT
  }

  /**
   * @returns The height of the block that the chain tracker knows to hold the transaction; undefined where it is in none,
   * or where no headers were asked.
   * @throws ProofError `BAD_PATH`, `UNVERIFIED`, `UNPROVEN`, `BAD_SCRIPT`, `TOO_COSTLY`, `SCRIPT_TIMEOUT`; HeadersError;
   * the reason of the signal.
   */
  async vouch(txid: string): Promise<number | undefined> {
    this.thread.resume()
    try {
      await this.vouchAll(txid)
    } finally {
      this.thread.pause()
    }
    return this.vouched.get(txid)
  }

  /** Vouches for a transaction, and for what it rests on. */
  private async vouchAll(txid: string): Promise<void> {
    const open = [txid]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (this.vouched.has(next)) continue
      if (this.thread.isDue) await this.thread.yield()
      this.trust.signal?.throwIfAborted()
      const height = await this.provenHeight(next)
      if (height === undefined && this.trust.requireProofs)
        throw new ProofError('UNPROVEN', `${next} is in no block that was checked`)
      if (height === undefined && !this.isTaken(next))
        for (const source of await this.verifyScripts(next)) open.push(source)
      this.vouched.set(next, height)
    }
  }

  /** Whether nothing is left to ask of a transaction that no header vouches for. */
  private isTaken(txid: string): boolean {
    return txid === this.anchor || (this.trust.chainTracker === 'scripts only' && this.bundle.hasPath(txid))
  }

  private async provenHeight(txid: string): Promise<number | undefined> {
    const { chainTracker, signal } = this.trust
    if (chainTracker === 'scripts only') return undefined
    const place = this.bundle.place(txid)
    if (place === undefined) return undefined
    const { root, height } = place
    const key = `${height} ${root}`
    let known = this.roots.get(key)
    if (known === undefined) {
      this.thread.pause()
      known = await askFor(chainTracker, { root, height, signal })
      this.thread.resume()
      this.roots.set(key, known)
    }
    if (!known)
      throw new ProofError('BAD_PATH', `${txid} is in no block at height ${height}: its root is none`)
    return height
  }

  /** @returns The transactions that it spends of, which have to be vouched for as well. */
  private async verifyScripts(txid: string): Promise<string[]> {
    const view = this.bundle.transaction(txid)
    if (view === undefined) throw new ProofError('UNVERIFIED', `${txid} is not in the proof`)
    const { inputs, outputs } = view
    // A verifier that goes through the inputs says yes to none of them.
    if (inputs.length === 0) throw new ProofError('BAD_SCRIPT', `${txid} is in no block, and spends nothing`)
    if (outputs.length === 0) throw new ProofError('BAD_SCRIPT', `${txid} has no outputs`)
    const sources = inputs.map((input) => {
      const source = this.bundle.output(input)
      if (source !== undefined) return source
      throw new ProofError(
        'UNVERIFIED',
        `${txid} is in no block, and what it spends is not shown: ${formatOutpoint(input)}`,
      )
    })
    if (total(outputs) > total(sources))
      throw new ProofError('BAD_SCRIPT', `${txid} pays more than it spends`)
    await this.runScripts({ txid, raw: view.raw, spent: sources })
    return inputs.map((input) => input.txid)
  }

  private async runScripts(spender: ScriptSpender): Promise<void> {
    const { thread, scriptTimeout, trust } = this
    const start = thread.used - this.scriptTime
    try {
      // What a step costs is known before it is taken.
      for (const { units } of runScripts([spender], { maxWork: this.scriptWork })) {
        this.scriptWork -= units
        if (thread.used - start >= scriptTimeout)
          throw new ProofError(
            'SCRIPT_TIMEOUT',
            `the scripts of the proof run longer than ${scriptTimeout} ms`,
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

/** The interpreter throws for a script that fails, and for one that it cannot read: no block holds either. */
function scriptError(txid: string, cause: unknown): ProofError {
  if (cause instanceof ProofError) return cause
  if (cause instanceof TooCostlyError)
    return new ProofError('TOO_COSTLY', `the scripts of ${txid} cost too much to run`, { cause })
  const [reason = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
  return new ProofError('BAD_SCRIPT', `a script of ${txid} fails: ${reason.slice(0, MAX_REASON)}`, { cause })
}

async function askFor(
  tracker: Exclude<Headers, string>,
  { root, height, signal }: { root: string; height: number; signal: AbortSignal | undefined },
): Promise<boolean> {
  try {
    const answer = tracker.isValidRootForHeight(root, height)
    return await (signal === undefined ? answer : unlessAborted(answer, signal))
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause)
    const reason = signal?.aborted ? 'the chain tracker did not answer in time' : said
    throw new HeadersError(`no block header of height ${height} was got: ${reason.slice(0, MAX_REASON)}`, {
      cause,
    })
  }
}

type Output = TransactionView['outputs'][number]

function total(outputs: readonly Output[]): number {
  return outputs.reduce((sum, { satoshis }) => sum + satoshis, 0)
}
