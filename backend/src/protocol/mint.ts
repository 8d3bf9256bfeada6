import { ascii, concatBytes, equalBytes, readUtf8, utf8 } from './bytes.js'
import { GeneralError } from './coded-error.js'
import { encodeEnvelope } from './inscription.js'
import {
  type CovenantVersion,
  claim,
  decodeMineNode,
  encodeMineNode,
  isClaimed,
  isNameCharacter,
  MAX_NAME_LENGTH,
  type MineNode,
  MineNodeError,
  UNCLAIMED,
  versionOfCode,
} from './mine-node.js'
import {
  hasCode,
  isStrictSpend,
  mintPreimage,
  readMintUnlocking,
  readPreimageSpent,
} from './mint-unlocking.js'
import { encodeOutpoint, formatOutpoint, type Outpoint } from './outpoint.js'
import { encodePush, encodeScriptNumber, OP } from './script-walk.js'
import {
  type Hash256,
  hash256,
  outputOf,
  type SpentOutput,
  serialisedOutputs,
  sha256,
  type TransactionView,
} from './transaction.js'

export { COVENANT_VERSIONS, type CovenantVersion } from './mine-node.js'
export {
  encodeMintUnlocking,
  mintPreimage,
  type PreimageTransaction,
} from './mint-unlocking.js'
export type { SpentOutput } from './transaction.js'

/** Which rule of a mint is broken; see `checkMint`, and `followUnprovenMint` for `NOT_STRICT`. */
export type MintErrorCode =
  | 'NOT_A_NODE'
  | 'OTHER_TREE'
  | 'BAD_UNLOCKING'
  | 'NOT_STRICT'
  | 'BAD_VERSION'
  | 'BAD_LOCK_TIME'
  | 'BAD_CHARACTER'
  | 'CLAIMED'
  | 'BAD_NONCE'
  | 'BAD_WORK'
  | 'TOO_LONG'
  | 'BAD_OUTPUT'

/** The transaction is no mint of this tree. `vout` is the wrong output, for `BAD_OUTPUT`. */
export class MintError extends GeneralError<MintErrorCode> {
  override readonly name = 'MintError'
  readonly vout?: number

  constructor(code: MintErrorCode, message: string, options: { vout?: number; cause?: unknown } = {}) {
    super(code, message, options)
    this.vout = options.vout
  }
}

/** What a covenant can write into the outputs of a mint, if that is less than a script may hold. */
export interface CovenantLimits {
  /** Bytes of a name with its dot and TLD, if there is one. */
  nameBytes: number
  /** Bytes of the locking script of output 2, including the owner's lock. */
  nameScriptBytes: number
}

/**
 * The limits of the covenant that `src/mining` builds. It writes lengths in one form each: a name behind a single
 * length byte, which ends at 75, and output 2 with a script length of three bytes at most, which ends at 65,535.
 */
export const COVENANT_LIMITS: CovenantLimits = { nameBytes: 75, nameScriptBytes: 65_535 }

/** The terms that were fixed when a tree of names was deployed (`docs/spec/protocol.md`, Profiles). */
export interface Deployment {
  /** The outpoint of the root as deployed, which identifies the tree. */
  genesis: Outpoint
  /** For a covenant whose code does not show its version: see {@link rulesOf}. */
  covenantVersion: CovenantVersion
  /** Zero bits that a solution must start with. */
  difficulty: number
  nameContentType: string
  /** The protocol marker of name outputs, as pushed. */
  marker: Uint8Array
  /** Written after every name, with a dot between, in the name output; the name itself is without it. */
  tld?: string
  /** Absent if none are known, as for the live covenant. */
  limits?: CovenantLimits
}

/** The terms that are fixed before a tree is deployed and has a genesis. */
export type DeploymentTerms = Omit<Deployment, 'genesis'>

/** A checked mint: what it claims, and the nodes that it leaves. */
export interface Mint {
  /**
   * The parent's domain and the character: the name as the tree has it, never the text of an envelope. It need not be one
   * that can be asked for (`isName`): zero bytes may follow the character, and it may be too long.
   */
  name: string
  /** The parent's domain. */
  domain: string
  /** As pushed, with the zero bytes that the live covenant lets follow it. */
  character: string
  nonce: Uint8Array
  ownerLock: Uint8Array
  /** The solution, in internal order: the seed of both nodes that it leaves. */
  seed: Uint8Array
  /** The node at output 0. */
  restated: MineNode
  /** The node at output 1. */
  child: MineNode
}

