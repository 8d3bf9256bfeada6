import { setImmediate as nextTurn } from 'node:timers/promises'
import { assembleBeef } from '../../backend/src/graph/write-beef.js'
import type { EngineTables } from '../../backend/src/host/engine-tables.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { TOPICS, topicNames } from '../../backend/src/protocol/profile.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import { BackgroundJob, type IsMine } from '../chain/sources/background.js'
import { Retries } from '../chain/sources/retries.js'
import type { HostEngine } from './follower-options.js'

export interface EngineCatchUpOptions {
  engine: HostEngine
  graph: FactStore
  /** The tables of the engine, if they can be read: transactions in them are not submitted again. */
  tables: () => Promise<Pick<EngineTables, 'applied'> | undefined>
  /** Whether this process does the job, if several processes' engines share tables. */
  isMine: IsMine
  onFailure: (error: unknown) => void
}

/** How often to look for newly admitted outputs, and the first pause while the engine takes nothing, in milliseconds. */
const EVERY = 1000
const LONGEST_PAUSE = 60_000
/** The number of outputs that are compared with the engine's tables at once. */
const PAGE = 500
/** The pause before the first retry of a failed submission, in milliseconds. */
const FIRST_PAUSE = 5000
/** After this many failures in a row, the rest waits: the engine's chain tracker is probably down. */
const MOST_FAILURES = 3

/**
 * Has a host's engine admit what the index got from elsewhere. An engine answers `/lookup` from its own tables alone, and offers only
 * those outputs to peers: without this, the follower's finds would be in the answers of the gateway and nowhere else.
 *
 * It passes on active outputs in the order of their scores, as to a peer that syncs, parents first, and as historical transactions,
 * which engines do not broadcast. Its progress is stored as long as the engine refuses nothing. After a restart it continues from
 * there if the engine still has the last transaction and no earlier output has become active or was unblocked since; otherwise it
 * compares everything with what the engine has applied.
 */
export class EngineCatchUp {
  private readonly job: BackgroundJob
  private readonly topics: { topic: string; name: string; place?: Place }[]
  private readonly retries = new Retries<string>(FIRST_PAUSE)
  private failures = 0
  private pause = EVERY

  constructor(private readonly options: EngineCatchUpOptions) {
    const { engine, isMine, onFailure } = options
    this.job = new BackgroundJob(async (signal) => {
      this.failures = 0
      await this.round().catch((error: unknown) => {
        if (!signal.aborted) onFailure(error)
      })
      this.pause = this.failures < MOST_FAILURES ? EVERY : Math.min(LONGEST_PAUSE, 2 * this.pause)
      return this.pause
    }, isMine)
    const names = Object.keys(engine.managers)
    this.topics = Object.values(TOPICS).flatMap((topic) => {
      const name = topicNames(topic).find((each) => names.includes(each))
      return name === undefined ? [] : [{ topic, name }]
    })
  }

  start(): void {
    this.job.start()
  }

  /** Resolves when the store is no longer in use. */
  async stop(): Promise<void> {
    await this.job.stop()
  }

  private get isInterrupted(): boolean {
    return this.job.signal.aborted || !this.options.isMine() || this.failures >= MOST_FAILURES
  }

  private async round(): Promise<void> {
    const { graph } = this.options
    for (const txid of this.retries.due()) if (!this.isInterrupted) await this.submit(txid)
    for (const followed of this.topics) {
      const { topic } = followed
      followed.place ??= await this.passed(topic)
      const { place } = followed
      while (!this.isInterrupted) {
        const page = graph.admissions.ofTopic({ topic, since: place.since, limit: PAGE })
        const last = page.at(-1)
        if (last === undefined) break
        const txids = new Set(graph.served.guard.served(page).map(({ outpoint }) => outpoint.txid))
        for (const txid of await this.unknownAmong([...txids], topic)) {
          if (this.isInterrupted) return
          if (!this.retries.isWaiting(txid)) await this.submit(txid)
        }
        place.since = last.score + 1
        const known = [...txids].at(-1)
        if (known !== undefined && [...this.retries.keys].length === 0)
          await graph.settings.set(placeOf(topic), `${place.since} ${known} ${place.reorgs}`)
      }
    }
  }

  /** The score up to which the engine is known to have everything. */
  private async passed(topic: string): Promise<Place> {
    const { graph, tables } = this.options
    const [since, txid = '', before] = ((await graph.settings.get(placeOf(topic))) ?? '').split(' ')
    const applied = await (await tables())?.applied([txid], topicNames(topic))
    const { reorgs } = graph
    return { since: applied?.has(txid) === true && Number(before) === reorgs ? Number(since) : 0, reorgs }
  }

  /** The transactions that the engine has not applied to a topic. */
  private async unknownAmong(txids: string[], topic: string): Promise<string[]> {
    const tables = await this.options.tables()
    const applied = await tables?.applied(txids, topicNames(topic))
    return txids.filter((txid) => applied?.has(txid) !== true)
  }

  /** Submits a transaction to the topics that hold an output of it. Failures are retried later. */
  private async submit(txid: string): Promise<void> {
    const { engine, graph, onFailure } = this.options
    const held = new Set(graph.admissions.ofTransaction(txid).map(({ topic }) => topic))
    const topics = this.topics.flatMap(({ topic, name }) => (held.has(topic) ? [name] : []))
    const beef = await assembleBeef([txid], graph.transactions)
    // The transaction may have become inactive.
    if (topics.length === 0 || beef === undefined) return
    try {
      await engine.submit({ beef: Array.from(beef), topics }, undefined, 'historical-tx')
      this.retries.succeeded(txid)
      this.failures = 0
    } catch (error) {
      this.retries.failed(txid, { task: txid, why: messageOf(error), isPaused: true })
      const reason = `the engine does not take ${txid}, which was found by following, and is offered it again: ${messageOf(error)}`
      if (++this.failures === 1) onFailure(new Error(reason, { cause: error }))
    }
    // An engine yields to the event loop itself, but not during short submissions.
    await nextTurn()
  }
}

/** How much of a topic the engine was passed. */
interface Place {
  /** The score to go on from. */
  since: number
  /** The store's number of reorganisations when everything up to there was compared. */
  reorgs: number
}

/** The setting that stores how much of a topic the engine was passed. */
function placeOf(topic: string): string {
  return `engine passed ${topic}`
}
