import { P2PKH, PrivateKey, type Transaction } from '@bsv/sdk'
import { draftMove } from '../../../src/identity/index.js'
import { payForMint } from '../../../src/payments/mints.js'
import { payWithWallet } from '../../../src/payments/wallet.js'
import { walletLock } from '../../../src/payments/wallet-keys.js'
import { advertisementLock } from '../../../src/server/discovery/advertisement.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { coinsFor, sdkTransaction } from '../../support/protocol/transactions.js'

// Everything that a wallet drafts and signs here, and what it may not do with it.

type Keep = () => Promise<void>

const chain = new FakeChain({ covenantVersion: 1, difficulty: 3 })
const root = chain.node('')
const { deployment } = chain

async function mint(wallet: TestWallet, keep: Keep): Promise<unknown> {
  const ownerLock = p2pkh(9)
  chain.mint('q', { from: root, ownerLock })
  const plan = { node: root, deployment, character: 'q', nonce: chain.lastNonce, ownerLock }
  return await payForMint({ plan, source: sdkTransaction(chain.genesis) }, async (draft) =>
    payWithWallet(wallet).pay(draft, keep),
  )
}

async function move(wallet: TestWallet, keep: Keep): Promise<unknown> {
  const minted = chain.mint('a', { from: root, ownerLock: await walletLock(wallet, 'a') })
  const lockingScript = minted.transaction.outputs[2]?.lockingScript ?? new Uint8Array()
  const coin = {
    ...{ name: 'a', outpoint: { txid: minted.txid, vout: 2 }, lockingScript, bindingInputs: [] },
    transaction: sdkTransaction(minted),
  }
  return await payWithWallet(wallet).pay(await draftMove({ coin, lock: p2pkh(4), holder: { wallet } }), keep)
}

async function advertise(wallet: TestWallet, keep: Keep): Promise<unknown> {
  const key = new PrivateKey(77)
  const said = { protocol: 'SHIP', topicOrService: 'tm_names', url: 'https://names.example' } as const
  const lock = await advertisementLock(key, said)
  const output = {
    satoshis: 1,
    lockingScript: Uint8Array.from(lock.toUint8Array()),
    description: 'A token that says where this host of the overlay is',
  }
  const draft = { what: 'the advertisements', description: 'Advertise this overlay host', inputs: [] }
  return await payWithWallet(wallet).pay({ ...draft, outputs: [output], maxFee: 5000 }, keep)
}

const mine = new P2PKH().lock(new PrivateKey(7).toAddress())
const change = ({ outputs }: Transaction): { satoshis?: number } => outputs.at(-1) ?? {}

function locked(transaction: Transaction, lockTime: number, sequence: number, from: number): void {
  transaction.lockTime = lockTime
  for (const input of transaction.inputs.slice(from)) input.sequence = sequence
}

const DRAFTED: [what: string, fault: (transaction: Transaction) => void][] = [
  ['with another version', (transaction) => void Object.assign(transaction, { version: 2 })],
  ['that waits for a height', (transaction) => locked(transaction, 2_000_000, 0, 0)],
  [
    'that waits for a time, by one input',
    (transaction) => locked(transaction, 1_900_000_000, 0xfffffffe, -1),
  ],
  ['that makes money', (transaction) => void Object.assign(change(transaction), { satoshis: 10_000_000 })],
  [
    'that spends a coin twice',
    ({ inputs }) => void inputs.push(...inputs.slice(-1).map((one) => ({ ...one }))),
  ],
  ['without outputs', ({ outputs }) => void outputs.splice(0)],
]

const SIGNED: [what: string, fault: (transaction: Transaction) => void][] = [
  ['with another version', (transaction) => void Object.assign(transaction, { version: 2 })],
  ['with a lock time', (transaction) => void Object.assign(transaction, { lockTime: 1 })],
  ['with other sequence numbers', (transaction) => locked(transaction, 0, 5, 0)],
  ['with another change', (transaction) => void Object.assign(change(transaction), { satoshis: 1 })],
  ['with one output more', ({ outputs }) => void outputs.push({ satoshis: 1, lockingScript: mine })],
  ['with one output less', ({ outputs }) => void outputs.pop()],
]

describe.each([
  ['a mint', mint],
  ['a move of a name', move],
  ['advertisements', advertise],
])('%s', (_, pay) => {
  const payWith = async (faults: TestWallet['faults']) => {
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 20_000))
    wallet.faults = faults
    let kept = 0
    const error = await pay(wallet, async () => void kept++).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    return { error, kept, aborted: wallet.aborted.length, sent: wallet.sent.length }
  }

  test('is asked for with version 1 and no lock time, and kept', async () => {
    const wallet = new TestWallet(coinsFor(new PrivateKey(7), 20_000))
    await pay(wallet, async () => {})
    expect(wallet.actions[0]).toMatchObject({ version: 1, lockTime: 0 })
    expect(await payWith({})).toMatchObject({ error: undefined, kept: 1, aborted: 0 })
  })

  test.each(DRAFTED)('is not signed where the wallet drafts a transaction %s', async (_, draft) => {
    const sign = vi.fn()
    const came = await payWith({ draft, sign })
    expect(came).toMatchObject({ error: { code: 'BAD_WALLET' }, kept: 0, aborted: 1, sent: 0 })
    expect(sign).not.toHaveBeenCalled()
  })

  test.each(SIGNED)('is not kept where the wallet signs a transaction %s', async (_, sign) => {
    const came = await payWith({ sign })
    expect(came).toMatchObject({ error: expect.any(Error), kept: 0, aborted: 1, sent: 0 })
  })
})
