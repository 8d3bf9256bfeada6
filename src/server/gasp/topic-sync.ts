import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import { LostConflictError } from '../../../backend/src/graph/errors.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { outputOf } from '../../../backend/src/protocol/transaction.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { OfferedOutput } from '../../gateway/sync/sync-messages.js'
import { ConflictError, SubmissionError } from '../writer/errors.js'
import { type OverlayEvent, withOrdinals } from '../writer/overlay.js'
import type { OverlayEngine } from '../writer/overlay-engine.js'
import { type AskedNode, type Peer, PeerError, type PeerProgress } from './peer.js'
import { collectGraph, type GraphLimits, isApplied, type SyncGraph } from './sync-graph.js'

/** How many outputs are requested at once, and how many if all of these have the same score. */
const PAGE = 1000
const LONG_PAGE = 10_000
const PARALLEL = 4
/** Bytes of cached transactions: a graph often shares some with the one before. */
const CACHE_BYTES = 64 * 1024 * 1024
const MAX_LINES = 20
const MAX_FAILURES = 100
/** How often a graph waits for the lookup service of the peer; after that, it is taken without the missing parts. */
const MAX_EARLY = 3
/** The most pages of outputs that are requested in one round; the next one continues after them. */
const MAX_PAGES = 10_000

interface SyncTally {
  taken: number
  /** Graphs that could not be taken, and are retried. */
  open: number
  unwanted: number
}

export interface TopicSyncOptions {
  peer: Peer
  /** The URL of the peer, which is the key of the stored progress. */
  url: string
  topic: string
  graph: FactStore
  engine: OverlayEngine
  emit: (event: OverlayEvent) => void
  limits: GraphLimits & {
    /** How long collecting one graph may take, in milliseconds. */
    graphTimeout: number
  }
  logger: Logger
}

export interface SyncResult {
  /**
   * Whether everything that the peer offers was taken. Graphs that failed several times are not counted: they may never be taken,
   * such as losers of a conflict.
   */
  isComplete: boolean
  peer: PeerProgress
}

interface Offer {
  outpoint: Outpoint
  score: number
}

/** Takes what a peer has in a topic (`docs/follow.md`). Continues where it stopped, even after a restart. */
export class TopicSync {
  private readonly open = new OpenGraphs()
  /** Invalid graphs in a row. */
  private failures = 0
  /** Of the current round. */
  private tally: SyncTally = { taken: 0, open: 0, unwanted: 0 }

