import { PrivateKey, Transaction } from '@bsv/sdk'
import { decodeMineNode, encodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import {
  type CovenantVersion,
  checkMint,
  ownerCommitment,
  type PlacedNode,
} from '../../../backend/src/protocol/mint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import type { MintPlan, PaidMint } from '../../../src/mining/mint-transaction.js'
import { searchNonce } from '../../../src/mining/search/search-nonce.js'
import type { Keep } from '../../../src/payments/draft.js'
import { payWithKey } from '../../../src/payments/key.js'
import {
  FAKE_MINT_PAYER,
  type MintTerms,
  payForMint,
  unpaidMint,
  walletMintPayer,
} from '../../../src/payments/mints.js'
import { payWithWallet } from '../../../src/payments/wallet.js'
import { covenantChain } from '../../support/mining/covenant-mints.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { coinsFor, sdkTransaction } from '../../support/protocol/transactions.js'

const key = new PrivateKey(5)

const coins = [{ transaction: coinsFor(key, 20_000), vout: 0 }]

/** Mints with coins of a key. */
const fundWithKey = async ({
  plan,
  source,
  maxFee,
  ...paying
}: MintTerms & Parameters<typeof payWithKey>[0]): Promise<PaidMint> =>
  await payForMint({ plan, source, ...(maxFee !== undefined && { maxFee }) }, payWithKey(paying).pay)

/** Has a wallet sign a mint and send it. */
async function fundWithWallet({
  wallet,
  keep,
  ...terms
}: MintTerms & { wallet: TestWallet; keep?: Keep }): Promise<PaidMint> {
  const payer = payWithWallet(wallet)
  const paid = await payForMint(terms, async (each) => await payer.pay(each, keep))
  await payer.send?.(paid.transaction, 'Send it')
  return paid
}

/** The first mint of a tree, and where it is mined from. */
function draft(terms: { tld?: string; covenantVersion?: CovenantVersion } = {}): {
  plan: MintPlan
  source: Transaction
} {
  const chain = new FakeChain({ difficulty: 3, ...terms })
  const [node, ownerLock] = [chain.node(''), p2pkh(9)]
  chain.mint('q', { from: node, ownerLock })
  const plan = { node, deployment: chain.deployment, character: 'q', nonce: chain.lastNonce, ownerLock }
  return { plan, source: sdkTransaction(chain.genesis) }
}

const bytesOf = (transaction: Transaction): Uint8Array => Uint8Array.from(transaction.toUint8Array())

test.each([1, 2] as const)(
  'a mint in a tree of version %i has version 1 and lock time 0',
  async (covenantVersion) => {
    const { plan, source } = draft({ covenantVersion })
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 20_000))
    const mints = [
      await fundWithKey({ plan, source, coins, key }),
      await fundWithWallet({ plan, source, wallet }),
      await FAKE_MINT_PAYER.pay({ plan, source, maxFee: 0 }),
      await unpaidMint({ plan, source }),
    ]
    for (const { transaction } of mints) expect(transaction).toMatchObject({ version: 1, lockTime: 0 })
    expect(wallet.actions[0]).toMatchObject({ version: 1, lockTime: 0 })
  },
)

test.each([1, 2] as const)(
  'all mints of a name can be signed before any is sent, in a tree of version %i',
  async (covenantVersion) => {
    const chain = covenantChain({ covenantVersion })
    const { deployment } = chain
    const { difficulty } = deployment
    const ownerLock = p2pkh(9)
    let node: PlacedNode = chain.node('')
    let source = sdkTransaction(chain.genesis)
    let coin = { transaction: coinsFor(key, 20_000), vout: 0 }
    for (const character of 'abc') {
      const { seed, domain } = decodeMineNode(node.lockingScript)
      const noncePrefix = ownerCommitment({ domain, ownerLock, deployment })
      const { nonce } = await searchNonce({ seed, character, difficulty, noncePrefix, workers: 0 })
      const plan = { node, deployment, character, nonce, ownerLock }
      const { transaction, mint } = await fundWithKey({ plan, source, coins: [coin], key })
      const outpoint = { txid: transaction.id('hex'), vout: 1 }
      node = { outpoint, satoshis: 1, lockingScript: encodeMineNode(mint.child) }
      source = transaction
      coin = { transaction, vout: 3 }
    }
    expect(decodeMineNode(node.lockingScript).domain).toBe('abc')
    // With the scripts of every mint before it: one package.
    expect(await Transaction.fromBEEF(source.toBEEF()).verify('scripts only')).toBe(true)
  },
)

