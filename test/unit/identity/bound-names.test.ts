import { P2PKH, PrivateKey, ProtoWallet, PushDrop, type Transaction, type WalletInterface } from '@bsv/sdk'
import { readBeefTransaction, writeBeef } from '../../../backend/src/protocol/beef-transaction.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeDagCbor, encodeDagCborMap } from '../../../backend/src/protocol/dag-cbor.js'
import { readBinding } from '../../../backend/src/protocol/identity-binding.js'
import { encodeEnvelope } from '../../../backend/src/protocol/inscription.js'
import { encodeOutpoint, formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { HttpNameSource, type NameSource } from '../../../src/client/name-source.js'
import { isFresh, resolveName } from '../../../src/client/resolve.js'
import {
  type BindingTerms,
  bindingLock,
  draftMove,
  type NameCoin,
  nameCoin,
  nameSteps,
  requireBindingLock,
} from '../../../src/identity/index.js'
import type { Keep } from '../../../src/payments/draft.js'
import { p2pkhLockOf, payWithKey } from '../../../src/payments/key.js'
import { payWithWallet } from '../../../src/payments/wallet.js'
import { walletLock } from '../../../src/payments/wallet-keys.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// Names that are bound, moved and unbound, with real signatures, on a server that runs the scripts; each is then resolved by the
// client as anybody would.

const servers = useServers()
const [alice, bob] = [new PrivateKey(1001), new PrivateKey(1002)]
const identityOf = (key: PrivateKey): string => key.toPublicKey().toString()
const coinLock = (key: PrivateKey) => p2pkhLockOf(key.toPublicKey())

const chain = new FakeChain()
const mint = chain.mint('a', { ownerLock: coinLock(alice) })
const wallet = { key: new PrivateKey(7) }
const walletName = new ProtoWallet(wallet.key)
let server: TestServer

const fund = (key: PrivateKey, satoshis = 5000): FakeTransaction =>
  chain.spend({ inputs: [], outputs: [{ satoshis, lockingScript: coinLock(key) }] })
const transactionOf = (fake: FakeTransaction): Transaction => readBeefTransaction(beefOf(fake))

beforeAll(async () => {
  server = await servers.start(treeOf(chain.deployment))
  await server.submit(beefOf(chain.genesis))
  await server.submit(beefOf(mint), ['tm_names', 'tm_ordinals'])
})

const resolve = async (name: string, more: Partial<Parameters<typeof resolveName>[0]> = {}) => {
  const { deployment } = chain
  return await resolveName({ name, deployment, sources: [server.url], chainTracker: 'scripts only', ...more })
}

const coinOf = async (name: string): Promise<NameCoin> => {
  const { tip, origin } = await resolve(name)
  const path = `/svc/gateway/provenance/${formatOutpoint(origin.origin)}`
  return nameCoin({ name, tip, provenance: new Uint8Array((await server.ask(path)).body) })
}

async function submit(transaction: Transaction): Promise<void> {
  const { status, json } = await server.submit(writeBeef(transaction), ['tm_ordinals'])
  expect({ status, json }).toMatchObject({ status: 200, json: { tm_ordinals: { outputsToAdmit: [0] } } })
}

/** Moves a name with a key, and gives where it is then. */
async function move(name: string, key: PrivateKey, lock: Uint8Array): Promise<string> {
  const coin = await coinOf(name)
  const coins = [{ transaction: transactionOf(fund(key)), vout: 0 }]
  const draft = await draftMove({ coin, lock, holder: { key } })
  const { transaction } = await payWithKey({ key, coins }).pay(draft)
  await submit(transaction)
  return `${transaction.id('hex')}_0`
}

const signer = (key: PrivateKey) => new ProtoWallet(key)
const bind = async (name: string, key: PrivateKey, terms: BindingTerms = {}): Promise<string> =>
  await move(name, key, await bindingLock({ coin: await coinOf(name), signer: signer(key), ...terms }))

test('a provenance is read once, for the output of a name and for all of its steps', async () => {
  const { tip, origin } = await resolve('a')
  const answer = await server.ask(`/svc/gateway/provenance/${formatOutpoint(origin.origin)}`)
  const provenance = new Uint8Array(answer.body)
  const subarray = vi.spyOn(provenance, 'subarray')
  const { transaction } = nameCoin({ name: 'a', tip, provenance })
  const reads = subarray.mock.calls.length
  expect(reads).toBeGreaterThan(0)
  expect(nameSteps({ name: 'a', tip, provenance }).at(-1)?.txid).toBe(transaction.id('hex'))
  expect(subarray.mock.calls.length).toBe(reads)
})

test('a name is bound, rebound as it is transferred, and unbound', async () => {
  expect(await resolve('a')).toMatchObject({ identity: { state: 'unbound' }, confusables: [] })

  const profile = { domain: 'a.example', name: 'Alice' }
  const said = { identityKey: identityOf(alice), profile, layout: 'key-value' }
  const first = await bind('a', alice, { profile })
  const bound = await resolve('a', { known: new Map([['a', identityOf(alice)]]) })
  expect(bound).toMatchObject({
    tip: { sequence: 1 },
    identity: { ...said, state: 'bound', protocol: 'onesat', keyId: `opns:${mint.txid}_2` },
    freshness: { until: bound.checkedAt + 60_000, agreeing: 1, asked: 1 },
  })
  expect(bound).not.toHaveProperty('previousIdentityKey')
  expect([isFresh(bound, bound.checkedAt), isFresh(bound, bound.checkedAt + 60_000)]).toEqual([true, false])
  expect(formatOutpoint(bound.tip.tip)).toBe(first)
  expect((await server.ask('/svc/names/a')).json).toMatchObject({
    tip: {
      binding: {
        ...{ ...said, spent: mint.outpoint(2) },
        lockingKey: (bound.identity as { lockingKey?: string }).lockingKey,
      },
    },
  })
  const page = await server.ask('/name/a', { headers: { Accept: 'text/html' } })
  expect(page.body.toString()).toContain(identityOf(alice))
  expect(page.body.toString()).toContain('Not verified by this page')

  // A binding ends with its output.
  const index = new HttpNameSource({ url: server.url })
  const ask: NameSource['ask'] = async (...asked) =>
    (await index.ask(...asked)).map((reply) => ({ ...reply, spent: true }))
  const ended = { spendStatus: 'spent', identity: { state: 'unbound' } }
  expect(await resolve('a', { sources: [{ ask }] })).toMatchObject(ended)

  // Bob makes the lock, Alice moves the name into it: she never has his key. What the profile said was about her.
  const offered = await bindingLock({ coin: await coinOf('a'), signer: signer(bob) })
  requireBindingLock({ coin: await coinOf('a'), lock: offered })
  await move('a', alice, offered)
  const moved = await resolve('a', { known: new Map([['a', identityOf(alice)]]) })
  expect(moved.identity).toMatchObject({ identityKey: identityOf(bob), profile: {}, keyId: `opns:${first}` })
  expect(moved.previousIdentityKey).toBe(identityOf(alice))
  // A lock counts for one move alone.
  const late = await coinOf('a')
  const refusal = expect.objectContaining({ code: 'BAD_LOCK' })
  expect(() => requireBindingLock({ coin: late, lock: offered })).toThrow(refusal)
  await expect(move('a', alice, offered)).rejects.toMatchObject({ code: 'NOT_YOURS' })

  await move('a', bob, coinLock(bob))
  const unbound = await resolve('a', { known: new Map([['a', identityOf(bob)]]) })
  expect(unbound).toMatchObject({
    tip: { sequence: 3, owner: bob.toPublicKey().toHash('hex') },
    identity: { state: 'unbound' },
    previousIdentityKey: identityOf(bob),
  })
})

test('what a binding says that is not known is kept, and an inscription may follow it', async () => {
  const name = 'b'
  const minted = chain.mint(name, { ownerLock: coinLock(alice) })
  await server.submit(beefOf(minted), ['tm_names', 'tm_ordinals'])
  const avatar = { txid: mint.txid, vout: 2 }
  const later = [Array.from(utf8('later')), [7]]
  const template = new PushDrop(signer(alice) as unknown as WalletInterface)
  const slots = [alice.toPublicKey().toDER() as number[], [], Array.from(encodeOutpoint(avatar)), ...later]
  const keyId = `opns:${minted.outpoint(2)}`
  const lock = await template.lock(slots, [0, 'p 1sat'], keyId, 'anyone', true)
  const bound = Uint8Array.from(lock.toUint8Array())
  const envelope = encodeEnvelope({ contentType: 'text/plain', body: Uint8Array.of(104, 105) })
  await move(name, alice, concatBytes(bound, envelope))
  const positional = { layout: 'positional', protocol: 'p 1sat', profile: { avatar } }
  expect((await resolve(name)).identity).toMatchObject(positional)
  expect((await server.ask(`/content/${minted.outpoint(2)}:-1`)).body.toString()).toBe('hi')
  // Layout, protocol and profile stay unless others are asked for.
  await bind(name, alice, { profile: { name: 'Al' } })
  const named = { ...positional, profile: { avatar, name: 'Al' } }
  expect((await resolve(name)).identity).toMatchObject(named)
  const fields = readBinding((await resolve(name)).tip.lockingScript)?.fields.slice(3)
  expect(fields?.map((field) => Array.from(field))).toEqual(later)
  await expect(bind(name, alice, { layout: 'key-value' })).rejects.toMatchObject({ code: 'UNKNOWN_FIELDS' })
  await expect(bind(name, alice, { profile: { domain: 'x' } })).rejects.toMatchObject({ code: 'BAD_PROFILE' })
  await expect(bind('a', bob, { profile: { name: 'Bob' } })).rejects.toMatchObject({ code: 'BAD_PROFILE' })
})

test('a lock for a name whose holder only claims to be somebody says nothing that the claim says', async () => {
  const { outpoint, bindingInputs } = await coinOf('a')
  const profile = encodeDagCborMap([{ key: 'domain', encoded: encodeDagCbor('evil.example') }])
  const pairs = ['identity', bob.toPublicKey().toDER() as number[], 'profile', Array.from(profile)]
  const fields = pairs.map((each) => (typeof each === 'string' ? Array.from(utf8(each)) : each))
  const template = new PushDrop(signer(alice) as unknown as WalletInterface)
  const claimed = await template.lock(fields, [0, 'onesat'], 'opns:any', 'anyone', true)
  const coin = { outpoint, bindingInputs, lockingScript: Uint8Array.from(claimed.toUint8Array()) }
  expect(readBinding(coin.lockingScript)?.profile).toEqual({ domain: 'evil.example' })
  const lock = await bindingLock({ coin, signer: signer(bob) })
  expect(readBinding(lock)).toMatchObject({ identityKey: identityOf(bob), profile: {} })
})

test('a name may be minted into a binding: its key ID names the node that the mint spends', async () => {
  const node = { outpoint: chain.node('').outpoint, lockingScript: new Uint8Array(), bindingInputs: [] }
  const terms = { layout: 'positional', profile: { name: 'Al' } } as const
  const ownerLock = await bindingLock({ coin: node, signer: signer(alice), ...terms })
  const minted = chain.mint('d', { ownerLock, nodeInputPosition: 1 })
  await server.submit(beefOf(minted), ['tm_names', 'tm_ordinals'])
  expect(await resolve('d')).toMatchObject({
    tip: { sequence: 0 },
    identity: { state: 'bound', identityKey: identityOf(alice), profile: { name: 'Al' } },
  })
  // It is spent like any other.
  await move('d', alice, coinLock(bob))
  expect((await resolve('d')).identity).toEqual({ state: 'unbound' })
})

test('a wallet binds, moves and unbinds its names, and keeps what it needs to spend them', async () => {
  const name = 'c'
  const minted = chain.mint(name, { ownerLock: await walletLock(walletName, name) })
  await server.submit(beefOf(minted), ['tm_names', 'tm_ordinals'])
  const testWallet = new TestWallet(transactionOf(fund(wallet.key, 100_000)))
  const payer = payWithWallet(testWallet)
  const signMove = async (lock: Uint8Array, { maxFee = 2000, keep }: { maxFee?: number; keep?: Keep } = {}) =>
    await payer.pay(
      await draftMove({ coin: await coinOf(name), lock, holder: { wallet: testWallet }, maxFee }),
      keep,
    )
  const moveIn = async (lock: Uint8Array): Promise<void> => {
    const { transaction } = await signMove(lock)
    await payer.send?.(transaction, 'Move a name')
    await submit(transaction)
  }
  await moveIn(await bindingLock({ coin: await coinOf(name), signer: testWallet }))
  const bound = await resolve(name)
  expect(bound.identity).toMatchObject({ state: 'bound', identityKey: identityOf(wallet.key) })
  const [kept] = testWallet.actions[0]?.outputs ?? []
  expect({ ...kept, customInstructions: JSON.parse(kept?.customInstructions ?? '') }).toMatchObject({
    basket: 'minetree names',
    customInstructions: { protocolID: [0, 'onesat'], keyID: `opns:${minted.txid}_2`, counterparty: 'anyone' },
  })
  await moveIn(await walletLock(testWallet, name))
  expect((await resolve(name)).identity).toEqual({ state: 'unbound' })
  expect(testWallet.sent).toHaveLength(2)

  // A coin before the name would receive its place, and the fee has its limit: nothing is signed.
  testWallet.faults.draft = (transaction) => transaction.inputs.reverse()
  const lock = new P2PKH().lock(bob.toAddress()).toUint8Array()
  await expect(moveIn(Uint8Array.from(lock))).rejects.toMatchObject({ code: 'BAD_WALLET' })
  testWallet.faults = {}
  await expect(signMove(coinLock(bob), { maxFee: 1 })).rejects.toMatchObject({ code: 'OVER_BUDGET' })
  expect(testWallet.aborted).toHaveLength(2)

  // What cannot be stored is not kept by the wallet either, and each key is asked for once.
  testWallet.keysAsked.length = 0
  const keep = () => Promise.reject(new Error('the disk is full'))
  await expect(signMove(coinLock(bob), { keep })).rejects.toThrow('the disk is full')
  expect(testWallet).toMatchObject({ aborted: ['0002', '0003', '0004'], keysAsked: [name] })
  await moveIn(coinLock(bob))
  expect((await resolve(name)).tip.owner).toBe(bob.toPublicKey().toHash('hex'))
})
