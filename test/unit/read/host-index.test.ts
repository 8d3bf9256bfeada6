import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { recentBeefs } from '../../../backend/src/read/host-index.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'

test('no more bytes of BEEF are kept in memory than 16 MiB, except the last one however large it is', () => {
  const chain = new FakeChain()
  const recent = recentBeefs()
  const inscribed = (mebibytes: number): string => {
    const body = new Uint8Array(mebibytes * 1024 * 1024)
    const beef = readBeef(beefOf(chain.inscribe({ contentType: 'text/plain', body })))
    recent.set(beef.subject.txid, beef)
    return beef.subject.txid
  }
  const some = [5, 7, 7].map(inscribed)
  expect(some.map((txid) => recent.has(txid))).toEqual([false, true, true])
  const large = inscribed(20)
  expect([...recent.keys()]).toEqual([large])
})
