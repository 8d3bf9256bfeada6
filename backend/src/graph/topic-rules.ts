import { GeneralError } from '../protocol/coded-error.js'
import { essenceOf } from '../protocol/media-type.js'
import { isName, mineNodeIn } from '../protocol/mine-node.js'
import {
  type Deployment,
  followMint,
  followUnprovenMint,
  MintError,
  mayUnlockNode,
  possibleMintInputs,
  readMintOutputs,
} from '../protocol/mint.js'
import { isStrictSpend } from '../protocol/mint-unlocking.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
import { outputOf, type TransactionOutput, type TransactionView } from '../protocol/transaction.js'
import type { AdmissionRules, NodeInput, OnRefusal, TopicRefusal } from './admission-rules.js'
import { memoizeByObject } from './memoize-by-object.js'
import { nativeHash256 } from './native-hash.js'
import type { BeefContents } from './read-beef.js'
import { inscriptionOf } from './transaction-records.js'

/**
 * The rules of both topics, for a host that derives admissions from everything that it stores. The topic managers, which an
 * engine asks about one transaction at a time, use the same functions.
 *
 * @throws GeneralError `BAD_POLICY` if the policy is invalid.
 */
export function admissionRules({
  deployment,
  policy = {},
  ...others
}: Pick<AdmissionRules, 'others'> & {
  /** The tree to follow; undefined: none. */
  deployment: Deployment | undefined
  policy?: OrdinalsPolicy | undefined
}): AdmissionRules {
  const refusalOf = policyCheck(policy)
  return {
    ...others,
    genesis: deployment?.genesis,
    // A spend of a node that is neither strict nor proven is never stored (`src/server/writer/submission-rules.ts`). So
    // these rules need not know what is proven, and admission depends on nothing but bytes.
    names: (transaction, nodeInputs, { isPurged, onRefusal = () => {} } = {}) =>
      admittedNames({ transaction, nodeInputs, isProven: true, isPurged, deployment, onRefusal }),
    permits(transaction, vout, onRefusal) {
      const refusal = refusalOf(transaction, vout)
      if (refusal !== undefined) onRefusal?.({ topic: TOPICS.ordinals, txid: transaction.txid, ...refusal })
      return refusal === undefined
    },
  }
}

/**
 * Why `tm_ordinals` admits no output of a transaction.
 *
 * @param unknownInput The first input whose value is unknown, if the transaction spends an admitted ordinal at or after it.
 */
export function noOrdinal({ txid, inputs }: TransactionView, unknownInput?: number): TopicRefusal {
  const refused = { topic: TOPICS.ordinals, txid }
  const unknown = unknownInput === undefined ? undefined : inputs[unknownInput]
  if (unknown === undefined)
    return {
      ...refused,
      code: 'NO_ORDINAL',
      message: 'no output has content or MAP, or receives an admitted ordinal',
    }
  const message = `the value of ${formatOutpoint(unknown)} is unknown, so the ordinals after it cannot be placed`
  return { ...refused, code: 'UNKNOWN_VALUES', message }
}

/** The outputs that `tm_names` admits of a transaction that spends these nodes (`docs/spec/protocol.md`, Mints). */
export function admittedNames({
  transaction,
  nodeInputs,
  isProven,
  isPurged = false,
  deployment,
  onRefusal,
}: {
  transaction: TransactionView
  nodeInputs: NodeInput[]
  /** Whether it is mined. If not, its unlocking script must be one that all nodes judge alike. */
  isProven: boolean
  /** Whether content was removed that the unlocking script and other outputs commit to: then the mint is read from its nodes alone. */
  isPurged?: boolean | undefined
  deployment: Deployment | undefined
  onRefusal: OnRefusal
}): number[] {
  const refuse = (code: string, message: string): number[] => {
    onRefusal({ topic: TOPICS.names, txid: transaction.txid, code, message })
    return []
  }
  if (deployment === undefined)
    return refuse('NO_GENESIS', 'this host follows no tree: no genesis is configured')
  if (transaction.txid === deployment.genesis.txid) {
    const { vout } = deployment.genesis
    const root = outputOf(transaction, vout)
    if (root !== undefined && mineNodeIn(root.lockingScript) !== undefined) return [vout]
    return refuse('NOT_A_NODE', 'the configured genesis outpoint is not a node of a mine tree')
  }
  const [node] = nodeInputs
  if (node === undefined) return refuse('NO_NODE_SPENT', 'the transaction spends no known node of the tree')
  // The covenant restates one node in output 0; a second one spent beside it would be lost to the tree.
  if (nodeInputs.length > 1) return refuse('MORE_THAN_ONE_NODE', 'the transaction spends more than one node')
  const { input, spent } = node
  try {
    const spend = { transaction, input, deployment, hash: nativeHash256, ...(spent && { spent }) }
    const follow = isProven ? followMint : followUnprovenMint
    const mint = isPurged ? readMintOutputs({ ...spend, nodesOnly: true }) : follow(spend)
    if (isName(mint.name)) return [0, 1, 2]
    // The child can have no name, but the restated node can still be mined.
    refuse('NO_NAME', 'the mint claims a name that is longer than 255 characters, or has zero bytes in it')
    return [0]
  } catch (error) {
    if (error instanceof MintError) return refuse(error.code, error.message)
    throw error
  }
}