/** Outputs 0, 1 and 2 of a mint, and so every node, hold 1 satoshi (`docs/spec/protocol.md`, Mints). */
export const MINT_SATOSHIS = 1

/**
 * Checks that one input of a transaction mints a name, with the rules of the covenant (`docs/spec/protocol.md`, Mints). It
 * does not run any script; but it rebuilds the sighash preimage that the covenant reads and compares everything that the covenant
 * compares, so that both accept the same mints. It reads unlocking scripts of pushes only, on whose result all interpreters
 * agree; for one with code see `followMint`.
 *
 * It does not check lineage: the caller has to know that the spent node is genuine, which alone makes the name genuine. Takes
 * time linear in the transaction, as all outputs are hashed: call it only for inputs that spend a known node.
 *
 * @param check.input The index of the input that spends the node; any position will do.
 * @param check.spent The output which that input spends. Without it, script and value are taken from the preimage in the
 * unlocking script. This trusts the one who verified the script: CHECKSIG binds the preimage to the coin that is really spent, so
 * for a transaction with a merkle proof, or one whose scripts were verified, they are true; for any other they are the
 * submitter's claim. The outpoint is always that of the input.
 * @param check.hash A native double SHA-256, where the host has one.
 *
 * @throws MintError with the first rule that is broken, in this order: `BAD_UNLOCKING` (the unlocking script is not five pushes
 * or more, or the preimage is not the one of this input), `NOT_A_NODE` (the spent output is none, or does not hold 1 satoshi),
 * `OTHER_TREE` (its genesis is not the deployment's), `BAD_CHARACTER`, `CLAIMED`, `TOO_LONG` (the name is beyond the covenant's
 * limits, or output 2 is), `BAD_NONCE` (it is for another owner, node or tree), `BAD_WORK`, `BAD_OUTPUT` (output 0, 1 or 2
 * missing, or with another value or script), `BAD_UNLOCKING` (the trailing item is not the outputs after 2), `BAD_VERSION` and
 * `BAD_LOCK_TIME` (of the transaction).
 */
export function checkMint(check: {
  transaction: TransactionView
  input: number
  deployment: Deployment
  spent?: SpentOutput
  hash?: Hash256
}): Mint {
  const { transaction, deployment, hash = hash256 } = check
  const input = transaction.inputs[check.input]
  if (input === undefined) throw new MintError('BAD_UNLOCKING', `there is no input ${check.input}`)
  const items = readMintUnlocking(input.unlockingScript)
  if (items === undefined)
    throw new MintError('BAD_UNLOCKING', 'the unlocking script is not at least five pushes')
  const spent = check.spent ?? readPreimageSpent(items.preimage)
  if (
    spent === undefined ||
    !equalBytes(items.preimage, mintPreimage({ transaction, input: check.input, spent, hash }))
  ) {
    throw new MintError('BAD_UNLOCKING', 'the preimage is not that of this input')
  }

  const { character, nonce, ownerLock } = items
  const node = placedNode(spent, input)
  const mint = solveMint({ node, character, nonce, ownerLock, deployment, hash })
  for (const [vout, lockingScript] of mintScripts(mint, deployment).entries()) {
    requireOutput(transaction, { vout, lockingScript })
  }
  if (!equalBytes(items.trailing, serialisedOutputs(transaction, 3))) {
    throw new MintError('BAD_UNLOCKING', 'the trailing item does not equal the outputs after index 2')
  }
  requireFinal(transaction, rulesOf(mint.restated, deployment))
  return mint
}

export interface PlacedNode extends SpentOutput {
  outpoint: Outpoint
}

/** An output with its outpoint. Copied field by field, as those of a parsed output may not be own properties. */
function placedNode({ satoshis, lockingScript }: SpentOutput, { txid, vout }: Outpoint): PlacedNode {
  return { satoshis, lockingScript, outpoint: { txid, vout } }
}

/**
 * Checks that a character can be mined from a node.
 *
 * @param mined.character One character of a name, as its code.
 * @throws MintError `NOT_A_NODE`, `OTHER_TREE`, `BAD_CHARACTER`, `CLAIMED` or `TOO_LONG`, as {@link checkMint}.
 */
export function requireMinable(mined: { node: PlacedNode; character: Uint8Array; deployment: Deployment }): {
  parent: MineNode
  character: string
} {
  const { node, deployment } = mined
  const parent = readParent(node)
  requireTree({ parent, outpoint: node.outpoint, deployment })
  const character = requireFree(parent, mined.character)
  requireShortName(parent.domain + character, deployment)
  return { parent, character }
}

