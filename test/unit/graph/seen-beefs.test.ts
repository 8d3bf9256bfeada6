import { SeenBeefs } from '../../../backend/src/graph/read-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
const inscribed = (bytes: number): FakeTransaction =>
  chain.inscribe({ contentType: 'text/plain', body: utf8('x'.repeat(bytes)) })
const parent = inscribed(1)

const whole = (transaction: FakeTransaction): Uint8Array => beefOf(transaction, { with: [parent] })

test('of a transaction that was seen, all that came with it is known', () => {
  const seen = new SeenBeefs()
  const [one, other] = [inscribed(2), inscribed(3)]
  const came = whole(one)
  seen.add(came)
  expect(seen.get(one.txid)?.bytes).toBe(came)
  expect(seen.get(other.txid)).toBeUndefined()
  seen.forget(one.txid)
  expect(seen.get(one.txid)).toBeUndefined()
})

test('no more bytes are kept than the limit, except the last BEEF however large it is', () => {
  const seen = new SeenBeefs(16_000)
  const some = [5000, 6000, 6000].map(inscribed)
  for (const each of some) seen.add(whole(each))
  // Once more is no more.
  seen.add(whole(some[2] as FakeTransaction))
  const isKept = ({ txid }: FakeTransaction): boolean => seen.get(txid) !== undefined
  expect(some.map(isKept)).toEqual([false, true, true])
  const large = inscribed(20_000)
  seen.add(whole(large))
  expect([...some, large].map(isKept)).toEqual([false, false, false, true])
})
