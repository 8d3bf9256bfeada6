import { decodeMineNode } from '../../backend/src/protocol/mine-node.js'
import {
  type Deployment,
  followMint,
  followUnprovenMint,
  MintError,
} from '../../backend/src/protocol/mint.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Transaction } from '../../backend/src/protocol/sdk-types.js'
import type { SpentOutput } from '../../backend/src/protocol/transaction.js'
import { requireBytes, requireOutpoint, requireTree } from './arguments.js'
import { Bundle, type ReadOptions, readOutpointBeef, type Spender, sdkTransactionIn } from './bundle.js'
import { ProofError } from './errors.js'
import { type KnownName, knownMint, MINT_INPUTS, NAME_VOUT, nodesAfter } from './known-name.js'
import { TransactionVerifier, type Trust } from './verify-transactions.js'

/** A mint that descends from the genesis through checked mints only. */
export interface GenuineMint {
  /** The name that it claims. */
  name: string
  /** The domain of the node that it spends, and restates in output 0. */
  domain: string
  txid: string
  /** The mint that created the node which this one spends; undefined if that node is the genesis. */
  parent: GenuineMint | undefined
  /** The height of its block, if it was verified earlier and is in one. */
  height?: number
  /** Whether it was verified earlier. */
  isVerified?: true
  /** The node that it spends, if the bundle shows it. */
  spends?: Outpoint
}

export { NAME_VOUT } from './known-name.js'

/** The outputs of a mint that hold nodes. */
export const NODE_VOUTS: readonly number[] = [0, 1]

/** A verified node, from which the way to another node or to a name can be shown. */
export interface WayPoint extends SpentOutput {
  outpoint: Outpoint
  /** The mints from the genesis to it, in order. */
  line: readonly VerifiedMint[]
}

/** A name to look for in a tree, and what is already known of it. */
export interface SoughtName {
  name: string
  deployment: Deployment
  earlier?: KnownName | undefined
}

/**
 * The mints of a bundle that descend from the genesis (`docs/spec/protocol.md`, Mints), and the known ones, by txid. Nothing is
 * recognised by pattern: the genesis outpoint is genuine because the caller says so, and from there on only nodes created by a
 * checked mint are. A copy of the covenant is not, whatever its state.
 *
 * @param from A verified node: the bundle may leave out what comes before it.
 * @throws ProofError `NO_GENESIS`; `BAD_MINT` if a transaction that spends a genuine node breaks a rule of mints.
 */
export function readMints(
  bundle: Bundle,
  {
    deployment,
    from,
    ...sought
  }: Pick<SoughtName, 'deployment'> & Partial<SoughtName> & { from?: WayPoint | undefined },
): Map<string, GenuineMint> {
  const { genesis } = deployment
  const mints = mintsOf(from?.line ?? sought.earlier?.line ?? [])
  if (mints.size === 0 && from === undefined && bundle.output(genesis) === undefined)
    throw new ProofError('NO_GENESIS', `the genesis ${formatOutpoint(genesis)} is not in the proof`)
  const spent = new Map<string, { node: SpentNode; spender: Spender; parent?: GenuineMint }>()
  const addNode = (
    outpoint: Outpoint,
    parent?: GenuineMint,
    output: SpentOutput | undefined = bundle.output(outpoint),
  ): void => {
    const spender = bundle.spenderOf(outpoint)
    if (spender === undefined) return
    const { txid } = spender.transaction
    const found = spent.get(txid)
    // A known node may be in the bundle as well.
    if (found !== undefined && isSameOutpoint(found.node.outpoint, outpoint)) return
    if (found !== undefined) throw badMint(txid, 'it spends more than one node')
    spent.set(txid, { node: { outpoint, output }, spender, ...(parent && { parent }) })
  }
  const { earlier, name } = sought
  if (earlier !== undefined && name !== undefined)
    for (const node of nodesAfter(earlier, { name, deployment }))
      addNode(node.outpoint, mints.get(node.outpoint.txid), node)
  if (from !== undefined) addNode(from.outpoint, mints.get(from.outpoint.txid), from)
  addNode(genesis)
  // Parents come before children, so every node that a transaction spends is known by then.
  for (const { txid } of bundle.transactions) {
    const found = spent.get(txid)
    if (found === undefined) continue
    const genuine = mints.get(txid) ?? {
      ...checkedMint(bundle, { ...found, deployment }),
      txid,
      parent: found.parent,
      spends: found.node.outpoint,
    }
    mints.set(txid, genuine)
    for (const vout of NODE_VOUTS) addNode({ txid, vout }, genuine)
  }
  return mints
}

