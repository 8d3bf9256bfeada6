import { UnlockingScript, Utils } from '@bsv/sdk'
import { ascii, joinBytes } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import {
  checkMint,
  type Deployment,
  encodeMintUnlocking,
  MINT_SATOSHIS,
  type Mint,
  mintPreimage,
  mintScripts,
  type PlacedNode,
  type PreimageTransaction,
  type SpentOutput,
  solveMint,
} from '../../backend/src/protocol/mint.js'
import { runScripts } from '../../backend/src/protocol/run-scripts.js'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { readTransaction, type TransactionView } from '../../backend/src/protocol/transaction.js'
import { MiningError } from './mining-error.js'

/** A solution and what it applies to. It determines outputs 0 to 2 of the mint, and the unlocking script of the node. */
export interface MintPlan {
  /** The live node. Its script contains the covenant: ours, or any other that follows the rules. */
  node: PlacedNode
  deployment: Deployment
  /** One character. */
  character: string
  nonce: Uint8Array
  /** The lock of the name. */
  ownerLock: Uint8Array
}

export interface SolvedPlan extends MintPlan {
  mint: Mint
  /** Outputs 0, 1 and 2. */
  outputs: SpentOutput[]
}

/**
 * Computes the outputs of a mint.
 *
 * @throws MintError if the covenant would reject it in any transaction: see {@link solveMint}.
 */
export function solvePlan(plan: MintPlan): SolvedPlan {
  const mint = solveMint({ ...plan, character: ascii(plan.character) })
  const outputs = mintScripts(mint, plan.deployment).map((lockingScript) => ({
    satoshis: MINT_SATOSHIS,
    lockingScript,
  }))
  return { ...plan, mint, outputs }
}

/**
 * The unlocking script of the node in a transaction whose outputs are final: the covenant commits to all of them. Other inputs
 * may be added and signed before or after (`ANYONECANPAY`).
 *
 * @param unlocked.input The index of the input that spends the node.
 */
export function unlockNode(unlocked: {
  plan: MintPlan
  transaction: PreimageTransaction
  input: number
}): Uint8Array {
  const { plan, transaction, input } = unlocked
  const { character, nonce, ownerLock, node } = plan
  return encodeMintUnlocking({
    character,
    nonce,
    ownerLock,
    trailing: joinBytes(transaction.outputs.slice(3).map(({ bytes }) => bytes)),
    preimage: mintPreimage({ transaction, input, spent: node }),
  })
}

/** The parts of an unfinished transaction that the covenant's signature commits to. */
export function preimageView({ version, inputs, outputs, lockTime }: sdk.Transaction): PreimageTransaction {
  return {
    version,
    lockTime,
    inputs: inputs.map(({ sourceTXID, sourceTransaction, sourceOutputIndex, sequence = FINAL }) => ({
      txid: sourceTXID ?? sourceTransaction?.id('hex') ?? '',
      vout: sourceOutputIndex,
      sequence,
    })),
    outputs: outputs.map(({ satoshis = 0, lockingScript }) => {
      const script = lockingScript.toUint8Array()
      return {
        bytes: new Utils.Writer()
          .writeUInt64LE(satoshis)
          .writeVarIntNum(script.length)
          .write(script)
          .toUint8Array(),
      }
    }),
  }
}

const FINAL = 0xffffffff

/** Unlocks the node of a plan when the SDK signs inputs; all outputs must be present, with their values. */
export class NodeUnlock implements sdk.ScriptTemplateUnlock {
  constructor(private readonly plan: MintPlan) {}

  async sign(transaction: sdk.Transaction, input: number): Promise<sdk.UnlockingScript> {
    return UnlockingScript.fromBinary(Array.from(this.bytes(transaction, input)))
  }

  /** The exact length, which does not depend on the values of outputs. */
  async estimateLength(transaction: sdk.Transaction, input: number): Promise<number> {
    return this.bytes(transaction, input).length
  }

  private bytes(transaction: sdk.Transaction, input: number): Uint8Array {
    return unlockNode({ plan: this.plan, transaction: preimageView(transaction), input })
  }
}

export interface SignedMint {
  mint: Mint
  /** Includes its sources, so that `writeBeef` can write them. */
  transaction: sdk.Transaction
}

/** A solution, and the transaction of the node, with its proof or ancestors. */
export interface MintDraft {
  plan: MintPlan
  source: sdk.Transaction
  /** The highest fee that the mint may have, in satoshis. */
  maxFee: number
}

export interface PaidMint extends SignedMint {
  beef: Uint8Array
  /** In satoshis. */
  fee: number
}

/** Pays for mints, and chooses the owners of the names. */
export interface MintPayer {
  /** Pays for a mint and signs it. Throwing ends the mining, unless the node has moved meanwhile. */
  pay(draft: MintDraft): Promise<PaidMint>
  /**
   * The lock of a name or of one of its prefixes. Called before each search, because a solution may be valid for one owner only;
   * throwing ends the mining.
   */
  ownerLock(name: string): Promise<Uint8Array>
  /**
   * Called when the index refuses a paid mint and has shown another one, verified, in its place.
   *
   * @param other.proven Whether everything that the index showed is in blocks.
   * @throws MiningError `UNDECIDED` if the paid mint may still count: then mining ends.
   */
  lost?(mint: PaidMint, other: { proven: boolean }): Promise<void>
}

/** In units of `runScripts`: many times the work of a covenant, and less than a second. */
const MAX_SCRIPT_WORK = 30_000_000

/**
 * Checks a mint before it is sent, as an indexer does, and as miners do, who run the script of the node.
 *
 * @param signed.input The index of the input that spends the node.
 * @throws MintError if it is not a mint; MiningError `OTHER_TREE` if the script rejects it, because the tree was deployed with
 * other terms than those of the plan.
 */
export function finishMint(signed: {
  plan: SolvedPlan
  transaction: sdk.Transaction
  input: number
}): SignedMint {
  const { plan, transaction, input } = signed
  const { deployment, node } = plan
  const view = readTransaction(Uint8Array.from(transaction.toUint8Array()))
  const mint = checkMint({ transaction: view, input, deployment, spent: node })
  requireUnlocked(view, { input, node })
  return { transaction, mint }
}

function requireUnlocked(
  { txid, raw }: TransactionView,
  { input, node }: { input: number; node: SpentOutput },
): void {
  const spent: SpentOutput[] = []
  spent[input] = node
  try {
    for (const _ of runScripts([{ txid, raw, spent, input }], { maxWork: MAX_SCRIPT_WORK }));
  } catch (cause) {
    const reason = messageOf(cause)
    throw new MiningError(
      'OTHER_TREE',
      `the script of the node rejects the mint: the tree has another covenant version, difficulty, marker or TLD (${reason})`,
      { cause },
    )
  }
}
