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
  const outputs = names.map(() => ({ satoshis: 1000, lockingScript: lock }))
  const purse = chain.spend({ inputs: [], outputs })
  const mints = names.map((name, vout) => chain.mint(name, { funding: [{ transaction: purse, vout }] }))
  const [, , last] = mints
  if (last === undefined) throw new Error('three names are minted')
  return { chain, purse, mints, last, all: [chain.genesis, purse, ...mints] }
}

const { chain, purse, mints, last, all } = unprovenTree()
const headers = new FakeHeaders(all)

const verify = async (proof: Uint8Array, more: Partial<Parameters<typeof verifyNameProof>[0]> = {}) =>
  await verifyNameProof({ proof, name: 'abc', deployment: chain.deployment, chainTracker: headers, ...more })

const refused = async (code: string, proof: Uint8Array, more: Parameters<typeof verify>[1] = {}) =>
  await expect(verify(proof, more)).rejects.toMatchObject({ name: 'ProofError', code })

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
    const unproven = [chain.genesis, ...mints]
    expect(await verify(proofOf(all, { unproven }))).toMatchObject({ proven: false })
  })

  test('are refused where proofs are asked for', async () => {
    await refused('UNPROVEN', proofOf(all, { unproven: [last] }), { requireProofs: true })
    expect(await verify(proofOf(all), { requireProofs: true })).toMatchObject({ proven: true })
  })

  test('are refused where what they spend is not shown', async () => {
    const without = all.filter((each) => each !== purse)
    await refused('UNVERIFIED', proofOf(without, { unproven: mints }))
    await refused('UNVERIFIED', proofOf(all, { unproven: [purse, ...mints] }))
  })

  test('are refused where a block of what they spend is none', async () => {
    const chainTracker = new FakeHeaders(all.filter((each) => each !== purse))
    await refused('BAD_PATH', proofOf(all, { unproven: mints }), { chainTracker })
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
    const trailing = [{ satoshis: 4, lockingScript: OPEN_LOCK }]
    const rich = tree.mint('a', { funding: [at(coin, 0)], trailing })
    const transactions = [tree.genesis, coin, rich]
    const check = { name: 'a', deployment: tree.deployment, chainTracker: new FakeHeaders(transactions) }
    await refused('BAD_SCRIPT', proofOf(transactions, { unproven: [rich] }), check)
  })

  test('are refused where their scripts take longer than the caller waits', async () => {
    await refused('SCRIPT_TIMEOUT', proofOf(all, { unproven: mints }), { scriptTimeout: 0 })
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
  const outputs = names.map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const coins = tree.spend({ inputs: [], outputs })
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
    await refused('BAD_MINT', proof, { ...check, name: 'abcd' })
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
    await refused('UNPROVEN', proofOf(all), { chainTracker: 'scripts only', requireProofs: true })
  })

  test('a script that fails still fails, where no path stands for it', async () => {
    const locked = unprovenTree(LOCKED)
    const proof = proofOf(locked.all, { unproven: [locked.last] })
    const { deployment } = locked.chain
    await refused('BAD_SCRIPT', proof, { chainTracker: 'scripts only', deployment })
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
