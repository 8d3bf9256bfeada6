import { type ChainTracker, LockingScript, Spend, Transaction } from '@bsv/sdk'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { TransactionView } from '../../backend/src/protocol/transaction.js'
import type { Bundle } from './bundle.js'
import { HeadersError, ProofError } from './proof-error.js'

/** Who says which blocks there are; `'scripts only'`: nobody, and every merkle path is taken, as the SDK does. */
export type Headers = Pick<ChainTracker, 'isValidRootForHeight'> | 'scripts only'

/** What the caller goes by. */
export interface Trust {
  chainTracker: Headers
  /** Refuse whatever is not in a block that the chain tracker knows. */
  requireProofs?: boolean
  /** How long the scripts of unproven transactions may run, in milliseconds; 30,000 unless set. */
  scriptTimeout?: number
}

/** The live covenant takes some 4 ms a mint; a script that is made to be slow can take years. */
const DEFAULT_SCRIPT_TIMEOUT = 30_000
/** What a script may hold at a time, in bytes: a mint holds its own outputs and preimage a few times over. */
const SCRIPT_MEMORY = 8 * 1024 * 1024

/**
 * Tells of transactions of a bundle whether a chain holds them, or could: one with a merkle path is in the block of its
 * root, which the chain tracker knows; any other runs its scripts against what it spends, and that is vouched for in the
 * same way (the rules of `Transaction.verify` of the SDK). Each is looked at once, however many ask.
 */
export class Voucher {
  /** The transactions that were vouched for, and the height of their block where one has them. */
  private readonly vouched = new Map<string, number | undefined>()
  private readonly roots = new Map<string, boolean>()
  /** How long scripts may still run, in milliseconds. */
  private scriptTime: number

  /**
   * @param anchor A transaction that the caller vouches for: what came before it is not asked.
   */
  constructor(
    private readonly bundle: Bundle,
    private readonly trust: Trust,
    private readonly anchor?: string,
  ) {
    this.scriptTime = trust.scriptTimeout ?? DEFAULT_SCRIPT_TIMEOUT
  }

  /**
   * @returns The height of the block that the chain tracker knows to hold the transaction; undefined where it is in none,
   * or where no headers were asked.
   * @throws ProofError `BAD_PATH`, `UNVERIFIED`, `UNPROVEN`, `BAD_SCRIPT`, `SCRIPT_TIMEOUT`; HeadersError.
   */
  async vouch(txid: string): Promise<number | undefined> {
    const open = [txid]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (this.vouched.has(next)) continue
      const height = await this.provenHeight(next)
      if (height === undefined && this.trust.requireProofs)
        throw new ProofError('UNPROVEN', `${next} is in no block that was checked`)
      if (height === undefined && !this.isTaken(next)) open.push(...this.runScripts(next))
      this.vouched.set(next, height)
    }
    return this.vouched.get(txid)
  }

  /** Whether nothing is left to ask of a transaction that no header vouches for. */
  private isTaken(txid: string): boolean {
    return txid === this.anchor || (this.trust.chainTracker === 'scripts only' && this.bundle.hasPath(txid))
  }

  private async provenHeight(txid: string): Promise<number | undefined> {
    const { chainTracker } = this.trust
    if (chainTracker === 'scripts only') return undefined
    const place = this.bundle.place(txid)
    if (place === undefined) return undefined
    const { root, height } = place
    const key = `${height} ${root}`
    const known = this.roots.get(key) ?? (await askFor(chainTracker, place))
    this.roots.set(key, known)
    if (!known)
      throw new ProofError('BAD_PATH', `${txid} is in no block at height ${height}: its root is none`)
    return height
  }

  /** @returns The transactions that it spends of, which have to be vouched for as well. */
  private runScripts(txid: string): string[] {
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
    const start = Date.now()
    runInputs({ view, sources, deadline: start + this.scriptTime })
    this.scriptTime -= Date.now() - start
    return inputs.map((input) => input.txid)
  }
}

async function askFor(
  tracker: Exclude<Headers, string>,
  { root, height }: { root: string; height: number },
): Promise<boolean> {
  try {
    return await tracker.isValidRootForHeight(root, height)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new HeadersError(`no block header of height ${height} was got: ${reason}`, { cause })
  }
}

type Output = TransactionView['outputs'][number]

function total(outputs: readonly Output[]): number {
  return outputs.reduce((sum, { satoshis }) => sum + satoshis, 0)
}

function runInputs(run: { view: TransactionView; sources: Output[]; deadline: number }): void {
  const { view, sources, deadline } = run
  const { version, inputs, outputs, lockTime } = Transaction.fromBinary(view.raw)
  for (const [inputIndex, input] of inputs.entries()) {
    const { sourceTXID, unlockingScript } = input
    const source = sources[inputIndex]
    if (source === undefined || sourceTXID === undefined || unlockingScript === undefined)
      throw new Error(`the SDK reads other inputs of ${view.txid}`)
    const spend = new TimedSpend(
      {
        sourceTXID,
        sourceOutputIndex: input.sourceOutputIndex,
        sourceSatoshis: source.satoshis,
        lockingScript: new LockingScript([], Uint8Array.from(source.lockingScript), undefined, false),
        transactionVersion: version,
        otherInputs: inputs.filter((_, other) => other !== inputIndex),
        unlockingScript,
        inputSequence: input.sequence ?? 0xffffffff,
        inputIndex,
        outputs,
        lockTime,
        memoryLimit: SCRIPT_MEMORY,
      },
      deadline,
    )
    if (!passes(spend, view.txid))
      throw new ProofError('BAD_SCRIPT', `the script of input ${inputIndex} of ${view.txid} says no`)
  }
}

function passes(spend: Spend, txid: string): boolean {
  try {
    return spend.validate()
  } catch (cause) {
    if (cause instanceof ProofError) throw cause
    // The interpreter throws for a script that fails, and for one that it cannot read: no block holds either.
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    throw new ProofError('BAD_SCRIPT', `a script of ${txid} fails: ${reason}`, { cause })
  }
}

/** An interpreter that stops in time: scripts have no loops, but one operation may take as long as a thousand. */
class TimedSpend extends Spend {
  constructor(
    params: ConstructorParameters<typeof Spend>[0],
    private readonly deadline: number,
  ) {
    super(params)
  }

  override step(): boolean {
    if (Date.now() >= this.deadline)
      throw new ProofError('SCRIPT_TIMEOUT', 'the scripts of the proof run too long')
    return super.step()
  }
}
