import type { ProofErrorCode } from '../../../src/client/errors.js'
import { verifyProvenance } from '../../../src/client/verify-history.js'
import {
  at,
  FakeHeaders,
  namedWorld,
  outpointBeef,
  proofOf,
  provenanceOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { ownerOf } from '../../support/graph/owner-of.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

const world = namedWorld()
const { chain, mints, way, origin, tip, transfers, purse } = world
const [first, second] = transfers

const verify = async (
  provenance: Uint8Array,
  more: Partial<Parameters<typeof verifyProvenance>[0]> = {},
): ReturnType<typeof verifyProvenance> =>
  await verifyProvenance({ provenance, origin, chainTracker: world.headers, ...more })

describe('an ordinal that is followed to its tip', () => {
  test('is shown with every place where it stood, and who owns it', async () => {
    expect(await verify(provenanceOf(way, { vout: 1 }))).toEqual({
      tip,
      sequence: 2,
      path: [
        { outpoint: origin },
        { outpoint: at(first, 0), height: first.height },
        { outpoint: tip, height: second.height },
      ],
      proven: true,
      lockingScript: p2pkh(3),
      owner: ownerOf(3),
      // Where it was before, and the first input, which is another coin.
      bindingInputs: [at(first, 0), at(purse, 0)],
    })
  })

  test('needs no more than what places it', async () => {
    const shown = await verify(outpointBeef(tip, recordsOf([first, purse, second], [purse])))
    expect(shown).toMatchObject({ tip, proven: true })
  })

  test('may be where it was minted, its owner before the envelope', async () => {
    const shown = await verify(provenanceOf([mints.abc], { vout: 2 }))
    expect(shown).toMatchObject({ tip: origin, sequence: 0, path: [{ outpoint: origin }], owner: ownerOf(1) })
  })

  test('may have a lock that is no address', async () => {
    const open = chain.move(mints.ax, 2, OPEN_LOCK)
    const more = { origin: at(mints.ax, 2), chainTracker: new FakeHeaders([open]) }
    const shown = await verify(provenanceOf([open]), more)
    expect(shown).toMatchObject({ lockingScript: OPEN_LOCK })
    expect(shown.owner).toBeUndefined()
  })

  test('is unproven where a step is in no block, and holds by its scripts', async () => {
    const tree = new FakeChain()
    const mint = tree.mint('x', { ownerLock: OPEN_LOCK })
    const step = tree.move(mint, 2, p2pkh(5))
    // The lock ends in an OP_RETURN, behind which nothing is run.
    const more = { origin: at(mint, 2), chainTracker: new FakeHeaders([mint]) }
    const proof = provenanceOf([mint, step], { unproven: [step] })
    expect(await verify(proof, more)).toMatchObject({ proven: false, sequence: 1, owner: ownerOf(5) })
    await expect(verify(proof, { ...more, requireProofs: true })).rejects.toMatchObject({ code: 'UNPROVEN' })
  })
})

describe('a lie is refused', () => {
  const { ab, ax } = mints
  const moved = (mint: FakeTransaction, key: number): FakeTransaction => chain.move(mint, 2, p2pkh(key))
  const other = moved(ab, 6)
  const fake = chain.inscribe({ contentType: 'application/name-claim' })
  const forged = moved(ax, 7)
  const without = (left: FakeTransaction) => way.filter((each) => each !== left)
  const fromAx = { origin: at(ax, 2) }
  const known = { chainTracker: new FakeHeaders([...way, ab, other, fake]) }
  const unknown = { chainTracker: new FakeHeaders(without(second)) }
  const proof = proofOf(way, { vout: 1 })

  test.each<[what: string, code: ProofErrorCode, proof: Uint8Array, more?: Parameters<typeof verify>[1]]>([
    ['a tip that does not come from the origin', 'NOT_DESCENDED', provenanceOf([ab, other]), known],
    ['the same, beside the way', 'NOT_DESCENDED', provenanceOf([ab, ...way, other]), known],
    ['a lookalike: the same inscription elsewhere', 'NOT_DESCENDED', provenanceOf([fake]), known],
    ['a way that is cut: a step left out', 'NOT_DESCENDED', provenanceOf(without(first), { vout: 1 })],
    ['a way without the value that places it', 'UNPLACED', provenanceOf(without(purse), { vout: 1 })],
    ['another output of the last transaction', 'NOT_DESCENDED', provenanceOf(way, { vout: 0 })],
    ['a tip that it shows spent', 'STALE_TIP', outpointBeef(at(first, 0), recordsOf(way))],
    ['a step in a block that is none', 'BAD_PATH', provenanceOf(way, { vout: 1 }), unknown],
    ['a step without its parents', 'UNVERIFIED', provenanceOf([forged], { unproven: [forged] }), fromAx],
    ['a step unsigned', 'BAD_SCRIPT', provenanceOf([ax, forged], { unproven: [forged] }), fromAx],
    ['a BEEF', 'BAD_BEEF', proof.subarray(40)],
    ['half a head', 'BAD_BEEF', proof.subarray(0, 39)],
    ['a proof that is cut off', 'BAD_BEEF', proof.subarray(0, -1)],
    ['nothing', 'BAD_BEEF', new Uint8Array()],
  ])('%s: %s', async (_, code, shown, more) => {
    await expect(verify(shown, more)).rejects.toMatchObject({ code })
  })

  test('an ordinal that was burnt', async () => {
    const tree = new FakeChain()
    const mint = tree.mint('x')
    const coin = tree.inscribe({})
    const burn = tree.spend({
      inputs: [at(mint, 2), at(coin, 0)],
      outputs: [{ satoshis: 2, lockingScript: inscriptionScript({}) }],
    })
    const more = { origin: at(mint, 2), chainTracker: new FakeHeaders([mint, coin, burn]) }
    await expect(verify(provenanceOf([mint, coin, burn]), more)).rejects.toMatchObject({
      ...{ code: 'NOT_DESCENDED', message: expect.stringContaining('burns') },
    })
  })
})
