import type { NodeInput, OnRefusal } from '../graph/admission-rules.js'
import { unsoundness } from '../graph/block-rules.js'
import type { GraphStore, TransactionSource } from '../graph/graph-store.js'
import { nativeHash256 } from '../graph/native-hash.js'
import type { AdmittanceInstructions, ServiceMetadata, TopicManager } from '../graph/overlay-interfaces.js'
import { type BeefContents, readBeef } from '../graph/read-beef.js'
import { TOPIC_METADATA } from '../graph/service-metadata.js'
import { storedTransaction } from '../graph/stored-transaction.js'
import { isNodeOutpoint } from '../graph/transaction-records.js'
import type { Deployment } from '../protocol/mint.js'
import { possibleMintInputs } from '../protocol/mint-outputs.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { deploymentOf, PROFILES, TOPICS } from '../protocol/profile.js'
import { outputOf, type TransactionOutput } from '../protocol/transaction.js'
import { admittedNames } from './admission-rules.js'
import { NAMES_DOCUMENTATION } from './documentation.js'

export interface NamesTopicManagerOptions {
  /** The tree to follow; by default `mainnet`'s. An explicit `undefined`: none, admit nothing. */
  deployment?: Deployment | undefined
  /** Where to look up a spent node that is not in the BEEF. */
  store?: Pick<GraphStore, 'transactions'>
  onRefusal?: OnRefusal
}

/**
 * `tm_names`: the genesis output, and outputs 0, 1 and 2 of every transaction that spends a genuine node and
 * passes the checks of a mint (`protocol.md` 7): with a merkle path, any that a block can hold; without one, those whose
 * unlocking script is five minimal pushes. It never admits a transfer, so an admitted output 0 or 1 is a
 * genuine node by induction from genesis, with no state of its own. A Strict overlay (BRC-183).
 */
export default class NamesTopicManager implements TopicManager {
  private readonly deployment: Deployment | undefined
  private readonly store: TransactionSource | undefined
  private readonly onRefusal: OnRefusal

  constructor(options: NamesTopicManagerOptions = {}) {
    this.deployment = 'deployment' in options ? options.deployment : deploymentOf(PROFILES.mainnet)
    this.store = options.store?.transactions
    this.onRefusal = options.onRefusal ?? (() => {})
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
    return {
      outputsToAdmit: await this.outputsToAdmit(contents, previousCoins),
      // History is the product: every spent coin is retained.
      coinsToRetain: previousCoins,
    }
  }

  private async outputsToAdmit(beef: BeefContents, previousCoins: number[]): Promise<number[]> {
    const { deployment } = this
    const { subject } = beef
    const refuse = (code: string, message: string): number[] => {
      this.onRefusal({ topic: TOPICS.names, txid: subject.txid, code, message })
      return []
    }
    const unsound = unsoundness(beef)
    if (unsound !== undefined) return refuse('UNSOUND', `the transaction is invalid: ${unsound}`)
    const nodeInputs: NodeInput[] = []
    for (const input of previousCoins) {
      const outpoint = subject.inputs[input]
      if (outpoint === undefined || deployment === undefined) continue
      if (!isNodeOutpoint(outpoint, deployment.genesis)) continue
      nodeInputs.push({ input, spent: await this.output(outpoint, beef) })
    }
    const isProven = beef.proof(subject.txid) !== undefined
    return admittedNames({
      transaction: subject,
      ...{ nodeInputs, isProven, deployment, onRefusal: this.onRefusal },
    })
  }

  private async output({ txid, vout }: Outpoint, beef: BeefContents): Promise<TransactionOutput | undefined> {
    const source = beef.transaction(txid) ?? (await storedTransaction(txid, this.store))
    return source && outputOf(source, vout)
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
    const needed = possibleMintInputs({ transaction: subject, deployment, hash: nativeHash256 })
      .flatMap((input) => subject.inputs[input] ?? [])
      .filter((spent) => isNodeOutpoint(spent, deployment.genesis))
    if (needed.length === 0) throw new Error('no input can spend a node')
    return needed.map(({ txid, vout }) => ({ txid, outputIndex: vout }))
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
