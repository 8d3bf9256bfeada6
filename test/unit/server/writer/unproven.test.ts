import { Beef, Transaction } from '@bsv/sdk'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { bareTransaction } from '../../../support/protocol/transactions.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()

/** A chain of unproven mints whose scripts an interpreter accepts, paid for by one proven coin each. */
function unprovenChain(names: string[]) {
  const chain = new FakeChain()
  const purse = chain.spend({ outputs: names.map(() => ({ satoshis: 1000, lockingScript: OPEN_LOCK })) })
  const mints = names.map((name, vout) => chain.mint(name, { funding: [{ transaction: purse, vout }] }))
  const beefs = mints.map((mint, index) => {
    const before = mints.slice(0, index)
    return beefOf(mint, { proven: false, with: [chain.genesis, purse, ...before], unproven: before })
  })
  return { chain, purse, mints, beefs }
}

async function answerBeef(server: TestServer, name: string): Promise<Beef> {
  const answer = await server.ask('/lookup', posted({ service: 'ls_names', query: { origin: name } }))
  const { outputs } = answer.json as { outputs: { beef: number[] }[] }
  return Beef.fromBinary(outputs[0]?.beef ?? [])
}

async function submitAll(server: TestServer, chain: FakeChain, beefs: Uint8Array[]): Promise<void> {
  for (const beef of [beefOf(chain.genesis), ...beefs]) await server.take(beef)
}

describe('a chain of unproven mints', () => {
  const { chain, purse, mints, beefs } = unprovenChain(['a', 'ab', 'abc'])

  test('is answered with a BEEF that holds every ancestor down to proven ones, and verifies', async () => {
    const server = await start(treeOf(chain.deployment))
    await submitAll(server, chain, beefs)
    const beef = await answerBeef(server, 'abc')
    const txids = (all: FakeTransaction[]): string[] => all.map(({ txid }) => txid).sort()
    expect(beef.txs.map(({ txid }) => txid).sort()).toEqual(txids([chain.genesis, purse, ...mints]))
    const subject = Transaction.fromBEEF(beef.toBinary())
    expect([subject.id('hex'), await subject.verify('scripts only')]).toEqual([mints[2]?.txid, true])
  })
})

test('what is known to be in a block is not held for its lock time, though this time its proof is left out', async () => {
  const server = await start()
  const chain = new FakeChain()
  const coin = chain.spend({ outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const spend = (source: FakeTransaction, sequence: number, lockTime = 0): FakeTransaction =>
    bareTransaction({
      inputs: [{ outpoint: { txid: source.txid, vout: 0 }, unlockingScript: Uint8Array.of(0x51), sequence }],
      outputs: [{ satoshis: 1, lockingScript: inscriptionScript({ body: utf8('x'), lock: OPEN_LOCK }) }],
      lockTime,
    })
  // Far from now; its block says that it was final all the same.
  const locked = spend(coin, 0, 4_000_000_000)
  const child = spend(locked, 0xffffffff)
  const taken = { status: 200, json: { tm_ordinals: { outputsToAdmit: [0] } } }
  expect(await server.submit(beefOf(locked, { with: [coin] }), ['tm_ordinals'])).toMatchObject(taken)
  const bare = beefOf(locked, { proven: false, with: [coin] })
  expect(await server.submit(bare, ['tm_ordinals'])).toMatchObject(taken)
  const built = beefOf(child, { proven: false, with: [coin, locked], unproven: [locked] })
  expect(await server.submit(built, ['tm_ordinals'])).toMatchObject(taken)
})
