import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { Agent, get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { readBeef } from '../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../backend/src/graph/records.js'
import NamesTopicManager from '../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../backend/src/topic-managers/OrdinalsTopicManager.js'
import { gather } from '../src/chain/ancestors/ancestors.js'
import { openNode } from '../src/server/node.js'
import type { ChainStatus } from '../src/server/telemetry/chain-status.js'
import { verifySubmission } from '../src/server/writer/verify-submission.js'
import type { BareReady, Likeness } from './bare-server.js'
import type { HostUsage } from './follow-server.js'
import type { SourceReady } from './follow-source.js'
import { withProcess } from './load.js'
import { MinedTree } from './mined-tree.js'
import { configFor, inLineOf, median, SILENT, timed } from './support.js'

/** Mints of the tree, without an argument. */
const MINTS = 2000
/** How late the source answers, in milliseconds: as one over the internet. */
const LATENCY = 50
/** Requests a second that the host may send: six times the default, or the bench would take an hour. */
const RATE = 60
/** How often the host asks for the height of the chain, and sweeps, in milliseconds. */
const POLL = 1000
const HOUR = 3_600_000
/** Letters of names that are minted while the host keeps up. */
const LATE = Array.from('abcdefghijklm')
/** How often the host is asked how far it is, in milliseconds. Its answers count as its own work. */
const SAMPLE_EVERY = 1000
/** How long content is not read between two reads, in milliseconds, and how many reads are compared with. */
const READ_EVERY = 5
const IDLE_READS = 3000
const SYNCS = 50
/** How many names small trees have, which are followed at the default rate. */
const SMALL_TREES = [20, 100]
const DEFAULT_RATE = 10
/** How many names are minted in each, one after another. */
const SMALL_MINTS = 6
/** After how many milliseconds without a request the host has asked about all coins. */
const REST = 1000

/**
 * Catching up from an empty store with a source in another process: the share of our own work, its cost per mint and its
 * memory; reads of 4 KiB meanwhile; and how soon a name resolves once a block has it. `npm run bench follow 14000` catches up with
 * a tree as large as the live one, `follow 14000 200` at so many requests a second, `follow reads` only reads meanwhile, and
 * `follow small` follows small trees alone.
 */
export async function* follow(within: string[]): AsyncGenerator<string> {
  const numbers = within.filter((each) => /^\d+$/.test(each)).map(Number)
  const [mints = MINTS, rate = RATE] = numbers
  const onlyReads = within.includes('reads')
  const isSmall = within.includes('small')
  const small = numbers.length === 0 && !onlyReads ? SMALL_TREES : isSmall ? [mints] : []
  for (const names of small) yield* smallTree(names)
  if (isSmall) return
  const ofSource = [String(mints), String(LATENCY)]
  yield* withProcess('./follow-source.js', ofSource, async function* (source: SourceReady, process) {
    const folders = await Promise.all([0, 1].map(() => mkdtemp(join(tmpdir(), 'minetree-bench-'))))
    const [folder = '', other = ''] = folders
    const mint = minting(process)
    try {
      if (onlyReads || mints <= MINTS)
        // Once it has caught up, it does nothing.
        yield* withHost({ source, folder: other, rate, poll: HOUR }, async function* (host) {
          yield* readMeanwhile(host, { mints, files: source.files })
        })
      if (onlyReads) return
      let samples: Sample[] = []
      yield* withHost({ source, folder, rate, poll: POLL }, async function* (host) {
        samples = await catchUp(host, mints)
        yield `memory at most: ${(await memoryOf(host)).toFixed(0)} MiB (wanted: below 512)`
        if (mints > MINTS) return
        const lately = LATE.map((_, at) => `zz${'a'.repeat(at + 1)}`)
        const old = LATE.slice(0, 3).map((letter) => `y${letter}a`)
        // The node of the first one has not changed for long.
        const [, ...times] = await timesToResolve(host, { names: lately, mint })
        yield `${BEYOND}, at a node that changed lately: ${shownTimes(times)} (wanted: 2)`
        const swept = await timesToResolve(host, { names: old, mint })
        yield `${BEYOND}, at any node, which a sweep finds: ${shownTimes(swept)} (coins / rate: ${(2 * mints) / rate})`
      })
      yield* shownCatchUp(samples, { mints, verifying: await timeToVerify(mints, { folder, source }) })
      if (mints > MINTS) return
      yield* withHost({ source, folder, rate, poll: POLL, hasFeed: true }, async function* (host) {
        // It reads what is past first.
        await timesToResolve(host, { names: ['yza'], mint })
        const names = LATE.slice(3).map((letter) => `y${letter}a`)
        yield `${BEYOND}, at any node, with a feed: ${shownTimes(await timesToResolve(host, { names, mint }))} (wanted: 2)`
      })
    } finally {
      await Promise.all(folders.map((each) => rm(each, { recursive: true, force: true })))
    }
  })
}

const BEYOND = `from a block to a resolvable name, beyond ${seconds(POLL)}`

/** Lets the source mint a name whose parent is minted, in a block of its own. */
type Mint = (name: string) => Promise<void>

function minting(source: ChildProcess): Mint {
  return async (name) => {
    source.send(name)
    await once(source, 'message')
  }
}

/** A small tree at the default rate: how soon names resolve that are minted at any of its nodes, and the requests for that. */
async function* smallTree(names: number): AsyncGenerator<string> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  const ofSource = [String(names), String(LATENCY)]
  try {
    yield* withProcess('./follow-source.js', ofSource, async function* (source: SourceReady, process) {
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
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Waits until the host asks nothing more. */
async function atRest(host: Host): Promise<void> {
  for (let before = -1, now = 0; now !== before; now = await requestsOf(host)) {
    before = now
    await setTimeout(REST)
  }
}

/** How many requests the host has sent to its source, without those for headers. */
async function requestsOf(host: Host): Promise<number> {
  const { sources = [] } = await statusOf(host)
  return sources.reduce((sum, { requests }) => sum + requests, 0)
}

interface Host {
  url: string
  process: ChildProcess
}

/** Runs with a host in another process that follows a source from the start on. */
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
  yield* withProcess('./follow-server.js', [folder, JSON.stringify(settings)], (host: string, process) =>
    run({ url: host, process }),
  )
}

function headerSettings({ url, checkpoint }: SourceReady): Record<string, string> {
  return { CHAIN_TRACKER: 'headers', HEADERS_SOURCES: `junglebus=${url}`, HEADERS_CHECKPOINT: checkpoint }
}

/** What the host had done and used at a time. */
interface Sample {
  /** Milliseconds since the start of the host. */
  at: number
  mints: number
  /** Processor time in milliseconds. */
  cpu: number
}

/** Waits until the host has followed all mints. @returns What it had done and used every second. */
async function catchUp(host: Host, mints: number): Promise<Sample[]> {
  const start = performance.now()
  const samples: Sample[] = []
  for (let isDone = false; !isDone; await setTimeout(SAMPLE_EVERY)) {
    const { follow } = await statusOf(host)
    const { userCPUTime, systemCPUTime } = await usage(host)
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

/** The processor time that it had used when it had admitted so many mints, interpolated. */
function cpuAt(samples: Sample[], mints: number): number {
  const after = samples.findIndex((sample) => sample.mints >= mints)
  const [before, then] = [samples[after - 1], samples[after]]
  if (before === undefined || then === undefined) return Number.NaN
  return before.cpu + ((then.cpu - before.cpu) * (mints - before.mints)) / (then.mints - before.mints)
}

/**
 * The processor time that it takes to know that each mint holds, in milliseconds: its proofs, and which of its outputs belong
 * in the topics. Measured with those that the sample of the tree has.
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

/** The processor time of this process meanwhile, in milliseconds. */
async function processorTime(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** How soon names resolve once a block has them, beyond the interval in which the host asks for new blocks, in milliseconds. */
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

/** Reads of 4 KiB while the host catches up, and when nothing else goes on. */
async function* readMeanwhile(
  host: Host,
  { mints, files }: { mints: number; files: SourceReady['files'] },
): AsyncGenerator<string> {
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': '["tm_ordinals"]' }
  const body = Buffer.from(files.beef, 'hex')
  const { status } = await fetch(`${host.url}/submit`, { method: 'POST', headers, body })
  if (status !== 200) throw new Error(`the files were answered ${status}`)
  const paths = files.outpoints.map((outpoint) => `/content/${outpoint}`)
  yield* withProcess(
    './bare-server.js',
    [JSON.stringify({ url: `${host.url}${paths[0]}`, headers: undefined } satisfies Likeness)],
    async function* ([bare]: BareReady, { pid: barePid = 0 }) {
      const servers = {
        host: { url: host.url, pid: host.process.pid ?? 0 },
        bare: { url: bare?.express ?? '', pid: barePid },
      }
      let isDone = false
      await usage(host, 'begin')
      const following = catchUp(host, mints).finally(() => {
        isDone = true
      })
      const busy = await readTimes(servers, { paths, goOn: () => !isDone })
      await following
      const meanwhile = await usage(host, 'begin')
      const idle = await readTimes(servers, { paths, goOn: (count) => count < IDLE_READS })
      const still = await usage(host)
      const shown = (reads: Read[]): string => {
        const [half, most, owed] = [at(reads, 0.5), at(reads, 0.99), at(reads, 0.99, 'owed')]
        return `half within ${half.toFixed(2)} ms, 99 of 100 within ${most.toFixed(1)} (${owed.toFixed(1)} with a core)`
      }
      yield `${busy.host.length} reads of 4 KiB meanwhile: ${shown(busy.host)} (wanted: 20); idle: ${shown(idle.host)}`
      yield `of a bare Express route at the same times: ${shown(busy.bare)}; idle: ${shown(idle.bare)}`
      const ratio = (of: 'host' | 'bare'): string => {
        const [whole, owed] = (['took', 'owed'] as const).map(
          (time) => at(busy[of], 0.5, time) / at(idle[of], 0.5, time),
        )
        return `${whole?.toFixed(2)} (${owed?.toFixed(2)} with a core)`
      }
      yield `median with that of an idle host: ${ratio('host')} (wanted: at most 1.3), of bare Express: ${ratio('bare')}`
      yield `the main thread meanwhile: ${shownThread(meanwhile)}; idle: ${shownThread(still)}`
      yield `a write of 18 KiB with its sync, which a mint takes as well: ${(await timeToSync()).toFixed(1)} ms`
      yield `memory at most: ${(still.maxRSS / 1024).toFixed(0)} MiB (wanted: below 512)`
    },
  )
}

/** How long a disk takes to write and sync as many bytes as a mint has, in milliseconds. */
async function timeToSync(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  const file = await open(join(folder, 'synced'), 'w')
  try {
    const times: number[] = []
    for (let round = 0; round < SYNCS; round++) {
      times.push(
        await timed(async () => {
          await file.write(new Uint8Array(18 * 1024))
          await file.datasync()
        }),
      )
    }
    return median(times)
  } finally {
    await file.close()
    await rm(folder, { recursive: true })
  }
}

interface Read {
  /** How long it took, in milliseconds. */
  took: number
  /** Without the time in which the server or this process had work, and the machine ran others on all cores. */
  owed: number
}

interface Server {
  url: string
  pid: number
}

/** How long reads take that are sent to servers by turns, one after another. */
async function readTimes<Name extends string>(
  servers: Record<Name, Server>,
  { paths, goOn }: { paths: string[]; goOn: (count: number) => boolean },
): Promise<Record<Name, Read[]>> {
  const agent = new Agent({ keepAlive: true })
  const all = Object.entries<Server>(servers).map(([name, server]) => ({ name, server, reads: [] as Read[] }))
  for (let count = 0; goOn(count); count++) {
    const path = paths[count % paths.length]
    for (const { server, reads } of all) {
      const inLine = (): number => inLineOf(server.pid) + inLineOf(process.pid)
      const before = inLine()
      const took = await timed(() => read(`${server.url}${path}`, agent))
      reads.push({ took, owed: Math.max(0, took - (inLine() - before)) })
      await setTimeout(READ_EVERY)
    }
  }
  agent.destroy()
  return Object.fromEntries(all.map(({ name, reads }) => [name, reads])) as Record<Name, Read[]>
}

async function read(url: string, agent: Agent): Promise<void> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`${url} was answered ${response.statusCode}`)
}

/** Within what time so large a share of reads was answered. */
function at(reads: Read[], share: number, time: keyof Read = 'took'): number {
  const sorted = reads.map((each) => each[time]).sort((one, other) => one - other)
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}

async function statusOf({ url }: Host): Promise<ChainStatus> {
  return (await (await fetch(`${url}/health`)).json()) as ChainStatus
}

/** The most memory that a host has had, in MiB. */
async function memoryOf(host: Host): Promise<number> {
  return (await usage(host)).maxRSS / 1024
}

async function usage({ process }: Host, message: 'usage' | 'begin' = 'usage'): Promise<HostUsage> {
  process.send(message)
  const [used] = (await once(process, 'message')) as [HostUsage]
  return used
}

function shownThread({ busy, late: { usually, atMost } }: HostUsage): string {
  return `busy ${(busy * 100).toFixed(0)} % of the time, late by ${usually.toFixed(1)} ms in 1 of 100 turns, at most ${atMost.toFixed(0)}`
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}
