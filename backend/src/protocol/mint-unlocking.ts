import { encodeNumber, encodeVarint } from './byte-cursor.js'
import { ascii, concatBytes, joinBytes } from './bytes.js'
import { encodeOutpoint } from './outpoint.js'
import { encodeMinimalPush, OP, readPushes, ScriptWalk } from './script-walk.js'
import {
  type Hash256,
  hash256,
  type SpentOutput,
  serialisedOutputs,
  type TransactionInput,
  type TransactionOutput,
  type TransactionView,
} from './transaction.js'

/** The five items that unlock a node, in the order in which they are pushed (`docs/spec/protocol.md`, Mints). */
export interface MintUnlocking<Character> {
  character: Character
  nonce: Uint8Array
  /** The lock that output 2 starts with. */
  ownerLock: Uint8Array
  /** The outputs after index 2, serialised one after another. */
  trailing: Uint8Array
  preimage: Uint8Array
}

/** The parts of a transaction that a preimage commits to; any {@link TransactionView} will do. */
export interface PreimageTransaction {
  version: number
  inputs: readonly Pick<TransactionInput, 'txid' | 'vout' | 'sequence'>[]
  outputs: readonly Pick<TransactionOutput, 'bytes'>[]
  lockTime: number
}

/** SIGHASH_ALL | SIGHASH_FORKID | SIGHASH_ANYONECANPAY, as four bytes. */
const SIGHASH_TYPE = Uint8Array.of(0xc1, 0, 0, 0)
/** ANYONECANPAY blanks the hashes of all outpoints and of all sequences. */
const BLANK_HASH = new Uint8Array(32)
/** The bytes before the script in a preimage: version, two hashes, outpoint. */
const BEFORE_SCRIPT = 4 + 32 + 32 + 36
/** The bytes after it: value, sequence, hash of outputs, lock time, sighash type. */
const AFTER_SCRIPT = 8 + 4 + 32 + 4 + 4

/**
 * Writes the unlocking script of a node: five pushes, each minimal by the rules of script, which nodes of the network
 * may enforce.
 */
export function encodeMintUnlocking(unlocking: MintUnlocking<string>): Uint8Array {
  const { character, nonce, ownerLock, trailing, preimage } = unlocking
  return joinBytes([ascii(character), nonce, ownerLock, trailing, preimage].map(encodeMinimalPush))
}

/**
 * Reads the items that a script of pushes leaves for the covenant: the last five; undefined if there are fewer, or if the script
 * is not pushes only. Accepts pushes of any form, since the covenant sees what they push, and pushes before the five, which it
 * does not see: the rules of a block let a script leave items behind.
 */
export function readMintUnlocking(script: Uint8Array): MintUnlocking<Uint8Array> | undefined {
  const walk = new ScriptWalk(script)
  // The starts of the last five, in turn: views of all tiny pushes would take a hundred times the size of the script.
  const starts = [0, 0, 0, 0, 0]
  let count = 0
  let end = 0
  for (; walk.next(); end = walk.end) {
    if (walk.pushedLength === undefined) return undefined
    starts[count++ % starts.length] = walk.start
  }
  if (end !== script.length) return undefined
  const at = starts[count % starts.length]
  const [character, nonce, ownerLock, trailing, preimage] = readPushes(script, { at, limit: starts.length })
  if (!character || !nonce || !ownerLock || !trailing || !preimage) return undefined
  return { character, nonce, ownerLock, trailing, preimage }
}

/**
 * Sizes that a node relays unless its operator sets more: `maxscriptsizepolicy`, `maxtxsizepolicy` (Bitcoin SV, `policy/policy.h`).
 */
const MAX_RELAYED_SCRIPT = 500_000
const MAX_RELAYED_TRANSACTION = 10_000_000
/** The versions that a node takes for standard (`IsStandardTx` in `policy/policy.cpp`). */
const RELAYED_VERSIONS: readonly number[] = [1, 2]

/**
 * Whether a transaction spends a node as every node of the network relays it: by exactly the five minimal pushes that {@link
 * encodeMintUnlocking} writes, the character in one byte, and within the default policy for sizes and versions. Any other spend
 * may be valid to one node and invalid to the next, or wait for a miner who takes it.
 *
 * @param script The unlocking script of the input that may spend a node.
 * @param options.ofAnySize Whether sizes over the policy are left to the miner.
 */