/** A spent node, and its output, if that is known or in the bundle. */
interface SpentNode {
  outpoint: Outpoint
  output: SpentOutput | undefined
}

/** The mints of a line that was verified earlier. Domains are only needed for mints that a bundle shows. */
function mintsOf(line: readonly (VerifiedMint & { domain?: string })[]): Map<string, GenuineMint> {
  const mints = new Map<string, GenuineMint>()
  let parent: GenuineMint | undefined
  for (const { txid, name, domain = '', height } of line) {
    parent = { name, domain, txid, parent, isVerified: true, ...(height !== undefined && { height }) }
    mints.set(txid, parent)
  }
  return mints
}

function checkedMint(
  bundle: Bundle,
  { node, spender, deployment }: { node: SpentNode; spender: Spender; deployment: Deployment },
): Pick<GenuineMint, 'name' | 'domain'> {
  const { transaction, input } = spender
  const { output } = node
  try {
    // A mint without a path gets the strict rules here, and its scripts are run by the TransactionVerifier.
    const follow = bundle.paths.has(transaction.txid) ? followMint : followUnprovenMint
    const { name, domain } = follow({
      transaction,
      input,
      deployment,
      hash: bundle.hash,
      ...(output && { spent: output }),
    })
    return { name, domain }
  } catch (cause) {
    if (!(cause instanceof MintError)) throw cause
    throw badMint(transaction.txid, cause.message, cause)
  }
}

function badMint(txid: string, reason: string, cause?: MintError): ProofError {
  return new ProofError('BAD_MINT', `${txid} spends a node of the tree but is not a mint: ${reason}`, {
    cause,
  })
}

/** The mints from the genesis to this one, in order. */
export function lineOf(last: GenuineMint): GenuineMint[] {
  const line: GenuineMint[] = []
  for (let at: GenuineMint | undefined = last; at !== undefined; at = at.parent) line.push(at)
  return line.reverse()
}

/** The output that holds the name of a mint: the name's origin. */
export function nameOutpoint({ txid }: Pick<GenuineMint, 'txid'>): Outpoint {
  return { txid, vout: NAME_VOUT }
}

/** One mint on the path from the genesis to a name. */
export interface VerifiedMint {
  txid: string
  /** The name that it claimed. */
  name: string
  /** The height of its block; undefined if it is in none, or if no headers were asked. */
  height?: number
}

/** A name that was mined in the tree of the genesis. */
export interface VerifiedName {
  name: string
  /** The output in which it was minted; it never changes once the mint is in the chain. */
  origin: Outpoint
  /** The mints from the genesis to the name, in order. */
  line: VerifiedMint[]
  /**
   * Whether every mint of the line is in a block that the chain tracker knows. If not, a conflicting mint may still
   * replace one of them, or no headers were asked (`'scripts only'`).
   */
  proven: boolean
  /** The height of the block that holds the mint of the name. */
  height?: number
}

/** What an offline check of a name needs. */
export interface NameTrust extends Trust, ReadOptions {
  /** The tree: its genesis outpoint, and how it was deployed. */
  deployment: Deployment
}

