import { LRUCache } from 'lru-cache'
import type { AdmissionRules, OnRefusal } from '../graph/admission-rules.js'
import { nativeHash256 } from '../graph/native-hash.js'
import type {
  AdmittanceContext,
  AdmittanceInstructions,
  ServiceMetadata,
  SubmitMode,
  TopicManager,
} from '../graph/overlay-interfaces.js'
import { type BeefContents, readBeef } from '../graph/read-beef.js'
import { TOPIC_METADATA } from '../graph/service-metadata.js'
import { decodeSyncHint, type SyncHint } from '../graph/sync-hint.js'
import {
  admissionRules,
  describePolicy,
  isLooseMint,
  noOrdinal,
  type OrdinalsPolicy,
} from '../graph/topic-rules.js'
import { flowOf, holdsOrdinal, OUTPUTS_WITH_ORDINALS, unsoundness } from '../graph/transaction-records.js'
import { encodeBeef } from '../graph/write-beef.js'
import { BeefError } from '../protocol/beef.js'
import { reversed, toHex } from '../protocol/bytes.js'
import { NOT_STRICT } from '../protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
import { firstOutputs, outputOf, type TransactionView } from '../protocol/transaction.js'
import {
  asksForInputs,
  coinsToRetain,
  hostRules,
  type IndexReader,
  ifAvailable,
  sharedIndex,
  syncedBeefs,
  unlessOtherTree,
  withSources,
} from '../read/host-index.js'
import { ORDINALS_DOCUMENTATION } from './documentation.js'

export interface OrdinalsTopicManagerOptions {
  /** The index of the host; by default, that of the lookup services of this process, once there is one. */
  store?: IndexReader
  /** What this host admits; by default everything. */
  policy?: OrdinalsPolicy
  onRefusal?: OnRefusal
}

interface NeededInput {
  txid: string
  outputIndex: number
}

/** How many synced transactions are remembered until the engine asks which inputs they need. */
const MOST_ASKED = 10_000

/**
 * `tm_ordinals`: every output with content (of any value), every 1-sat output with MAP, and every 1-sat output
 * that receives an ordinal already admitted (BRC-159); of these, those that the host's policy admits. A Federated
 * overlay (BRC-183): each host its own collection.
 *
 * Over an index, it also has the engine keep the 1-sat outputs that may receive an ordinal which is not known yet. They are in
 * no answer until the index finds that they do.
 */
export default class OrdinalsTopicManager implements TopicManager {
  private readonly store: IndexReader | undefined
  private readonly policy: OrdinalsPolicy
  private readonly rules: AdmissionRules
  private readonly onRefusal: OnRefusal
  /** The inputs that peers have to send, for the transactions that engines asked about last, by txid. */
  private readonly asked = new LRUCache<string, NeededInput[]>({
    maxSize: MOST_ASKED,
    sizeCalculation: () => 1,
  })

  /** @throws GeneralError `BAD_POLICY` if the policy is invalid. */
  constructor(options: OrdinalsTopicManagerOptions = {}) {
    this.store = options.store
    this.policy = options.policy ?? {}
    this.rules = admissionRules({ deployment: undefined, policy: this.policy })
    this.onRefusal = options.onRefusal ?? (() => {})
    if (this.store !== undefined && options.policy !== undefined)
      hostRules(this.store).policy = options.policy
  }

  private get index(): IndexReader | undefined {
    const { store = sharedIndex() } = this
    if (store !== undefined) hostRules(store).policy ??= this.policy
    return store
  }

