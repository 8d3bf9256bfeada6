import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import { type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { atomicOf, beefOf, FakeChain, type FakeTransaction } from '../protocol/fake-chain.js'

/** When a transaction is known to be mined: in its own BEEF, only in those of its descendants, or in none. */
export type Mined = 'at once' | 'later' | 'never'

/** What the engine tells a lookup service. */
export type Notice = { admitted: OutputAdmittedByTopic } | { spent: OutputSpent }

interface Step {
  transaction: FakeTransaction
  mined: Mined
}

/**
 * Transactions submitted one after another to both topics, and the notices that an engine gives of them in its whole-tx
 * mode: BEEF as the SDK writes it, which stops at the first proven transaction.
 */
export class History {
  readonly chain = new FakeChain()
  /** In the order in which an engine would send them. */
  readonly notices: Notice[] = []
  private readonly steps = new Map<string, Step>()
  /** What each topic holds, by outpoint. */
  private readonly held = { [TOPICS.names]: new Set<string>(), [TOPICS.ordinals]: new Set<string>() }
  private readonly managers = {
    [TOPICS.names]: new NamesTopicManager({ deployment: this.chain.deployment }),
    [TOPICS.ordinals]: new OrdinalsTopicManager(),
  }

  /** A transaction that is known to later ones, but that nobody submits. */
  know(transaction: FakeTransaction): FakeTransaction {
    this.steps.set(transaction.txid, { transaction, mined: 'at once' })
    return transaction
  }

  /** Submits a transaction to both topics. */
  async submit(transaction: FakeTransaction, mined: Mined = 'at once'): Promise<FakeTransaction> {
    const { inputs } = transaction.transaction
    const sources = [...new Set(inputs.map(({ txid }) => txid))].flatMap((txid) => this.known(txid))
    this.steps.set(transaction.txid, { transaction, mined })
    const atomicBEEF = Array.from(this.beefOf(transaction))
    for (const topic of [TOPICS.names, TOPICS.ordinals]) {
      const held = this.held[topic]
      const previousCoins = inputs.flatMap(({ txid, vout }, i) => (held.has(`${txid}_${vout}`) ? [i] : []))
      const beef = beefOf(transaction, { with: sources })
      const { outputsToAdmit } = await this.managers[topic].identifyAdmissibleOutputs(beef, previousCoins)
      for (const coin of previousCoins.flatMap((i) => inputs[i] ?? [])) {
        const { txid, vout: outputIndex } = coin
        this.notices.push({
          spent: { mode: 'whole-tx', topic, txid, outputIndex, spendingAtomicBEEF: atomicBEEF },
        })
      }
      for (const outputIndex of outputsToAdmit) {
        held.add(transaction.outpoint(outputIndex))
        this.notices.push({ admitted: { mode: 'whole-tx', topic, outputIndex, atomicBEEF } })
      }
    }
    return transaction
  }

  /** The outpoints that `tm_ordinals` holds, in the order of their admission. */
  get ordinals(): Outpoint[] {
    return [...this.held[TOPICS.ordinals]].map(parseOutpoint)
  }

  /** All that were submitted, and what they spend, parents first. */
  get transactions(): FakeTransaction[] {
    return [...this.steps.values()].map(({ transaction }) => transaction)
  }

  private known(txid: string): FakeTransaction[] {
    const step = this.steps.get(txid)
    return step === undefined ? [] : [step.transaction]
  }

  private beefOf(subject: FakeTransaction): Uint8Array {
    const proven = this.steps.get(subject.txid)?.mined === 'at once'
    const ancestors = new Map<string, FakeTransaction>()
    const visit = (transaction: FakeTransaction): void => {
      for (const { txid } of transaction.transaction.inputs) {
        const step = ancestors.has(txid) ? undefined : this.steps.get(txid)
        if (step === undefined) continue
        if (step.mined === 'never') visit(step.transaction)
        ancestors.set(txid, step.transaction)
      }
    }
    if (!proven) visit(subject)
    const unproven = [...ancestors.values()].filter(({ txid }) => this.steps.get(txid)?.mined === 'never')
    const beef = beefOf(subject, { proven, with: [...ancestors.values()], unproven })
    return atomicOf(subject.txid, beef)
  }
}