  private readonly cache = new LRUCache<string, TransactionRecord>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ raw }) => raw.length + 1,
  })

  constructor(private readonly options: TopicSyncOptions) {}

  get topic(): string {
    return this.options.topic
  }

  /**
   * Takes everything that the peer offers and this host lacks.
   *
   * @throws PeerError `AWAY` if the peer ends the round, or any error that ends it here. What was taken by then stays, and the
   * next round continues after it.
   */
  async round(signal: AbortSignal): Promise<SyncResult> {
    const { logger, url: peer, topic } = this.options
    const tally = { taken: 0, open: 0, unwanted: 0 }
    this.tally = tally
    this.failures = 0
    try {
      const isAll = await this.takeAll(signal)
      const isComplete = isAll && !this.open.hasEarly(MAX_EARLY)
      return { isComplete, peer: this.options.peer.progress }
    } finally {
      if (tally.taken + tally.open + tally.unwanted > 0) logger.info({ peer, topic, ...tally }, 'synced')
    }
  }

  /** @returns Whether the peer has offered everything. */
  private async takeAll(signal: AbortSignal): Promise<boolean> {
    const { peer, url, topic, graph } = this.options
    const progress = `synced ${url} ${topic}`
    let since = Number((await graph.settings.get(progress)) ?? 0)
    for (let limit = PAGE, pages = 0; pages < MAX_PAGES; pages++) {
      const page = await peer.offered({ topic, since, limit }, signal)
      if (page.some(({ score }) => score < since))
        throw new PeerError('AWAY', `the peer offers outputs of ${topic} that were not requested`)
      await this.takePage(page, signal)
      const last = page.reduce((highest, { score }) => Math.max(highest, score), since)
      if (last > since) {
        since = last
        limit = PAGE
        await graph.settings.set(progress, String(this.open.startFrom(since)))
      } else if (page.length < limit) return true
      else if (limit < LONG_PAGE) limit = LONG_PAGE
      // There is no way to page past the outputs of one score if a peer returns only so many of them.
      else since++
    }
    return false
  }

  private async takePage(page: OfferedOutput[], stopping: AbortSignal): Promise<void> {
    const offers = await this.lacking(page)
    const ending = new AbortController()
    const signal = AbortSignal.any([stopping, ending.signal])
    const inTurn = pLimit(PARALLEL)
    const taking = offers.map((offer) =>
      inTurn(async () => {
        signal.throwIfAborted()
        await this.take(offer, signal)
      }),
    )
    try {
      await Promise.all(taking)
    } finally {
      // Stops the others too, so that the store is no longer in use.
      ending.abort(new PeerError('AWAY', 'the page was abandoned'))
      await Promise.allSettled(taking)
    }
  }

  /** One output of each transaction that the topic lacks, by score. */
  private async lacking(page: OfferedOutput[]): Promise<Offer[]> {
    const { topic, graph } = this.options
    const blocked = graph.blocklist.list()
    const offers = new Map<string, Offer>()
    const slices = new TimeSlice()
    for (const { txid, outputIndex: vout, score } of page.sort((a, b) => a.score - b.score)) {
      await slices.yieldIfOver()
      const outpoint = { txid, vout }
      if (offers.has(txid) || blocked.has('outpoint', formatOutpoint(outpoint))) continue
      if (isApplied(graph, { topic, txid })) this.open.close(txid)
      else offers.set(txid, { outpoint, score })
    }
    return [...offers.values()]
  }

  private async collect({ outpoint }: Offer, stopping: AbortSignal, topics: string[]): Promise<SyncGraph> {
    const { topic, engine, graph, limits } = this.options
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new PeerError('BAD_GRAPH', `the graph took longer than ${limits.graphTimeout} ms`)),
      limits.graphTimeout,
    ).unref()
    const signal = AbortSignal.any([stopping, late.signal])
    try {
      return await collectGraph({
        offered: outpoint,
        topic,
        topics,
        ask: (asked) => this.ask({ ...asked, graph: outpoint }, signal),
        askSources: (admitted) => this.options.peer.sources(admitted, signal),
        managers: engine.managers,
        store: graph,
        limits,
      })
    } finally {
      clearTimeout(timer)
    }
  }

  private async ask(asked: AskedNode, signal: AbortSignal): Promise<TransactionRecord | undefined> {
    signal.throwIfAborted()
    const { txid, vout } = asked.outpoint
    const known = this.cache.get(txid)
    if (known !== undefined && outputOf(viewOf(known), vout) !== undefined) return known
    const node = await this.options.peer.node(asked, signal)
    if (node !== undefined) this.cache.set(txid, node)
    return node
  }

  private async take({ outpoint, score }: Offer, signal: AbortSignal): Promise<void> {
    const { topic, graph, logger, url } = this.options
    const { tally } = this
    const { txid } = outpoint
    try {
      await this.takeBehind({ outpoint, score }, signal)
      if (!graph.admissions.isApplied(topic, txid))
        throw new PeerError('UNWANTED', 'its topic admits none of the offered outputs')
      const reason = graph.transactions.reasonAgainst(txid)
      if (reason !== undefined) throw new ConflictError(new LostConflictError(txid, reason))
      this.open.close(txid)
      this.count('taken')
      this.failures = 0
    } catch (error) {
      const result = resultOf(error)
      if (result === undefined) throw error
      const isOpen = result === 'open'
      if (isOpen) this.open.leave(txid, score)
      else this.open.close(txid)
      this.count(result)
      // A cached transaction may be the cause.
      this.cache.clear()
      const { code } = error as { code?: unknown }
      if (code === 'BAD_GRAPH' && ++this.failures > MAX_FAILURES)
        throw new PeerError('AWAY', 'the peer offers one invalid graph after another', {
          cause: error,
        })
      if (tally.open + tally.unwanted <= MAX_LINES)
        logger[code === 'NOT_YET' ? 'debug' : 'warn'](
          { peer: url, topic, offered: formatOutpoint(outpoint), reason: messageOf(error), again: isOpen },
          'an output that a peer offers was not taken',
        )
    }
  }

  private async takeBehind(offer: Offer, signal: AbortSignal): Promise<void> {
    const { topic } = this.options
    try {
      await this.submitGraph(offer, { topics: withOrdinals([topic]), signal })
    } catch (error) {
      // A mint does not need what places its ordinals: without it, the graph may be within the limits.
      if (topic !== TOPICS.names || resultOf(error) !== 'unwanted') throw error
      await this.submitGraph(offer, { topics: [topic], signal })
    }
  }

  /** Submits the transactions behind an output one by one, parents first, so that those admitted before a failure stay. */
  private async submitGraph(
    offer: Offer,
    { topics, signal }: { topics: string[]; signal: AbortSignal },
  ): Promise<void> {
    const graph = await this.collect(offer, signal, topics)
    if (graph.isEarly && this.open.triesOf(offer.outpoint.txid) < MAX_EARLY)
      throw new PeerError('NOT_YET', 'the lookup service of the peer does not know the offered output yet')
    for (const txid of graph.txids()) {
      signal.throwIfAborted()
      const beef = await graph.beef(txid)
      // Undefined if an ancestor is missing: descendants may still be admitted without this transaction.
      if (beef !== undefined) await this.options.engine.submit({ beef, topics })
    }
  }

  private count(result: keyof SyncTally): void {
    this.tally[result]++
    this.options.emit({ kind: 'synced', result })
  }
}

