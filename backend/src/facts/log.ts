import { nativeHash256, sha256 } from '../graph/native-hash.js'
import type { Proof, TransactionRecord } from '../graph/records.js'
import { equalBytes, fromHex, joinBytes, readUtf8, toHex, utf8 } from '../protocol/bytes.js'
import type { Row } from './connection.js'

/**
 * The log of facts, in order of insertion. A fact cannot be computed again; it is inserted once and never changed (`docs/facts.md`).
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

/** Decisions made about a transaction when it was inserted. Later readers rely on them and need not know the rules. */
export interface TransactionNotes {
  /** Outputs refused by the policy of `tm_ordinals`. */
  refused: number[]
  /** Outputs admitted by other topics of the host. */
  others: { topic: string; vout: number }[]
}

const WITHOUT_NOTES: TransactionNotes = { refused: [], others: [] }
const LENGTH_BYTES = 4

/**
 * The fact of a transaction. Key: the txid as displayed. Body: the raw transaction, the notes as JSON, and their length (32 bits,
 * big-endian). The raw transaction comes first, so its positions are also positions in the body.
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

/** Bytes that follow the raw transaction in a fact without notes. */
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

/** The fact of a proof. Key: the txid, the height (32 bits, big-endian) and the root. Body: the merkle path (BUMP, BRC-74). */
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

/** Height and root from the key of a proof. @returns The root in display order. */
export function proofPlace(key: Uint8Array): { height: number; root: Uint8Array } {
  return { height: readUint32(key, HASH_BYTES), root: key.subarray(HASH_BYTES + LENGTH_BYTES) }
}

export function proofOf({ height, root, merkle_path }: Row): Proof {
  return { height, root: toHex(root), merklePath: merkle_path }
}

/** SQL for the root within the key of a proof. */
export const PROOF_ROOT = `substr(log.key, ${HASH_BYTES + LENGTH_BYTES + 1})`

/** The fact of a body that is not contiguous in its transaction. Key: its SHA-256. */
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
