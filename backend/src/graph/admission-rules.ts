import type { Outpoint } from '../protocol/outpoint.js'
import type { TransactionOutput, TransactionView } from '../protocol/transaction.js'

/** An input that spends a genuine node of the mine tree, and the output that it spends. */
export interface NodeInput {
  input: number
  spent: Pick<TransactionOutput, 'satoshis' | 'lockingScript'> | undefined
}

/**
 * What the topics of a host admit, as functions of bytes. From them a store derives the admissions of all its transactions, in
 * whatever order they came (`docs/idea.md`): an output is a node, a name or an ordinal because of what its transaction spends,
 * and is judged again when more is known about that.
 */
export interface AdmissionRules {
  /**
   * The root of the tree to follow; if undefined, `tm_names` admits nothing. It is genuine before its transaction is stored: engines
   * offer their peers only unspent outputs, so a host may never get it.
   */
  genesis: Outpoint | undefined
  /**
   * The outputs that `tm_names` admits: those of the genesis, or of a mint of the node that is spent.
   *
   * @param options.isPurged Whether the operator has removed content from the transaction.
   */
  names(
    transaction: TransactionView,
    nodeInputs: NodeInput[],
    options?: { isPurged?: boolean | undefined; onRefusal?: OnRefusal },
  ): number[]
  /** Whether `tm_ordinals` admits an output that has content or MAP, or receives an admitted ordinal. */
  permits(transaction: TransactionView, vout: number, onRefusal?: OnRefusal): boolean
  /** The outputs that other topics of a host admit, by the bytes of the transaction alone. */
  others?: ((transaction: TransactionView) => { topic: string; vout: number }[]) | undefined
}

/** Why a topic admitted nothing of a transaction, or not one of its outputs: a code to count, a sentence for a person. */
export interface TopicRefusal {
  topic: string
  txid: string
  code: string
  message: string
}

export type OnRefusal = (refusal: TopicRefusal) => void

/** Limits for transactions that nothing admitted depends on. */
export interface PendingLimits {
  maxTransactions: number
  /** Total of their raw bytes. */
  maxBytes: number
}

/** How a store derives admissions. */
export interface AdmissionOptions {
  rules: AdmissionRules
  pending: PendingLimits
  /** The same for submissions that wait because they lost a conflict; by default 500 of 100 MiB in total. */
  waiting?: PendingLimits
  /** How many transactions may be built on an unproven one of a submission; by default 5,000. */
  unprovenDescendants?: number
}