/** How to treat a graph after an error; undefined if the error is not the graph's fault. */
function resultOf(error: unknown): 'open' | 'unwanted' | undefined {
  if (error instanceof BeefError) return 'open'
  if (!(error instanceof PeerError || error instanceof SubmissionError)) return undefined
  if (['UNWANTED', 'TOO_LARGE'].includes(error.code)) return 'unwanted'
  return ['BAD_GRAPH', 'NOT_YET', 'BAD_BODY', 'CONFLICT'].includes(error.code) ? 'open' : undefined
}

/** How long a graph is retried, in milliseconds: by then a block is known everywhere, and most conflicts are mined. */
const MAX_RETRY_TIME = 24 * 60 * 60 * 1000
const MAX_OPEN = 1000

/**
 * The graphs of a peer that could not be taken, but may be next time. The stored progress stays before them, so that the peer
 * offers them again, even after a restart.
 */
export class OpenGraphs {
  private readonly graphs = new Map<string, { score: number; since: number; tries: number }>()

  constructor(private readonly now: () => number = monotonic) {}

  /** Marks a graph as open; {@link startFrom} drops it when it has been open for too long. */
  leave(txid: string, score: number): void {
    const { since = this.now(), tries = 0 } = this.graphs.get(txid) ?? {}
    this.graphs.set(txid, { score, since, tries: tries + 1 })
    if (this.graphs.size > MAX_OPEN) this.dropLowest()
  }

  triesOf(txid: string): number {
    return this.graphs.get(txid)?.tries ?? 0
  }

  hasEarly(tries: number): boolean {
    return [...this.graphs.values()].some((graph) => graph.tries <= tries)
  }

  close(txid: string): void {
    this.graphs.delete(txid)
  }

  /** The score to start from after a sync that has come as far as `score`. */
  startFrom(score: number): number {
    let start = score
    for (const [txid, open] of this.graphs) {
      if (this.now() - open.since > MAX_RETRY_TIME) this.graphs.delete(txid)
      else start = Math.min(start, open.score)
    }
    return start
  }

  private dropLowest(): void {
    const [first] = [...this.graphs].sort(([, a], [, b]) => a.score - b.score)
    if (first !== undefined) this.graphs.delete(first[0])
  }
}