/** The inputs of a transaction that may spend a node: cached, as both topics ask, and a host before it stores. */
export const possibleNodeInputs = memoizeByObject((deployment: Deployment) =>
  memoizeByObject((transaction: TransactionView) =>
    possibleMintInputs({ transaction, deployment, hash: nativeHash256 }),
  ),
)

/**
 * Whether a transaction spends a node in a way that not every node relays ({@link isStrictSpend}). A block may include such a mint,
 * and then it counts; but nodes disagree about it, so an unproven one is refused before it is stored. Stored transactions can then
 * be judged by their bytes alone.
 *
 * A node is recognised by its script, since a store may learn only later whether it is genuine. A spent output that is not among
 * the sources counts as a node if the transaction reads like a mint of the tree.
 *
 * @param options.deployment The tree; if undefined, that of any node counts, as one may be pinned later.
 * @param options.sources Where its spent outputs are looked up.
 * @param options.others Outpoints known not to be nodes, shared by calls that may ask about the same ones: an output may have
 * megabytes, and thousands may spend it.
 * @param options.ofAnySize Whether it may be larger than nodes relay: interpreters do not disagree about mere size.
 */
export function isLooseMint(
  transaction: TransactionView,
  {
    deployment,
    sources,
    others = new Set(),
    ofAnySize = false,
  }: {
    deployment: Deployment | undefined
    sources?: Pick<BeefContents, 'transaction'>
    others?: Set<string>
    ofAnySize?: boolean
  },
): boolean {
  const unknown = new Set<number>()
  for (const [input, { txid, vout, unlockingScript }] of transaction.inputs.entries()) {
    if (isStrictSpend(transaction, unlockingScript, { ofAnySize })) continue
    const source = sources?.transaction(txid)
    const output = source && outputOf(source, vout)
    if (output === undefined) {
      if (mayUnlockNode(unlockingScript)) unknown.add(input)
      continue
    }
    const outpoint = formatOutpoint({ txid, vout })
    if (others.has(outpoint)) continue
    if (isNodeOf({ output, outpoint, deployment })) return true
    others.add(outpoint)
  }
  if (unknown.size === 0 || deployment === undefined) return false
  return possibleNodeInputs(deployment)(transaction).some((input) => unknown.has(input))
}

function isNodeOf(spent: {
  output: TransactionOutput
  outpoint: string
  deployment: Deployment | undefined
}): boolean {
  const { output, outpoint, deployment } = spent
  const node = mineNodeIn(output.lockingScript)
  if (deployment === undefined) return node !== undefined
  const tree = formatOutpoint(deployment.genesis)
  return outpoint === tree || (node?.genesis !== undefined && formatOutpoint(node.genesis) === tree)
}

/**
 * The policy of a host for its collection of ordinals. Each output is judged by its own content or MAP; one that has neither, as
 * in a pure transfer, is not judged.
 */
