import type { OnRefusal } from '../graph/admission-rules.js'
import { unsoundness } from '../graph/block-rules.js'
import type { GraphStore, TransactionSource } from '../graph/graph-store.js'
import type { AdmittanceInstructions, ServiceMetadata, TopicManager } from '../graph/overlay-interfaces.js'
import { type BeefContents, readBeef, type SeenBeefs, seenBeefs } from '../graph/read-beef.js'
import { TOPIC_METADATA } from '../graph/service-metadata.js'
import { flowOf, holdsOrdinal, OUTPUTS_WITH_ORDINALS } from '../graph/transaction-records.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
import { firstOutputs, type TransactionView } from '../protocol/transaction.js'
import { ORDINALS_DOCUMENTATION } from './documentation.js'
import { describePolicy, type OrdinalsPolicy, type PolicyCheck, policyCheck } from './ordinals-policy.js'

export interface OrdinalsTopicManagerOptions {
  /** Where to look up the value of a spent coin that is not in the BEEF. */
  store?: Pick<GraphStore, 'transactions'>
  /** What this host admits; by default everything. */
  policy?: OrdinalsPolicy
  onRefusal?: OnRefusal
  /**
   * Where lookup services find the complete BEEF of a transaction; by default, the one of this process. An explicit
   * `undefined`: nowhere, the host passes it on itself.
   */
  seen?: SeenBeefs | undefined
}

/**
 * `tm_ordinals`: every output with content (of any value), every 1-sat output with MAP, and every 1-sat output
 * that receives an ordinal already admitted (BRC-159); of these, those that the host's policy admits. A Federated
 * overlay (BRC-183): each host its own collection.
 */
export default class OrdinalsTopicManager implements TopicManager {
  private readonly store: TransactionSource | undefined
  private readonly policy: OrdinalsPolicy
  private readonly refusalOf: PolicyCheck
  private readonly onRefusal: OnRefusal
  private readonly seen: SeenBeefs | undefined

  /** @throws PolicyError if the policy is invalid. */
  constructor(options: OrdinalsTopicManagerOptions = {}) {
    this.store = options.store?.transactions
    this.policy = options.policy ?? {}
    this.refusalOf = policyCheck(this.policy)
    this.onRefusal = options.onRefusal ?? (() => {})
    this.seen = 'seen' in options ? options.seen : seenBeefs
  }

  /**
   * @param previousCoins The inputs that spend what this topic has admitted.
   * @throws BeefError if the BEEF cannot be read.
   */
  async identifyAdmissibleOutputs(
    beef: number[] | Uint8Array,
    previousCoins: number[],
  ): Promise<AdmittanceInstructions> {
    const contents = readBeef(beef)
    const { subject } = contents
    const unsound = unsoundness(contents)
    if (unsound !== undefined) {
      const message = `the transaction is invalid: ${unsound}`
      this.onRefusal({ topic: TOPICS.ordinals, txid: subject.txid, code: 'UNSOUND', message })
      return { outputsToAdmit: [], coinsToRetain: previousCoins }
    }
    // Before the first await: lookup services may be called about spends meanwhile.
    this.seen?.add(beef)
    const found = new Set(ownOutputs(subject))
    for (const vout of await this.received(contents, previousCoins)) found.add(vout)
    const admitted = this.permitted(subject, found)
    if (admitted.length === 0 && previousCoins.length === 0) this.seen?.forget(subject.txid)
    if (found.size === 0) {
      this.onRefusal({
        topic: TOPICS.ordinals,
        txid: subject.txid,
        code: 'NO_ORDINAL',
        message: 'no output has content or MAP, or receives an admitted ordinal',
      })
    }
    return { outputsToAdmit: admitted, coinsToRetain: previousCoins }
  }

  /** The outputs that the policy admits, in order; each of the others is reported. */
  private permitted(transaction: TransactionView, outputs: Iterable<number>): number[] {
    const { txid } = transaction
    return [...outputs]
      .sort((a, b) => a - b)
      .filter((vout) => {
        const refusal = this.refusalOf(transaction, vout)
        if (refusal !== undefined) this.onRefusal({ topic: TOPICS.ordinals, txid, ...refusal })
        return refusal === undefined
      })
  }

  /** The outputs that receive an admitted ordinal by the ordinal arithmetic. */
  private async received(beef: BeefContents, previousCoins: number[]): Promise<number[]> {
    if (previousCoins.length === 0) return []
    const { txid, inputs } = beef.subject
    const { inputValues, predecessors } = await flowOf(beef, this.store)
    const ordinals = new Set(previousCoins.filter((input) => inputValues[input] === 1))
    const unknown = inputValues.indexOf(undefined)
    const lost = previousCoins
      .filter((input) => unknown !== -1 && input >= unknown)
      .map((input) => inputs[input])
    for (const coin of lost.filter((each) => each !== undefined)) {
      this.onRefusal({
        topic: TOPICS.ordinals,
        txid,
        code: 'UNKNOWN_VALUES',
        message: `the value of input ${unknown} is unknown, so the ordinal of ${formatOutpoint(coin)} cannot be placed`,
      })
    }
    return predecessors.flatMap((predecessor, vout) =>
      predecessor.kind === 'input' && ordinals.has(predecessor.input) ? [vout] : [],
    )
  }

  /**
   * Every input: any of them may carry an ordinal, and each one's value places the ones after it.
   *
   * @throws Error if no output can be an ordinal.
   */
  async identifyNeededInputs(beef: number[] | Uint8Array): Promise<{ txid: string; outputIndex: number }[]> {
    const { subject } = readBeef(beef)
    const candidates = firstOutputs(subject, OUTPUTS_WITH_ORDINALS).flatMap((output, vout) =>
      output.satoshis === 1 ? [vout] : [],
    )
    const possible = [...ownOutputs(subject), ...candidates]
    if (!possible.some((vout) => this.refusalOf(subject, vout) === undefined)) {
      throw new Error('no output can be an ordinal that this host accepts')
    }
    return subject.inputs.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  async getDocumentation(): Promise<string> {
    return ORDINALS_DOCUMENTATION + describePolicy(this.policy)
  }

  async getMetaData(): Promise<ServiceMetadata> {
    return TOPIC_METADATA.ordinals
  }
}

/** Outputs that are admitted for their own content, or MAP in one satoshi. */
function ownOutputs(transaction: TransactionView): number[] {
  return firstOutputs(transaction, OUTPUTS_WITH_ORDINALS).flatMap((output, vout) =>
    holdsOrdinal(output) ? [vout] : [],
  )
}
