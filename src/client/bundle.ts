import { BeefError, readBeefFrame } from '../../backend/src/protocol/beef.js'
import { sdkTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { isInnerNode } from '../../backend/src/protocol/block-rules.js'
import { equalBytes, fromHex, reversed, toHex } from '../../backend/src/protocol/bytes.js'
import { cutPath, MerklePath } from '../../backend/src/protocol/merkle-path.js'
import { decodeOutpoint, formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Transaction } from '../../backend/src/protocol/sdk-types.js'
import {
  countParts,
  type Hash256,
  outputOf,
  type TransactionView,
} from '../../backend/src/protocol/transaction.js'
import { ProofError } from './errors.js'
import { portableSha256 } from './portable-sha256.js'

export interface ReadOptions {
  /** The longest BEEF that is read, in bytes; 64 MiB by default. */
  maxBytes?: number
  /** A double SHA-256; by default Node's if available, otherwise our own. */
  hash?: Hash256
}

/** A transaction, and the index of its input that spends a given outpoint. */
export interface Spender {
  transaction: TransactionView
  input: number
}

/** More than any likely line of mints, and less than a browser tab can take. */
export const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/**
 * The most inputs that all transactions of a proof may have together: each spent outpoint is indexed, to detect double
 * spends. Outputs are parsed only when asked for, so the limit on bytes covers them.
 */
const MAX_INPUTS = 500_000

/** BRC-158: an Atomic BEEF (BRC-95) whose subject is an output. */
const OUTPOINT_BEEF = fromHex('16a7beef')
const OUTPOINT_LENGTH = 36

/**
 * The transactions of one BEEF: each hashed to its txid, parents before children, no coin spent twice. Whether they are in a
 * chain is not checked here.
 */
export class Bundle {
  /** The subject that an Atomic BEEF names, otherwise the last transaction. */
  readonly subjectTxid: string | undefined
  readonly transactions: TransactionView[]
  readonly paths: MerklePaths
  private readonly byTxid = new Map<string, TransactionView>()
  private readonly spenders = new Map<string, Spender>()

  /** @throws ProofError `TOO_LARGE`, `BAD_BEEF`, `BAD_PATH`, `DOUBLE_SPEND`. */
  constructor(
    beef: Uint8Array,
    private readonly options: ReadOptions,
  ) {
    const { hash = hostHash256 } = options
    requireSize(beef, options)
    const { atomicTxid, bumps, transactions } = reading(() => readBeefFrame(beef))
    requireFewInputs(transactions)
    this.transactions = transactions.map((each) =>
      Object.assign(each, { txid: toHex(reversed(hash(each.raw))) }),
    )
    this.subjectTxid = atomicTxid ?? this.transactions.at(-1)?.txid
    for (const transaction of this.transactions) {
      const { txid } = transaction
      if (this.byTxid.has(txid)) throw new ProofError('BAD_BEEF', `${txid} occurs twice in the BEEF`)
      if (isInnerNode(transaction))
        throw new ProofError('BAD_BEEF', `${txid} could be an inner node of a merkle tree: it has 64 bytes`)
      this.byTxid.set(txid, transaction)
    }
    this.paths = new MerklePaths(bumps, hash, this.byTxid)
    this.readSpends()
  }

  private readSpends(): void {
    const seen = new Set<string>()
    for (const transaction of this.transactions) {
      for (const [input, spent] of transaction.inputs.entries()) {
        if (this.byTxid.has(spent.txid) && !seen.has(spent.txid)) {
          throw new ProofError('BAD_BEEF', `${spent.txid} comes after ${transaction.txid}, which spends it`)
        }
        const outpoint = formatOutpoint(spent)
        if (this.spenders.has(outpoint)) throw new ProofError('DOUBLE_SPEND', `${outpoint} is spent twice`)
        this.spenders.set(outpoint, { transaction, input })
      }
      seen.add(transaction.txid)
    }
  }

  get hash(): Hash256 {
    return this.options.hash ?? hostHash256
  }

  transaction(txid: string): TransactionView | undefined {
    return this.byTxid.get(txid)
  }

  output(outpoint: Outpoint): TransactionView['outputs'][number] | undefined {
    const transaction = this.byTxid.get(outpoint.txid)
    return transaction && outputOf(transaction, outpoint.vout)
  }

  spenderOf(outpoint: Outpoint): Spender | undefined {
    return this.spenders.get(formatOutpoint(outpoint))
  }
}

/**
 * A transaction of a bundle as the SDK's class, with its merkle path or its ancestors in the bundle down to proven ones;
 * undefined if it is not in the bundle. Not a method, so that bundlers drop it from programs that only verify.
 *
 * @throws ProofError `BAD_BEEF` if there are too many ancestors.
 */
export function sdkTransactionIn(bundle: Bundle, txid: string): Transaction | undefined {
  return reading(() =>
    sdkTransaction(txid, (each) => {
      const raw = bundle.transaction(each)?.raw
      const whole = bundle.paths.pathOf(each)
      const path = whole && cutPath(whole, each)
      return raw && { raw, ...(path && { path }) }
    }),
  )
}

/**
 * Reads an Outpoint BEEF (BRC-158): the bytes `16a7beef`, 36 bytes of outpoint, and a BEEF that holds its transaction.
 *
 * @throws ProofError as {@link Bundle}; `BAD_BEEF` also if the subject is missing.
 */
export function readOutpointBeef(
  bytes: Uint8Array,
  options: ReadOptions,
): { subject: Outpoint; bundle: Bundle } {
  requireSize(bytes, options)
  const subject = subjectOf(bytes)
  const bundle = new Bundle(bytes.subarray(OUTPOINT_BEEF.length + OUTPOINT_LENGTH), options)
  if (bundle.output(subject) === undefined)
    throw new ProofError('BAD_BEEF', `the BEEF does not hold its subject ${formatOutpoint(subject)}`)
  return { subject, bundle }
}

function subjectOf(bytes: Uint8Array): Outpoint {
  const start = OUTPOINT_BEEF.length
  if (bytes.length < start + OUTPOINT_LENGTH || !equalBytes(bytes.subarray(0, start), OUTPOINT_BEEF))
    throw new ProofError('BAD_BEEF', 'the bytes do not start with the prefix 16a7beef of an Outpoint BEEF')
  return decodeOutpoint(bytes.subarray(start, start + OUTPOINT_LENGTH))
}

function requireSize(bytes: Uint8Array, { maxBytes = DEFAULT_MAX_BYTES }: ReadOptions): void {
  if (bytes.length > maxBytes)
    throw new ProofError('TOO_LARGE', `the proof has ${bytes.length} bytes; at most ${maxBytes} are read`)
}

function requireFewInputs(transactions: ReturnType<typeof readBeefFrame>['transactions']): void {
  const inputs = transactions.reduce((sum, each) => sum + countParts(each).inputs, 0)
  if (inputs > MAX_INPUTS)
    throw new ProofError('TOO_LARGE', `the proof has ${inputs} inputs; at most ${MAX_INPUTS} are read`)
}

function reading<Read>(read: () => Read): Read {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new ProofError('BAD_BEEF', `not a BEEF: ${cause.message}`, { cause })
  }
}

