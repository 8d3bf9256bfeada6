import type { TopicManager } from '@bsv/overlay'
import type { AdmittanceInstructions } from '@bsv/sdk'
import { flowOf, OUTPUTS_WITH_ORDINALS } from '../graph/flow.js'
import type { GraphStore, TransactionSource } from '../graph/graph-store.js'
import { holdsOrdinal } from '../graph/ordinals-records.js'
import { type BeefContents, readBeef } from '../graph/read-beef.js'
import { type SeenBeefs, seenBeefs } from '../graph/seen-beefs.js'
import { unsoundness } from '../graph/soundness.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
import type { TransactionView } from '../protocol/transaction.js'
import { firstOutputs } from '../protocol/transaction.js'
import { ORDINALS_DOCUMENTATION } from './ordinals-documentation.js'
import { describePolicy, type OrdinalsPolicy, type PolicyCheck, policyCheck } from './ordinals-policy.js'
import type { OnRefusal } from './refusal.js'

export interface OrdinalsTopicManagerOptions {
  /** Where to find the value of a spent coin that did not come in the BEEF. */
  store?: Pick<GraphStore, 'transactions'>
  /** What this host takes of all that; everything where nothing is given. */
  policy?: OrdinalsPolicy
  onRefusal?: OnRefusal
  /**
   * Where lookup services find what came with a transaction; those of this process where nothing is given. `undefined` given
   * on purpose: nowhere, the host tells them itself.
   */
  seen?: SeenBeefs | undefined
}

/**
 * `tm_ordinals`: every output with content (of any value), every 1-sat output with MAP, and every 1-sat output
 * that receives an ordinal already admitted (BRC-159); of these, what the host's policy lets through. A Federated
 * overlay (BRC-183): each host its own collection.
 */
export default class OrdinalsTopicManager implements TopicManager {
  private readonly store: TransactionSource | undefined
  private readonly policy: OrdinalsPolicy
  private readonly refusalOf: PolicyCheck
  private readonly onRefusal: OnRefusal
  private readonly seen: SeenBeefs | undefined

  /** @throws PolicyError where the policy cannot be meant. */
  constructor(options: OrdinalsTopicManagerOptions = {}) {
    this.store = options.store?.transactions
    this.policy = options.policy ?? {}
    this.refusalOf = policyCheck(this.policy)
    this.onRefusal = options.onRefusal ?? (() => {})
    this.seen = 'seen' in options ? options.seen : seenBeefs
  }

  /**
   * @param previousCoins The inputs that spend what this topic has admitted.
   * @throws BeefError where the BEEF cannot be read.
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
    // Before anything is waited for: what is spent is told while this is worked out.
    this.seen?.remember(beef)
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

  /** Those of the outputs that the policy lets through, in order; of each other one, why not is told. */
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
   * @throws Error where no output could be an ordinal.
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

  async getMetaData(): Promise<{ name: string; shortDescription: string }> {
    return {
      name: TOPICS.ordinals,
      shortDescription: 'Admits 1-satoshi ordinals and content, and follows their transfers.',
    }
  }
}

/** Outputs that are admitted for what they hold: content, or MAP in one satoshi. */
function ownOutputs(transaction: TransactionView): number[] {
  return firstOutputs(transaction, OUTPUTS_WITH_ORDINALS).flatMap((output, vout) =>
    holdsOrdinal(output) ? [vout] : [],
  )
}
