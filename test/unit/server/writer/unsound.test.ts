import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import OrdinalsTopicManager from '../../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { bareTransaction } from '../../../support/protocol/transactions.js'
import { useServers } from '../../../support/server/test-server.js'

// Transactions that run through an interpreter, but that no block can hold: nobody pays for them, so that anybody could
// have content served that is on no chain.

const server = await useServers().start()
const chain = new FakeChain()
const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('on no chain') })

const spend = (from: FakeTransaction, vout = 0) => ({
  outpoint: { txid: from.txid, vout },
  unlockingScript: Uint8Array.of(1, 0x61),
})

const nothing = bareTransaction({ inputs: [], outputs: [{ satoshis: 0, lockingScript }] })
const fromNothing = bareTransaction({ inputs: [], outputs: [{ satoshis: 0, lockingScript: OPEN_LOCK }] })
const child = bareTransaction({ inputs: [spend(fromNothing)], outputs: [{ satoshis: 0, lockingScript }] })
const coin = chain.spend({ outputs: [OPEN_LOCK] })
const twice = bareTransaction({
  inputs: [spend(coin), spend(coin)],
  outputs: [{ satoshis: 2, lockingScript }],
})
const once = bareTransaction({ inputs: [spend(coin)], outputs: [{ satoshis: 1, lockingScript }] })

const unsound: [string, FakeTransaction, Uint8Array][] = [
  ['has no inputs', nothing, beefOf(nothing, { proven: false })],
  [
    'has such a parent',
    child,
    beefOf(child, { proven: false, with: [fromNothing], unproven: [fromNothing] }),
  ],
  ['spends the same output twice', twice, beefOf(twice, { proven: false, with: [coin] })],
]

test.each(unsound)('what %s is refused, and nothing is stored', async (_, transaction, beef) => {
  const before = server.rows()
  const error = expect.stringContaining('the transaction is invalid')
  expectError(await server.submit(beef, ['tm_ordinals']), {
    status: 400,
    code: 'BAD_BODY',
    error,
    overlay: true,
  })
  expect(server.rows()).toEqual(before)
  expect(await server.ask(`/content/${transaction.outpoint(0)}`)).toMatchObject({ status: 404 })
})

test.each(unsound)('a plugin admits nothing of what %s', async (_, __, beef) => {
  const refused: string[] = []
  const topic = new OrdinalsTopicManager({ onRefusal: ({ code }) => refused.push(code) })
  const none = { outputsToAdmit: [], coinsToRetain: [] }
  expect(await topic.identifyAdmissibleOutputs(beef, [], undefined, 'current-tx')).toEqual(none)
  expect(refused).toEqual(['UNSOUND'])
})

test('the same with one coin, spent once, is admitted', async () => {
  const beef = beefOf(once, { proven: false, with: [coin] })
  expect((await server.submit(beef, ['tm_ordinals'])).json).toMatchObject({
    tm_ordinals: { outputsToAdmit: [0] },
  })
  expect(await server.ask(`/content/${once.outpoint(0)}`)).toMatchObject({ status: 200 })
})
