import type { TopicManager } from '@bsv/overlay'
import type { AdmittanceInstructions } from '@bsv/sdk'
import type { TransactionReader } from '../graph/graph-store.js'
import { isNodeOutpoint } from '../graph/names-records.js'
import { nativeHash256 } from '../graph/native-hash.js'
import { type BeefContents, readBeef } from '../graph/read-beef.js'
import { unsoundness } from '../graph/soundness.js'
import { storedTransaction } from '../graph/stored-transaction.js'
import { decodeMineNode, isName, MineNodeError } from '../protocol/mine-node.js'
import { type Deployment, MintError } from '../protocol/mint.js'
import { followMint } from '../protocol/mint-outputs.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { deploymentOf, PROFILES, TOPICS } from '../protocol/profile.js'
import type { TransactionView } from '../protocol/transaction.js'
import { runBudget } from '../protocol/unlocking-run.js'
import { NAMES_DOCUMENTATION } from './names-documentation.js'
import type { OnRefusal } from './refusal.js'

export interface NamesTopicManagerOptions {
  /** Which tree to follow; `mainnet`'s where nothing is given. `undefined` given on purpose: none, admit nothing. */
  deployment?: Deployment | undefined
  /** Where to find a spent node that did not come in the BEEF. */
  store?: TransactionReader
  onRefusal?: OnRefusal
}

/**
 * `tm_names`: the genesis output, and outputs 0, 1 and 2 of every transaction that spends a genuine node and
 * passes the checks of a mint (`protocol.md` 7). It never admits a transfer, so an admitted output 0 or 1 is a
 * genuine node by induction from genesis, with no state of its own. A Strict overlay (BRC-183).
 */
export default class NamesTopicManager implements TopicManager {
  private readonly deployment: Deployment | undefined
  private readonly store: TransactionReader | undefined
  private readonly onRefusal: OnRefusal

  constructor(options: NamesTopicManagerOptions = {}) {
    this.deployment = 'deployment' in options ? options.deployment : deploymentOf(PROFILES.mainnet)
    this.store = options.store
    this.onRefusal = options.onRefusal ?? (() => {})
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
    return {
      outputsToAdmit: await this.outputsToAdmit(contents, previousCoins),
      // History is the product: every spent coin stays.
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
    if (unsound !== undefined) return refuse('UNSOUND', `no block can hold this: ${unsound}`)
    if (deployment === undefined) return refuse('NO_GENESIS', 'this host follows no tree: no genesis is set')
    if (subject.txid === deployment.genesis.txid) {
      const { vout } = deployment.genesis
      if (isNode(subject, vout)) return [vout]
      return refuse('NOT_A_NODE', 'the genesis outpoint that is set is no node of a mine tree')
    }
    const nodeInputs = previousCoins.filter((input) => {
      const spent = subject.inputs[input]
      return spent !== undefined && isNodeOutpoint(spent, deployment.genesis)
    })
    const [input] = nodeInputs
    if (input === undefined)
      return refuse('NO_NODE_SPENT', 'the transaction spends no node of the tree that is known here')
    // The covenant restates one node in output 0; a second one spent beside it would be lost to the tree.
    if (nodeInputs.length > 1)
      return refuse('MORE_THAN_ONE_NODE', 'the transaction spends more than one node')
    try {
      const mint = await this.checked(beef, input, deployment)
      if (!isName(mint.name)) return refuse('NAME_TOO_LONG', 'the name is longer than 255 characters')
      return [0, 1, 2]
    } catch (error) {
      if (error instanceof MintError) return refuse(error.code, error.message)
      throw error
    }
  }

  private async checked(
    beef: BeefContents,
    input: number,
    deployment: Deployment,
  ): Promise<{ name: string }> {
    const transaction = beef.subject
    const spent = transaction.inputs[input]
    const source: TransactionView | undefined =
      spent && (beef.transaction(spent.txid) ?? (await storedTransaction(spent.txid, this.store)))
    const output = spent && source?.outputs[spent.vout]
    return followMint({
      transaction,
      input,
      deployment,
      hash: nativeHash256,
      ...(output && { spent: output }),
    })
  }

  /**
   * The spent output whose lineage decides whether the subject is a mint: the first input, as the covenant's
   * own transactions have it, and any other whose unlocking script could be a mint's.
   *
   * @throws Error where nothing in the transaction can belong to the tree.
   */
  async identifyNeededInputs(beef: number[] | Uint8Array): Promise<{ txid: string; outputIndex: number }[]> {
    const { subject } = readBeef(beef)
    const { deployment } = this
    if (deployment === undefined) throw new Error('this host follows no tree: no genesis is set')
    if (subject.txid === deployment.genesis.txid) return []
    const leavesNodes = isNode(subject, 0) && isNode(subject, 1)
    // One budget for all inputs: each may have code to run, and nothing is known yet of what any of them spends.
    const asked = { transaction: subject, deployment, budget: runBudget() }
    const needed = subject.inputs
      .map((spent, input) => ({ spent, input }))
      .filter(
        ({ spent, input }) =>
          leavesNodes && isNodeOutpoint(spent, deployment.genesis) && looksLikeMint({ ...asked, input }),
      )
    if (needed.length === 0) throw new Error('no input can be the spend of a node')
    return needed.map(({ spent }) => ({ txid: spent.txid, outputIndex: spent.vout }))
  }

  async getDocumentation(): Promise<string> {
    const tree = this.deployment
      ? `This host follows the tree from genesis \`${formatOutpoint(this.deployment.genesis)}\` at difficulty ${this.deployment.difficulty}.`
      : 'This host follows no tree yet: no genesis is set.'
    return `${NAMES_DOCUMENTATION}\n${tree}\n`
  }

  async getMetaData(): Promise<{ name: string; shortDescription: string }> {
    return {
      name: TOPICS.names,
      shortDescription: 'The mine tree: names found by proof of work, from genesis.',
    }
  }
}

function isNode(transaction: TransactionView, vout: number): boolean {
  const output = transaction.outputs[vout]
  if (output === undefined) return false
  try {
    decodeMineNode(output.lockingScript)
    return true
  } catch (error) {
    if (error instanceof MineNodeError) return false
    throw error
  }
}

/** Whether the input passes every check of a mint that needs no lineage, by its own preimage. */
function looksLikeMint(check: Parameters<typeof followMint>[0]): boolean {
  try {
    followMint({ ...check, hash: nativeHash256 })
    return true
  } catch (error) {
    if (error instanceof MintError) return false
    throw error
  }
}
