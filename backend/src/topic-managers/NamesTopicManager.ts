import type { NodeInput, OnRefusal } from '../graph/admission-rules.js'
import type {
  AdmittanceContext,
  AdmittanceInstructions,
  ServiceMetadata,
  SubmitMode,
  TopicManager,
} from '../graph/overlay-interfaces.js'
import { type BeefContents, readBeef } from '../graph/read-beef.js'
import { TOPIC_METADATA } from '../graph/service-metadata.js'
import { storedTransaction } from '../graph/stored-transaction.js'
import { admittedNames, possibleNodeInputs } from '../graph/topic-rules.js'
import { isNodeOutpoint, unsoundness } from '../graph/transaction-records.js'
import type { Deployment } from '../protocol/mint.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { deploymentOf, PROFILES, TOPICS } from '../protocol/profile.js'
import { outputOf, type TransactionOutput, type TransactionView } from '../protocol/transaction.js'
import {
  asksForInputs,
  coinsToRetain,
  hostRules,
  type IndexReader,
  ifAvailable,
  sharedIndex,
  unlessOtherTree,
} from '../read/host-index.js'
import { NAMES_DOCUMENTATION } from './documentation.js'

export interface NamesTopicManagerOptions {
  /** The tree to follow; by default `mainnet`'s. With an explicit `undefined`, nothing is admitted. */
  deployment?: Deployment | undefined
  /** The index of the host; by default, that of the lookup services of this process, once there is one. */
  store?: IndexReader
  onRefusal?: OnRefusal
}

/**
 * `tm_names`: the genesis output, and outputs 0, 1 and 2 of every transaction that spends a genuine node and passes the checks of
 * a mint (`docs/spec/protocol.md`, Mints): with a merkle path, any that a block can hold; without one, those that every node
 * relays, with five minimal pushes. It never admits a transfer, so an admitted output 0 or 1 is a genuine node by induction
 * from genesis, with no state of its own. A Strict overlay (BRC-183).
 *
 * Over an index, it also has the engine keep a mint whose node is not known yet: engines ask once, and answer before they store,
 * so the node may be on its way. Its claim is in no answer until the index finds the node genuine.
 */
export default class NamesTopicManager implements TopicManager {
  private readonly deployment: Deployment | undefined
  private readonly store: IndexReader | undefined
  private readonly onRefusal: OnRefusal

  constructor(options: NamesTopicManagerOptions = {}) {
    this.deployment = 'deployment' in options ? options.deployment : deploymentOf(PROFILES.mainnet)
    this.store = options.store
    this.onRefusal = options.onRefusal ?? (() => {})
    if (this.store !== undefined && this.deployment !== undefined)
      hostRules(this.store).deployment ??= this.deployment
  }

  private get index(): IndexReader | undefined {
    return this.store ?? sharedIndex()
  }

  /**
   * @param previousCoins The inputs that spend outputs which this topic has admitted.
   * @param mode How the transaction came; 0.4.6 does not say.
   * @param context With `dryRun`, nothing is remembered or reported.
   * @throws BeefError if the BEEF cannot be read.
   */
  async identifyAdmissibleOutputs(
    beef: number[] | Uint8Array,
    previousCoins: number[],
    _offChainValues?: number[],
    mode?: SubmitMode,
    { dryRun: isDry = false }: AdmittanceContext = {},
  ): Promise<AdmittanceInstructions> {
    const contents = readBeef(beef)
    // Before the first await: hooks are called for each output, and record one BEEF once.
    const { index } = this
    if (!isDry && !asksForInputs(contents, mode)) index?.submissions?.see(contents, mode)
    const onRefusal: OnRefusal = isDry ? () => {} : this.onRefusal
    const admitted = (): Promise<number[]> => this.outputsToAdmit(contents, { previousCoins, onRefusal })
    const { txid } = contents.subject
    const outputsToAdmit = await unlessOtherTree(admitted, { topic: TOPICS.names, txid, onRefusal })
    const mayAdmit = (spent: TransactionView, vout: number): boolean => this.mayAdmit(spent, vout)
    return { outputsToAdmit, coinsToRetain: coinsToRetain(contents, { previousCoins, mode, mayAdmit }) }
  }