export function isStrictSpend(
  { raw, version }: Pick<TransactionView, 'raw' | 'version'>,
  script: Uint8Array,
  { ofAnySize = false } = {},
): boolean {
  const isRelayed = script.length <= MAX_RELAYED_SCRIPT && raw.length <= MAX_RELAYED_TRANSACTION
  return (ofAnySize || isRelayed) && RELAYED_VERSIONS.includes(version) && isStrictUnlocking(script)
}

function isStrictUnlocking(script: Uint8Array): boolean {
  const walk = new ScriptWalk(script)
  let count = 0
  let end = 0
  for (; walk.next(); end = walk.end) {
    if (++count > 5 || !isMinimalPush(walk)) return false
    // The live covenant reads the character as a number, and relaying nodes want numbers minimal: no zero bytes behind it.
    if (count === 1 && walk.pushedLength !== 1) return false
  }
  return count === 5 && end === script.length
}

/** Whether the walk is at a push of the form that {@link encodeMinimalPush} writes. */
function isMinimalPush(walk: ScriptWalk): boolean {
  const { script, op, end, pushedLength } = walk
  if (op > OP.PUSHDATA4) return pushedLength !== undefined
  if (!walk.isShortest) return false
  return pushedLength !== 1 || encodeMinimalPush(script.subarray(end - 1, end)).length === 2
}

/** Whether a script has anything but pushes. A truncated push is not one. */
export function hasCode(script: Uint8Array): boolean {
  const walk = new ScriptWalk(script)
  while (walk.next()) if (walk.pushedLength === undefined) return true
  return false
}

/**
 * The sighash preimage of one input (the BIP143 form that forkid signatures keep), for ALL | FORKID | ANYONECANPAY:
 * all outputs, this input and nothing of the others. The script code is the full script that is spent.
 *
 * @param of.input The index of the input.
 * @param of.spent The output that it spends.
 * @throws RangeError if the transaction has no such input, or the value is not an integer below 2^53.
 */
export function mintPreimage(of: {
  transaction: PreimageTransaction
  input: number
  spent: SpentOutput
  hash?: Hash256
}): Uint8Array {
  const { transaction, spent, hash = hash256 } = of
  const input = transaction.inputs[of.input]
  if (input === undefined) throw new RangeError(`the transaction has no input ${of.input}`)
  if (!Number.isSafeInteger(spent.satoshis)) throw new RangeError('a value must be an integer below 2^53')
  return concatBytes(
    encodeNumber(transaction.version, 4),
    BLANK_HASH,
    BLANK_HASH,
    encodeOutpoint(input),
    encodeVarint(spent.lockingScript.length),
    spent.lockingScript,
    encodeNumber(spent.satoshis, 8),
    encodeNumber(input.sequence, 4),
    hashOfOutputs(transaction, hash),
    encodeNumber(transaction.lockTime, 4),
    SIGHASH_TYPE,
  )
}

const outputHashes = new WeakMap<PreimageTransaction, Uint8Array>()

/** The hash of all outputs. Cached, as the inputs of a transaction are checked one after another. */
function hashOfOutputs(transaction: PreimageTransaction, hash: Hash256): Uint8Array {
  const known = outputHashes.get(transaction)
  if (known !== undefined) return known
  const hashed = hash(serialisedOutputs(transaction))
  outputHashes.set(transaction, hashed)
  return hashed
}

/**
 * The spent output as a preimage states it; undefined if there are too few bytes, or the value is beyond 2^53.
 * Not checked: compare with a preimage rebuilt from the result.
 */
export function readPreimageSpent(preimage: Uint8Array): SpentOutput | undefined {
  const scriptEnd = preimage.length - AFTER_SCRIPT
  const size = [1, 3, 5].find((bytes) => encodeVarint(scriptEnd - BEFORE_SCRIPT - bytes).length === bytes)
  const scriptStart = BEFORE_SCRIPT + (size ?? Number.POSITIVE_INFINITY)
  if (scriptStart > scriptEnd) return undefined
  const view = new DataView(preimage.buffer, preimage.byteOffset, preimage.length)
  const satoshis = Number(view.getBigUint64(scriptEnd, true))
  if (!Number.isSafeInteger(satoshis)) return undefined
  return { satoshis, lockingScript: preimage.subarray(scriptStart, scriptEnd) }
}