export interface CheckedOrigin {
  name: VerifiedName
  /** Undefined if nothing is kept. */
  known: KnownName | undefined
  /** The output in which it was minted; undefined if it is only known. */
  output: OriginOutput | undefined
}

/** The parts of a name's output that are read. */
export interface OriginOutput {
  lockingScript: Uint8Array
  /** The inputs of its transaction that the key of an identity binding may name. */
  spends: Outpoint[]
}

/**
 * The outputs that an identity binding may name: the previous one of the name, and the first input, which deployed wallets mean;
 * for a mint, its first inputs.
 */
export function bindingInputs(
  bundle: Bundle,
  { tip, before }: { tip: Outpoint; before: Outpoint | undefined },
): Outpoint[] {
  const inputs = bundle.transaction(tip.txid)?.inputs ?? []
  const named = before === undefined ? inputs.slice(0, MINT_INPUTS) : [before, ...inputs.slice(0, 1)]
  return named.map(({ txid, vout }) => ({ txid, vout }))
}

/**
 * Checks that a name is genuine (BRC-174 section 4, step 3.2), given only the genesis outpoint and block headers. The proof is an
 * Outpoint BEEF (BRC-158) of the name's origin with every mint from the genesis to it. Other transactions in it are parsed but
 * not trusted.
 *
 * @param check.proof The answer of `GET /svc/names/proof/{name}`.
 * @throws ProofError; HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function verifyNameProof(
  check: NameTrust & { proof: Uint8Array; name: string },
): Promise<VerifiedName> {
  requireTree(check)
  requireBytes(check.proof, 'proof')
  const { name } = await checkNameProof(check)
  return name
}

/** As {@link verifyNameProof}, but starts from what is known. */
export async function checkNameProof(
  check: NameTrust & SoughtName & { proof: Uint8Array },
): Promise<CheckedOrigin> {
  const { proof, name, deployment } = check
  const { subject, bundle } = readOutpointBeef(proof, check)
  const mint = readMints(bundle, check).get(subject.txid)
  if (mint === undefined) throw notInTree(subject, 'name')
  if (subject.vout !== NAME_VOUT)
    throw new ProofError(
      'OTHER_NAME',
      `output ${subject.vout} of a mint holds no name: output ${NAME_VOUT} does`,
    )
  if (mint.name !== name) throw new ProofError('OTHER_NAME', `the proof is of ${mint.name}, not of ${name}`)
  const verifier = new TransactionVerifier(bundle, check, deployment.genesis.txid)
  const verified = await verifiedName(mint, verifier)
  const output = bundle.output(subject)
  return {
    name: verified,
    known: remembered(bundle, { ...check, verified }),
    output: output && {
      lockingScript: output.lockingScript.slice(),
      spends: bindingInputs(bundle, { tip: subject, before: undefined }),
    },
  }
}

/**
 * Checks the way to a name as far as a bundle shows it: to the origin of an earlier name.
 *
 * @returns What is then known of the way.
 * @throws as {@link verifyNameProof}.
 */
export async function checkPart(
  bundle: Bundle,
  check: NameTrust & SoughtName & { origin: Outpoint },
): Promise<KnownName | undefined> {
  const { origin, name, deployment } = check
  const mint = origin.vout === NAME_VOUT ? readMints(bundle, check).get(origin.txid) : undefined
  if (mint === undefined) throw notInTree(origin, 'name')
  if (!name.startsWith(mint.domain) || mint.name === name)
    throw new ProofError('OTHER_NAME', `the proof is of ${mint.name}, which is not on the way to ${name}`)
  const verified = await verifiedName(mint, new TransactionVerifier(bundle, check, deployment.genesis.txid))
  return remembered(bundle, { ...check, verified })
}

