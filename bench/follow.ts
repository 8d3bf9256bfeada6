import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { readBeef } from '../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../backend/src/graph/records.js'
import NamesTopicManager from '../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../backend/src/topic-managers/OrdinalsTopicManager.js'
import { gather } from '../src/chain/ancestors/ancestors.js'
import { openNode } from '../src/server/node.js'
import type { ChainStatus } from '../src/server/telemetry/chain-status.js'
import { verifySubmission } from '../src/server/writer/verify-submission.js'
import type { SourceReady } from './follow-source.js'
import { usageOf, withProcess } from './load.js'
import { MinedTree } from './mined-tree.js'
import { configFor, inFolder, median, SILENT, timed } from './support.js'

/** Mints in the tree, by default. */
const MINTS = 2000
/** How late the source answers, in milliseconds, like one over the internet. */
const LATENCY = 50
/** Requests a second that the host may send: six times the default, or the bench would take an hour. */
const RATE = 60
/** How often the host asks for the height of the chain, and sweeps, in milliseconds. */
const POLL = 1000
const HOUR = 3_600_000
/** Letters of names that are minted while the host keeps up. */
const LATE = Array.from('abcdefghijklm')
/** How often the host is asked for its progress, in milliseconds. These answers count as its own work. */
const SAMPLE_EVERY = 1000
/** The sizes of small trees, in names; the host follows them at the default rate. */
const SMALL_TREES = [20, 100]
const DEFAULT_RATE = 10
/** How many names are minted in each of them, one after another. */
const SMALL_MINTS = 6
/** After this many milliseconds without a request, the host has asked about all coins. */
const REST = 1000

/**
 * Catching up from an empty store with a source in another process: the share of our own work, its cost per mint and its memory;
 * and how soon a name resolves once a block has it. `npm run bench follow 14000` catches up with a tree as large as the live one,
 * `follow 14000 200` does so at 200 requests a second, and `follow small` only follows small trees.
 */
export async function* follow(within: string[]): AsyncGenerator<string> {
  const numbers = within.filter((each) => /^\d+$/.test(each)).map(Number)
  const [mints = MINTS, rate = RATE] = numbers
  const isSmall = within.includes('small')
  const small = numbers.length === 0 ? SMALL_TREES : isSmall ? [mints] : []
  for (const names of small) yield* smallTree(names)
  if (isSmall) return
  const ofSource = [String(mints), String(LATENCY)]
  yield* withProcess('./follow-source.js', ofSource, async function* (source: SourceReady, process) {
    const mint = minting(process)
    yield* inFolder(async function* (folder) {
      let samples: Sample[] = []
      yield* withHost({ source, folder, rate, poll: POLL }, async function* (host) {
        samples = await catchUp(host, mints)
        yield `memory at most: ${(await memoryOf(host)).toFixed(0)} MiB (wanted: below 512)`
        if (mints > MINTS) return
        const lately = LATE.map((_, at) => `zz${'a'.repeat(at + 1)}`)
        const old = LATE.slice(0, 3).map((letter) => `y${letter}a`)
        // The node of the first name has not changed for long.
        const [, ...times] = await timesToResolve(host, { names: lately, mint })
        yield `${BEYOND}, at a node that changed lately: ${shownTimes(times)} (wanted: 2)`
        const swept = await timesToResolve(host, { names: old, mint })
        yield `${BEYOND}, at any node, which a sweep finds: ${shownTimes(swept)} (coins / rate: ${(2 * mints) / rate})`
      })
      yield* shownCatchUp(samples, { mints, verifying: await timeToVerify(mints, { folder, source }) })
      if (mints > MINTS) return
      yield* withHost({ source, folder, rate, poll: POLL, hasFeed: true }, async function* (host) {
        // The host first reads the past of the feed.
        await timesToResolve(host, { names: ['yza'], mint })
        const names = LATE.slice(3).map((letter) => `y${letter}a`)
        yield `${BEYOND}, at any node, with a feed: ${shownTimes(await timesToResolve(host, { names, mint }))} (wanted: 2)`
      })
    })
  })
}

const BEYOND = `from a block to a resolvable name, beyond ${seconds(POLL)}`