describe('a mint paid with a key', () => {
  test('is one that indexers take and that scripts let through', async () => {
    const { plan, source } = draft({ tld: 'test' })
    const { transaction, mint } = await fundWithKey({ plan, source, coins, key })
    expect(mint.name).toBe('q')
    const view = readTransaction(bytesOf(transaction))
    expect(checkMint({ transaction: view, input: 0, deployment: plan.deployment })).toEqual(mint)
    expect(await transaction.verify('scripts only')).toBe(true)
  })

  test.each([1, 50, 100, 1000])('pays %i satoshis per 1,000 bytes', async (feeRate) => {
    const { transaction } = await fundWithKey({ ...draft(), coins, key, feeRate })
    const wanted = (bytesOf(transaction).length * feeRate) / 1000
    // A signature may turn out a byte or two shorter than it was reckoned.
    expect(transaction.getFee()).toBeGreaterThanOrEqual(Math.floor(wanted))
    expect(transaction.getFee()).toBeLessThanOrEqual(Math.ceil(wanted + (4 * feeRate) / 1000))
  })

  test('gives what is left back to the key', async () => {
    const { transaction } = await fundWithKey({ ...draft(), coins, key, feeRate: 10 })
    expect(transaction.outputs).toHaveLength(4)
    const [, , , change] = transaction.outputs
    expect(change?.satoshis).toBe(20_000 - 2 - transaction.getFee())
    const again = await fundWithKey({ ...draft(), coins: [{ transaction, vout: 3 }], key, feeRate: 10 })
    expect(await again.transaction.verify('scripts only')).toBe(true)
  })

  test.each([
    [100, 20, 3],
    [1000, 30, 200],
    [50, 2, 9],
  ])('says which coin is missing, at %i satoshis per 1,000 bytes', async (feeRate, ...values) => {
    const paidWith = async (...satoshis: number[]) => {
      const transaction = coinsFor(key, ...satoshis)
      const coins = transaction.outputs.map((_, vout) => ({ transaction, vout }))
      return await fundWithKey({ ...draft(), coins, key, feeRate })
    }
    const error: unknown = await paidWith(...values).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'NO_FUNDS' })
    const more = Number(/add a coin of at least (\d+) more$/.exec((error as Error).message)?.[1])
    const held = Number(/^(\d+) satoshis are not enough/.exec((error as Error).message)?.[1])
    expect(held).toBe(values.reduce((sum, each) => sum + each, 0))
    await expect(paidWith(...values, more - 1)).rejects.toMatchObject({ code: 'NO_FUNDS' })
    expect((await paidWith(...values, more)).mint.name).toBe('q')
  })

  test('asks for no coin that would not be spent: of one satoshi', async () => {
    const coins = [{ transaction: coinsFor(key, 21), vout: 0 }]
    const outputs = [{ satoshis: 20, lockingScript: Uint8Array.of(0x51), description: 'An output' }]
    const draft = { what: 'an output', description: 'An output', inputs: [], outputs, maxFee: 1 }
    await expect(payWithKey({ key, coins, feeRate: 1 }).pay(draft)).rejects.toThrow(
      'a coin of at least 2 more',
    )
  })

  test('takes the largest coins, no more than it needs, and none of one satoshi', async () => {
    const transaction = coinsFor(key, 1, 40, 300, 60, 1)
    const coins = transaction.outputs.map((_, vout) => ({ transaction, vout }))
    const paid = async (feeRate: number) => {
      const signed = await fundWithKey({ ...draft(), coins, key, feeRate })
      return signed.transaction.inputs.slice(1).map(({ sourceOutputIndex }) => sourceOutputIndex)
    }
    expect(await paid(1)).toEqual([2])
    const doubted = coins.map((coin) => ({ ...coin, isDoubtful: coin.vout === 2 }))
    const { transaction: other } = await fundWithKey({ ...draft(), coins: doubted, key, feeRate: 1 })
    expect(other.inputs.slice(1).map(({ sourceOutputIndex }) => sourceOutputIndex)).toEqual([3])
    const all = fundWithKey({ ...draft(), coins, key, feeRate: 100_000 })
    await expect(all).rejects.toMatchObject({ code: 'NO_FUNDS' })
    await expect(all).rejects.toThrow(/^400 satoshis are not enough/)
  })

  test('is not signed where the fee is more than allowed', async () => {
    const { transaction } = await fundWithKey({ ...draft(), coins, key })
    const fee = transaction.getFee()
    expect((await fundWithKey({ ...draft(), coins, key, maxFee: fee })).transaction.getFee()).toBe(fee)
    const dear = fundWithKey({ ...draft(), coins, key, maxFee: fee - 1 })
    const message = `the fee of the mint of q would be ${fee} satoshis; at most ${fee - 1} are allowed`
    await expect(dear).rejects.toMatchObject({ code: 'OVER_BUDGET', message })
    // What is too dear is said before what is missing.
    const poor = fundWithKey({ ...draft(), coins: [], key, maxFee: 1 })
    await expect(poor).rejects.toMatchObject({ code: 'OVER_BUDGET' })
  })

  test('is not made of a solution for another seed', async () => {
    const { plan, source } = draft()
    const harder = { ...plan, deployment: { ...plan.deployment, difficulty: 50 } }
    const mint = fundWithKey({ plan: harder, source, coins, key })
    await expect(mint).rejects.toMatchObject({ code: 'BAD_WORK' })
  })
})