/** What is known of a name once it is verified: its mints before the first one in no block. */
export function remembered(
  bundle: Bundle,
  { verified, deployment, earlier: known }: Omit<SoughtName, 'name'> & { verified: VerifiedName },
): KnownName | undefined {
  if (known === undefined) return undefined
  const { line } = known
  if (verified.line.length === line.length && verified.origin.txid === line.at(-1)?.txid) return known
  const mints: KnownName['line'][number][] = []
  let { code } = known
  for (const [at, { txid, name, height }] of verified.line.entries()) {
    const before = line[at]
    const transaction = bundle.transaction(txid)
    const block = bundle.paths.claimedBlock(txid)
    if (before?.txid === txid) mints.push(before)
    else if (height === undefined || transaction === undefined || block === undefined) break
    else {
      const mint = knownMint(transaction, { name, block, deployment })
      code = mint.code
      mints.push(mint.mint)
    }
  }
  return { code, line: mints, steps: [] }
}

/**
 * Checks the mint of a name, or of another name on the way to it, from a BEEF with the mints from the genesis or from a verified
 * node. Later moves of the name do not matter.
 *
 * @param check.origin The output in which it was minted.
 * @param check.towards A name: the node on the way to it is returned, for the next part.
 * @param check.from A verified node: the BEEF may leave out what comes before it.
 * @returns The name, the script of its origin, which starts with the lock that the mint gave it, and that node.
 * @throws as {@link verifyNameProof}.
 */
export async function verifyNameMint(
  check: NameTrust & { beef: Uint8Array; origin: Outpoint; towards: string; from?: WayPoint | undefined },
): Promise<VerifiedName & { lockingScript: Uint8Array; next: WayPoint }> {
  const { beef, deployment, origin, towards } = check
  const bundle = new Bundle(beef, check)
  const mint = origin.vout === NAME_VOUT ? readMints(bundle, check).get(origin.txid) : undefined
  if (mint === undefined) throw notInTree(origin, 'name')
  const verified = await verifiedName(mint, new TransactionVerifier(bundle, check, deployment.genesis.txid))
  const node = { txid: origin.txid, vout: towards.startsWith(mint.name) ? 1 : 0 }
  const [output, next] = [bundle.output(origin), bundle.output(node)]
  if (output === undefined || next === undefined)
    throw new ProofError('BAD_BEEF', `${formatOutpoint(origin)} is missing`)
  return {
    ...verified,
    lockingScript: output.lockingScript,
    next: wayPoint(next, { outpoint: node, line: verified.line }),
  }
}

/** Copies the script: a view would keep the whole part in memory. */
function wayPoint(
  { satoshis, lockingScript }: SpentOutput,
  place: Pick<WayPoint, 'outpoint' | 'line'>,
): WayPoint {
  return { ...place, satoshis, lockingScript: lockingScript.slice() }
}

export function findMint(bundle: Bundle, { name, ...sought }: SoughtName): GenuineMint | undefined {
  return [...readMints(bundle, { name, ...sought }).values()].find((mint) => mint.name === name)
}

export function noMintOf(name: string): ProofError {
  return new ProofError('NOT_IN_TREE', `no mint that descends from the genesis claims ${name}`)
}

/** Verifies each mint of the line, from the genesis on. */
export async function verifiedName(last: GenuineMint, verifier: TransactionVerifier): Promise<VerifiedName> {
  const line: VerifiedMint[] = []
  for (const { txid, name, height: known, isVerified } of lineOf(last)) {
    const height = isVerified ? known : (known ?? (await verifier.verify(txid)))
    line.push({ txid, name, ...(height !== undefined && { height }) })
  }
  const height = line.at(-1)?.height
  return {
    name: last.name,
    origin: nameOutpoint(last),
    line,
    proven: line.every((mint) => mint.height !== undefined),
    ...(height !== undefined && { height }),
  }
}

/** A node that descends from the genesis of its tree: names can be mined from it, unless it has been spent since. */
export interface VerifiedNode extends WayPoint {
  /** The prefix that the node stands for; empty for the root. */
  domain: string
  /** The nodes on the way that the BEEF shows to be spent. */
  passed: readonly Outpoint[]
  /** Whether every mint of the line is in a block that the chain tracker knows. */
  proven: boolean
  /** The transaction that holds the node, with its merkle path, or its ancestors down to proven ones. */
  transaction: Transaction
}

