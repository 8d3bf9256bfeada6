import type { Transaction } from '@bsv/sdk'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { Bundle } from './bundle.js'
import { type GenuineMint, lineOf, NODE_VOUTS, readMints } from './mint-line.js'
import { type NameTrust, type VerifiedMint, vouchedName } from './name-proof.js'
import { ProofError } from './proof-error.js'
import { Voucher } from './vouch.js'

/** A node of a tree that descends from its genesis: names can be mined from it, unless it was spent since. */
export interface VerifiedNode {
  /** The prefix that the node stands for; empty for the root. */
  domain: string
  outpoint: Outpoint
  satoshis: number
  lockingScript: Uint8Array
  /** The mints from the genesis to the node, in order; none where the node is the root as deployed. */
  line: VerifiedMint[]
  /** Whether every mint of the line is in a block that the chain tracker knows. */
  proven: boolean
  /** The transaction that holds the node, with its merkle path or its ancestors down to proven ones. */
  transaction: Transaction
}

/**
 * Checks that an output is a node of a tree, with nothing but the genesis outpoint and block headers. As each mint writes
 * the covenant of the node that it spends into those that it makes, such a node has the covenant of the genesis.
 *
 * That nothing has spent the node since, no proof can show.
 *
 * @param check.beef A BEEF with every mint from the genesis to the node, as `ls_names` answers `{mine, history: true}`.
 * @param check.after A node that was verified before: the line has to lead through a mint that spends it.
 * @throws ProofError with what does not hold; HeadersError where the chain tracker does not answer.
 */
export async function verifyNode(
  check: NameTrust & { beef: Uint8Array; outpoint: Outpoint; after?: Outpoint },
): Promise<VerifiedNode> {
  const { beef, outpoint, after, deployment } = check
  const bundle = new Bundle(beef, check)
  const mint = mintBefore(bundle, { outpoint, deployment })
  if (after !== undefined) requireDescent(bundle, { mint, after, outpoint })
  const voucher = new Voucher(bundle, check, deployment.genesis.txid)
  const { line, proven } = mint === undefined ? { line: [], proven: true } : await vouchedName(mint, voucher)
  const output = bundle.output(outpoint)
  const transaction = bundle.sdkTransaction(outpoint.txid)
  if (output === undefined || transaction === undefined)
    throw new ProofError('BAD_BEEF', `the BEEF does not hold ${formatOutpoint(outpoint)}`)
  const spender = bundle.spenderOf(outpoint)
  if (spender !== undefined)
    throw new ProofError(
      'STALE_TIP',
      `the node ${formatOutpoint(outpoint)} is spent by ${spender.transaction.txid}, which is shown beside it`,
    )
  const { satoshis, lockingScript } = output
  const domain = domainOf(mint, outpoint)
  return { domain, outpoint, satoshis, lockingScript, line, proven, transaction }
}

/** The mint that left a node; undefined for the root as deployed. */
function mintBefore(
  bundle: Bundle,
  { outpoint, deployment }: { outpoint: Outpoint; deployment: Deployment },
): GenuineMint | undefined {
  const mints = readMints(bundle, deployment)
  if (formatOutpoint(outpoint) === formatOutpoint(deployment.genesis)) return undefined
  const mint = mints.get(outpoint.txid)
  if (mint !== undefined && NODE_VOUTS.includes(outpoint.vout)) return mint
  throw new ProofError(
    'NOT_IN_TREE',
    `${formatOutpoint(outpoint)} does not descend from the genesis by mints: it is no node of this tree`,
  )
}

function requireDescent(
  bundle: Bundle,
  { mint, after, outpoint }: { mint: GenuineMint | undefined; after: Outpoint; outpoint: Outpoint },
): void {
  const spender = bundle.spenderOf(after)?.transaction.txid
  const line = mint === undefined ? [] : lineOf(mint)
  if (line.some(({ txid }) => txid === spender)) return
  throw new ProofError(
    'NOT_DESCENDED',
    `${formatOutpoint(outpoint)} does not come of a mint from ${formatOutpoint(after)}`,
  )
}

/** The restated node keeps the domain that it had, which the name of the mint extends by a character. */
function domainOf(mint: GenuineMint | undefined, { vout }: Outpoint): string {
  if (mint === undefined) return ''
  return vout === 0 ? mint.name.slice(0, -1) : mint.name
}
