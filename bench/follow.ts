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
import { gather } from '../src/follow/ancestors.js'
import { openNode } from '../src/server/node.js'
import { verifySubmission } from '../src/server/submission/verify-submission.js'
import type { ChainStatus } from '../src/server/telemetry/chain-status.js'
import type { BareReady } from './bare-server.js'
import type { SourceReady } from './follow-source.js'
import { withProcess } from './load.js'
import { MinedTree } from './mined-tree.js'
import { configFor, median, SILENT, timed } from './support.js'

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
/** How often the host is asked how far it is, in milliseconds. */
const SAMPLE_EVERY = 250
/** How long content is not read between two reads, in milliseconds, and how many reads are compared with. */
const READ_EVERY = 5
const IDLE_READS = 3000
const SYNCS = 50

/**
 * Catching up from an empty store with a source in another process: the share of our own work, its cost per mint and its
 * memory; reads of 4 KiB meanwhile; and how soon a name resolves once a block has it. `npm run bench follow 14000` catches up with
 * a tree as large as the live one, and `follow 14000 200` at so many requests a second.
 */
export async function* follow(within: string[]): AsyncGenerator<string> {
  const [mints = MINTS, rate = RATE] = within.filter((each) => /^\d+$/.test(each)).map(Number)
  const ofSource = [String(mints), String(LATENCY)]
  yield* withProcess('./follow-source.js', ofSource, async function* (source: SourceReady, process) {
    const folders = await Promise.all([0, 1].map(() => mkdtemp(join(tmpdir(), 'minetree-bench-'))))
    const [folder = '', other = ''] = folders
    let minted = mints
    const mint: Mint = async (name) => {
      minted++
      process.send(name)
      await once(process, 'message')
    }
    const beyond = `from a block to a resolvable name, beyond ${seconds(POLL)}`
    try {
      let samples: Sample[] = []
      yield* withHost({ source, folder, rate, poll: POLL }, async function* (host) {
        samples = await catchUp(host, mints)
        yield `memory at most: ${(await memoryOf(host)).toFixed(0)} MiB (wanted: below 512)`
        if (mints > MINTS) return
        const lately = LATE.map((_, at) => `zz${'a'.repeat(at + 1)}`)
        const old = LATE.slice(0, 3).map((letter) => `y${letter}a`)
        yield `${beyond}, at a node that changed lately: ${await timeToResolve(host, { names: lately, mint })} (wanted: 2)`
        yield `${beyond}, at any node, which a sweep finds: ${await timeToResolve(host, { names: old, mint })}`
      })
      yield* shownCatchUp(samples, { mints, verifying: await timeToVerify(mints, folder) })
      if (mints > MINTS) return
      yield* withHost({ source, folder, rate, poll: POLL, hasFeed: true }, async function* (host) {
        // It reads what is past first.
        await timeToResolve(host, { names: ['yza'], mint })
        const names = LATE.slice(3).map((letter) => `y${letter}a`)
        yield `${beyond}, at any node, with a feed: ${await timeToResolve(host, { names, mint })} (wanted: 2)`
      })
      // Once it has caught up, it does nothing.
      yield* withHost({ source, folder: other, rate, poll: HOUR }, async function* (host) {
        yield* readMeanwhile(host, { mints: minted, files: source.files })
      })
    } finally {
      await Promise.all(folders.map((each) => rm(each, { recursive: true, force: true })))
    }
  })
}

/** Lets the source mint a name whose parent is minted, in a block of its own. */
type Mint = (name: string) => Promise<void>

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
  const { url, checkpoint, subscription } = source
  const settings = {
    CHAIN_SOURCES: `junglebus=${url}`,
    CHAIN_SOURCE_RATE: String(rate),
    CHAIN_TRACKER: 'headers',
    HEADERS_SOURCES: `junglebus=${url}`,
    HEADERS_CHECKPOINT: checkpoint,
    ...(hasFeed && { JUNGLEBUS_SUBSCRIPTION: subscription }),
    HEADERS_POLL_MS: String(POLL),
    FOLLOW_POLL_MS: String(poll),
    READS_PER_MINUTE: '0',
  }
  yield* withProcess('./follow-server.js', [folder, JSON.stringify(settings)], (host: string, process) =>
    run({ url: host, process }),
  )
}

/** What the host had done and used at a time. */
interface Sample {
  /** Milliseconds since the start of the host. */
  at: number
  mints: number
  /** Processor time in milliseconds. */
  cpu: number
}

