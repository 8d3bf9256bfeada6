import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { bareTransaction } from '../../../support/protocol/transactions.js'
import { useServers } from '../../../support/server/test-server.js'

const { start } = useServers()

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