/**
 * Checks that an output is a node of a tree, given only the genesis outpoint and block headers. Each mint copies the
 * covenant of the node it spends into the nodes it creates, so a genuine node has the covenant of the genesis.
 *
 * No proof can show that the node is still unspent.
 *
 * @param check.beef A BEEF with every mint from the genesis to the node, as `ls_names` answers `{mine, history: true}`.
 * @param check.after A node verified earlier: the line must contain a mint that spends it.
 * @param check.from A node verified earlier: the BEEF may leave out what comes before it.
 * @throws as {@link verifyNameProof}.
 */
export async function verifyNode(
  check: NameTrust & {
    beef: Uint8Array
    outpoint: Outpoint
    after?: Outpoint | undefined
    from?: WayPoint | undefined
  },
): Promise<VerifiedNode> {
  requireTree(check)
  requireBytes(check.beef, 'beef')
  requireOutpoint(check.outpoint, 'outpoint')
  const { beef, outpoint, after, deployment } = check
  const bundle = new Bundle(beef, check)
  const mint = mintBefore(bundle, check)
  if (after !== undefined) requireDescent({ mint, after, outpoint })
  const verifier = new TransactionVerifier(bundle, check, deployment.genesis.txid)
  const { line, proven } =
    mint === undefined ? { line: [], proven: true } : await verifiedName(mint, verifier)
  const output = bundle.output(outpoint)
  const transaction = sdkTransactionIn(bundle, outpoint.txid)
  if (output === undefined || transaction === undefined)
    throw new ProofError('BAD_BEEF', `the BEEF does not hold ${formatOutpoint(outpoint)}`)
  const spender = bundle.spenderOf(outpoint)
  if (spender !== undefined)
    throw new ProofError(
      'STALE_TIP',
      `the node ${formatOutpoint(outpoint)} is spent by ${spender.transaction.txid}, in the same BEEF`,
    )
  // The scripts of a checked mint's nodes are what they say.
  const domain = mint === undefined ? '' : decodeMineNode(output.lockingScript).domain
  const passed = passedBy(mint)
  return { domain, ...wayPoint(output, { outpoint, line }), proven, transaction, passed }
}

/** The mint that created a node; undefined for the root as deployed. */
function mintBefore(
  bundle: Bundle,
  { outpoint, deployment, from }: { outpoint: Outpoint; deployment: Deployment; from?: WayPoint | undefined },
): GenuineMint | undefined {
  const mints = readMints(bundle, { deployment, from })
  if (formatOutpoint(outpoint) === formatOutpoint(deployment.genesis)) return undefined
  const mint = mints.get(outpoint.txid)
  if (mint !== undefined && NODE_VOUTS.includes(outpoint.vout)) return mint
  throw notInTree(outpoint, 'node')
}

function notInTree(outpoint: Outpoint, kind: 'name' | 'node'): ProofError {
  const shown = formatOutpoint(outpoint)
  return new ProofError(
    'NOT_IN_TREE',
    `${shown} is not a ${kind} of this tree: no mints lead to it from the genesis`,
  )
}

function passedBy(mint: GenuineMint | undefined): Outpoint[] {
  return mint === undefined ? [] : lineOf(mint).flatMap(({ spends }) => (spends ? [spends] : []))
}

function requireDescent(options: {
  mint: GenuineMint | undefined
  after: Outpoint
  outpoint: Outpoint
}): void {
  const { mint, after, outpoint } = options
  if (passedBy(mint).some((node) => isSameOutpoint(node, after))) return
  throw new ProofError(
    'NOT_DESCENDED',
    `${formatOutpoint(outpoint)} does not descend from a mint that spends ${formatOutpoint(after)}`,
  )
}