/** Makes the source mint a name whose parent is minted, in a block of its own. */
type Mint = (name: string) => Promise<void>

function minting(source: ChildProcess): Mint {
  return async (name) => {
    source.send(name)
    await once(source, 'message')
  }
}

/**
 * A small tree at the default rate: how soon names resolve that are minted at any of its nodes, and how many requests that takes.
 */
async function* smallTree(names: number): AsyncGenerator<string> {
  const ofSource = [String(names), String(LATENCY)]
  yield* inFolder((folder) =>
    withProcess('./follow-source.js', ofSource, async function* (source: SourceReady, process) {
      const options = { source, folder, rate: DEFAULT_RATE, poll: HOUR }
      yield* withHost(options, async function* (host) {
        await catchUp(host, names)
        const before = await requestsOf(host)
        const coins = 2 * names + 1
        yield `${names} names at ${DEFAULT_RATE} requests a second: ${(before / coins).toFixed(2)} requests a coin to catch up`
        const times: number[] = []
        for (const at of Array(SMALL_MINTS).keys()) {
          await atRest(host)
          const parent = source.names[Math.floor((at * names) / SMALL_MINTS)]
          times.push(...(await timesToResolve(host, { names: [`${parent}9`], mint: minting(process) })))
        }
        await atRest(host)
        const requests = ((await requestsOf(host)) - before) / times.length
        yield `  ${BEYOND}, at any node: ${shownTimes(times)} (wanted: 2; coins / rate: ${coins / DEFAULT_RATE})`
        yield `  requests of a coin for each block with a mint: ${(requests / coins).toFixed(2)}`
      })
    }),
  )
}

/** Waits until the host sends no more requests. */
async function atRest(host: Host): Promise<void> {
  for (let before = -1, now = 0; now !== before; now = await requestsOf(host)) {
    before = now
    await setTimeout(REST)
  }
}

/** How many requests the host has sent to its source, except those for headers. */
async function requestsOf(host: Host): Promise<number> {
  const { sources = [] } = await statusOf(host)
  return sources.reduce((sum, { requests }) => sum + requests, 0)
}

interface Host {
  url: string
  process: ChildProcess
}

/** Runs with a host in another process that follows a source from the start. */
async function* withHost(
  options: { source: SourceReady; folder: string; rate: number; poll: number; hasFeed?: boolean },
  run: (host: Host) => AsyncGenerator<string>,
): AsyncGenerator<string> {
  const { source, folder, rate, poll, hasFeed } = options
  const { url, subscription } = source
  const settings = {
    ...headerSettings(source),
    CHAIN_SOURCES: `junglebus=${url}`,
    CHAIN_SOURCE_RATE: String(rate),
    ...(hasFeed && { JUNGLEBUS_SUBSCRIPTION: subscription }),
    HEADERS_POLL_MS: String(POLL),
    FOLLOW_POLL_MS: String(poll),
    READS_PER_MINUTE: '0',
  }
  yield* withProcess('./started-server.js', [folder, JSON.stringify(settings)], (host: string, process) =>
    run({ url: host, process }),
  )
}

function headerSettings({ url, checkpoint }: SourceReady): Record<string, string> {
  return { CHAIN_TRACKER: 'headers', HEADERS_SOURCES: `junglebus=${url}`, HEADERS_CHECKPOINT: checkpoint }
}

/** The progress of the host and its resources, at one time. */
interface Sample {
  /** Milliseconds since the start of the host. */
  at: number
  mints: number
  /** Processor time in milliseconds. */
  cpu: number
}

/** Waits until the host has followed all mints. @returns A sample every second. */
async function catchUp(host: Host, mints: number): Promise<Sample[]> {
  const start = performance.now()
  const samples: Sample[] = []
  for (let isDone = false; !isDone; await setTimeout(SAMPLE_EVERY)) {
    const { follow } = await statusOf(host)
    const { userCPUTime, systemCPUTime } = await usageOf(host.process)
    const cpu = (userCPUTime + systemCPUTime) / 1000
    samples.push({ at: performance.now() - start, mints: follow?.mints ?? 0, cpu })
    isDone = follow?.state === 'keeping up'
  }
  const found = samples.at(-1)?.mints
  if (found !== mints) throw new Error(`followed ${found} mints of ${mints}`)
  return samples
}

