import { JungleBusService } from '../test/support/follow/junglebus.js'
import { recordOf } from '../test/support/protocol/block.js'
import { FakeChain, type FakeCoin, type FakeTransaction, p2pkh } from '../test/support/protocol/fake-chain.js'
import { listening } from '../test/support/server/connections.js'
import { LIVE_CODE_SIZE } from './support.js'

/** The process that `crawl` asks: a source that answers as late as one over the internet, of a tree whose names move. */
const LATENCY = 50
const LETTERS = 'etaoinshrdlu'
const MOVES = 2

process.once('disconnect', () => process.exit())

const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
const service = new JungleBusService()
// The first crawl of the tree only warms up; a message says that the next is measured.
process.once('message', () => {
  service.delay = LATENCY
})

const know = (transaction: FakeTransaction): FakeTransaction => {
  service.know(recordOf(transaction, transaction.height))
  return transaction
}
const oneSatTo = (owner: number) => ({ satoshis: 1, lockingScript: p2pkh(owner) })

know(chain.genesis)
const moved: FakeCoin[] = []
let mints = 0
for (const first of LETTERS) {
  for (const name of [first, ...Array.from(LETTERS, (second) => first + second)]) {
    const lockingScript = p2pkh(0)
    const coin = know(chain.spend({ inputs: [], outputs: [{ satoshis: 5000, lockingScript }] }))
    const mint = know(chain.mint(name, { funding: [{ transaction: coin, vout: 0 }] }))
    if (mints++ % 3 === 0) moved.push({ transaction: mint, vout: 2 })
  }
}
for (let [count, coins] = [0, moved]; count < MOVES; count++) {
  coins = coins.map((coin) => ({
    transaction: know(chain.spend({ inputs: [coin], outputs: [oneSatTo(count + 2)] })),
    vout: 0,
  }))
}
const { url } = await listening(service.listener)
process.send?.({ url, mints, transfers: moved.length * MOVES })