export interface OrdinalsPolicy {
  /** The longest body of content, in bytes. */
  maxContentBytes?: number
  /** The content types that are admitted, without parameters: `text/plain`, or `image/*` for every subtype. */
  contentTypes?: string[]
  /**
   * Whether to admit an output that the other rules let through. It may be called several times for one output, and must be
   * deterministic. Content type and length (bytes) are absent if the output has only MAP.
   */
  admit?: (output: PolicyOutput) => boolean
}

export interface PolicyOutput {
  transaction: TransactionView
  vout: number
  /** As inscribed: untrusted text. */
  contentType?: string
  contentLength?: number
}

/** Says why an output may not be admitted; undefined if it may. */
type PolicyCheck = (
  transaction: TransactionView,
  vout: number,
) => Pick<TopicRefusal, 'code' | 'message'> | undefined

/** `image/png` or `image/*`. RFC 9110 5.6.2 allows a star anywhere in a type; here it is only a wildcard. */
const PATTERN = /^[!#$%&'+.^_`|~\w-]+\/(?:\*|[!#$%&'+.^_`|~\w-]+)$/

/** Whether a text is valid in {@link OrdinalsPolicy.contentTypes}. */
export function isContentTypePattern(text: string): boolean {
  return PATTERN.test(text)
}

/** The types of content that a host with these {@link OrdinalsPolicy.contentTypes} accepts. */
export function acceptedTypes(contentTypes: readonly string[]): (contentType: string) => boolean {
  const allowed = new Set(contentTypes.map((type) => type.toLowerCase()))
  return (contentType) => {
    const essence = essenceOf(contentType)
    return allowed.has(essence) || allowed.has(essence.replace(/\/.*/, '/*'))
  }
}

/**
 * Creates the check of a policy, which names the first rule that an output breaks.
 *
 * @throws GeneralError `BAD_POLICY` for a limit that is no whole number of bytes, or an invalid content type.
 */
function policyCheck(policy: OrdinalsPolicy): PolicyCheck {
  const { maxContentBytes, contentTypes, admit } = policy
  if (maxContentBytes !== undefined && !(Number.isSafeInteger(maxContentBytes) && maxContentBytes >= 0))
    throw new GeneralError(
      'BAD_POLICY',
      `maxContentBytes must be a whole number of bytes, not ${maxContentBytes}`,
    )
  const wrong = contentTypes?.find((type) => !isContentTypePattern(type))
  if (wrong !== undefined)
    throw new GeneralError(
      'BAD_POLICY',
      `${JSON.stringify(wrong)} is not a content type such as text/plain or image/*`,
    )
  const accepts = contentTypes && acceptedTypes(contentTypes)

  return (transaction, vout) => {
    const output = outputOf(transaction, vout)
    const { content, map } = output ? inscriptionOf(output) : { content: undefined, map: [] }
    if (content === undefined && map.length === 0) return undefined
    if (content !== undefined) {
      const { length } = content.body
      if (maxContentBytes !== undefined && length > maxContentBytes) {
        const message = `output ${vout} has ${length} bytes of content; this host accepts at most ${maxContentBytes}`
        return { code: 'CONTENT_TOO_LARGE', message }
      }
      if (accepts?.(content.contentType) === false) {
        const message = `output ${vout} has content of type ${essenceOf(content.contentType)}, which this host does not accept`
        return { code: 'CONTENT_TYPE_NOT_ALLOWED', message }
      }
    }
    const asked: PolicyOutput = {
      transaction,
      vout,
      ...(content && { contentType: content.contentType, contentLength: content.body.length }),
    }
    // Strictly: a promise, which the types forbid, would be truthy.
    if (admit === undefined || admit(asked) === true) return undefined
    return { code: 'POLICY', message: `output ${vout} does not match what this host collects` }
  }
}

/** The policy for the topic's documentation, a line for each rule; empty if there is none. */
export function describePolicy({ maxContentBytes, contentTypes, admit }: OrdinalsPolicy): string {
  const rules = [
    maxContentBytes !== undefined && `- Content of at most ${maxContentBytes} bytes.`,
    contentTypes &&
      `- Content of these types: ${contentTypes.map((type) => `\`${type}\``).join(', ') || 'none'}.`,
    admit && '- A rule of its own for what it collects.',
  ].filter((rule) => typeof rule === 'string')
  return rules.length === 0 ? '' : `\nThis host accepts:\n\n${rules.join('\n')}\n`
}