const VALUE = { satoshis: 2 }
describe('a mint paid by a wallet', () => {
  const wallet = (changeOutputs?: number) =>
    new TestWallet(coinsFor(new PrivateKey(7), 20_000), changeOutputs)

  test.each([0, 1, 8, 30])('holds with %i outputs of change', async (changeOutputs) => {
    const { plan, source } = draft()
    const payer = wallet(changeOutputs)
    const { transaction, mint } = await fundWithWallet({ plan, source, wallet: payer })
    expect(transaction.outputs).toHaveLength(3 + changeOutputs)
    expect(mint.name).toBe('q')
    expect(payer.sent.map((each) => each.id('hex'))).toEqual([transaction.id('hex')])
    expect(Transaction.fromBEEF(transaction.toBEEF(true)).id('hex')).toBe(transaction.id('hex'))
  })

  test('puts the name into its basket', async () => {
    const payer = wallet()
    const basket = { name: 'names', customInstructions: '{"key":"q"}' }
    await fundWithWallet({ ...draft(), wallet: payer, basket })
    const none = [undefined, undefined]
    const baskets = payer.actions[0]?.outputs?.map((output) => [output.basket, output.customInstructions])
    expect(baskets).toEqual([none, none, ['names', '{"key":"q"}']])
  })

  test.each([
    ['reversed the outputs', ({ outputs }: Transaction) => void outputs.reverse()],
    ['took the node away', ({ inputs }: Transaction) => void inputs.shift()],
    [
      'gave the name another value',
      ({ outputs }: Transaction) => void Object.assign(outputs[2] ?? {}, VALUE),
    ],
  ])('is given up where the wallet %s', async (_, fault) => {
    const payer = wallet()
    payer.faults.draft = fault
    await expect(fundWithWallet({ ...draft(), wallet: payer })).rejects.toMatchObject({ code: 'BAD_WALLET' })
    expect(payer.aborted).toEqual(['0000'])
    expect(payer.sent).toEqual([])
  })

  test('may have a lock time in a tree of the first covenant', async () => {
    const payer = wallet()
    payer.faults.draft = (transaction) => void Object.assign(transaction, { lockTime: 900_000 })
    const { transaction } = await fundWithWallet({ ...draft({ covenantVersion: 1 }), wallet: payer })
    expect(payer.sent).toHaveLength(1)
    expect(transaction.lockTime).toBe(900_000)
  })

  const refusing =
    (...reviewActionResults: { txid: string; status: string }[]) =>
    () => {
      throw Object.assign(new Error('review'), { code: 5, reviewActionResults })
    }

  test('is kept before the wallet is asked to send it', async () => {
    const payer = wallet()
    const order: string[] = []
    payer.faults.send = () => void order.push('sent')
    const { transaction, beef } = await fundWithWallet({
      ...draft(),
      wallet: payer,
      keep: async (mint) => void order.push(`kept ${mint.transaction.id('hex')}`),
    })
    expect(order).toEqual([`kept ${transaction.id('hex')}`, 'sent'])
    expect(Transaction.fromBEEF(Array.from(beef)).id('hex')).toBe(transaction.id('hex'))
  })

  test.each<[string, TestWallet['faults'], string]>([
    ['fails, with no reason that is final', { send: refusing() }, 'UNDECIDED'],
    ['says that it failed', { result: 'failed' }, 'REFUSED'],
    ['says nothing of it', { result: 'nothing' }, 'UNDECIDED'],
  ])('that the wallet %s is reported as such', async (_, faults, code) => {
    const payer = wallet()
    payer.faults = faults
    const funding = walletMintPayer(payer).pay({ ...draft(), maxFee: 5000 })
    await expect(funding).rejects.toMatchObject({ name: 'MiningError', code })
    // It may have been sent all the same: the wallet is not asked to forget it.
    expect(payer.aborted).toEqual([])
  })

  test.each([
    ['doubleSpend', 'REFUSED'],
    ['invalidTx', 'REFUSED'],
    ['serviceError', 'UNDECIDED'],
  ])('that the wallet reports as %s is final: %s', async (status, code) => {
    const payer = wallet()
    const keep = async ({ transaction }: { transaction: Transaction }) => {
      payer.faults.send = refusing({ txid: transaction.id('hex'), status })
    }
    const funding = walletMintPayer(payer, { keep }).pay({ ...draft(), maxFee: 5000 })
    await expect(funding).rejects.toMatchObject({ code, message: expect.stringContaining(status) })
  })

  test('finds the node wherever the wallet put it', async () => {
    const payer = wallet()
    payer.faults.draft = ({ inputs }) => void inputs.reverse()
    const { plan, source } = draft()
    const { transaction } = await fundWithWallet({ plan, source, wallet: payer })
    expect(transaction.inputs[1]?.sourceTXID).toBe(plan.node.outpoint.txid)
  })
})
