import type { Transaction } from '@bsv/sdk'
import { BeefError, readBeefFrame } from '../../backend/src/protocol/beef.js'
import { sdkTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { equalBytes, fromHex, reversed, toHex } from '../../backend/src/protocol/bytes.js'
import { MerklePath } from '../../backend/src/protocol/merkle-path.js'
import { decodeOutpoint, formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import {
  countParts,
  type Hash256,
  hash256,
  outputOf,
  type TransactionView,
} from '../../backend/src/protocol/transaction.js'
import { ProofError } from './errors.js'

/** How much a reader takes. */
export interface ReadOptions {
  /** The longest BEEF that is read, in bytes; 64 MiB unless set. */
  maxBytes?: number
  /** A double SHA-256; Node's own unless set, and the SDK's where there is none. */
  hash?: Hash256
}

/** A transaction, and which of its inputs spends what was asked for. */
export interface Spender {
  transaction: TransactionView
  input: number
}

/** More than the longest line of mints that is likely, and less than a browser's tab bears. */
export const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/**
 * Inputs of all transactions of a proof: each coin is held by name, to see that none is spent twice. Outputs are read when
 * somebody asks for them, so that the bytes bound how many there are.
 */
const MAX_INPUTS = 500_000

/** BRC-158: an Atomic BEEF (BRC-95) whose subject is an output. */
const OUTPOINT_BEEF = fromHex('16a7beef')
const OUTPOINT_LENGTH = 36

/**
 * The transactions of one BEEF, each bound by its bytes to its txid, parents before children, no coin spent twice. Each
 * is read and hashed once. That they are in a chain, nothing here says.
 */
export class Bundle {
  /** The subject that an Atomic BEEF names, else the last transaction. */
  readonly subjectTxid: string | undefined
  readonly transactions: TransactionView[]
  private readonly paths: MerklePaths
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
      if (this.byTxid.has(txid)) throw new ProofError('BAD_BEEF', `${txid} stands twice in the BEEF`)
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
          throw new ProofError('BAD_BEEF', `${spent.txid} stands behind ${transaction.txid}, which spends it`)
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

  /** The transaction of the bundle that spends an outpoint. */
  spenderOf(outpoint: Outpoint): Spender | undefined {
    return this.spenders.get(formatOutpoint(outpoint))
  }

  hasPath(txid: string): boolean {
    return this.paths.has(txid)
  }

  /** Where a transaction is, by its merkle path. @throws ProofError `BAD_PATH`. */
  place(txid: string): ClaimedBlock | undefined {
    return this.paths.place(txid)
  }

  /**
   * A transaction of the bundle as one of the SDK, with its merkle path or with its ancestors down to proven ones, as far
   * as they are in the bundle; undefined where it is not in it.
   *
   * @throws ProofError `BAD_BEEF` where those are too many.
   */
  sdkTransaction(txid: string): Transaction | undefined {
    return reading(() =>
      sdkTransaction(txid, (each) => {
        const raw = this.byTxid.get(each)?.raw
        const path = this.paths.cut(each)
        return raw && { raw, ...(path && { path }) }
      }),
    )
  }
}

/**
 * Reads an Outpoint BEEF (BRC-158): the bytes `16a7beef`, 36 bytes of outpoint, a BEEF that holds its transaction.
 *
 * @throws ProofError as {@link Bundle}; `BAD_BEEF` also where the subject is not in it.
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
    throw new ProofError('BAD_BEEF', 'the bytes do not start like an Outpoint BEEF')
  return decodeOutpoint(bytes.subarray(start, start + OUTPOINT_LENGTH))
}

function requireSize(bytes: Uint8Array, { maxBytes = DEFAULT_MAX_BYTES }: ReadOptions): void {
  if (bytes.length > maxBytes)
    throw new ProofError('TOO_LARGE', `a proof of ${bytes.length} bytes, more than ${maxBytes}`)
}

function requireFewInputs(transactions: ReturnType<typeof readBeefFrame>['transactions']): void {
  const inputs = transactions.reduce((sum, each) => sum + countParts(each).inputs, 0)
  if (inputs > MAX_INPUTS)
    throw new ProofError('TOO_LARGE', `a proof of ${inputs} inputs, more than ${MAX_INPUTS}`)
}

function reading<Read>(read: () => Read): Read {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new ProofError('BAD_BEEF', `the bytes are no BEEF: ${cause.message}`, { cause })
  }
}

/** Where a merkle path says that a transaction is. */
export interface ClaimedBlock {
  height: number
  /** The merkle root that the path leads to, hex in shown order. */
  root: string
}

/** The merkle paths (BUMP, BRC-74) of a BEEF, asked by txid. */
export class MerklePaths {
  private readonly byTxid = new Map<string, ClaimedBlock & { bump: Uint8Array }>()

  /**
   * @param among The transactions that will be asked for; any unless set. Of a path nothing else is kept.
   * @throws ProofError `BAD_PATH` where one cannot be read, or does not lead to one root.
   */
  constructor(
    bumps: readonly Uint8Array[],
    private readonly hash: Hash256,
    among?: { has(txid: string): boolean },
  ) {
    for (const bump of bumps) {
      const path = this.read(bump)
      const { height, root } = path
      for (const txid of path.txids)
        if (!this.byTxid.has(txid) && among?.has(txid) !== false)
          this.byTxid.set(txid, { height, root, bump })
    }
  }

  /** Whether there is a path for a transaction, wherever it leads. */
  has(txid: string): boolean {
    return this.byTxid.has(txid)
  }

  /** Where the first path that has the transaction among its leaves says it is; undefined where none has. */
  place(txid: string): ClaimedBlock | undefined {
    const found = this.byTxid.get(txid)
    return found && { height: found.height, root: found.root }
  }

  /** That path without what proves other transactions, as bytes. */
  cut(txid: string): Uint8Array | undefined {
    const found = this.byTxid.get(txid)
    return found && this.read(found.bump).cut(txid)
  }

  private read(bump: Uint8Array): MerklePath {
    return new MerklePath(bump, { hash: this.hash, fail: (message) => new ProofError('BAD_PATH', message) })
  }
}

/** As much of Node as is used here: the client runs in browsers as well, and so imports nothing of it. */
interface Host {
  process?: {
    /** From Node 20.16 on. */
    getBuiltinModule?: (name: 'node:crypto') => {
      createHash(algorithm: 'sha256'): { update(bytes: Uint8Array): { digest(): Uint8Array } }
    }
  }
}

/**
 * The double SHA-256 to use where the caller gives none: Node's own where it runs there, which is some ten times as fast,
 * else the SDK's. Most of the time that a proof takes goes into hashes.
 */
export const hostHash256: Hash256 = nativeHash(globalThis as Host) ?? hash256

/** Node's SHA-256, twice; undefined where the host does not give it. */
export function nativeHash({ process }: Host): Hash256 | undefined {
  const crypto = process?.getBuiltinModule?.('node:crypto')
  if (crypto === undefined) return undefined
  const once = (bytes: Uint8Array): Uint8Array => crypto.createHash('sha256').update(bytes).digest()
  // A plain array: of a Buffer, `slice` and the like do other things.
  return (bytes) => new Uint8Array(once(once(bytes)))
}
