import { encodeNumber } from './byte-cursor.js'
import { ascii, concatBytes, equalBytes, fromHex, readUtf8 } from './bytes.js'
import { CodedError } from './coded-error.js'
import { decodeOutpoint, encodeOutpoint, type Outpoint } from './outpoint.js'
import { encodePush, OP, ScriptWalk } from './script-walk.js'

/**
 * The rules that a covenant has in addition to those of the live one (docs/covenant.md).
 *
 * - 1: none. A mint may have any transaction version and lock time, and its work is good for any owner.
 * - 2: a mint has transaction version 1 and lock time 0, and its nonce starts with `ownerCommitment`.
 */
export type CovenantVersion = (typeof COVENANT_VERSIONS)[number]
export const COVENANT_VERSIONS = [1, 2] as const

/** How a covenant of `src/mining` starts, and the code that splits its preimage: from there on the versions differ. */
const CODE_START = fromHex('76aa517f6b527e0172')
const SPLIT_AT = 139
const SPLITS: readonly [CovenantVersion, Uint8Array][] = [
  [1, fromHex('01447f77')],
  [2, fromHex('01447f7c81519d')],
]

/**
 * The version of a covenant that minetree deploys, read off its code; undefined for any other covenant, such as the live
 * one. A node has the code of its genesis, so the code overrides any setting.
 */
export function versionOfCode(code: Uint8Array): CovenantVersion | undefined {
  const has = (bytes: Uint8Array, at: number): boolean =>
    equalBytes(code.subarray(at, at + bytes.length), bytes)
  if (!has(CODE_START, 0)) return undefined
  return SPLITS.find(([, split]) => has(split, SPLIT_AT))?.[0]
}

/** A node of the mine tree as its locking script states it (`docs/spec/protocol.md`, Nodes). */
export interface MineNode {
  /** The covenant, up to the OP_RETURN of the state. */
  code: Uint8Array
  /** The outpoint of the tree's deployment. Absent in the root as deployed, which cannot know its own. */
  genesis?: Outpoint
  /** The characters claimed from this node: bit n for character code n, a minimal little-endian number. */
  claimed: Uint8Array
  /** The prefix of this node; empty for the root. No name if zero bytes follow one of its characters. */
  domain: string
  /** The seed of the next solution (the field `pow`): 32 bytes, or none in the root as deployed. */
  seed: Uint8Array
}

/** A script that does not end in the state of a mine tree node. */
export class MineNodeError extends CodedError {
  override readonly name = 'MineNodeError'
  readonly code = 'NOT_A_NODE'
}

/** The characters that names are made of (`docs/spec/protocol.md`, Nodes). */
export const NAME_CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-'

const NAME_CODES: ReadonlySet<number> = new Set(ascii(NAME_CHARACTERS))
/** How many characters a name can have, where a covenant does not set a tighter limit. */
export const MAX_NAME_LENGTH = 255
/** Matches a whole name. */
export const NAME_PATTERN = /^[a-z0-9-]{1,255}$/

export function isNameCharacter(code: number): boolean {
  return NAME_CODES.has(code)
}

/** Whether a text is a name: 1 to 255 characters of `a-z 0-9 -` (http.md). */
export function isName(text: string): boolean {
  return NAME_PATTERN.test(text)
}

/**
 * The name that a text with capitals, or spaces around it, stands for, as for hosts. Nothing else is guessed: other alphabets
 * have letters that look like these, and `my name` may be `my-name` or `myname`. Undefined if it is still no name.
 */
export function nameMeant(text: string): string | undefined {
  const name = text.trim().replace(/[A-Z]/g, (capital) => capital.toLowerCase())
  return isName(name) ? name : undefined
}

/** Nothing claimed: the number zero in its one byte. */
export const UNCLAIMED: Uint8Array = Uint8Array.of(0)

/** Whether the bit of a character code is set in `claimed`. */
export function isClaimed(claimed: Uint8Array, characterCode: number): boolean {
  return (((claimed[characterCode >> 3] ?? 0) >> (characterCode & 7)) & 1) === 1
}

/**
 * `claimed` with the bit of a character code set. The result is minimally encoded: as long as its highest set bit
 * needs, and one byte `00` more where that bit would read as the sign of a script number.
 */
export function claim(claimed: Uint8Array, characterCode: number): Uint8Array {
  const at = characterCode >> 3
  // One byte of room for the sign.
  const bits = new Uint8Array(Math.max(claimed.length, at + 1) + 1)
  bits.set(claimed)
  bits[at] = (bits[at] ?? 0) | (1 << (characterCode & 7))
  let length = bits.length - 1
  while (bits[length - 1] === 0) length--
  return bits.slice(0, (bits[length - 1] ?? 0) < 0x80 ? length : length + 1)
}

