import { BigNumber, Curve, OP as SDK_OP } from '@bsv/sdk'
import { ascii, concatBytes, joinBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { encodeEnvelope } from '../../backend/src/protocol/inscription.js'
import {
  type CovenantVersion,
  encodeMineNode,
  NAME_CHARACTERS,
  UNCLAIMED,
} from '../../backend/src/protocol/mine-node.js'
import { COVENANT_LIMITS, COVENANT_VERSIONS, type Deployment } from '../../backend/src/protocol/mint.js'
import {
  encodeMinimalPush,
  encodePush,
  encodeScriptNumber,
  OP,
} from '../../backend/src/protocol/script-walk.js'

/** Everything that is fixed when a tree is deployed, except the genesis. */
export type CovenantTerms = Omit<Deployment, 'genesis'>

export class CovenantError extends CodedError {
  override readonly name = 'CovenantError'
  readonly code = 'BAD_TERMS'
}

/**
 * The covenant of a mine tree (`docs/spec/protocol.md`, Nodes and Mints) as script up to the OP_RETURN before a node's state.
 * docs/covenant.md explains its versions and its parts.
 *
 * @param terms `limits`, if given, must be those of this covenant.
 * @throws CovenantError unless the version is 1 or 2, the difficulty is a whole number from 1 to 32, the content type has 1 to
 * 255 bytes, the marker 1 to 75, and the TLD, if any, 1 to 73: 75 with a dot and one character.
 */
export function covenantCode(terms: CovenantTerms): Uint8Array {
  return joinBytes(Object.values(covenantParts(terms)))
}

/**
 * The parts of the covenant, in order; {@link covenantCode} joins them.
 *
 * @throws CovenantError, as {@link covenantCode}.
 */
export function covenantParts(terms: CovenantTerms): Record<CovenantPart, Uint8Array> {
  requireTerms(terms)
  // The code contains the position of its own end, always as a number of two bytes, so the second pass knows it.
  let stateAt = 0
  for (;;) {
    const parts = assembleParts(terms, stateAt)
    const length = Object.values(parts).reduce((sum, part) => sum + part.length, 0)
    if (length + STATE_START === stateAt) return parts
    stateAt = length + STATE_START
  }
}

export type CovenantPart = keyof ReturnType<typeof assembleParts>

/** The OP_RETURN after the code, and the first field of the state, an empty push. */
const STATE_START = 2

function assembleParts(terms: CovenantTerms, stateAt: number) {
  const { covenantVersion: version } = terms
  return {
    preimage: assemble(authenticPreimage()),
    split: assemble(splitPreimage(version, stateAt)),
    genesis: assemble(readGenesis()),
    start: assemble(startNodeOutputs()),
    character: assemble(claimCharacter()),
    state: assemble(readDomainAndSeed(version)),
    work: assemble(proveWork(version, terms.difficulty)),
    states: assemble(writeStates(terms.tld)),
    nodes: assemble(writeNodeOutputs()),
    name: assemble(writeNameOutput(terms)),
    outputs: assemble(compareOutputs()),
  }
}

/**
 * The locking script of a tree's root as deployed: an empty domain, nothing claimed, and no genesis or seed. The outpoint
 * of the output that it locks, which must hold 1 satoshi, becomes the genesis.
 *
 * @throws CovenantError, as {@link covenantCode}.
 */
export function rootLock(terms: CovenantTerms): Uint8Array {
  const nothing = new Uint8Array()
  return encodeMineNode({ code: covenantCode(terms), claimed: UNCLAIMED, domain: '', seed: nothing })
}

function requireTerms(terms: CovenantTerms): void {
  const { difficulty, nameContentType, marker, tld, limits } = terms
  const { nameBytes, nameScriptBytes } = COVENANT_LIMITS
  if (!COVENANT_VERSIONS.includes(terms.covenantVersion))
    throw new CovenantError(
      `the version of the covenant must be ${COVENANT_VERSIONS.join(' or ')}, not ${terms.covenantVersion}`,
    )
  if (!Number.isInteger(difficulty))
    throw new CovenantError(`the difficulty ${difficulty} is not a whole number`)
  requireWithin('the difficulty', difficulty, 32)
  // Readers of envelopes ignore a longer content type (BRC-160).
  requireWithin('the bytes of the content type', utf8(nameContentType).length, 255)
  requireWithin('the bytes of the marker', marker.length, 75)
  if (tld !== undefined) requireWithin('the bytes of the TLD', utf8(tld).length, nameBytes - 2)
  if (limits && (limits.nameBytes !== nameBytes || limits.nameScriptBytes !== nameScriptBytes)) {
    throw new CovenantError('the limits are not those of this covenant')
  }
}

function requireWithin(what: string, value: number, most: number): void {
  if (value < 1 || value > most) throw new CovenantError(`${what}: ${value} is not between 1 and ${most}`)
}

/**
 * A part of a script in readable form. A text is a sequence of words separated by spaces: opcodes without their `OP_`, and
 * decimal numbers, which are pushed as script numbers. Bytes are pushed as they are. A list is a sequence of parts.
 */
export type ScriptPart = string | Uint8Array | readonly ScriptPart[]

/**
 * The bytes of a part, every push minimal.
 * @throws RangeError if a word is neither an opcode nor a whole number.
 */
export function assemble(part: ScriptPart): Uint8Array {
  if (typeof part === 'string') return joinBytes(part.split(' ').map(assembleWord))
  return part instanceof Uint8Array ? encodeMinimalPush(part) : joinBytes(part.map(assemble))
}

function assembleWord(word: string): Uint8Array {
  if (/^-?(0|[1-9][0-9]*)$/.test(word)) return encodeMinimalPush(encodeScriptNumber(Number(word)))
  const opcodes: Readonly<Record<string, unknown>> = SDK_OP
  const opcode = opcodes[`OP_${word}`]
  if (typeof opcode !== 'number') throw new RangeError(`not an opcode: ${JSON.stringify(word)}`)
  return Uint8Array.of(opcode)
}

// The parts of the covenant around its signature, in order. The comment on a line shows the stack after it, top to the
// right, and the alt stack after the bar. Each part starts with the stack that the previous one left.
//
//   c character   n nonce   l owner lock   t trailing outputs   p preimage
//   o outpoint and script length, k code and start of the state, s the remaining preimage
//   G genesis, pushed   K k and G: how both nodes start   v value and first length byte of a node's output
//   m claimed   M claimed with the new bit, pushed   dl d domain with its length byte   e the child's domain
//   N the name, pushed
//   S the new seed, pushed   A B the states of the restated node and the child after G   H hash of the outputs
//   O the outputs so far   X the script of output 2

/** Prefixes data with the length byte of its push. For up to 75 bytes; beyond that the byte would be another opcode. */
const PUSHED: ScriptPart = 'SIZE SWAP CAT'
const ONE_SATOSHI: ScriptPart = '1 8 NUM2BIN'
/** Prefix of a length of two bytes. */
const TWO_BYTE_LENGTH = Uint8Array.of(0xfd)

/**
 * Splits code and state off the preimage. Before the outpoint are version and two hashes, 68 bytes. ANYONECANPAY zeroes
 * the hashes, so all 68 read as a number are the version: version 2 requires 1, which forbids code in unlocking scripts. The
 * length of the script takes three bytes: every node of this covenant has at least 253 bytes, and at most 32,767.
 *
 * @param stateAt Bytes of the code and two more: where the genesis field starts, after the OP_RETURN and the first
 * field of the state, which is always the same.
 */
function splitPreimage(version: CovenantVersion, stateAt: number): ScriptPart {
  return [
    version === 1 ? '68 SPLIT NIP' : '68 SPLIT SWAP BIN2NUM 1 NUMEQUALVERIFY', // c n l t outpoint..
    '39 SPLIT', //                               c n l t o script..
    `${stateAt} SPLIT`, //                       c n l t o k s
  ]
}

/**
 * The root as deployed cannot contain its own outpoint: its genesis field is empty, and the outpoint being spent is the
 * genesis. So in both cases the genesis is the first 36 bytes of the field followed by that outpoint.
 */
function readGenesis(): ScriptPart {
  return [
    // A length of zero is the byte 00, which is not a minimal number before BIN2NUM converts it.
    '1 SPLIT SWAP BIN2NUM SPLIT TOALTSTACK', //  c n l t o k genesis | s
    'ROT CAT 36 SPLIT DROP', //                  c n l t k genesis | s
    [PUSHED, 'TUCK CAT'], //                     c n l t G K | s
  ]
}

function startNodeOutputs(): ScriptPart {
  return [ONE_SATOSHI, TWO_BYTE_LENGTH, 'CAT SWAP 2DUP'] // c n l t G v K v K | s
}

/**
 * Sets the bit of the character, and fails unless that changed a bit that belongs to a character of names: so the
 * character is valid, and was not claimed before.
 *
 * `claimed` is a little-endian number, but RSHIFT reads bytes as a big-endian one. For the character code 8q + r, a one in
 * the first byte, shifted right by 8q - r, is bit r of byte q. 8q - r is the code XOR 7, minus 7; XOR needs one byte.
 */
function claimCharacter(): ScriptPart {
  return [
    'FROMALTSTACK 1 SPLIT SWAP SPLIT TOALTSTACK', // c n l t G v K v K m | s
    '16 NUM2BIN 1 16 NUM2BIN', //                    .. m one | s
    '10 PICK 7 XOR 7 SUB RSHIFT', //                 .. m bit | s
    'OVER OR TUCK XOR', //                           .. m' change | s
    // AND needs equal lengths; the first five bytes hold no valid character.
    ['5 SPLIT NIP', characterMask().subarray(5), 'AND VERIFY'], // .. m' | s
    ['BIN2NUM', PUSHED], //                          c n l t G v K v K M | s
  ]
}

/**
 * Reads the remaining state. It is followed by 5 bytes of trailer, value and sequence, the hash of outputs, and the lock
 * time, which version 2 compares as bytes: as a number, 0x80000000 would also be 0.
 */
function readDomainAndSeed(version: CovenantVersion): ScriptPart {
  return [
    'FROMALTSTACK 1 SPLIT OVER BIN2NUM SPLIT', // c n l t G v K v K M dl d s
    '1 SPLIT SWAP BIN2NUM SPLIT', //              .. M dl d seed s
    '17 SPLIT NIP 32 SPLIT', //                   .. M dl d seed H s
    version === 1 ? 'DROP TOALTSTACK' : '4 SPLIT DROP 0 4 NUM2BIN EQUALVERIFY TOALTSTACK', // .. M dl d seed | H
  ]
}

/**
 * hash256(seed, character, nonce) is the new seed of both nodes, if it meets the difficulty. In version 2 the nonce starts
 * with a commitment to the domain, the genesis and the owner's lock.
 */
function proveWork(version: CovenantVersion, difficulty: number): ScriptPart {
  const commitment: ScriptPart[] = [
    'OVER 9 PICK CAT 11 PICK SHA256 CAT SHA256 8 SPLIT DROP', // .. d seed commitment | H
    '12 PICK 8 SPLIT DROP EQUALVERIFY', //                       .. M dl d seed | H
  ]
  return [
    ...(version === 1 ? [] : commitment),
    '12 PICK CAT 11 ROLL CAT HASH256', //       c l t G v K v K M dl d seed' | H
    [meetDifficulty(difficulty), PUSHED], //    c l t G v K v K M dl d S | H
  ]
}

/**
 * The hash must end in this many zero bits, because it is displayed byte-reversed: its last bytes, as a little-endian
 * number, are below a power of two. An appended byte 00 keeps them from being negative, or a negative zero.
 *
 *     .. hash -> .. hash
 */
export function meetDifficulty(difficulty: number): ScriptPart {
  const bytes = Math.ceil(difficulty / 8)
  return [
    `DUP ${32 - bytes} SPLIT NIP`,
    Uint8Array.of(0),
    `CAT BIN2NUM ${2 ** (8 * bytes - difficulty)} LESSTHAN VERIFY`,
  ]
}

/** Writes the states, in which the two nodes differ. A new node has claimed nothing: the number 0, in one byte. */
function writeStates(tld: string | undefined): ScriptPart {
  return [
    'OVER 12 ROLL CAT', //                                          l t G v K v K M dl d S e | H
    pushName(tld), //                                               .. M dl d S E | H N
    [Uint8Array.of(1, 0), 'SWAP CAT OVER CAT TOALTSTACK'], //       .. M dl d S | H N B
    'CAT CAT CAT', //                                               l t G v K v K A | H N B
  ]
}

/**
 * Pushes the child's domain for its state, E, and the name for the envelope, N; they differ by the TLD. The longer of
 * the two must not exceed what a length byte can push.
 *
 *     .. e | ..  ->  .. E | .. N
 */
function pushName(tld: string | undefined): ScriptPart {
  const capped: ScriptPart = `SIZE DUP ${COVENANT_LIMITS.nameBytes + 1} LESSTHAN VERIFY SWAP CAT`
  if (tld === undefined) return [capped, 'DUP TOALTSTACK']
  return ['DUP', utf8(`.${tld}`), 'CAT', capped, 'TOALTSTACK', PUSHED]
}

/** Outputs 0 and 1: both nodes, each with the trailer of its state, the length of its script, and its satoshi. */
function writeNodeOutputs(): ScriptPart {
  // The state also holds its first field and the genesis, 38 bytes. Its length of four bytes and the last byte, 00, are
  // one number of five. NUM2BIN fails if it does not fit.
  const finish: ScriptPart = ['SIZE 38 ADD 5 NUM2BIN CAT CAT', 'SIZE 2 NUM2BIN SWAP CAT CAT']
  return [
    finish, //                        l t G v K O | H N B
    'ROT ROT FROMALTSTACK', //        l t G O v K B | H N
    [finish, 'CAT'], //               l t G O | H N
  ]
}

/** Output 2: the owner's lock, the envelope with the name, and an OP_RETURN with marker and genesis. */
function writeNameOutput(terms: { nameContentType: string; marker: Uint8Array }): ScriptPart {
  const envelope = encodeEnvelope({ contentType: terms.nameContentType, body: new Uint8Array() })
  const beforeName = envelope.subarray(0, -1)
  const afterName = concatBytes(Uint8Array.of(OP.ENDIF, OP.RETURN), encodePush(terms.marker))
  return [
    [ONE_SATOSHI, 'CAT 3 ROLL'], //                                 t G O l | H N
    [beforeName, 'CAT FROMALTSTACK CAT', afterName, 'CAT'], //      t G O X | H
    'ROT CAT', //                                                   t O X | H
    writeLength(), //                                               t O X | H
  ]
}

/**
 * Prefixes an output's script with its length: one byte, or from 253 on the byte `fd` and two more. A third byte that is
 * not zero must fail: a truncated length would end output 2 within the owner's lock, and the miner could make the
 * remaining bytes look like further outputs.
 *
 *     .. X -> .. X
 */
function writeLength(): ScriptPart {
  return [
    'SIZE DUP 3 NUM2BIN SWAP 253 LESSTHAN', //                       X length short?
    ['IF 1 ELSE', TWO_BYTE_LENGTH, 'SWAP CAT 3 ENDIF SPLIT'], //     X length remainder
    'BIN2NUM NOT VERIFY SWAP CAT', //                                X
  ]
}

/** Checks that the outputs of the transaction are exactly those three and the trailing ones. */
function compareOutputs(): ScriptPart {
  return 'CAT SWAP CAT HASH256 FROMALTSTACK EQUAL' // whether they are
}

/** The bits of all valid characters, in the format of `claimed`, at full width. */
function characterMask(): Uint8Array {
  const mask = new Uint8Array(16)
  for (const code of ascii(NAME_CHARACTERS)) mask[code >> 3] = (mask[code >> 3] ?? 0) | (1 << (code & 7))
  return mask
}

/** ALL | FORKID | ANYONECANPAY, as the byte after a signature. */
const SIGHASH_TYPE = 0xc1

/**
 * V + 512, V being the first byte of the message hash, falls into three classes of 114 values: 512 to 569, 570 to 683
 * and 684 to 767. The shifts 57, -57 and -171 move V onto 1 to 114 in each.
 */
const CLASS_SIZE = 114
const NEAR_SHIFT = 57
const FAR_SHIFT = -171

/**
 * Checks that the preimage belongs to this input, by a signature that the script computes.
 *
 * ECDSA with the nonce k = 1 has r = G.x, and s = z + r·d for a key d. With d = c / r that is s = z + c: the message
 * hash plus a constant. For c = T·2^248 only the first byte changes. T depends on that byte, so that the sum never
 * carries, never needs a padding byte, and stays below half the order: low S, 71 bytes, for every hash.
 *
 * CHECKSIG hashes the transaction itself, while the signature is for the hash of the pushed preimage. The private keys
 * are public, and nothing depends on them.
 *
 *     … p -> … p
 */
function authenticPreimage(): ScriptPart {
  return [
    // SPLIT cuts V off; appending the byte 02 makes it the number V + 512, which is positive and minimal for every V.
    'DUP HASH256 1 SPLIT TOALTSTACK 2 CAT', // p V+512 | z[1..31]
    // DIV by the same number distinguishes the classes: 4, 5, 6. Both numbers are positive: interpreters disagree about the
    // quotient of a negative one, which some round down.
    `${CLASS_SIZE} 2DUP MOD 1ADD`, // p V+512 114 V+T | z[1..31]
    [signatureStart(), 'SWAP CAT FROMALTSTACK CAT', Uint8Array.of(SIGHASH_TYPE), 'CAT'], // p V+512 114 sig
    'ROT ROT DIV 6 SWAP SUB', // p sig j: 2 for T = 57, 1 for -57, 0 for -171
    // 57 and -57 have keys d and -d: the same X, with j + 1 as the prefix. IFDUP keeps a j only for the branch that needs
    // it; 0NOTEQUAL makes a strict boolean, as MINIMALIF requires.
    ['IFDUP 0NOTEQUAL IF 1ADD', keyOf(NEAR_SHIFT).subarray(1), 'CAT ELSE', keyOf(FAR_SHIFT), 'ENDIF'],
    'CHECKSIGVERIFY', // p
  ]
}

/** DER up to s, whose 32 bytes follow: neither r nor s has its top bit set, so neither is padded. */
function signatureStart(): Uint8Array {
  const r = new Curve().g.getX().toArray('be', 32)
  return Uint8Array.of(0x30, 4 + r.length + 32, 0x02, r.length, ...r, 0x02, 32)
}

/** The compressed public key of d = T·2^248 / r, modulo the order of the curve. */
function keyOf(shift: number): Uint8Array {
  const { g, n } = new Curve()
  const constant = new BigNumber(shift).mul(new BigNumber(2).pow(new BigNumber(248)))
  const key = g.mul(constant.mul(g.getX().invm(n)).umod(n))
  return concatBytes(Uint8Array.of(key.getY().isOdd() ? 3 : 2), Uint8Array.from(key.getX().toArray('be', 32)))
}
