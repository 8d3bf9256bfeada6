import type { TransactionRecord } from '../backend/src/graph/records.js'
import { utf8 } from '../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../backend/src/protocol/outpoint.js'
import { ChainFacts, LyingView } from '../test/support/follow/chain-services.js'
import { FakeService } from '../test/support/follow/fake-service.js'
import { answerAsJungleBus } from '../test/support/follow/junglebus-protocol.js'
import { inscriptionScript, p2pkh } from '../test/support/protocol/fake-chain.js'
import { listening } from '../test/support/server/connections.js'
import { MinedTree } from './mined-tree.js'

/** What the bench is sent when the source is ready. */
export interface SourceReady {
  url: string
  /** Those that are minted at the start. */
  names: string[]
  /** A subscription to all transactions. */
  subscription: string
  /** `HEADERS_CHECKPOINT` */
  checkpoint: string
  /** A BEEF in hex of a transaction with files of 4 KiB, and their outpoints. */
  files: { beef: string; outpoints: string[] }
}

const FILES = 100
const SUBSCRIPTION = 'all'

/**
 * The process that a host follows: a JungleBus that answers late, as one over the internet does, and mints each name that it is
 * sent.
 */
const [mints = '', latency = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const tree = new MinedTree()
const first = tree.headers.branch.block(0)
const files = inscribed()
tree.grow(Number(mints))

/** What the tree knows: it makes a proof in less time. */
class TreeView extends LyingView {
  override transaction(txid: string): TransactionRecord | undefined {
    return tree.record(txid)
  }

  override spenderOf(outpoint: Outpoint): string | undefined {
    return tree.spenderOf(formatOutpoint(outpoint))
  }
}
const facts = new ChainFacts(tree.headers)
facts.know(tree.transactions)
facts.subscriptions.set(SUBSCRIPTION, () => true)
const junglebus = new FakeService(answerAsJungleBus, new TreeView(facts))
junglebus.delay = Number(latency)

process.on('message', (name: string) => {
  tree.mintAlone(name)
  facts.know(tree.transactions.slice(-2))
  process.send?.(name)
})
const { url } = await listening(junglebus.listener)
const ready: SourceReady = {
  ...{ url, names: [...tree.names], files, subscription: SUBSCRIPTION },
  checkpoint: `${first?.header.height}:${first?.header.hash}`,
}
process.send?.(ready)

function inscribed(): SourceReady['files'] {
  const { chain } = tree
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })
  const outputs = Array.from({ length: FILES }, (_, index) => {
    const body = utf8(`${index} `.repeat(4096).slice(0, 4096))
    return { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body }) }
  })
  const transaction = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
  tree.headers.mine([coin, transaction])
  const beef = Buffer.from(tree.headers.branch.beef(transaction, [coin])).toString('hex')
  return { beef, outpoints: outputs.map((_, vout) => transaction.outpoint(vout)) }
}
