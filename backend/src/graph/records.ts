import type { Outpoint } from '../protocol/outpoint.js'

/** A merkle path (BUMP, BRC-74) that proves one transaction, and the block that it leads to. */
export interface Proof extends Block {
  merklePath: Uint8Array
}

/** A block as proofs know it: by its height, and the merkle root (hex, as shown) that its header must have. */
export interface Block {
  height: number
  root: string
}

/** A block as proofs know it: by its height, and the merkle root (hex, as shown) that its header must have. */
export interface Block {
  height: number
  root: string
}

/** A transaction as it is kept: once, whatever spends it. No proof: not mined, or not known to be. */
export interface TransactionRecord {
  txid: string
  raw: Uint8Array
  proof?: Proof
}

/** `spender` is the txid of a transaction that has `outpoint` among its inputs. */
export interface SpendRecord {
  outpoint: Outpoint
  spender: string
  /** The value of the spent output, where it is known. */
  satoshis?: number
}

/** What an output shows as content: enough to answer with headers before any byte is read. */
export interface ContentSummary {
  /** SHA-256 of the body, hex: the key of its pieces. */
  sha256: string
  /** As inscribed: a stranger's text. */
  contentType: string
  /** Length of the body in bytes. */
  length: number
}

/** An output that `tm_ordinals` admitted. */
export interface OutputRecord {
  outpoint: Outpoint
  satoshis: number
  content?: ContentSummary
  /** The public key hash, in hex, where the lock is P2PKH. */
  owner?: string
  /** What the envelope names as its parent. */
  parent?: Outpoint
  /** Bytes of its own MAP, as a {@link MapRecord} has it. */
  mapLength?: number
  /** The 1-sat coin that this output received by the ordinal arithmetic (BRC-159), where that is known. */
  previous?: Outpoint
  /**
   * Set where the arithmetic lacks a value, that of a coin whose transaction has not come yet: with this it is not known
   * whether there is a `previous`. A store settles it when it holds what is missing.
   */
  unsettled?: true
  /**
   * Set where no topic admitted the output: a 1-sat coin in front of an ordinal, kept so that it is known where the
   * lineage starts. It is part of no answer.
   */
  carrier?: true
}

/** A body by its hash. */
export interface ContentRecord {
  sha256: string
  bytes: Uint8Array
}

/** The MAP of one output: its commands, encoded (`map-coder`). */
export interface MapRecord {
  outpoint: Outpoint
  bytes: Uint8Array
}

/** A genuine node of the mine tree. */
export interface NodeRecord {
  outpoint: Outpoint
  domain: string
}

/** The origin of a genuine name. */
export interface NameRecord {
  outpoint: Outpoint
  name: string
}

/** An output that a topic holds. `score` orders them for GASP: milliseconds since 1970. */
export interface AdmissionRecord {
  topic: string
  outpoint: Outpoint
  score: number
}

/** A transaction that counts as done for a topic: a second submission of it is a duplicate. */
export interface AppliedRecord {
  topic: string
  txid: string
}

/**
 * A set of facts for the admitted graph. Facts are only ever added, a fact told twice is told once, and no
 * order of telling matters: that is what makes every hook idempotent.
 */
export interface GraphRecords {
  transactions: TransactionRecord[]
  spends: SpendRecord[]
  outputs: OutputRecord[]
  contents: ContentRecord[]
  maps: MapRecord[]
  nodes: NodeRecord[]
  names: NameRecord[]
  admissions: AdmissionRecord[]
  applied: AppliedRecord[]
}

/** The records given, with every other kind empty. */
export function graphRecords(some: Partial<GraphRecords>): GraphRecords {
  return {
    transactions: [],
    spends: [],
    outputs: [],
    contents: [],
    maps: [],
    nodes: [],
    names: [],
    admissions: [],
    applied: [],
    ...some,
  }
}

/** All of several sets of facts, as one; a list that several sets share counts once. */
export function mergeRecords(sets: GraphRecords[]): GraphRecords {
  return {
    transactions: union(sets.map((set) => set.transactions)),
    spends: union(sets.map((set) => set.spends)),
    outputs: union(sets.map((set) => set.outputs)),
    contents: union(sets.map((set) => set.contents)),
    maps: union(sets.map((set) => set.maps)),
    nodes: union(sets.map((set) => set.nodes)),
    names: union(sets.map((set) => set.names)),
    admissions: union(sets.map((set) => set.admissions)),
    applied: union(sets.map((set) => set.applied)),
  }
}

function union<Fact>(lists: Fact[][]): Fact[] {
  const distinct = [...new Set(lists.filter((list) => list.length > 0))]
  // The very list where there is one, so that the next merge knows it again.
  return distinct.length === 1 ? (distinct[0] ?? []) : distinct.flat()
}
