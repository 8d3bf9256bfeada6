import { joinBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { COVENANT_LIMITS } from '../../backend/src/protocol/covenant-limits.js'
import { encodeMineNode, UNCLAIMED } from '../../backend/src/protocol/mine-node.js'
import type { CovenantVersion, Deployment } from '../../backend/src/protocol/mint.js'
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

/** What is fixed when a tree is deployed: its deployment, before there is a genesis. */
export type CovenantTerms = Omit<Deployment, 'genesis'>

/** The version that {@link covenantCode} writes. */
export const DEPLOYED_VERSION: CovenantVersion = 2

/** Terms that no covenant can be built for. */
export class CovenantError extends CodedError<'BAD_TERMS'> {
  override readonly name = 'CovenantError'

  constructor(message: string) {
    super('BAD_TERMS', message)
  }
}

/**
 * The covenant of a mine tree (service.md 4.5, protocol.md 6 and 7), of version 2, as script, up to the OP_RETURN of a
 * node's state.
 * Its parts are explained in docs/covenant.md.
 *
 * @param terms `limits`, if given, must be those of this covenant.
 * @throws CovenantError (`BAD_TERMS`) unless the version is 2, the difficulty is a whole number from 1 to 32, the content type has 1 to
 * 255 bytes, the marker 1 to 75, and the TLD, where there is one, 1 to 73: with a dot and one character 75.
 */
export function covenantCode(terms: CovenantTerms): Uint8Array {
  return joinBytes(Object.values(covenantParts(terms)))
}

/**
 * The covenant part by part, in order; {@link covenantCode} is all of them.
 *
 * @throws CovenantError (`BAD_TERMS`), as {@link covenantCode}.
 */
export function covenantParts(terms: CovenantTerms): Record<CovenantPart, Uint8Array> {
  requireTerms(terms)
  // The code states where it ends. That is a number of two bytes whatever the terms, so that its place is known from
  // the second round on.
  let stateAt = 0
  for (;;) {
    const parts = assembleParts(terms, stateAt)
    const length = Object.values(parts).reduce((sum, part) => sum + part.length, 0)
    if (length + STATE_START === stateAt) return parts
    stateAt = length + STATE_START
  }
}

export type CovenantPart = keyof ReturnType<typeof assembleParts>

/** The OP_RETURN after the code, and the first field of the state: a push of nothing. */
const STATE_START = 2

function assembleParts(terms: CovenantTerms, stateAt: number) {
  return {
    preimage: assemble(authenticPreimage()),
    split: assemble(splitPreimage(stateAt)),
    genesis: assemble(readGenesis()),
    start: assemble(startNodeOutputs()),
    character: assemble(claimCharacter()),
    state: assemble(readDomainAndSeed()),
    work: assemble(proveWork(terms.difficulty)),
    states: assemble(writeStates(terms.tld)),
    nodes: assemble(writeNodeOutputs()),
    name: assemble(writeNameOutput(terms)),
    outputs: assemble(compareOutputs()),
  }
}

/**
 * The locking script of a tree's root as deployed: an empty domain, nothing claimed, and neither genesis nor seed. The
 * outpoint of the output that it is put into becomes the genesis; the output must hold 1 satoshi.
 *
 * @throws CovenantError (`BAD_TERMS`), as {@link covenantCode}.
 */
export function rootLock(terms: CovenantTerms): Uint8Array {
  const nothing = new Uint8Array()
  return encodeMineNode({ code: covenantCode(terms), claimed: UNCLAIMED, domain: '', seed: nothing })
}

function requireTerms(terms: CovenantTerms): void {
  const { difficulty, nameContentType, marker, tld, limits } = terms
  const { nameBytes, nameScriptBytes } = COVENANT_LIMITS
  if (terms.covenantVersion !== DEPLOYED_VERSION)
    throw new CovenantError(
      `trees are deployed with version ${DEPLOYED_VERSION} of the covenant, not ${terms.covenantVersion}`,
    )
  if (!Number.isInteger(difficulty)) throw new CovenantError('the difficulty is no whole number')
  requireWithin('the difficulty', difficulty, 32)
  // As readers of envelopes have it (BRC-160): a longer content type counts as none.
  requireWithin('the bytes of the content type', utf8(nameContentType).length, 255)
  requireWithin('the bytes of the marker', marker.length, 75)
  if (tld !== undefined) requireWithin('the bytes of the TLD', utf8(tld).length, nameBytes - 2)
  if (limits && (limits.nameBytes !== nameBytes || limits.nameScriptBytes !== nameScriptBytes)) {
    throw new CovenantError('the limits are not those of this covenant')
  }
}

function requireWithin(what: string, value: number, most: number): void {
  if (value < 1 || value > most) throw new CovenantError(`${what}: ${value} is not within 1 and ${most}`)
}