/** The state's first field, before the genesis: always a push of nothing. */
const FIRST_FIELD = Uint8Array.of(OP.FALSE)
/** A u32 with the length of the state, and the byte `00` that ends the script. */
const TRAILER_LENGTH = 5

/**
 * Reads a node from the end of its locking script: the byte 0, the length of the state, the state, and the OP_RETURN
 * before it. Strict, so that scripts and nodes correspond one to one: five fields and nothing else, pushes minimal
 * by length byte, `claimed` a minimal number, the domain of name characters and zero bytes after them.
 *
 * That a script reads as a node says nothing about its lineage: anyone can write one.
 *
 * @returns byte fields are views into the script.
 * @throws MineNodeError (`NOT_A_NODE`) if the script is anything else.
 */
export function decodeMineNode(lockingScript: Uint8Array): MineNode {
  const node = parseMineNode(lockingScript)
  if (typeof node === 'string') throw new MineNodeError(node)
  return node
}

/** The node in a locking script, as {@link decodeMineNode}; undefined if there is none. */
export function mineNodeIn(lockingScript: Uint8Array): MineNode | undefined {
  const node = parseMineNode(lockingScript)
  return typeof node === 'string' ? undefined : node
}

/** @returns The node, or why the script is none. Not thrown, as most scripts are none, and an error takes as long as all the rest. */
function parseMineNode(lockingScript: Uint8Array): MineNode | string {
  const stateEnd = lockingScript.length - TRAILER_LENGTH
  if (stateEnd < 1 || lockingScript.at(-1) !== 0) return 'the script has no state trailer'
  const { buffer, byteOffset } = lockingScript
  const stateLength = new DataView(buffer, byteOffset + stateEnd, 4).getUint32(0, true)
  const returnAt = stateEnd - stateLength - 1
  if (returnAt < 0 || lockingScript[returnAt] !== OP.RETURN)
    return 'the state does not start with an OP_RETURN'
  const fields: Uint8Array[] = []
  const walk = new ScriptWalk(lockingScript.subarray(returnAt + 1, stateEnd))
  while (fields.length < 5 && walk.next()) {
    if (walk.data === undefined || !walk.isShortest) break
    fields.push(walk.data)
  }
  const [first, genesis, claimed, domain, seed] = fields
  if (!first || !genesis || !claimed || !domain || !seed || walk.end !== stateLength)
    return 'the state does not have exactly five fields'
  if (first.length !== 0) return 'the first field of the state is not empty'
  if (genesis.length !== 0 && genesis.length !== 36) return 'the genesis field is not an outpoint'
  if (!isMinimalNumber(claimed)) return 'the claimed field is not a minimally encoded number'
  if (!isDomain(domain)) return 'the domain has characters other than a-z 0-9 -'
  if (seed.length !== 0 && seed.length !== 32) return 'the seed is not a hash of 32 bytes'
  return {
    code: lockingScript.subarray(0, returnAt),
    genesis: genesis.length === 0 ? undefined : decodeOutpoint(genesis),
    claimed,
    domain: readUtf8(domain),
    seed,
  }
}

/** Writes the locking script of a node. Does not check the fields; those of a decoded node give its script back. */
export function encodeMineNode(node: MineNode): Uint8Array {
  const state = concatBytes(
    FIRST_FIELD,
    encodePush(node.genesis === undefined ? new Uint8Array() : encodeOutpoint(node.genesis)),
    encodePush(node.claimed),
    encodePush(ascii(node.domain)),
    encodePush(node.seed),
  )
  return concatBytes(node.code, Uint8Array.of(OP.RETURN), state, encodeNumber(state.length, TRAILER_LENGTH))
}

/** Whether bytes are name characters, each followed by any number of zero bytes: the live covenant lets them through. */
function isDomain(bytes: Uint8Array): boolean {
  return bytes.every((code, at) => isNameCharacter(code) || (code === 0 && at > 0))
}

/** Whether bytes are a positive script number without spare bytes, zero being the one byte `00`. */
function isMinimalNumber(bytes: Uint8Array): boolean {
  const top = bytes.at(-1)
  if (top === undefined || top >= 0x80) return false
  return top !== 0 || bytes.length === 1 || (bytes.at(-2) ?? 0) >= 0x80
}

/** The longest prefix that two names or domains share. */
export function sharedPrefix(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, length)
}
