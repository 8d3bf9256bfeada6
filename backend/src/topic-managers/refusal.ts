/** Why a topic manager admitted nothing of a transaction, or not one of its outputs: a code for counting, a sentence for a person. */
export interface Refusal {
  topic: string
  txid: string
  code: string
  message: string
}

export type OnRefusal = (refusal: Refusal) => void
