import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { verifyNameProof } from '../../../src/client/verify-name.js'
import { at, FakeHeaders, outpointBeef, proofOf, recordsOf } from '../../support/client/name-proofs.js'
import { covenantChain } from '../../support/mining/covenant-mints.js'
import { FakeChain, OPEN_LOCK, p2pkh } from '../../support/protocol/fake-chain.js'
import { NON_STRICT, nonStrictlyUnlocked } from '../../support/protocol/non-strict-mints.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'

// Mints that no block holds yet: their scripts are run, down to what is in blocks.

const names = ['a', 'ab', 'abc']
const LOCKED = p2pkh(9)

/** A tree whose mints are paid for by coins that any push opens, or by others. */
function unprovenTree(lock: Uint8Array = OPEN_LOCK) {
  const chain = new FakeChain()
  const purse = chain.spend({
    inputs: [],
    outputs: names.map(() => ({ satoshis: 1000, lockingScript: lock })),
  })
  const mints = names.map((name, vout) => chain.mint(name, { funding: [{ transaction: purse, vout }] }))
  const [, , last] = mints
  if (last === undefined) throw new Error('three names are minted')
  return { chain, purse, mints, last, all: [chain.genesis, purse, ...mints] }
}

const { chain, purse, mints, last, all } = unprovenTree()
const headers = new FakeHeaders(all)

const verify = async (proof: Uint8Array, more: Partial<Parameters<typeof verifyNameProof>[0]> = {}) =>
  await verifyNameProof({
    proof,
    name: 'abc',
    deployment: chain.deployment,
    chainTracker: headers,
    ...more,
  })

describe('mints in no block', () => {
  test('hold by their scripts, and are said to be unproven', async () => {
    const verified = await verify(proofOf(all, { unproven: mints }))
    expect(verified).toEqual({
      name: 'abc',
      origin: at(last, 2),
      line: mints.map(({ txid }, index) => ({ txid, name: names[index] })),
      proven: false,
    })
  })

  test('one of them is enough', async () => {
    const verified = await verify(proofOf(all, { unproven: [last] }))
    expect(verified).toMatchObject({ proven: false })
    expect(verified.line.map(({ height }) => height)).toEqual([
      ...mints.slice(0, 2).map(({ height }) => height),
      undefined,
    ])
  })

  test('need no block for the genesis, which the caller trusts', async () => {
    expect(await verify(proofOf(all, { unproven: [chain.genesis, ...mints] }))).toMatchObject({
      proven: false,
    })
  })

  test('are refused where proofs are asked for', async () => {
    await expect(verify(proofOf(all, { unproven: [last] }), { requireProofs: true })).rejects.toMatchObject({
      code: 'UNPROVEN',
    })
    expect(await verify(proofOf(all), { requireProofs: true })).toMatchObject({ proven: true })
  })

  test('are refused where what they spend is not shown', async () => {
    const without = all.filter((each) => each !== purse)
    await expect(verify(proofOf(without, { unproven: mints }))).rejects.toMatchObject({
      code: 'UNVERIFIED',
    })
    await expect(verify(proofOf(all, { unproven: [purse, ...mints] }))).rejects.toMatchObject({
      code: 'UNVERIFIED',
    })
  })

  test('are refused where a block of what they spend is none', async () => {
    const chainTracker = new FakeHeaders(all.filter((each) => each !== purse))
    await expect(verify(proofOf(all, { unproven: mints }), { chainTracker })).rejects.toMatchObject({
      code: 'BAD_PATH',
    })
  })

  test('are refused where a script fails', async () => {
    const locked = unprovenTree(LOCKED)
    const check = { deployment: locked.chain.deployment, chainTracker: new FakeHeaders(locked.all) }
    await expect(verify(proofOf(locked.all, { unproven: [locked.last] }), check)).rejects.toMatchObject({
      code: 'BAD_SCRIPT',
      message: expect.stringMatching(/^[^\n]{10,400}$/),
    })
    // Where blocks hold them, the chain has judged.
    expect(await verify(proofOf(locked.all), check)).toMatchObject({ proven: true })
  })

  test('are refused where they make money', async () => {
    const tree = new FakeChain()
    const coin = tree.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: OPEN_LOCK }] })
    const rich = tree.mint('a', {
      funding: [at(coin, 0)],
      trailing: [{ satoshis: 4, lockingScript: OPEN_LOCK }],
    })
    const transactions = [tree.genesis, coin, rich]
    const check = { name: 'a', deployment: tree.deployment, chainTracker: new FakeHeaders(transactions) }
    await expect(verify(proofOf(transactions, { unproven: [rich] }), check)).rejects.toMatchObject({
      code: 'BAD_SCRIPT',
    })
  })

  test('are refused where their scripts take longer than the caller waits', async () => {
    await expect(verify(proofOf(all, { unproven: mints }), { scriptTimeout: 0 })).rejects.toMatchObject({
      code: 'SCRIPT_TIMEOUT',
    })
    expect(await verify(proofOf(all), { scriptTimeout: 0 })).toMatchObject({ proven: true })
  })

  test('are refused where an ancestor spends nothing', async () => {
    const raw = encodeTransaction({ inputs: [], outputs: [{ satoshis: 5000, lockingScript: OPEN_LOCK }] })
    const nothing = readTransaction(raw)
    const tree = new FakeChain()
    const mint = tree.mint('a', { funding: [{ txid: nothing.txid, vout: 0 }] })
    const records = [...recordsOf([tree.genesis]), nothing, ...recordsOf([mint], [mint])]
    const check = { name: 'a', deployment: tree.deployment, chainTracker: new FakeHeaders([tree.genesis]) }
    await expect(verify(outpointBeef(at(mint, 2), records), check)).rejects.toMatchObject({
      code: 'BAD_SCRIPT',
      message: expect.stringContaining('has no inputs'),
    })
  })
})

