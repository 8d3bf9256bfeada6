import { nativeHash256, sha256 } from '../graph/native-hash.js'
import type { Proof, TransactionRecord } from '../graph/records.js'
import { equalBytes, fromHex, joinBytes, readUtf8, toHex, utf8 } from '../protocol/bytes.js'
import type { Row } from './connection.js'

/**
 * The log of facts: what cannot be computed again, in the order in which they came. Facts are inserted once and never changed (`docs/facts.md`).
 */

export const FACT = { transaction: 1, proof: 2, header: 3, body: 4, register: 5 } as const

export type FactKind = (typeof FACT)[keyof typeof FACT]

export interface NewFact {
  kind: FactKind
  /** Unique within its kind. */
  key: Uint8Array
  body: Uint8Array
}

export interface Fact extends NewFact {
  /** Its place in the log: unique, increasing, from 1. */
  seq: number
  /** When it was inserted, in milliseconds since 1970. It is shown to people and decides nothing. */
  at: number
}

/** What was decided about a transaction when it came, by rules that no later reader has to know. */
export interface TransactionNotes {
  /** The outputs that the policy of `tm_ordinals` did not take. */
  refused: number[]
  /** What further topics of the host admit of it. */
  others: { topic: string; vout: number }[]
}

const WITHOUT_NOTES: TransactionNotes = { refused: [], others: [] }
const LENGTH_BYTES = 4

/**
 * A transaction: its key is the txid as displayed, its body the raw transaction, then the notes as JSON, then their length (32 bits,
 * big-endian). The raw transaction comes first, so that a position in it is one in the body.
 */
export function transactionFact(
  transaction: Pick<TransactionRecord, 'txid' | 'raw'>,
  notes = WITHOUT_NOTES,
): NewFact {
  const { refused, others } = notes
  const isEmpty = refused.length === 0 && others.length === 0
  const text = isEmpty
    ? ''
    : JSON.stringify({ refused, others: others.map(({ topic, vout }) => [topic, vout]) })
  const noted = utf8(text)
  return {
    kind: FACT.transaction,
    key: fromHex(transaction.txid),
    body: joinBytes([transaction.raw, noted, uint32(noted.length)]),
  }
}

/** How many bytes at the end of a transaction's fact are no part of the raw transaction, if it has no notes. */
export const NO_NOTES_BYTES = LENGTH_BYTES

export function readTransactionFact({ key, body }: Pick<Fact, 'key' | 'body'>): {
  txid: string
  raw: Uint8Array
  notes: TransactionNotes
} {
  const end = body.length - LENGTH_BYTES
  const length = readUint32(body, end)
  const txid = toHex(key)
  const raw = body.subarray(0, end - length)
  if (length === 0) return { txid, raw, notes: WITHOUT_NOTES }
  const noted = JSON.parse(readUtf8(body.subarray(end - length, end))) as {
    refused: number[]
    others: [topic: string, vout: number][]
  }
  const others = noted.others.map(([topic, vout]) => ({ topic, vout }))
  return { txid, raw, notes: { refused: noted.refused, others } }
}

export function isIntactTransaction(fact: Pick<Fact, 'key' | 'body'>): boolean {
  return isTransaction(readTransactionFact(fact).raw, fact.key)
}

/** @param txid As displayed. */
export function isTransaction(raw: Uint8Array, txid: Uint8Array): boolean {
  return equalBytes(nativeHash256(raw).reverse(), txid)
}

/** A proof: its key is the txid, the height (32 bits, big-endian) and the root, its body the merkle path (BUMP, BRC-74). */
export function proofFact(txid: string, { height, root, merklePath }: Proof): NewFact {
  return {
    kind: FACT.proof,
    key: joinBytes([fromHex(txid), uint32(height), fromHex(root)]),
    body: merklePath,
  }
}

const HASH_BYTES = 32

export function readProofFact({ key, body }: Pick<Fact, 'key' | 'body'>): { txid: string; proof: Proof } {
  const { height, root } = proofPlace(key)
  return { txid: toHex(key.subarray(0, HASH_BYTES)), proof: { height, root: toHex(root), merklePath: body } }
}

/** What the key of a proof says beside the txid. @returns The root in display order. */
export function proofPlace(key: Uint8Array): { height: number; root: Uint8Array } {
  return { height: readUint32(key, HASH_BYTES), root: key.subarray(HASH_BYTES + LENGTH_BYTES) }
}

export function proofOf({ height, root, merkle_path }: Row): Proof {
  return { height, root: toHex(root), merklePath: merkle_path }
}

/** The root in a column with the key of a proof. */
export const PROOF_ROOT = `substr(log.key, ${HASH_BYTES + LENGTH_BYTES + 1})`

/** A body that stands nowhere in a transaction as a whole: its key is its SHA-256. */
export function bodyFact(bytes: Uint8Array): NewFact {
  return { kind: FACT.body, key: sha256(bytes), body: bytes }
}

export function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(LENGTH_BYTES)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

export function readUint32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at)
}
