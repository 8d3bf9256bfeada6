import type { ChainPosition } from '../protocol/block-rules.js'
import type { Outpoint } from '../protocol/outpoint.js'

/** A merkle path (BUMP, BRC-74) that proves one transaction, and the block that it leads to. */
export interface Proof extends Block {
  merklePath: Uint8Array
}

/** A block in a proof: its height, and the merkle root (hex, as displayed) that its header must have. */
export interface Block {
  height: number
  root: string
}

export function blockText({ height, root }: Block): string {
  return `${height} ${root}`
}

/** A stored transaction. Without a proof it is not mined, or not known to be. */
export interface TransactionRecord {
  txid: string
  raw: Uint8Array
  proof?: Proof
}

/** `spender` is the txid of a transaction that has `outpoint` among its inputs. */
export interface SpendRecord {
  outpoint: Outpoint
  spender: string
  /** The value of the spent output, if it is known. */
  satoshis?: number
}

/** The content of an output: enough for response headers before any byte is read. */
export interface ContentSummary {
  /** SHA-256 of the body, hex: the key of its chunks. */
  sha256: string
  /** As inscribed: untrusted text. */
  contentType: string
  /** Length of the body in bytes. */
  length: number
}

/** An output that `tm_ordinals` admitted. */
export interface OutputRecord {
  outpoint: Outpoint
  satoshis: number
  content?: ContentSummary
  /** The public key hash, in hex, if the lock is P2PKH. */
  owner?: string
  /** The parent that the envelope claims, if the transaction spends the ordinal there (BRC-160). */
  parent?: Outpoint
  /** The parent that the envelope claims otherwise, or while that is unknown. Never set beside `parent`. */
  claimedParent?: Outpoint
  /** The length of its own MAP, encoded (`map-coder`), in bytes. */
  mapLength?: number
  /**
   * Set if no topic admitted the output: a 1-sat coin before an ordinal, stored so that the start of the lineage is known. It
   * is in no answer.
   */
  carrier?: true
}

/** A genuine node of the mine tree. */
export interface NodeRecord {
  outpoint: Outpoint
  domain: string
}

export interface NameRecord {
  outpoint: Outpoint
  name: string
}

/** An output that a topic holds. `score` is its place in the order in which peers are offered outputs (`docs/follow.md`). */
export interface AdmissionRecord {
  topic: string
  outpoint: Outpoint
  score: number
}

/** An ordinal at a step of its life (`docs/spec/protocol.md`, Ordinals). */
export interface OrdinalStep {
  /** The output at this step. */
  output: OutputRecord
  /** Steps from its origin, which is 0. */
  sequence: number
  /** The first output of its lineage with content (BRC-159). */
  origin: Outpoint
  /** The output with the latest content at or before the step. */
  content: OutputRecord
  /** The parent claimed by the latest inscription at or before the step that claims one. */
  parent?: Outpoint
  /** Whether MAP counts at the step. */
  hasMap: boolean
  /** Whether this is its last step, as far as this store sees. */
  tip: boolean
}

/** Special sequences: the end of the transfer chain, and the origin. */
export const TIP = -1
export const ORIGIN = -2

/** The size of a chunk, in bytes: bodies and raw transactions are stored in rows of this size. */
export const CHUNK_BYTES = 256 * 1024

/** A verified submission that no block can hold yet, and the position from which one can. */
export interface HeldSubmission {
  txid: string
  lock: ChainPosition
  beef: Uint8Array
}