describe('with the covenant that we mine under', () => {
  const tree = covenantChain()
  const coins = tree.spend({
    inputs: [],
    outputs: names.map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK })),
  })
  const minted = names.map((name, vout) => tree.mint(name, { funding: [at(coins, vout)] }))
  const transactions = [tree.genesis, coins, ...minted]
  const check = { deployment: tree.deployment, chainTracker: new FakeHeaders([tree.genesis, coins]) }

  test('mints in no block hold by what it says of them', async () => {
    expect(await verify(proofOf(transactions, { unproven: minted }), check)).toMatchObject({ proven: false })
  })

  test('one that it does not let through is refused, in whatever words', async () => {
    const work = tree.node('abc')
    const bad = tree.mint('abcd', {
      from: work,
      funding: [tree.madeUpCoin()],
      unlocking: (pushes) => ({ ...pushes, ownerLock: Uint8Array.of(0x51) }),
    })
    const proof = proofOf([...transactions, bad], { unproven: [...minted, bad] })
    await expect(verify(proof, { ...check, name: 'abcd' })).rejects.toMatchObject({
      name: 'ProofError',
      code: 'BAD_MINT',
    })
  })
})

describe('without headers', () => {
  test('paths are taken, scripts are run, and nothing is said to be proven', async () => {
    const chainTracker = 'scripts only'
    const unknown = { chainTracker, deployment: chain.deployment } as const
    const inBlocks = await verify(proofOf(all), unknown)
    expect(inBlocks).toMatchObject({ proven: false })
    expect(inBlocks.line.every(({ height }) => height === undefined)).toBe(true)
    expect(await verify(proofOf(all, { unproven: mints }), unknown)).toMatchObject({ proven: false })
  })

  test('proofs that are asked for cannot be had', async () => {
    await expect(
      verify(proofOf(all), { chainTracker: 'scripts only', requireProofs: true }),
    ).rejects.toMatchObject({ code: 'UNPROVEN' })
  })

  test('a script that fails still fails, where no path stands for it', async () => {
    const locked = unprovenTree(LOCKED)
    const proof = proofOf(locked.all, { unproven: [locked.last] })
    await expect(
      verify(proof, { chainTracker: 'scripts only', deployment: locked.chain.deployment }),
    ).rejects.toMatchObject({ code: 'BAD_SCRIPT' })
  })
})

describe.each(NON_STRICT)('a mint with $has', (form) => {
  const tree = new FakeChain({ covenantVersion: 1, difficulty: 1 })
  const coins = tree.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const funding = [{ transaction: coins, vout: 0 }]
  const mint = tree.mint('a', { from: tree.node(''), funding, ...nonStrictlyUnlocked(form) })
  const shown = [tree.genesis, coins, mint]
  const check = async (proof: Uint8Array) =>
    await verifyNameProof({
      ...{ proof, name: 'a', deployment: tree.deployment },
      chainTracker: new FakeHeaders(shown),
    })

  test('is a name where a block holds it, and none before', async () => {
    expect(await check(proofOf(shown))).toMatchObject({ origin: at(mint, 2), proven: true })
    await expect(check(proofOf(shown, { unproven: [mint] }))).rejects.toMatchObject({
      code: 'BAD_MINT',
      cause: { code: 'NOT_STRICT' },
    })
  })
})
