import { ascii } from './bytes.js'
import { claim, decodeMineNode, isClaimed, type MineNode, MineNodeError, UNCLAIMED } from './mine-node.js'
import {
  checkMint,
  type Deployment,
  encodeNameOutput,
  isCharacter,
  type Mint,
  MintError,
  meetsDifficulty,
  mintScripts,
  placedNode,
  requireFinal,
  requireMinable,
  requireOutput,
  requireShortName,
  requireShortScript,
  rulesOf,
} from './mint.js'
import { hasCode, isStrictSpend, readMintUnlocking } from './mint-unlocking.js'
import { type Hash256, outputOf, type SpentOutput, type TransactionView } from './transaction.js'

/** A spend of a node, as `checkMint` takes it. */
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
