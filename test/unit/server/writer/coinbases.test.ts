import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../../backend/src/protocol/script-walk.js'
import {
  beefOf,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { bareTransaction } from '../../../support/protocol/transactions.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'

// All coinbases name the same outpoint, which is none: they do not conflict, and their coins start something.

const servers = useServers()

/** @param height Of its block, which makes it another transaction than those of other blocks. */
function coinbase(height: number, outputs: FakeOutput[]): FakeTransaction {
  const unlockingScript = encodePush(utf8(`block ${height}`))
  const inputs = [{ outpoint: { txid: '0'.repeat(64), vout: 0xffffffff }, unlockingScript }]
  return bareTransaction({ inputs, outputs, height })
}

const money: FakeOutput = { satoshis: 5000, lockingScript: OPEN_LOCK }
const spending = (transaction: FakeTransaction, outputs: FakeOutput[]): FakeTransaction =>
  bareTransaction({
    inputs: [{ outpoint: { txid: transaction.txid, vout: 0 }, unlockingScript: Uint8Array.of(0x51) }],
    outputs,
  })

test('coinbases of other blocks, however early, take nothing from what is built on one', async () => {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  const paying = coinbase(700_000, [money])
  const purse = spending(paying, [money])
  const mint = chain.mint('a', { funding: [purse] })
  await server.submit(beefOf(chain.genesis))
  await server.submit(beefOf(mint, { with: [chain.genesis, purse] }))
  for (const [subject, sources] of [
    [purse, [paying]],
    [coinbase(1, [money]), []],
    [coinbase(800_000, [money]), []],
  ] as const)
    await server.take(beefOf(subject, { with: sources }), ['tm_ordinals'])
  expect((await server.ask('/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: mint.outpoint(2) })
  expect((await server.ask('/svc/names/mine/ab')).json).toMatchObject({ domain: 'a' })
})

test('an unproven spender of any coinbase is taken', async () => {
  const server = await servers.start()
  for (const height of [10, 20, 5]) {
    const paying = coinbase(height, [money])
    const note = inscriptionScript({ contentType: 'text/plain', body: utf8(`of ${height}`) })
    const subject = spending(paying, [{ satoshis: 1, lockingScript: note }])
    const answer = await server.submit(beefOf(subject, { proven: false, with: [paying] }), ['tm_ordinals'])
    expect(answer).toMatchObject({ status: 200, json: { tm_ordinals: { outputsToAdmit: [0] } } })
  }
})

test('what is inscribed in a coinbase is its own origin', async () => {
  const server = await servers.start()
  for (const height of [300, 200]) {
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(`in ${height}`) })
    const inscribed = coinbase(height, [{ satoshis: 1, lockingScript }, money])
    await server.submit(beefOf(inscribed), ['tm_ordinals'])
    const outpoint = inscribed.outpoint(0)
    for (const path of [outpoint, `${outpoint}:0`, `${outpoint}:-1`])
      expect(await server.ask(`/content/${path}`)).toMatchObject({ status: 200 })
    expect((await server.ask(`/svc/gateway/metadata/${outpoint}:0`)).json).toMatchObject({ sequence: 0 })
    expect((await server.ask(`/svc/gateway/provenance/${outpoint}`)).status).toBe(200)
  }
})
