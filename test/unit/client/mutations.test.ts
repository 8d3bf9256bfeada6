import fc from 'fast-check'
import { ProofError } from '../../../src/client/errors.js'
import { verifyNameHistory, verifyProvenance } from '../../../src/client/verify-history.js'
import { verifyNameProof } from '../../../src/client/verify-name.js'
import { namedWorld, outpointBeef, proofOf, recordsOf } from '../../support/client/name-proofs.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'

// Whatever is done to a proof, what is accepted is true, and what is refused is refused in the client's own words.

const world = namedWorld()
const { deployment, headers: chainTracker, line, way, origin, tip } = world
const trust = { deployment, chainTracker, name: 'abc' }
const provenance = outpointBeef(tip, recordsOf(way))
const history = outpointBeef(tip, recordsOf([...line, ...way.slice(1)])).subarray(40)

/** Runs a check; what it throws has to be its own. */
async function judged<Found>(check: Promise<Found>): Promise<Found | undefined> {
  try {
    return await check
  } catch (error) {
    if (!(error instanceof ProofError)) throw error
    expect(error.message).toMatch(/^[^\n]{5,400}$/)
    return undefined
  }
}

/** The bytes with several things done to them, one after another. */
const spoilt = (original: Uint8Array): fc.Arbitrary<Uint8Array> =>
  fc.oneof(
    mutated(fc.constant(original)),
    mutated(mutated(fc.constant(original))),
    bytes().map((tail) => Uint8Array.of(...original.subarray(0, 40), ...tail)),
    bytes(),
  )

/** Whole transactions in another order, some left out. */
const records = recordsOf([...line, ...way.slice(1)])
const shuffled = fc.shuffledSubarray(records).map((some) => outpointBeef(origin, some))

test('a proof of a name', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(spoilt(proofOf(line)), shuffled), async (proof) => {
      const found = await judged(verifyNameProof({ ...trust, proof }))
      if (found !== undefined) expect(found).toMatchObject({ name: 'abc', origin, proven: true })
    }),
    { numRuns: 400 },
  )
})

test('a provenance', async () => {
  await fc.assert(
    fc.asyncProperty(spoilt(provenance), async (spoiled) => {
      const found = await judged(verifyProvenance({ ...trust, provenance: spoiled, origin }))
      if (found !== undefined) expect(found).toMatchObject({ tip, sequence: 2, proven: true })
    }),
    { numRuns: 400 },
  )
})

test('a history', async () => {
  const vouts = fc.constantFrom(tip.vout, 0, 2, 0xffffffff)
  await fc.assert(
    fc.asyncProperty(spoilt(history), vouts, async (beef, vout) => {
      const found = await judged(verifyNameHistory({ ...trust, beef, tip: { vout } }))
      if (found !== undefined) expect(found).toMatchObject({ name: { origin }, tip: { tip, proven: true } })
    }),
    { numRuns: 400 },
  )
})

test('none of them holds for another name', async () => {
  await fc.assert(
    fc.asyncProperty(fc.stringMatching(/^[a-z]{1,4}$/), async (name) => {
      fc.pre(!['a', 'b', 'ab', 'ax', 'abc'].includes(name))
      expect(await judged(verifyNameProof({ ...trust, name, proof: proofOf(line) }))).toBeUndefined()
      const { vout } = tip
      const check = { ...trust, name, beef: history, tip: { vout } }
      expect(await judged(verifyNameHistory(check))).toBeUndefined()
    }),
  )
})
