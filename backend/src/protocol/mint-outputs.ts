import { ascii } from './bytes.js'
import { claim, decodeMineNode, isClaimed, type MineNode, MineNodeError, UNCLAIMED } from './mine-node.js'
import {
  checkMint,
  type Deployment,
  encodeNameOutput,
  MintError,
  meetsDifficulty,
  mintScripts,
  requireMinable,
  requireOutput,
  requireShortName,
  requireShortScript,
} from './mint.js'
import type { SpentOutput } from './mint-unlocking.js'
import type { TransactionView } from './transaction.js'

/**
 * The name that a mint leaves: checked, and read from the outputs alone where the unlocking script takes too much to run.
 * Nobody can then stop a tree with such a script. For callers that know the scripts to be run, or the transaction to be in
 * the chain.
 *
 * @throws MintError as `checkMint` and {@link readMintOutputs}.
 */
export function followMint(check: Parameters<typeof checkMint>[0]): { name: string } {
  try {
    return checkMint(check)
  } catch (error) {
    if (error instanceof MintError && error.code === 'TOO_COSTLY') return readMintOutputs(check)
    throw error
  }
}

/**
 * The name that a mint leaves, read from its outputs alone. For a mint whose unlocking script takes too much to run
 * (`TOO_COSTLY`), where its scripts were run by somebody else or the chain has it: a genuine node that was spent was
 * spent by a mint (service.md 3.3), and its outputs are as the covenant wrote them.
 *
 * All that the outputs can show is checked as `checkMint` does. They cannot show that the new seed is the hash of the
 * old one, of the character and of a nonce, nor which lock the unlocking script named; for these the covenant alone
 * vouches.
 *
 * @param mint.input The index of the input that spends the node.
 * @param mint.spent The output which that input spends; without it, the node restated in output 0 is taken at its word.
 * @throws MintError `NOT_A_NODE`, `OTHER_TREE`, `BAD_CHARACTER`, `CLAIMED`, `TOO_LONG`, `BAD_WORK` or `BAD_OUTPUT`.
 */
export function readMintOutputs(mint: {
  transaction: TransactionView
  input: number
  deployment: Deployment
  spent?: SpentOutput
}): { name: string } {
  const { transaction, deployment, spent } = mint
  const { genesis } = deployment
  const restated = readNode(transaction, 0)
  const { domain: name } = readNode(transaction, 1)
  const { seed } = restated
  const character = name.slice(-1)
  const outpoint = transaction.inputs[mint.input]
  if (outpoint === undefined) throw new MintError('BAD_UNLOCKING', `there is no input ${mint.input}`)
  const before =
    spent && requireMinable({ node: { ...spent, outpoint }, character: ascii(character), deployment })
  const { code, domain, claimed } = before
    ? { ...before.parent, claimed: claim(before.parent.claimed, character.charCodeAt(0)) }
    : restated
  if (name !== domain + character || !isClaimed(claimed, character.charCodeAt(0))) {
    throw new MintError('BAD_OUTPUT', 'output 1 is no child of the node in output 0', { vout: 1 })
  }
  if (seed.length === 0 || !meetsDifficulty(seed, deployment.difficulty)) {
    throw new MintError('BAD_WORK', `the seed has fewer than ${deployment.difficulty} zero bits`)
  }
  requireShortName(name, deployment)
  const script = transaction.outputs[2]?.lockingScript ?? new Uint8Array()
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
  for (const [vout, lockingScript] of scripts.entries()) requireOutput(transaction, { vout, lockingScript })
  return { name }
}

function readNode(transaction: TransactionView, vout: number): MineNode {
  const output = transaction.outputs[vout]
  if (output === undefined) throw new MintError('BAD_OUTPUT', `output ${vout} is missing`, { vout })
  try {
    return decodeMineNode(output.lockingScript)
  } catch (cause) {
    if (!(cause instanceof MineNodeError)) throw cause
    throw new MintError('BAD_OUTPUT', `output ${vout} is no node`, { vout, cause })
  }
}