function* shownCatchUp(samples: Sample[], { mints, verifying }: { mints: number; verifying: number }) {
  const end = samples.find((sample) => sample.mints === mints) ?? { at: Number.NaN, cpu: Number.NaN }
  yield `${mints} mints: ${seconds(end.at)}; processor ${seconds(end.cpu)}, of which ${seconds(verifying)} to verify`
  const share = (end.cpu - verifying) / end.at
  yield `share that is neither waiting nor verifying: ${share.toFixed(2)} (wanted: at most 0.2)`
  const step = Math.min(1000, mints / 4)
  const [early, late] = [2 * step, mints].map((to) => cpuAt(samples, to) - cpuAt(samples, to - step))
  const ratio = (late ?? Number.NaN) / (early ?? Number.NaN)
  yield `processor time of the last ${step} mints with that of the second ${step}: ${ratio.toFixed(2)} (wanted: 1)`
}

/** The processor time that the host had used when it had admitted this many mints, interpolated. */
function cpuAt(samples: Sample[], mints: number): number {
  const after = samples.findIndex((sample) => sample.mints >= mints)
  const [before, then] = [samples[after - 1], samples[after]]
  if (before === undefined || then === undefined) return Number.NaN
  return before.cpu + ((then.cpu - before.cpu) * (mints - before.mints)) / (then.mints - before.mints)
}

/**
 * The processor time to verify the mints, in milliseconds: their proofs, and which of their outputs belong in the topics.
 * Measured with a sample of the tree.
 *
 * @param of.folder The store of a host that follows them, which is only read.
 */
async function timeToVerify(mints: number, of: { folder: string; source: SourceReady }): Promise<number> {
  const tree = new MinedTree()
  tree.grow(Math.min(mints, MINTS))
  const config = configFor(tree.chain, of.folder, headerSettings(of.source))
  const node = await openNode({ config, logger: SILENT })
  try {
    const store = node.graph
    const topics = [
      new NamesTopicManager({ deployment: tree.chain.deployment, store }),
      new OrdinalsTopicManager({ store }),
    ]
    const { maxScriptWork, maxBeefTransactions: maxTransactions } = node.config.limits
    const limits = { maxTransactions, maxBytes: node.config.maxBodyBytes }
    const transactions = {
      transaction: async (txid: string) => tree.record(txid),
      spenderOf: async () => undefined,
    }
    let spent = 0
    for (const txid of tree.mints) {
      const { beef } = await gather(tree.record(txid) as TransactionRecord, {
        store,
        source: transactions,
        limits,
      })
      spent += await processorTime(async () => {
        await verifySubmission({ beef: readBeef(beef), tracker: undefined, maxScriptWork })
        for (const topic of topics) await topic.identifyAdmissibleOutputs(beef, [0])
      })
    }
    return (spent * mints) / tree.mints.length
  } finally {
    await node.close()
  }
}

/** The processor time of this process during some work, in milliseconds. */
async function processorTime(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** How soon names resolve once a block has them, in milliseconds beyond the interval at which the host asks for new blocks. */
async function timesToResolve(
  host: Host,
  { names, mint }: { names: readonly string[]; mint: Mint },
): Promise<number[]> {
  const times: number[] = []
  for (const name of names) {
    await mint(name)
    const took = await timed(async () => {
      while ((await fetch(`${host.url}/svc/names/origin/${name}`)).status !== 200) await setTimeout(20)
    })
    times.push(took - POLL)
  }
  return times
}

function shownTimes(times: number[]): string {
  return `${seconds(median(times))}, at most ${seconds(Math.max(...times))}`
}

async function statusOf({ url }: Host): Promise<ChainStatus> {
  return (await (await fetch(`${url}/health`)).json()) as ChainStatus
}

/** The peak memory of a host, in MiB. */
async function memoryOf(host: Host): Promise<number> {
  return (await usageOf(host.process)).maxRSS / 1024
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}
