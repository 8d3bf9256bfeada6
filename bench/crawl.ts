import { readBeef } from '../backend/src/graph/read-beef.js'
import NamesTopicManager from '../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../backend/src/topic-managers/OrdinalsTopicManager.js'
import { Follower } from '../src/follow/follower.js'
import { openSources } from '../src/follow/open-sources.js'
import { type Node, openNode } from '../src/server/node.js'
import { admitBeef } from '../src/server/submission/admit.js'
import { verifySubmission } from '../src/server/submission/verify-submission.js'
import { FakeChain } from '../test/support/protocol/fake-chain.js'
import { withProcess } from './load.js'
import { configFor, LIVE_CODE_SIZE, SILENT, timed, withFolder } from './support.js'

/** What the command uses by default. */
const PARALLEL = 3

interface Source {
  url: string
  mints: number
  transfers: number
}

/**
 * The share of a crawl's time in which it neither waited nor verified: the time of the processor, without what it takes to
 * verify the same BEEFs once more. Against a source in another process that answers each question after 50 ms, over a tree
 * of 156 mints of the live covenant's size, a third of whose names moved twice.
 */
export async function* crawl(): AsyncGenerator<string> {
  yield* withProcess('./crawl-server.js', [], async function* (ready: Source, process) {
    const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
    const open = (folder: string): Promise<Node> =>
      openNode({ config: configFor(chain, folder), logger: SILENT })
    // A crawl takes minutes at least: what is measured is not how its code is compiled.
    await withFolder(async (folder) => {
      const node = await open(folder)
      await crawlInto(node, { chain, ...ready })
      await node.close()
    })
    process.send('late')
    const found = await withFolder(async (folder) => {
      const node = await open(folder)
      const crawled = await crawlInto(node, { chain, ...ready })
      const verifying = await processorTime(() => verifyAll(crawled.beefs, { node, chain }))
      await node.close()
      return { ...crawled, verifying }
    })
    const { took, busy, verifying, requests } = found
    const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`
    yield `${ready.mints} mints and ${ready.transfers} transfers: ${requests} requests, ${seconds(took)}`
    yield `processor: ${seconds(busy)}, of which ${seconds(verifying)} to verify`
    yield `share that is neither waiting nor verifying: ${((busy - verifying) / took).toFixed(2)} (wanted: at most 0.2)`
  })
}

async function crawlInto(node: Node, { chain, url, mints, transfers }: Source & { chain: FakeChain }) {
  const beefs: Uint8Array[] = []
  const addresses = [{ kind: 'junglebus', url }] as const
  const source = openSources({ addresses, rate: 10_000, parallel: PARALLEL })
  const follower = new Follower({
    node: {
      genesis: chain.deployment.genesis,
      store: node.graph,
      admit({ txid, beef }) {
        beefs.push(beef)
        return admitBeef(node, { txid, beef: () => beef })
      },
    },
    ...{ source, parallel: PARALLEL, ordinals: 'names', maxUnproven: 100, pollInterval: 0, logger: SILENT },
    limits: { maxTransactions: 10_000, maxBytes: 1_000_000 },
  })
  let took = 0
  const busy = await processorTime(async () => {
    took = await timed(() => follower.crawl())
  })
  const { report } = follower
  await source.close()
  if (report.mints !== mints || report.transfers !== transfers)
    throw new Error(`followed ${report.mints} mints and ${report.transfers} transfers`)
  return { beefs, took, busy, requests: source.asked.requests }
}

/** What the node does to know that each holds: its scripts and proofs, and which of its outputs belong in the topics. */
async function verifyAll(beefs: Uint8Array[], { node, chain }: { node: Node; chain: FakeChain }) {
  const store = node.graph
  const topics = [
    new NamesTopicManager({ deployment: chain.deployment, store }),
    new OrdinalsTopicManager({ store }),
  ]
  for (const each of beefs) {
    // A copy is read again.
    const beef = each.slice()
    const { maxScriptWork } = node.config.limits
    await verifySubmission({ beef: readBeef(beef), tracker: undefined, maxScriptWork })
    for (const topic of topics) await topic.identifyAdmissibleOutputs(beef, [0])
  }
}

/** How long the processor works meanwhile for this process, in milliseconds. */
async function processorTime(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
