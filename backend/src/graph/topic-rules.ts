import { isName, mineNodeIn } from '../protocol/mine-node.js'
import { type Deployment, MintError } from '../protocol/mint.js'
import { followMint, followUnprovenMint, possibleMintInputs } from '../protocol/mint-outputs.js'
import { isStrictSpend } from '../protocol/mint-unlocking.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
import { outputOf, type TransactionView } from '../protocol/transaction.js'
import type { AdmissionOptions, AdmissionRules, NodeInput, OnRefusal } from './admission-rules.js'
import { nativeHash256 } from './native-hash.js'
import { type OrdinalsPolicy, policyCheck } from './ordinals-policy.js'

/**
 * What both topics admit, for a host that derives admissions from everything that it has stored. The topic managers, which an
 * engine asks about one transaction at a time, use the same functions.
 *
 * @throws PolicyError if the policy is invalid.
 */
export function admissionRules({
  deployment,
  policy = {},
  ...others
}: Pick<AdmissionRules, 'assumesGenesis' | 'others'> & {
  /** The tree to follow; undefined: none. */
  deployment: Deployment | undefined
  policy?: OrdinalsPolicy | undefined
}): AdmissionOptions['rules'] {
  const refusalOf = policyCheck(policy)
  return (onRefusal) => ({
    ...others,
    genesis: deployment?.genesis,
    // A spend of a node that is neither strict nor proven is never stored (`src/server/writer/submission-rules.ts`). So
    // these rules need not know what is proven, and admission depends on nothing but bytes.
    names: (transaction, nodeInputs) =>
      admittedNames({ transaction, nodeInputs, isProven: true, deployment, onRefusal }),
    permits(transaction, vout) {
      const refusal = refusalOf(transaction, vout)
      if (refusal !== undefined) onRefusal({ topic: TOPICS.ordinals, txid: transaction.txid, ...refusal })
      return refusal === undefined
    },
    onNoOrdinal({ txid, inputs }, unknownInput) {
      const unknown = unknownInput === undefined ? undefined : inputs[unknownInput]
      onRefusal({
        topic: TOPICS.ordinals,
        txid,
        ...(unknown === undefined
          ? {
              code: 'NO_ORDINAL',
              message: 'no output has content or MAP, or receives an admitted ordinal',
            }
          : {
              code: 'UNKNOWN_VALUES',
              message: `the value of ${formatOutpoint(unknown)} is unknown, so the ordinals after it cannot be placed`,
            }),
      })
    },
  })
}

/** The outputs that `tm_names` admits of a transaction that spends these nodes (`protocol.md` 7). */
export function admittedNames({
  transaction,
  nodeInputs,
  isProven,
  deployment,
  onRefusal,
}: {
  transaction: TransactionView
  nodeInputs: NodeInput[]
  /** Whether it is mined. If not, its unlocking script must be one that no two nodes disagree about. */
  isProven: boolean
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
    if (isNode(transaction, vout)) return [vout]
    return refuse('NOT_A_NODE', 'the configured genesis outpoint is not a node of a mine tree')
  }
  const [node] = nodeInputs
  if (node === undefined) return refuse('NO_NODE_SPENT', 'the transaction spends no known node of the tree')
  // The covenant restates one node in output 0; a second one spent beside it would be lost to the tree.
  if (nodeInputs.length > 1) return refuse('MORE_THAN_ONE_NODE', 'the transaction spends more than one node')
  const { input, spent } = node
  try {
    const follow = isProven ? followMint : followUnprovenMint
    const mint = follow({ transaction, input, deployment, hash: nativeHash256, ...(spent && { spent }) })
    if (isName(mint.name)) return [0, 1, 2]
    // No name comes of the child, but others do of the node that is restated.
    refuse('NO_NAME', 'the mint claims a name that is longer than 255 characters, or has zero bytes in it')
    return [0]
  } catch (error) {
    if (error instanceof MintError) return refuse(error.code, error.message)
    throw error
  }
}

/**
 * Whether a transaction may be a mint that not every node relays. While it is not mined, nodes disagree about it, and it must
 * not be stored.
 */
export function isLooseMint(transaction: TransactionView, deployment: Deployment): boolean {
  return possibleMintInputs({ transaction, deployment, hash: nativeHash256 }).some((input) => {
    const { unlockingScript } = transaction.inputs[input] ?? {}
    return unlockingScript !== undefined && !isStrictSpend(transaction, unlockingScript)
  })
}

/** Whether an output has the layout of a node; whether it is genuine, its lineage decides. */
function isNode(transaction: TransactionView, vout: number): boolean {
  const output = outputOf(transaction, vout)
  return output !== undefined && mineNodeIn(output.lockingScript) !== undefined
}