  private async outputsToAdmit(
    beef: BeefContents,
    { previousCoins, onRefusal }: { previousCoins: number[]; onRefusal: OnRefusal },
  ): Promise<number[]> {
    const { deployment, index } = this
    const { subject } = beef
    const refuse = (code: string, message: string): number[] => {
      onRefusal({ topic: TOPICS.names, txid: subject.txid, code, message })
      return []
    }
    const unsound = unsoundness(beef)
    if (unsound !== undefined) return refuse('UNSOUND', `the transaction is invalid: ${unsound}`)
    const isProven = beef.proof(subject.txid) !== undefined
    const judge = (nodeInputs: NodeInput[], onRefusal: OnRefusal): number[] =>
      admittedNames({ transaction: subject, nodeInputs, isProven, deployment, onRefusal })
    const possible = index === undefined ? [] : this.possibleNodes(subject)
    const genuine = await this.genuineAmong(possible, subject)
    const isNode = (input: number): boolean => {
      const outpoint = subject.inputs[input]
      return (
        outpoint !== undefined && deployment !== undefined && isNodeOutpoint(outpoint, deployment.genesis)
      )
    }
    const known: NodeInput[] = []
    for (const input of new Set([...previousCoins.filter(isNode), ...genuine]))
      known.push({ input, spent: await this.spentOutput(input, beef) })
    if (index !== undefined) {
      // The index decides later; here it is enough that it may have been a mint.
      for (const input of possible) {
        const admitted = judge([{ input, spent: await this.spentOutput(input, beef) }], () => {})
        if (admitted.length > 0) return admitted
      }
    }
    return judge(known, onRefusal)
  }

  private mayAdmit(transaction: TransactionView, vout: number): boolean {
    const isGenesis = transaction.txid === this.deployment?.genesis.txid
    return vout <= 2 && (isGenesis || this.possibleNodes(transaction).length > 0)
  }

  /** The inputs that could spend a node, genuine or not. */
  private possibleNodes(transaction: TransactionView): number[] {
    const { deployment } = this
    if (deployment === undefined) return []
    return possibleNodeInputs(deployment)(transaction).filter((input) => {
      const spent = transaction.inputs[input]
      return spent !== undefined && isNodeOutpoint(spent, deployment.genesis)
    })
  }

  /** Those of the inputs that spend a node which the index knows to be genuine. */
  private async genuineAmong(inputs: number[], transaction: TransactionView): Promise<number[]> {
    const { index } = this
    if (index === undefined || inputs.length === 0) return []
    const outpoints = inputs.flatMap((input) => transaction.inputs[input] ?? [])
    const spent = outpoints.map(({ txid, vout }) => ({ txid, vout }))
    const nodes = await ifAvailable(index, () => index.names.genuineNodes(spent), [])
    const genuine = new Set(nodes.map(({ outpoint }) => formatOutpoint(outpoint)))
    return inputs.filter((input) => {
      const spent = transaction.inputs[input]
      return spent !== undefined && genuine.has(formatOutpoint(spent))
    })
  }

  private async spentOutput(input: number, beef: BeefContents): Promise<TransactionOutput | undefined> {
    const { index } = this
    const spent = beef.subject.inputs[input]
    if (spent === undefined) return undefined
    const stored = () => storedTransaction(spent.txid, index?.transactions)
    const source = beef.transaction(spent.txid) ?? (await ifAvailable(index, stored, undefined))
    return source && outputOf(source, spent.vout)
  }

  /**
   * The spent outputs whose lineage decides whether the subject is a mint: those of every input whose unlocking script could
   * be a mint's. Proven or not, as a proof may come with the input.
   *
   * @throws Error if nothing in the transaction can belong to the tree.
   */
  async identifyNeededInputs(beef: number[] | Uint8Array): Promise<{ txid: string; outputIndex: number }[]> {
    const { subject } = readBeef(beef)
    const { deployment } = this
    if (deployment === undefined) throw new Error('this host follows no tree: no genesis is configured')
    if (subject.txid === deployment.genesis.txid) return []
    const needed = this.possibleNodes(subject).flatMap((input) => subject.inputs[input] ?? [])
    if (needed.length === 0) throw new Error('no input can spend a node')
    return needed.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
  }

  abortAdmissibleOutputs(beef: number[] | Uint8Array): void {
    this.index?.submissions?.refuse(readBeef(beef).subject.txid)
  }

  async getDocumentation(): Promise<string> {
    const tree = this.deployment
      ? `This host follows the tree from genesis \`${formatOutpoint(this.deployment.genesis)}\` at difficulty ${this.deployment.difficulty}.`
      : 'This host follows no tree yet: no genesis is configured.'
    return `${NAMES_DOCUMENTATION}\n${tree}\n`
  }

  async getMetaData(): Promise<ServiceMetadata> {
    return TOPIC_METADATA.names
  }
}