  /**
   * @param previousCoins The inputs that spend outputs which this topic has admitted.
   * @param offChainValues With `historical-tx`, a peer's hint about the transaction (`sync-hint.ts`).
   * @param mode With `historical-tx`, an engine asks whether a peer has to send the inputs.
   * @param context With `dryRun`, nothing is remembered or reported: an engine asks as often as it likes.
   * @throws BeefError if the BEEF cannot be read.
   */
  async identifyAdmissibleOutputs(
    beef: number[] | Uint8Array,
    previousCoins: number[],
    offChainValues?: number[],
    mode?: SubmitMode,
    { dryRun: isDry = false }: AdmittanceContext = {},
  ): Promise<AdmittanceInstructions> {
    const received = readBeef(beef)
    const { subject } = received
    const onRefusal: OnRefusal = isDry ? () => {} : this.onRefusal
    const retained = coinsToRetain(received, { previousCoins, mode, mayAdmit })
    const unsound = unsoundness(received) ?? this.looseness(received)
    if (unsound !== undefined) {
      const message = `the transaction is invalid: ${unsound}`
      onRefusal({ topic: TOPICS.ordinals, txid: subject.txid, code: 'UNSOUND', message })
      return { outputsToAdmit: [], coinsToRetain: retained }
    }
    // Before the first await: lookup services may be called about spends meanwhile.
    const isAsking = asksForInputs(received, mode)
    if (!isDry && isAsking) syncedBeefs.set(subject.txid, received)
    else if (!isDry) this.index?.submissions?.see(received, mode)
    if (isAsking && (await this.isAskedFor(subject, { offChainValues, isDry })))
      return { outputsToAdmit: [], coinsToRetain: retained }
    const contents = withSources(received)
    // A transaction that a minetree peer sent is complete; the index decides about it later.
    const isSent = this.asked.has(subject.txid)
    // A dry run of a whole graph comes with the coins that the run itself has found so far, and without their transactions.
    const isDecided = isAsking && !isSent && !(isDry && previousCoins.length > 0)
    const found = new Set(ownOutputs(subject))
    const receiving = (): Promise<number[]> =>
      this.receiving(contents, { previousCoins, isDecided, onRefusal })
    const about = { topic: TOPICS.ordinals, txid: subject.txid, onRefusal }
    for (const vout of await unlessOtherTree(receiving, about)) found.add(vout)
    const sorted = [...found].sort((a, b) => a - b)
    const admitted = sorted.filter((vout) => this.rules.permits(subject, vout, onRefusal))
    if (found.size === 0) onRefusal(noOrdinal(subject))
    return { outputsToAdmit: admitted, coinsToRetain: retained }
  }

  /** Why an unmined mint may not be stored: not every node accepts how it is written. */
  private looseness(beef: BeefContents): string | undefined {
    if (beef.proof(beef.subject.txid) !== undefined) return undefined
    const { index } = this
    const deployment = index && hostRules(index).deployment
    return isLooseMint(beef.subject, { deployment, sources: beef }) ? NOT_STRICT : undefined
  }

  /** The outputs that receive an admitted ordinal by the ordinal arithmetic, or may do so. */
  private async receiving(
    beef: BeefContents,
    {
      previousCoins,
      isDecided,
      onRefusal,
    }: { previousCoins: number[]; isDecided: boolean; onRefusal: OnRefusal },
  ): Promise<number[]> {
    const { index } = this
    if (index === undefined && previousCoins.length === 0) return []
    const { txid, inputs } = beef.subject
    const { inputValues, predecessors } =
      (await ifAvailable(index, () => flowOf(beef, index?.transactions), undefined)) ??
      // On a copy, as the flow of each BEEF is computed once.
      (await flowOf({ ...beef }, undefined))
    const mayReceive =
      index !== undefined && !isDecided
        ? predecessors.flatMap(({ kind }, vout) => (kind === 'none' ? [] : [vout])).slice(0, MOST_UNDECIDED)
        : []
    const held = [...previousCoins, ...(await this.heldInputs(beef, inputValues))]
    const ordinals = new Set(held.filter((input) => inputValues[input] === 1))
    const unknown = inputValues.indexOf(undefined)
    const lost = (mayReceive.length > 0 ? [] : previousCoins)
      .filter((input) => unknown !== -1 && input >= unknown)
      .map((input) => inputs[input])
    for (const coin of lost.filter((each) => each !== undefined)) {
      onRefusal({
        topic: TOPICS.ordinals,
        txid,
        code: 'UNKNOWN_VALUES',
        message: `the value of input ${unknown} is unknown, so the ordinal of ${formatOutpoint(coin)} cannot be placed`,
      })
    }
    const received = predecessors.flatMap((predecessor, vout) =>
      predecessor.kind === 'input' && ordinals.has(predecessor.input) ? [vout] : [],
    )
    return [...received, ...mayReceive]
  }

  /** The inputs that spend an ordinal of the index: an engine does not always say which it has admitted. */
  private async heldInputs(beef: BeefContents, values: (number | undefined)[]): Promise<number[]> {
    const held: number[] = []
    for (const [input, spent] of beef.subject.inputs.slice(0, MOST_LOOKED_UP).entries())
      if (values[input] === 1 && (await this.isHeld(spent))) held.push(input)
    return held
  }

  private async isHeld({ txid, vout }: Outpoint): Promise<boolean> {
    const { index } = this
    const read = (): boolean => index?.ordinals.output({ txid, vout }) !== undefined
    return index !== undefined && (await ifAvailable(index, read, false))
  }

