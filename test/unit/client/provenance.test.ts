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
import { FakeChain, inscriptionScript, OPEN_LOCK, p2pkh } from '../../support/protocol/fake-chain.js'

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
    const open = chain.spend({
      inputs: [{ transaction: mints.ax, vout: 2 }],
      outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }],
    })
    const more = { origin: at(mints.ax, 2), chainTracker: new FakeHeaders([open]) }
    const shown = await verify(provenanceOf([open]), more)
    expect(shown).toMatchObject({ lockingScript: OPEN_LOCK })
    expect(shown.owner).toBeUndefined()
  })

  test('is unproven where a step is in no block, and holds by its scripts', async () => {
    const tree = new FakeChain()
    const mint = tree.mint('x', { ownerLock: OPEN_LOCK })
    const step = tree.spend({
      inputs: [{ transaction: mint, vout: 2 }],
      outputs: [{ satoshis: 1, lockingScript: p2pkh(5) }],
    })
    // The lock ends in an OP_RETURN, behind which nothing is run.
    const more = { origin: at(mint, 2), chainTracker: new FakeHeaders([mint]) }
    const proof = provenanceOf([mint, step], { unproven: [step] })
    expect(await verify(proof, more)).toMatchObject({ proven: false, sequence: 1, owner: ownerOf(5) })
    await expect(verify(proof, { ...more, requireProofs: true })).rejects.toMatchObject({ code: 'UNPROVEN' })
  })
})

describe('a lie is refused', () => {
  test('a tip that does not come from the origin', async () => {
    const { ab } = mints
    const other = chain.spend({
      inputs: [{ transaction: ab, vout: 2 }],
      outputs: [{ satoshis: 1, lockingScript: p2pkh(6) }],
    })
    const chainTracker = new FakeHeaders([...way, ab, other])
    await expect(verify(provenanceOf([ab, other]), { chainTracker })).rejects.toMatchObject({
      code: 'NOT_DESCENDED',
    })
    const beside = provenanceOf([ab, ...way, other])
    await expect(verify(beside, { chainTracker })).rejects.toMatchObject({ code: 'NOT_DESCENDED' })
  })

  test('a lookalike: the same inscription in another output', async () => {
    const fake = chain.inscribe({ contentType: 'application/name-claim' })
    const chainTracker = new FakeHeaders([fake])
    await expect(verify(provenanceOf([fake]), { chainTracker })).rejects.toMatchObject({
      code: 'NOT_DESCENDED',
    })
  })

  test('a way that is cut: a step left out', async () => {
    const cut = way.filter((each) => each !== first)
    await expect(verify(provenanceOf(cut, { vout: 1 }))).rejects.toMatchObject({ code: 'NOT_DESCENDED' })
  })

  test('a way without the value that places it', async () => {
    const cut = way.filter((each) => each !== purse)
    await expect(verify(provenanceOf(cut, { vout: 1 }))).rejects.toMatchObject({ code: 'UNPLACED' })
  })

  test('another output of the last transaction', async () => {
    await expect(verify(provenanceOf(way, { vout: 0 }))).rejects.toMatchObject({ code: 'NOT_DESCENDED' })
  })

  test('a tip that the answer itself shows spent', async () => {
    const stale = outpointBeef(at(first, 0), recordsOf(way))
    await expect(verify(stale)).rejects.toMatchObject({ code: 'STALE_TIP' })
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
      code: 'NOT_DESCENDED',
      message: expect.stringContaining('burns'),
    })
  })

  test('a step in a block that is none, or in none and without what it spends', async () => {
    const chainTracker = new FakeHeaders(way.filter((each) => each !== second))
    await expect(verify(provenanceOf(way, { vout: 1 }), { chainTracker })).rejects.toMatchObject({
      code: 'BAD_PATH',
    })
    const forged = chain.spend({
      inputs: [{ transaction: mints.ax, vout: 2 }],
      outputs: [{ satoshis: 1, lockingScript: p2pkh(7) }],
    })
    await expect(
      verify(provenanceOf([forged], { unproven: [forged] }), { origin: at(mints.ax, 2) }),
    ).rejects.toMatchObject({ code: 'UNVERIFIED' })
  })

  test('a transfer that its owner did not sign', async () => {
    const forged = chain.spend({
      inputs: [{ transaction: mints.ax, vout: 2 }],
      outputs: [{ satoshis: 1, lockingScript: p2pkh(7) }],
    })
    const proof = provenanceOf([mints.ax, forged], { unproven: [forged] })
    await expect(verify(proof, { origin: at(mints.ax, 2) })).rejects.toMatchObject({ code: 'BAD_SCRIPT' })
  })

  test('what is no Outpoint BEEF', async () => {
    const proof = proofOf(way, { vout: 1 })
    for (const bytes of [proof.subarray(40), proof.subarray(0, 39), proof.subarray(0, -1), new Uint8Array()])
      await expect(verify(bytes)).rejects.toMatchObject({ code: 'BAD_BEEF' })
  })
})
