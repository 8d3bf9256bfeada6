import { decodeMineNode, NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import { meetsDifficulty, ownerCommitment, proofOfWork } from '../../../backend/src/protocol/mint.js'
import {
  type CovenantSpend,
  covenantChain,
  covenantMint,
  refusalByCheck,
  refusalByScript,
} from '../../support/mining/covenant-mints.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'

// Lengths around those at which pushes, counts and script numbers are written differently. What is expected of each
// follows from docs/covenant.md alone, and neither from the script nor from the check.

const VERSIONS = ([2, 1] as const).map((covenantVersion) => {
  const chain = covenantChain({ covenantVersion })
  chain.mintAll('ab')
  return { covenantVersion, chain, from: chain.node('a') }
})

const between = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** What is taken is taken by the strictest rules, and what is refused is refused by the loosest. */
const isTaken = (mint: CovenantSpend, expected: boolean): boolean =>
  refusalByScript(mint, expected ? 'relay' : 'block') === undefined

describe.each(VERSIONS)('with a covenant of version $covenantVersion', ({ covenantVersion, chain, from }) => {
  const besideLock = covenantMint(chain, 'ac', { from, ownerLock: new Uint8Array() }).transaction.outputs[2]
  /** Bytes of output 2 behind the owner's lock. */
  const beside = besideLock?.lockingScript.length ?? Number.NaN

  /** The ends of a length, once as that of the lock and once as that of the whole script of output 2. */
  const lockLengths = [
    ...[0, 1, 75, 76, 77, 78],
    ...between(252, 257),
    ...[520, 521, 32_767, 32_768],
    ...between(65_534, 65_537),
    ...[131_071, 131_072],
  ].flatMap((length) => [length, length - beside].filter((each) => each >= 0))

  test.each(lockLengths)(
    'an owner lock of %i bytes is taken or refused by script and check alike',
    (length) => {
      const mint = covenantMint(chain, 'ac', { from, ownerLock: new Uint8Array(length).fill(0x61) })
      const isShort = length + beside <= 65_535
      expect(isTaken(mint, isShort)).toBe(isShort)
      expect(refusalByCheck(mint)).toBe(isShort ? undefined : 'TOO_LONG')
    },
  )

  const nonceLengths = [
    ...between(0, 24),
    ...[45, 46, 47, 54, 55, 56, 75, 76, 77, 255, 256, 257, 520, 521, 32_767, 32_768],
    ...[65_534, 65_535, 65_536, 65_537, 70_000],
  ]
  test.each(nonceLengths)('a nonce of %i bytes is taken or refused by script and check alike', (length) => {
    const { seed } = decodeMineNode(from.lockingScript)
    // A short nonce leaves nothing to search: other owners and characters are tried until one has the work.
    for (let tried = 0; ; tried++) {
      const ownerLock = p2pkh(tried)
      const character = NAME_CHARACTERS.charAt(2 + (tried % 30))
      const commitment = ownerCommitment({ domain: 'a', ownerLock, deployment: chain.deployment })
      const nonce = new Uint8Array(length)
      nonce.set(commitment.subarray(0, length))
      if (length > commitment.length) nonce[length - 1] = tried & 0xff
      const solution = proofOfWork({ seed, character, nonce })
      if (!meetsDifficulty(solution, chain.deployment.difficulty)) continue
      const mint = covenantMint(chain, `a${character}`, { from, ownerLock, nonce })
      const isBound = covenantVersion === 1 || length >= 8
      expect(isTaken(mint, isBound)).toBe(isBound)
      expect(refusalByCheck(mint)).toBe(isBound ? undefined : 'BAD_NONCE')
      break
    }
  })
})