  /**
   * Whether the engine has to ask the peer for ordinals first. Keeps the coins of a hint; a dry run, which must not, makes the
   * engine ask for the needed inputs, with the hint again.
   */
  private async isAskedFor(
    subject: TransactionView,
    { offChainValues, isDry }: { offChainValues: number[] | undefined; isDry: boolean },
  ): Promise<boolean> {
    const hint = decodeSyncHint(offChainValues)
    if (hint === undefined || this.index === undefined) return false
    if (!isDry) return (await this.ask(subject, hint)).length > 0
    return hint.coins.length > 0 || (await this.missing(subject, hint)).length > 0
  }

  /** Remembers a hint. Returns the inputs that the peer has to send. */
  private async ask(subject: TransactionView, hint: SyncHint): Promise<NeededInput[]> {
    for (const coin of hint.coins) this.addCoin(subject, coin)
    const missing = await this.missing(subject, hint)
    this.asked.set(subject.txid, missing)
    return missing
  }

  private async missing({ inputs }: TransactionView, hint: SyncHint): Promise<NeededInput[]> {
    const missing: NeededInput[] = []
    for (const input of hint.inputs.flatMap((each) => inputs[each] ?? []))
      if (!(await this.isHeld(input))) missing.push({ txid: input.txid, outputIndex: input.vout })
    return missing
  }

  /** Keeps a coin that the transaction spends, which names it by its hash; anything else that a peer sends is dropped. */
  private addCoin({ inputs }: TransactionView, coin: Uint8Array): void {
    const txid = toHex(reversed(nativeHash256(coin)))
    if (!inputs.some((input) => input.txid === txid)) return
    try {
      syncedBeefs.set(txid, readBeef(encodeBeef([{ raw: coin }])))
    } catch (error) {
      // The hash is right, so the bytes are those of a transaction that our parser refuses.
      if (!(error instanceof BeefError)) throw error
    }
  }

  /**
   * The inputs that a peer has to send before the transaction can be judged. If the peer's hint says what it serves (`sync-hint.ts`),
   * those of these that this host lacks. Otherwise those that place the 1-sat outputs or carry their ordinals: up to the one that
   * covers the last such output, each counted as one satoshi at least. A host asks for all of them, and gives up if one is missing.
   *
   * @param offChainValues The peer's hint, from an engine that asked in a dry run.
   * @throws Error if no output can be an ordinal.
   */
  async identifyNeededInputs(beef: number[] | Uint8Array, offChainValues?: number[]): Promise<NeededInput[]> {
    const { subject } = readBeef(beef)
    const hint = decodeSyncHint(offChainValues)
    if (hint !== undefined && this.index !== undefined) return await this.ask(subject, hint)
    const asked = this.asked.get(subject.txid)
    if (asked !== undefined) return asked
    const own = new Set(ownOutputs(subject))
    const outputs = firstOutputs(subject, OUTPUTS_WITH_ORDINALS)
    const isPossible = (_: unknown, vout: number): boolean =>
      (own.has(vout) || outputs[vout]?.satoshis === 1) && this.rules.permits(subject, vout)
    const last = outputs.findLastIndex(isPossible)
    if (last === -1) throw new Error('no output can be an ordinal that this host accepts')
    const place = outputs.slice(0, last).reduce((sum, { satoshis }) => sum + satoshis, 0)
    return subject.inputs.slice(0, place + 1).map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  abortAdmissibleOutputs(beef: number[] | Uint8Array): void {
    this.index?.submissions?.refuse(readBeef(beef).subject.txid)
  }

  async getDocumentation(): Promise<string> {
    return ORDINALS_DOCUMENTATION + describePolicy(this.policy)
  }

  async getMetaData(): Promise<ServiceMetadata> {
    return TOPIC_METADATA.ordinals
  }
}

/** How many outputs of a transaction an engine keeps because they may receive an ordinal. */
const MOST_UNDECIDED = 100

/** How many inputs are looked up in the index. */
const MOST_LOOKED_UP = 1000

function mayAdmit(transaction: TransactionView, vout: number): boolean {
  const output = outputOf(transaction, vout)
  return output !== undefined && (output.satoshis === 1 || holdsOrdinal(output))
}

/** Outputs that are admitted for their own content, or MAP in one satoshi. */
function ownOutputs(transaction: TransactionView): number[] {
  return firstOutputs(transaction, OUTPUTS_WITH_ORDINALS).flatMap((output, vout) =>
    holdsOrdinal(output) ? [vout] : [],
  )
}
