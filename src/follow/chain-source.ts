import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { readProof } from '../../backend/src/graph/read-proof.js'
import type { Proof, TransactionRecord } from '../../backend/src/graph/records.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction, TransactionError } from '../../backend/src/protocol/transaction.js'

/**
 * Whoever knows the chain: what a crawl asks, and no more. It is not believed: a transaction has to hash to its txid, a
 * spender has to spend, and whether a block has a merkle path is for the chain tracker to say. That something is unspent
 * is all that has to be taken on its word.
 */
export interface ChainSource {
  /**
   * A transaction, read by {@link readSourced}, with its proof, read by {@link readSourcedProof}, where the source has it in a
   * block. Undefined where the source does not know it.
   *
   * @param options.maxBytes How long it may be.
   * @throws ChainSourceError
   */
  transaction(txid: string, options: { maxBytes: number }): Promise<TransactionRecord | undefined>
  /**
   * The txid of what spends an outpoint; undefined where nothing does, as far as the source knows.
   *
   * @throws ChainSourceError
   */
  spenderOf(outpoint: Outpoint): Promise<string | undefined>
}

/** Why a chain source is of no use. */
type ChainSourceErrorCode =
  /** It could not be reached, was busy or was too slow, however often it was asked. Others will fare no better: try again later. */
  | 'NO_ANSWER'
  /** What it answers is no answer to the question. */
  | 'BAD_ANSWER'
  /** A transaction is longer than was asked for. */
  | 'TOO_LARGE'

/** A chain source that gave no answer that could be used. The message is one line. */
export class ChainSourceError extends CodedError<ChainSourceErrorCode> {
  override readonly name = 'ChainSourceError'
}

/**
 * Reads what a source answers for a transaction.
 *
 * @throws ChainSourceError `BAD_ANSWER` where the bytes are another transaction, or none.
 */
export function readSourced(txid: string, raw: Uint8Array): TransactionRecord {
  return reading(txid, () => {
    const found = readTransaction(raw, { hash: nativeHash256 }).txid
    if (found !== txid)
      throw new ChainSourceError('BAD_ANSWER', `asked for ${txid}, the source returned ${found}`)
    return { txid, raw }
  })
}

/**
 * Reads what a source answers for the merkle path (BUMP, BRC-74) of a transaction.
 *
 * @throws ChainSourceError `BAD_ANSWER` where the bytes are none, or one that does not hold the transaction.
 */
export function readSourcedProof(txid: string, bump: Uint8Array): Proof {
  return reading(txid, () => readProof({ txid, bump }))
}

function reading<Read>(txid: string, read: () => Read): Read {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof TransactionError || cause instanceof BeefError)) throw cause
    const why = `the source returned an invalid answer for ${txid}: ${cause.message}`
    throw new ChainSourceError('BAD_ANSWER', why, { cause })
  }
}
