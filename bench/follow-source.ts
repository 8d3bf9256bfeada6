import type { TransactionRecord } from '../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../backend/src/protocol/outpoint.js'
import { ChainFacts, LyingView } from '../test/support/follow/chain-services.js'
import { FakeService } from '../test/support/follow/fake-service.js'
import { answerAsJungleBus } from '../test/support/follow/junglebus-protocol.js'
import { listening } from '../test/support/server/connections.js'
import { MinedTree } from './mined-tree.js'

/** Sent to the bench when the source is ready. */
export interface SourceReady {
  url: string
  /** The names that are minted at the start. */
  names: string[]
  /** A subscription to all transactions. */
  subscription: string
  /** `HEADERS_CHECKPOINT` */
  checkpoint: string
}

const SUBSCRIPTION = 'all'

/**
 * The process that a host follows: a JungleBus that answers late, like one over the internet, and mints each name that it is
 * sent.
 */
const [mints = '', latency = ''] = process.argv.slice(2)
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())

const tree = new MinedTree()
const first = tree.headers.branch.block(0)
tree.grow(Number(mints))

/** A view of the tree that makes proofs in less time. */
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
  ...{ url, names: [...tree.names], subscription: SUBSCRIPTION },
  checkpoint: `${first?.header.height}:${first?.header.hash}`,
}
process.send?.(ready)