/** The block of a transaction, according to a merkle path. */
export interface ClaimedBlock {
  height: number
  /** The merkle root that the path leads to, as displayed hex. */
  root: string
}

export class MerklePaths {
  private readonly byTxid = new Map<string, ClaimedBlock & { bump: Uint8Array }>()
  /** The highest block that a path names; 0 without paths. */
  highest = 0

  /**
   * @param among The only transactions to index; by default, all.
   * @throws ProofError `BAD_PATH` if a path cannot be parsed, or does not lead to a single root.
   */
  constructor(
    bumps: readonly Uint8Array[],
    private readonly hash: Hash256,
    among?: { has(txid: string): boolean },
  ) {
    for (const bump of bumps) {
      const path = this.read(bump)
      const { height, root } = path
      this.highest = Math.max(this.highest, height)
      for (const txid of path.txids)
        if (!this.byTxid.has(txid) && among?.has(txid) !== false)
          this.byTxid.set(txid, { height, root, bump })
    }
  }

  /** Whether there is a path for a transaction, whatever its root. */
  has(txid: string): boolean {
    return this.byTxid.has(txid)
  }

  /** The block that a transaction is in according to the first path with it among its leaves. */
  claimedBlock(txid: string): ClaimedBlock | undefined {
    const found = this.byTxid.get(txid)
    return found && { height: found.height, root: found.root }
  }

  pathOf(txid: string): MerklePath | undefined {
    const found = this.byTxid.get(txid)
    return found && this.read(found.bump)
  }

  private read(bump: Uint8Array): MerklePath {
    return new MerklePath(bump, { hash: this.hash, fail: (message) => new ProofError('BAD_PATH', message) })
  }
}

/** The part of Node that is used here. The client also runs in browsers, so it imports nothing from Node. */
interface Host {
  process?: {
    /** From Node 20.16. */
    getBuiltinModule?: (name: 'node:crypto') => {
      createHash(algorithm: 'sha256'): { update(bytes: Uint8Array): { digest(): Uint8Array } }
    }
  }
}

const native = nativeHash(globalThis as Host)

/**
 * The default SHA-256: Node's if available, which is about ten times as fast, otherwise our own. Hashing takes most of the time
 * of a check.
 */
export const hostSha256: Hash256 = native ?? portableSha256

/** The default SHA-256, applied twice. */
export const hostHash256: Hash256 = (bytes) => hostSha256(hostSha256(bytes))

/** Node's SHA-256; undefined if the host does not have it. */
export function nativeHash({ process }: Host): Hash256 | undefined {
  const crypto = process?.getBuiltinModule?.('node:crypto')
  if (crypto === undefined) return undefined
  // A plain array: a Buffer's `slice` and other methods behave differently.
  return (bytes) => new Uint8Array(crypto.createHash('sha256').update(bytes).digest())
}