/**
 * The mint of a character from a node with a nonce.
 *
 * @param solution.character One character of a name, as its code.
 * @throws MintError `NOT_A_NODE`, `OTHER_TREE`, `BAD_CHARACTER`, `CLAIMED`, `TOO_LONG`, `BAD_NONCE` or `BAD_WORK`, as {@link
 * checkMint}.
 */
export function solveMint(solution: {
  node: PlacedNode
  character: Uint8Array
  nonce: Uint8Array
  ownerLock: Uint8Array
  deployment: Deployment
  hash?: Hash256
}): Mint {
  const { nonce, ownerLock, deployment, hash = hash256 } = solution
  const { parent, character } = requireMinable(solution)
  const { code, domain } = parent
  const { genesis } = deployment
  const name = domain + character
  if (deployment.limits !== undefined)
    requireShortScript(encodeNameOutput({ ownerLock, name, deployment }), deployment)
  requireCommitment({ domain, ownerLock, nonce, deployment: rulesOf(parent, deployment) })
  const seed = proofOfWork({ seed: parent.seed, character, nonce, hash })
  if (!meetsDifficulty(seed, deployment.difficulty)) {
    throw new MintError('BAD_WORK', `the solution has fewer than ${deployment.difficulty} zero bits`)
  }
  const claimed = claim(parent.claimed, character.charCodeAt(0))
  const restated: MineNode = { code, genesis, claimed, domain, seed }
  const child: MineNode = { code, genesis, claimed: UNCLAIMED, domain: name, seed }
  return { name, domain, character, nonce, ownerLock, seed, restated, child }
}

/**
 * The terms of mining from a node: those of the deployment, with the version of the node's own code. So a wrong or missing
 * setting has no effect on a covenant of minetree.
 */
export function rulesOf<Terms extends DeploymentTerms>(
  { code }: Pick<MineNode, 'code'>,
  terms: Terms,
): Terms {
  const { covenantVersion } = terms
  return { ...terms, covenantVersion: versionOfCode(code) ?? covenantVersion }
}

/** Bytes of the commitment in a nonce. To find another lock for somebody else's commitment takes 2^64 hashes. */
const COMMITMENT_BYTES = 8

/**
 * The bytes that a nonce must start with, so that its work is for one owner at one node of one tree: the first 8 bytes of
 * sha256(domain || 24 || genesis || sha256(owner lock)), the genesis as in a node's state with the length byte of its push; none
 * in a tree of version 1. That length byte is no character of a domain, so no two nodes share a commitment.
 *
 * @param commitment.domain The domain of the node to mint from.
 */
export function ownerCommitment({
  domain,
  ownerLock,
  deployment,
}: {
  domain: string
  ownerLock: Uint8Array
  deployment: Deployment
}): Uint8Array {
  if (deployment.covenantVersion !== 2) return new Uint8Array()
  const genesis = encodePush(encodeOutpoint(deployment.genesis))
  return sha256(concatBytes(utf8(domain), genesis, sha256(ownerLock))).subarray(0, COMMITMENT_BYTES)
}

function requireCommitment(solution: {
  domain: string
  ownerLock: Uint8Array
  nonce: Uint8Array
  deployment: Deployment
}): void {
  const commitment = ownerCommitment(solution)
  if (!equalBytes(solution.nonce.subarray(0, commitment.length), commitment))
    throw new MintError('BAD_NONCE', 'the nonce is for another owner, node or tree')
}

/**
 * A covenant of version 2 accepts no mint in a transaction that could wait for a later block, or whose unlocking scripts may
 * hold code.
 */
export function requireFinal(
  { version, lockTime }: Pick<TransactionView, 'version' | 'lockTime'>,
  { covenantVersion }: DeploymentTerms,
): void {
  if (covenantVersion !== 2) return
  if (version !== 1) throw new MintError('BAD_VERSION', `the transaction version is ${version}, must be 1`)
  if (lockTime !== 0) throw new MintError('BAD_LOCK_TIME', `the lock time is ${lockTime}, must be 0`)
}

