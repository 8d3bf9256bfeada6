import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { type Node, openNode } from '../src/server/node.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { chainOfNames, configFor, median, SILENT, timed, withFolder } from './support.js'

const BRANCHES = [250, 1000] as const
const ROUNDS = 3

/**
 * A reorganisation caused by a proof: the time per transaction of the branch, for 1,000 compared with 250, and the longest wait
 * of a reader in the same process; beside it, the longest time that the machine kept an idle thread waiting. Half of a branch are
 * mints, half are transfers of one ordinal with content. Each reorganisation deactivates a branch or reactivates it.
 */
export async function* reorg(): AsyncGenerator<string> {
  const costs: number[] = []
  let gap = 0
  let idle = 0
  for (const length of BRANCHES) {
    const branch = await withFolder((folder) => reorganised(folder, length))
    costs.push(branch.cost)
    gap = Math.max(gap, branch.gap)
    idle = Math.max(idle, branch.idle)
    yield `a branch of ${length}: ${branch.cost.toFixed(3)} ms a transaction (median of ${2 * ROUNDS} reorganisations), longest gap ${branch.gap.toFixed(1)} ms, of an idle thread ${branch.idle.toFixed(1)} ms`
  }
  const [few = Number.NaN, many = Number.NaN] = costs
  yield `ratio ${(many / few).toFixed(2)} (wanted: linear, so about 1.0); longest gap of a reader ${gap.toFixed(1)} ms (wanted: at most 50), of an idle thread ${idle.toFixed(1)} ms`
}

async function reorganised(
  folder: string,
  length: number,
): Promise<{ cost: number; gap: number; idle: number }> {
  const chain = new FakeChain()
  const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
  const from = chain.node('')
  const first = chain.mint('a')
  const submit = async (transaction: FakeTransaction, height?: number): Promise<void> => {
    const beef = beefOf(transaction, height === undefined ? {} : { height })
    await node.overlay.engine.submit({ beef, topics: Object.values(TOPICS) })
  }
  for (const transaction of [chain.genesis, first, ...branchOf(chain, first, length - 1)])
    await submit(transaction)
  const competing = chain.mint('b', { from })
  const times: number[] = []
  let gap = 0
  const idle = await IdleThread.start()
  let height = 700_000
  const heights = new Map<string, number>()
  for (let round = 0; round < ROUNDS; round++) {
    // Each proof is of a lower block than the one before, which reverses the decision.
    for (const [winner, name] of [
      [competing, 'b'],
      [first, 'a'],
    ] as const) {
      // The earlier proof is disproved, so that the next one is news.
      await node.graph.disprove({ height: heights.get(winner.txid) ?? winner.height, root: winner.txid })
      heights.set(winner.txid, height - 1)
      const reading = new Reading(node)
      times.push(await timed(() => submit(winner, --height)))
      gap = Math.max(gap, await reading.end())
      if (node.graph.names.originOf(name) === undefined) throw new Error('the branch was not reorganised')
    }
  }
  await node.close()
  return { cost: median(times) / length, gap, idle: await idle.end() }
}

function branchOf(chain: FakeChain, first: FakeTransaction, length: number): FakeTransaction[] {
  const mints = chainOfNames(Math.floor(length / 2)).map((name) => chain.mint(`a${name}`))
  const moves: FakeTransaction[] = []
  for (let at = 0; mints.length + moves.length < length; at++) {
    const before = moves.at(-1)
    const coin = before === undefined ? { transaction: first, vout: 2 } : { transaction: before, vout: 0 }
    const lockingScript = Uint8Array.from([...p2pkh(at), ...mapTail({ step: String(at) })])
    moves.push(chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript }] }))
  }
  return [...mints, ...moves]
}

/** Reads all the time, and tells the longest wait. */
class Reading {
  private done = false
  private readonly ended: Promise<number>

  constructor({ graph }: Node) {
    this.ended = (async () => {
      let longest = 0
      let since = performance.now()
      while (!this.done) {
        graph.names.originOf('a')
        await setImmediate()
        const now = performance.now()
        longest = Math.max(longest, now - since)
        since = now
      }
      return longest
    })()
  }

  async end(): Promise<number> {
    this.done = true
    return await this.ended
  }
}

/** A thread that only watches the clock, to tell how long the machine kept it from that. */
class IdleThread {
  private constructor(private readonly worker: Worker) {}

  static async start(): Promise<IdleThread> {
    const worker = new Worker(
      `const { parentPort } = require('node:worker_threads')
       const delays = require('node:perf_hooks').monitorEventLoopDelay({ resolution: 1 })
       delays.enable()
       parentPort.on('message', () => parentPort.postMessage(delays.max / 1e6))
       parentPort.postMessage('ready')`,
      { eval: true },
    )
    await once(worker, 'message')
    return new IdleThread(worker)
  }

  /** @returns In milliseconds. */
  async end(): Promise<number> {
    const answer = once(this.worker, 'message')
    this.worker.postMessage('end')
    const [longest] = await answer
    await this.worker.terminate()
    return longest
  }
}