/** Waits until the host has followed all mints. @returns What it had done and used every quarter of a second. */
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
 * @param folder The store of a host that follows them, which is only read.
 */
async function timeToVerify(mints: number, folder: string): Promise<number> {
  const tree = new MinedTree()
  tree.grow(Math.min(mints, MINTS))
  const node = await openNode({ config: configFor(tree.chain, folder), logger: SILENT })
  try {
    const store = node.graph
    const topics = [
      new NamesTopicManager({ deployment: tree.chain.deployment, store }),
      new OrdinalsTopicManager({ store }),
    ]
    const { maxScriptWork, maxBeefTransactions: maxTransactions } = node.config.limits
    const limits = { maxTransactions, maxBytes: node.config.maxBodyBytes }
    const source = {
      transaction: async (txid: string) => tree.record(txid),
      spenderOf: async () => undefined,
    }
    let spent = 0
    for (const txid of tree.mints) {
      const { beef } = await gather(tree.record(txid) as TransactionRecord, { store, source, limits })
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

/** How soon names resolve once a block has them, beyond the interval in which the host asks for new blocks. */
async function timeToResolve(host: Host, { names, mint }: { names: string[]; mint: Mint }): Promise<string> {
  const times: number[] = []
  for (const name of names) {
    await mint(name)
    const took = await timed(async () => {
      while ((await fetch(`${host.url}/svc/names/origin/${name}`)).status !== 200) await setTimeout(20)
    })
    times.push(took - POLL)
  }
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
  yield* withProcess('./bare-server.js', [`${host.url}${paths[0]}`], async function* ([bare]: BareReady) {
    const urls = { host: host.url, bare: bare?.express ?? '' }
    let isDone = false
    const following = catchUp(host, mints).finally(() => {
      isDone = true
    })
    const busy = await readTimes(urls, { paths, goOn: () => !isDone })
    await following
    const memory = await memoryOf(host)
    const idle = await readTimes(urls, { paths, goOn: (count) => count < IDLE_READS })
    const shown = (times: number[]): string =>
      `half within ${at(times, 0.5).toFixed(2)} ms, 99 of 100 within ${at(times, 0.99).toFixed(1)}`
    yield `${busy.host.length} reads of 4 KiB meanwhile: ${shown(busy.host)} (wanted: 20); idle: ${shown(idle.host)}`
    yield `of a bare Express route at the same times: ${shown(busy.bare)}; idle: ${shown(idle.bare)}`
    const ratio = (of: 'host' | 'bare'): string => (at(busy[of], 0.5) / at(idle[of], 0.5)).toFixed(2)
    yield `median with that of an idle host: ${ratio('host')} (wanted: at most 1.3), of bare Express: ${ratio('bare')}`
    yield `a write of 18 KiB with its sync, which a mint takes as well: ${(await timeToSync()).toFixed(1)} ms`
    yield `memory at most: ${memory.toFixed(0)} MiB (wanted: below 512)`
  })
}

/** How long a disk takes to write and sync as many bytes as a mint has, in milliseconds; no read is answered meanwhile. */
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

/** How long reads take that are sent to servers by turns, one after another; sorted. */
async function readTimes<Name extends string>(
  urls: Record<Name, string>,
  { paths, goOn }: { paths: string[]; goOn: (count: number) => boolean },
): Promise<Record<Name, number[]>> {
  const agent = new Agent({ keepAlive: true })
  const all = Object.entries<string>(urls).map(([name, url]) => ({ name, url, times: [] as number[] }))
  for (let count = 0; goOn(count); count++) {
    const path = paths[count % paths.length]
    for (const { url, times } of all) {
      times.push(await timed(() => read(`${url}${path}`, agent)))
      await setTimeout(READ_EVERY)
    }
  }
  agent.destroy()
  const sorted = all.map(({ name, times }) => [name, times.sort((one, other) => one - other)])
  return Object.fromEntries(sorted) as Record<Name, number[]>
}

async function read(url: string, agent: Agent): Promise<void> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`${url} was answered ${response.statusCode}`)
}

function at(sorted: number[], share: number): number {
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}

async function statusOf({ url }: Host): Promise<ChainStatus> {
  return (await (await fetch(`${url}/health`)).json()) as ChainStatus
}

/** The most memory that a host has had, in MiB. */
async function memoryOf(host: Host): Promise<number> {
  return (await usage(host)).maxRSS / 1024
}

async function usage({ process }: Host): Promise<NodeJS.ResourceUsage> {
  process.send('usage')
  const [used] = (await once(process, 'message')) as [NodeJS.ResourceUsage]
  return used
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}