/** The locking scripts of outputs 0, 1 and 2 of a mint, which hold {@link MINT_SATOSHIS} each. */
export function mintScripts(
  { restated, child, ownerLock, name }: Pick<Mint, 'restated' | 'child' | 'ownerLock' | 'name'>,
  deployment: Deployment,
): [Uint8Array, Uint8Array, Uint8Array] {
  return [encodeMineNode(restated), encodeMineNode(child), encodeNameOutput({ ownerLock, name, deployment })]
}

function readParent(spent: SpentOutput): MineNode {
  if (spent.satoshis !== MINT_SATOSHIS) {
    throw new MintError('NOT_A_NODE', `the spent output has ${spent.satoshis} satoshis, must have 1`)
  }
  try {
    return decodeMineNode(spent.lockingScript)
  } catch (cause) {
    throw new MintError('NOT_A_NODE', 'the spent output is not a node', { cause })
  }
}

/** A node names its tree by the genesis field; the root as deployed has none, and is known by its outpoint. */
function requireTree(node: { parent: MineNode; outpoint: Outpoint; deployment: Deployment }): void {
  const { parent, outpoint } = node
  const genesis = formatOutpoint(node.deployment.genesis)
  if (parent.genesis === undefined) {
    if (formatOutpoint(outpoint) !== genesis)
      throw new MintError('OTHER_TREE', 'the node is the root of another tree')
    if (parent.seed.length > 0) throw new MintError('OTHER_TREE', 'the root as deployed has a seed')
  } else if (formatOutpoint(parent.genesis) !== genesis) {
    throw new MintError('OTHER_TREE', `the node belongs to the tree of ${formatOutpoint(parent.genesis)}`)
  }
}

/** The character to claim, allowed and not claimed yet. */
function requireFree(parent: MineNode, push: Uint8Array): string {
  const [code] = push
  if (code === undefined || !isCharacter(push, parent)) {
    throw new MintError('BAD_CHARACTER', 'the character is not one of a-z 0-9 -')
  }
  if (isClaimed(parent.claimed, code)) {
    throw new MintError('CLAIMED', `"${String.fromCharCode(code)}" is already claimed at this node`)
  }
  return readUtf8(push)
}

/**
 * Whether a covenant accepts a push as a character of a name. The live one reads it as a number, and so lets zero bytes follow
 * the character, which become part of the child's domain. Those of minetree accept one byte.
 */
function isCharacter(push: Uint8Array, { code: covenant }: Pick<MineNode, 'code'>): boolean {
  const [code] = push
  if (code === undefined || !isNameCharacter(code)) return false
  return (
    push.length === 1 ||
    (versionOfCode(covenant) === undefined && push.subarray(1).every((byte) => byte === 0))
  )
}

/** The longest name of a tree, in characters: as much as its script may hold, or as the covenant can write. */
export function longestName({ limits, tld }: DeploymentTerms): number {
  const suffix = nameText('', tld).length
  return Math.min(MAX_NAME_LENGTH, (limits?.nameBytes ?? MAX_NAME_LENGTH + suffix) - suffix)
}

/** Refuses a name that is longer than the covenant can write: it would refuse the spend, whatever the outputs. */
function requireShortName(name: string, { limits, tld }: Deployment): void {
  const bytes = nameText(name, tld).length
  if (limits !== undefined && bytes > limits.nameBytes)
    throw new MintError('TOO_LONG', `the name has ${bytes} bytes`)
}

function requireShortScript({ length }: Uint8Array, { limits }: Deployment): void {
  if (limits !== undefined && length > limits.nameScriptBytes)
    throw new MintError('TOO_LONG', `output 2 has ${length} bytes`, { vout: 2 })
}

function requireOutput(
  transaction: TransactionView,
  expected: { vout: number; lockingScript: Uint8Array },
): void {
  const { vout } = expected
  const output = outputOf(transaction, vout)
  if (output === undefined) throw new MintError('BAD_OUTPUT', `output ${vout} is missing`, { vout })
  if (output.satoshis !== MINT_SATOSHIS) {
    throw new MintError('BAD_OUTPUT', `output ${vout} has ${output.satoshis} satoshis, must have 1`, { vout })
  }
  if (!equalBytes(output.lockingScript, expected.lockingScript)) {
    throw new MintError('BAD_OUTPUT', `output ${vout} does not have the script that the covenant requires`, {
      vout,
    })
  }
}

/**
 * The locking script of output 2 (`docs/spec/protocol.md`, Mints): the owner's lock, the envelope with the name, and an OP_RETURN
 * with marker and genesis.
 *
 * The live covenant writes the length of the name as a script number. Up to 75 that is a push; a longer name leaves an
 * envelope that cannot be read, but the mint is valid.
 *
 * @param output.name Without the TLD; the deployment's is put on.
 */
