import { joinBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { encodeMineNode, UNCLAIMED } from '../../backend/src/protocol/mine-node.js'
import { COVENANT_LIMITS, COVENANT_VERSIONS, type Deployment } from '../../backend/src/protocol/mint.js'
import {
  assemble,
  authenticPreimage,
  claimCharacter,
  compareOutputs,
  proveWork,
  readDomainAndSeed,
  readGenesis,
  splitPreimage,
  startNodeOutputs,
  writeNameOutput,
  writeNodeOutputs,
  writeStates,
} from './covenant-parts.js'

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
