import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { readProof } from '../../../backend/src/graph/read-beef.js'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { isSameOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction, TransactionError } from '../../../backend/src/protocol/transaction.js'
import { ChainSourceError } from './errors.js'
import type { SourceClient } from './source-client.js'

export interface ChainTip {
  height: number
  /** The hash of its header in display order; missing if a service does not say. */
  hash?: string
  /** The lowest height whose block was replaced; missing if the chain only grew. */
  forkedAt?: number
}

export interface TransactionOptions {
  /** The longest transaction to accept. */
  maxBytes: number
  /** As in `Query`. */
  isUrgent?: boolean
}

/**
 * A service that knows the chain. It is not trusted: a transaction must hash to its txid, a spender must spend, and the
 * chain tracker decides whether a block has a merkle root. Only the claim that an output is unspent cannot be verified.
 */
export interface ChainSource {
  /**
   * A transaction as {@link parseSourced} returns it, with its proof, as {@link parseSourcedProof} returns it, if the source
   * knows its block. Undefined if the source does not know the transaction.
   *
   * @throws ChainSourceError
   */
  transaction(txid: string, options: TransactionOptions): Promise<TransactionRecord | undefined>
  /**
   * The proof of a mined transaction; undefined if the source has none.
   *
   * @throws ChainSourceError
   */
  proof(txid: string): Promise<Proof | undefined>
}

/** One service among several. */
export interface SingleSource extends ChainSource {
  readonly client: SourceClient
  /** Whether it knows the whole chain, so that an output without a spender is unspent as far as anybody knows. */
  readonly knowsUnspent: boolean
  /** Whether it can name spenders of nodes: without such a source, nobody has followed the tree. */
  readonly knowsNodes: boolean
  /**
   * The txid of the transaction that spends an outpoint; undefined if the source knows none.
   *
   * @throws ChainSourceError
   */
  spenderOf(outpoint: Outpoint): Promise<string | undefined>
  /**
   * What the network said about transactions. Those that the source does not know are missing, which is no rejection. A
   * source without a mempool lacks this method.
   *
   * @throws ChainSourceError
   */
  sightings?(txids: readonly string[]): Promise<Map<string, Sighting>>
}

/** The sightings of a source that is asked about one transaction at a time. */
export async function sightingsOneByOne(
  txids: readonly string[],
  ask: (txid: string) => Promise<Sighting | undefined>,
): Promise<Map<string, Sighting>> {
  const sightings = new Map<string, Sighting>()
  for (const txid of txids) {
    const sighting = await ask(txid)
    if (sighting !== undefined) sightings.set(txid, sighting)
  }
  return sightings
}

/** The longest proof, in bytes. A path has some 2 KiB; a source may return one for all transactions of a block. */
export const MAX_PROOF_BYTES = 4 * 1024 * 1024

/**
 * Parses the raw transaction that a source returned.
 *
 * @throws ChainSourceError `BAD_ANSWER` if the bytes are another transaction, or none.
 */
export function parseSourced(txid: string, raw: Uint8Array): TransactionRecord {
  return parsed(invalidFor(txid), () => {
    const found = readTransaction(raw, { hash: nativeHash256 }).txid
    if (found !== txid)
      throw new ChainSourceError('BAD_ANSWER', `asked for ${txid}, the source returned ${found}`)
    return { txid, raw }
  })
}

/**
 * Parses the merkle path (BUMP, BRC-74) that a source returned for a transaction.
 *
 * @throws ChainSourceError `BAD_ANSWER` if it is malformed or does not contain the transaction.
 */
export function parseSourcedProof(txid: string, bump: Uint8Array): Proof {
  return parsed(invalidFor(txid), () => readProof({ txid, bump }))
}

/**
 * Parses a txid in hex that a source returned.
 *
 * @throws ChainSourceError `BAD_ANSWER`
 */
export function parseSourcedTxid(value: unknown, { name, of }: { name: string; of: string }): string {
  if (typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value)) return value.toLowerCase()
  throw new ChainSourceError('BAD_ANSWER', `${name} returned no txid for ${of}`)
}

/** Whether the bytes of a transaction show that it spends an outpoint. */
export function spends({ txid, raw }: TransactionRecord, outpoint: Outpoint): boolean {
  return readTransaction(raw, { txid }).inputs.some((input) => isSameOutpoint(input, outpoint))
}

/** A transaction with its proof, requested in parallel: hardly any transaction lacks a proof. */
export async function withProof(
  asking: Promise<TransactionRecord | undefined>,
  proving: Promise<Proof | undefined>,
): Promise<TransactionRecord | undefined> {
  // If the other fails first, nothing awaits this promise.
  proving.catch(() => undefined)
  const record = await asking
  const proof = await proving
  return record && { ...record, ...(proof && { proof }) }
}

/**
 * Parses the bytes of an answer.
 *
 * @param failure The message if they are invalid.
 * @throws ChainSourceError `BAD_ANSWER`
 */
export function parsed<Parsed>(failure: string, parse: () => Parsed): Parsed {
  try {
    return parse()
  } catch (cause) {
    if (!(cause instanceof TransactionError || cause instanceof BeefError)) throw cause
    throw new ChainSourceError('BAD_ANSWER', `${failure}: ${cause.message}`, { cause })
  }
}

function invalidFor(txid: string): string {
  return `the source returned an invalid answer for ${txid}`
}