export function encodeNameOutput(output: {
  ownerLock: Uint8Array
  name: string
  deployment: Deployment
}): Uint8Array {
  const { nameContentType, marker, genesis, tld } = output.deployment
  const body = nameText(output.name, tld)
  const envelope = encodeEnvelope({ contentType: nameContentType, body: new Uint8Array() })
  return concatBytes(
    output.ownerLock,
    envelope.subarray(0, -1),
    encodeScriptNumber(body.length),
    body,
    Uint8Array.of(OP.ENDIF, OP.RETURN),
    encodePush(marker),
    encodePush(encodeOutpoint(genesis)),
  )
}

/** A name as its output has it: with the TLD, if there is one. */
function nameText(name: string, tld: string | undefined): Uint8Array {
  return utf8(tld === undefined ? name : `${name}.${tld}`)
}

/**
 * The hash that must meet the difficulty: hash256(seed || character || nonce), 32 bytes in internal order.
 *
 * @param solution.seed The spent node's: 32 bytes, or none for the root as deployed.
 * @param solution.character One character of a name.
 * @param solution.nonce Any bytes. 22 at most keep the message within one block of SHA-256.
 */
export function proofOfWork(solution: {
  seed: Uint8Array
  character: string
  nonce: Uint8Array
  hash?: Hash256
}): Uint8Array {
  const { seed, character, nonce, hash = hash256 } = solution
  return hash(concatBytes(seed, utf8(character), nonce))
}

/** Whether a hash in internal order, read byte-reversed, starts with that many zero bits. */
export function meetsDifficulty(hash: Uint8Array, bits: number): boolean {
  let zeros = 0
  for (let i = hash.length - 1; i >= 0; i--) {
    const byte = hash[i] ?? 0
    zeros += byte === 0 ? 8 : Math.clz32(byte) - 24
    if (byte !== 0) break
  }
  return zeros >= bits
}

type NodeSpend = Parameters<typeof checkMint>[0]

/** The claim of a mint: the domain of the node in output 1, which need not be a name, and that of the node in output 0. */
type FollowedMint = Pick<Mint, 'name' | 'domain'>

/**
 * The name claimed by a mint that is in a block: checked if the unlocking script is pushes only, and read from the outputs if it has
 * code. Interpreters may disagree about code, and the block has decided. Whatever a miner writes there, the tree continues after it.
 *
 * Only for callers that know that a block holds the transaction, or that stored only what {@link followUnprovenMint} accepts.
 *
 * @throws MintError as `checkMint` and {@link readMintOutputs}.
 */
export function followMint(spend: NodeSpend): FollowedMint {
  const script = spend.transaction.inputs[spend.input]?.unlockingScript
  return script !== undefined && hasCode(script) ? readMintOutputs(spend) : checkMint(spend)
}

/**
 * The name claimed by a mint that is in no known block. It has to be one that every node relays ({@link isStrictSpend}): nodes
 * may disagree about any other, so that a block may never hold it.
 *
 * @throws MintError `NOT_STRICT`; as `checkMint`.
 */
export function followUnprovenMint(spend: NodeSpend): FollowedMint {
  const script = spend.transaction.inputs[spend.input]?.unlockingScript
  if (script !== undefined && !isStrictSpend(spend.transaction, script))
    throw new MintError('NOT_STRICT', NOT_STRICT)
  return checkMint(spend)
}

/** The message for an unproven spend of a node that is not strict. */
export const NOT_STRICT =
  'an unproven mint must be what every node relays: five minimal pushes of at most 500,000 bytes, the first of one byte, in a transaction of version 1 or 2 and at most 10,000,000 bytes; with a merkle proof any mint is accepted'

/** Whether a script could unlock a node: it has code, or reads like the unlocking script of a mint. */
export function mayUnlockNode(unlockingScript: Uint8Array): boolean {
  return hasCode(unlockingScript) || readMintUnlocking(unlockingScript) !== undefined
}

/**
 * The inputs of a transaction that could spend a node, judged without the spent outputs: those with code in their unlocking
 * script, and those that `checkMint` accepts. None if the outputs are not those of a mint.
 *
 * @returns Indices.
 */
