import { ByteCursor } from './byte-cursor.js'
import { reversed, toHex } from './bytes.js'
import { CodedError } from './coded-error.js'
import { MAX_LEAVES, takeBump } from './merkle-path.js'
import { readTransactionFields, type TransactionView } from './transaction.js'

/** The bytes are no BEEF (BRC-62, BRC-95, BRC-96). */
export class BeefError extends CodedError {
  override readonly name = 'BeefError'
  readonly code = 'BAD_BEEF'
}

/** More transactions than any real ancestry has; a BEEF of millions of empty ones would only cost memory. */
export const MAX_BEEF_TRANSACTIONS = 10_000

/** The parts of a BEEF, as views into its bytes. Merkle paths are bounded but not read. */
export interface BeefFrame {
  /** The subject that an Atomic BEEF names, hex in shown order. */
  atomicTxid?: string
  /** The bytes of its merkle paths (BUMP, BRC-74). */
  bumps: Uint8Array[]
  /** The transactions, parents first; those that a V2 BEEF only names by txid are left out. */
  transactions: Omit<TransactionView, 'txid'>[]
  /** The places of the transactions that have a merkle path there. */
  proven: ReadonlySet<number>
}

const BEEF_V1 = 0xefbe0001
const BEEF_V2 = 0xefbe0002
const ATOMIC = 0x01010101
const TXID_ONLY = 2

/** The subject that an Atomic BEEF (BRC-95) names in its first bytes. */
export function atomicSubject(beef: readonly number[]): string {
  return toHex(reversed(Uint8Array.from(beef.slice(4, 36))))
}

/**
 * Reads the frame of a BEEF, V1 or V2, atomic or not. Every count is checked against the bytes left, so that reading takes
 * linear time: the SDK's reader runs on past their end.
 *
 * @throws BeefError (`BAD_BEEF`) if the bytes are not exactly one BEEF, or hold too many transactions.
 */
export function readBeefFrame(bytes: Uint8Array): BeefFrame {
  const cursor = new ByteCursor(bytes, (message) => new BeefError(message))
  let version = cursor.u32()
  let atomicTxid: string | undefined
  if (version === ATOMIC) {
    atomicTxid = toHex(reversed(cursor.take(32)))
    version = cursor.u32()
  }
  if (version !== BEEF_V1 && version !== BEEF_V2) throw new BeefError('not a BEEF: wrong version bytes')
  const bumps: Uint8Array[] = []
  let leaves = 0
  for (let left = cursor.count('merkle paths', MAX_BEEF_TRANSACTIONS); left > 0; left--) {
    const bump = takeBump(cursor)
    leaves += bump.leaves
    if (leaves > MAX_LEAVES) throw new BeefError(`the merkle paths have more than ${MAX_LEAVES} leaves`)
    bumps.push(bump.bytes)
  }
  const transactions: Omit<TransactionView, 'txid'>[] = []
  const proven = new Set<number>()
  for (let left = cursor.count('transactions', MAX_BEEF_TRANSACTIONS); left > 0; left--) {
    const entry = version === BEEF_V1 ? takeV1(cursor) : takeV2(cursor)
    if (entry === undefined) {
      // The SDK takes the last place for the subject; an earlier transaction is not the one that was meant.
      if (left === 1 && atomicTxid === undefined)
        throw new BeefError('the BEEF does not contain its subject transaction')
      continue
    }
    if (entry.hasPath) proven.add(transactions.length)
    transactions.push(entry.transaction)
  }
  if (!cursor.atEnd) throw new BeefError('there are extra bytes after the BEEF')
  return { ...(atomicTxid && { atomicTxid }), bumps, transactions, proven }
}

interface Entry {
  transaction: Omit<TransactionView, 'txid'>
  hasPath: boolean
}

function takeV1(cursor: ByteCursor): Entry {
  const transaction = takeTransaction(cursor)
  const hasPath = cursor.u8() !== 0
  if (hasPath) cursor.varint()
  return { transaction, hasPath }
}

function takeV2(cursor: ByteCursor): Entry | undefined {
  const format = cursor.u8()
  if (format > TXID_ONLY)
    throw new BeefError(`a transaction of the BEEF has the unknown format byte ${format}`)
  if (format === TXID_ONLY) {
    cursor.take(32)
    return undefined
  }
  const hasPath = format === 1
  if (hasPath) cursor.varint()
  return { transaction: takeTransaction(cursor), hasPath }
}

function takeTransaction(cursor: ByteCursor): Omit<TransactionView, 'txid'> {
  const start = cursor.at
  const fields = readTransactionFields(cursor)
  return Object.assign(fields, { raw: cursor.bytes.subarray(start, cursor.at) })
}
