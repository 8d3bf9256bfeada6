import fc from 'fast-check'
import { concatBytes, equalBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode, isClaimed, NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import {
  checkMint,
  meetsDifficulty,
  ownerCommitment,
  proofOfWork,
} from '../../../backend/src/protocol/mint.js'
import { DEFAULT_SCRIPT_WORK, runScripts } from '../../../backend/src/protocol/run-scripts.js'
import {
  covenantChain,
  covenantMint,
  RULES,
  refusalByCheck,
  refusalByScript,
  refusingPart,
} from '../../support/mining/covenant-mints.js'
import { rounds } from '../../support/nightly.js'
import { bytes } from '../../support/protocol/arbitraries.js'
import { type FakeChain, type FakeOutput, inscriptionScript } from '../../support/protocol/fake-chain.js'

/** For hundreds of scripts, in milliseconds: machines that run this may be slow. */
const PATIENCE = 300_000

const NONE = new Uint8Array()
const ofLength = (length: number) => new Uint8Array(length).fill(0x61)

/** Locks with everything that may confuse a decoder, and of lengths around those where the encoding of the length changes. */
const ownerLocks: fc.Arbitrary<Uint8Array> = fc.oneof(
  bytes(200),
  fc.constantFrom(NONE, Uint8Array.of(0x6a), Uint8Array.of(0x4c), Uint8Array.of(0x00, 0x63), ofLength(75)),
  fc.integer({ min: 100, max: 300 }).map(ofLength),
  fc.constantFrom(32_767, 40_000, 65_000).map(ofLength),
  bytes(20).map((lock) =>
    inscriptionScript({ lock, contentType: 'application/name-claim', body: utf8('decoy') }),
  ),
)

/** Of nonces within a block of SHA-256, over several, and over many. */
const nonceLengths = fc.oneof(fc.nat({ max: 130 }), fc.nat({ max: 4000 }))

const outputs: fc.Arbitrary<FakeOutput[]> = fc.oneof(
  { weight: 4, arbitrary: fc.array(output(60), { maxLength: 5 }) },
  { weight: 1, arbitrary: fc.array(output(60), { minLength: 250, maxLength: 300 }) },
  { weight: 1, arbitrary: fc.array(output(70_000), { minLength: 1, maxLength: 2 }) },
)

function output(maxLength: number): fc.Arbitrary<FakeOutput> {
  const satoshis = fc.oneof(fc.constantFrom(0, 1, 21e14), fc.nat())
  const scripts = fc.oneof(bytes(Math.min(maxLength, 300)), fc.nat({ max: maxLength }).map(ofLength))
  return fc.record({ satoshis, lockingScript: scripts })
}

interface Step {
  /** Which live node, and which of its free characters. */
  node: number
  character: number
  ownerLock: Uint8Array
  nonceLength: number
  trailing: FakeOutput[]
  before: number
  after: number
  version: number
  lockTime: number
  sequence: number
  rules: keyof typeof RULES
}

const u32 = fc.nat({ max: 0xffffffff })
const steps: fc.Arbitrary<Step> = fc.record({
  node: fc.nat(),
  character: fc.nat(),
  ownerLock: ownerLocks,
  nonceLength: nonceLengths,
  trailing: outputs,
  before: fc.nat({ max: 3 }),
  after: fc.nat({ max: 3 }),
  version: fc.constantFrom(1, 2),
  lockTime: fc.oneof(fc.constant(0), u32),
  sequence: fc.oneof(fc.constant(0xffffffff), u32),
  rules: fc.constantFrom(...(Object.keys(RULES) as (keyof typeof RULES)[])),
})

/** A nonce that solves, with so many bytes behind what it must start with; with one more where none of them does. */
function nonceOf(
  chain: FakeChain,
  wanted: { name: string; ownerLock: Uint8Array; length: number },
): Uint8Array {
  const { name, ownerLock, length } = wanted
  const { deployment } = chain
  const { seed, domain } = decodeMineNode(chain.node(name.slice(0, -1)).lockingScript)
  const start = ownerCommitment({ domain, ownerLock, deployment })
  const nonce = concatBytes(start, new Uint8Array(length))
  for (let first = 0; first < 256; first++) {
    if (length > 0) nonce[start.length] = first
    const solution = proofOfWork({ seed, character: name.slice(-1), nonce })
    if (meetsDifficulty(solution, deployment.difficulty)) return nonce
    if (length === 0) break
  }
  return nonceOf(chain, { ...wanted, length: length + 1 })
}

/** The name that a step is to mint: a live node, and a character that is free there. */
function nextName(chain: FakeChain, live: string[], step: Step): string {
  const domain = live[step.node % live.length] ?? ''
  const { claimed } = decodeMineNode(chain.node(domain).lockingScript)
  const free = [...NAME_CHARACTERS].filter((character) => !isClaimed(claimed, character.charCodeAt(0)))
  return domain + free[step.character % free.length]
}

test(
  'names in any order, with whatever the miner may choose, are minted one after another',
  () => {
    const tld = fc.constantFrom(undefined, 'test')
    const nameMarker = fc.constantFrom('m', 'a marker')
    const terms = fc.oneof(
      { weight: 1, arbitrary: fc.record({ covenantVersion: fc.constant(1 as const), tld }) },
      { weight: 3, arbitrary: fc.record({ difficulty: fc.integer({ min: 1, max: 3 }), tld, nameMarker }) },
    )
    fc.assert(
      fc.property(terms, fc.array(steps, { minLength: 30, maxLength: 40 }), (options, walk) => {
        const chain = covenantChain(options)
        const live = ['']
        for (const step of walk) {
          const { trailing, ownerLock, before, after, version, lockTime, sequence } = step
          const isFree = chain.deployment.covenantVersion === 1
          const name = nextName(chain, live, step)
          const coins = Array.from({ length: before + after }, () => chain.madeUpCoin())
          const nonce = nonceOf(chain, { name, ownerLock, length: step.nonceLength })
          const mint = covenantMint(chain, name, {
            ...{ trailing, ownerLock, sequence, funding: coins, nonce, nodeInputPosition: before },
            ...(isFree && { version, lockTime }),
          })

          expect(refusalByScript(mint, step.rules)).toBeUndefined()
          const checked = checkMint(mint)
          expect(checked.name).toBe(name)
          const isSame = equalBytes(checked.ownerLock, ownerLock) && equalBytes(checked.nonce, nonce)
          expect(isSame).toBe(true)
          const [restated, child] = mint.transaction.outputs.map(({ lockingScript }) => lockingScript)
          expect(decodeMineNode(restated ?? NONE)).toEqual(checked.restated)
          expect(decodeMineNode(child ?? NONE)).toEqual(checked.child)
          live.push(name)
        }
      }),
      { numRuns: rounds(2, 6), endOnFailure: true },
    )
  },
  PATIENCE,
)

test('all characters are minted from one node, in any order, and then none any more', () => {
  let orders = 0
  const anyOrder = fc.shuffledSubarray([...NAME_CHARACTERS], { minLength: NAME_CHARACTERS.length })
  fc.assert(
    fc.property(anyOrder, (order) => {
      const chain = covenantChain()
      for (const character of order) {
        const mint = covenantMint(chain, character)
        expect([refusalByScript(mint), refusalByCheck(mint)]).toEqual([undefined, undefined])
      }
      // The node is full: each of them once more is refused, one of them in each order tried.
      const again = order.slice(0, orders++ === 0 ? undefined : 1)
      for (const character of again) expect(refusingPart(covenantMint(chain, character))).toBe('character')
    }),
    { numRuns: rounds(2, 6), endOnFailure: true },
  )
})

test('the longest owner lock is not too expensive for a host that counts the work of scripts', () => {
  for (const covenantVersion of [1, 2] as const) {
    const chain = covenantChain({ covenantVersion })
    const { transaction, spent } = covenantMint(chain, 'a', { ownerLock: ofLength(65_000) })
    const { txid, raw } = transaction
    const steps = runScripts([{ txid, raw, spent: [spent], input: 0 }], { maxWork: DEFAULT_SCRIPT_WORK / 10 })
    expect(() => [...steps]).not.toThrow()
  }
})