export function possibleMintInputs(asked: {
  transaction: TransactionView
  deployment: Deployment
  hash?: Hash256
}): number[] {
  const { inputs } = asked.transaction
  // Most inputs are opened by a signature and a key: their scripts show that they spend no node.
  const candidates = [...inputs.keys()].filter((input) =>
    mayUnlockNode(inputs[input]?.unlockingScript ?? new Uint8Array()),
  )
  if (candidates.length === 0 || !isMint(() => readMintOutputs({ ...asked, input: 0 }))) return []
  return candidates.filter((input) =>
    isMint(() => {
      const script = inputs[input]?.unlockingScript
      if (script === undefined || !hasCode(script)) checkMint({ ...asked, input })
    }),
  )
}

function isMint(check: () => unknown): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (error instanceof MintError) return false
    throw error
  }
}

/**
 * The name claimed by a mint, read from its outputs alone, whatever unlocked the node. Only for transactions in a block: there, only
 * a mint can spend a genuine node (`docs/spec/protocol.md`, Mints).
 *
 * All that the transaction shows beside its unlocking script is checked as `checkMint` does. It cannot show that the new seed is the
 * hash of the old one, of the character and of a nonce, nor which lock the unlocking script named; only the covenant guarantees
 * these.
 *
 * @param mint.input The index of the input that spends the node.
 * @param mint.spent The output which that input spends; without it, the node restated in output 0 is trusted.
 * @param mint.nodesOnly Whether to check outputs 0 and 1 only, as content may have been removed from the others.
 * @throws MintError `NOT_A_NODE`, `OTHER_TREE`, `BAD_CHARACTER`, `CLAIMED`, `TOO_LONG`, `BAD_WORK`, `BAD_VERSION`, `BAD_LOCK_TIME`
 * or `BAD_OUTPUT`.
 */
export function readMintOutputs(mint: {
  transaction: TransactionView
  input: number
  deployment: Deployment
  spent?: SpentOutput
  nodesOnly?: boolean
}): FollowedMint {
  const { transaction, deployment, spent, nodesOnly = false } = mint
  const { genesis } = deployment
  const restated = readNode(transaction, 0)
  const { domain: name } = readNode(transaction, 1)
  const { seed } = restated
  const character = name.slice(restated.domain.length)
  const outpoint = transaction.inputs[mint.input]
  if (outpoint === undefined) throw new MintError('BAD_UNLOCKING', `there is no input ${mint.input}`)
  if (!name.startsWith(restated.domain) || !isCharacter(ascii(character), restated)) throw notAChild()
  const before =
    spent && requireMinable({ node: placedNode(spent, outpoint), character: ascii(character), deployment })
  const { code, domain, claimed } = before
    ? { ...before.parent, claimed: claim(before.parent.claimed, character.charCodeAt(0)) }
    : restated
  if (name !== domain + character || !isClaimed(claimed, character.charCodeAt(0))) throw notAChild()
  if (seed.length === 0 || !meetsDifficulty(seed, deployment.difficulty)) {
    throw new MintError('BAD_WORK', `the seed has fewer than ${deployment.difficulty} zero bits`)
  }
  requireFinal(transaction, rulesOf({ code }, deployment))
  requireShortName(name, deployment)
  const script = outputOf(transaction, 2)?.lockingScript ?? new Uint8Array()
  requireShortScript(script, deployment)
  const afterLock = encodeNameOutput({ ownerLock: new Uint8Array(), name, deployment }).length
  const ownerLock = script.subarray(0, Math.max(0, script.length - afterLock))
  const scripts = mintScripts(
    {
      name,
      ownerLock,
      restated: { code, genesis, claimed, domain, seed },
      child: { code, genesis, claimed: UNCLAIMED, domain: name, seed },
    },
    deployment,
  )
  for (const [vout, lockingScript] of scripts.slice(0, nodesOnly ? 2 : 3).entries())
    requireOutput(transaction, { vout, lockingScript })
  return { name, domain }
}

function notAChild(): MintError {
  return new MintError('BAD_OUTPUT', 'output 1 is not a child of the node in output 0', { vout: 1 })
}

function readNode(transaction: TransactionView, vout: number): MineNode {
  const output = outputOf(transaction, vout)
  if (output === undefined) throw new MintError('BAD_OUTPUT', `output ${vout} is missing`, { vout })
  try {
    return decodeMineNode(output.lockingScript)
  } catch (cause) {
    if (!(cause instanceof MineNodeError)) throw cause
    throw new MintError('BAD_OUTPUT', `output ${vout} is not a node`, { vout, cause })
  }
}
