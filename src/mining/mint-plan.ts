import { type Transaction, Utils } from '@bsv/sdk'
import { ascii, joinBytes } from '../../backend/src/protocol/bytes.js'
import {
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

/** A solution and what it is for: enough to tell what the mint has in outputs 0 to 2, and what unlocks the node. */
export interface MintPlan {
  /** The live node. Its covenant is taken from its own script, ours or any other that keeps to the rules. */
  node: PlacedNode
  deployment: Deployment
  /** One character. */
  character: string
  nonce: Uint8Array
  /** The lock of the name. */
  ownerLock: Uint8Array
}

/** A plan that holds: the mint that it leads to. */
export interface SolvedPlan extends MintPlan {
  mint: Mint
  /** Outputs 0, 1 and 2. */
  outputs: SpentOutput[]
}

/**
 * Works out what a mint must look like.
 *
 * @throws MintError where the covenant would refuse it, whatever the transaction: see {@link solveMint}.
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
 * The unlocking script of the node in a transaction whose outputs are as they are to stay: the covenant commits to all
 * of them. Other inputs may be added, and signed, before or after (`ANYONECANPAY`).
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

/** What the covenant's signature commits to of a transaction that is not whole yet. */
export function preimageView({ version, inputs, outputs, lockTime }: Transaction): PreimageTransaction {
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
