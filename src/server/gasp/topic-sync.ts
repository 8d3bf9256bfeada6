import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { outputOf } from '../../../backend/src/protocol/transaction.js'
import type { ProofVerifier } from '../chain/proof-verifier.js'
import { type OverlayEvent, withOrdinals } from '../submission/overlay.js'
import type { OverlayEngine } from '../submission/overlay-engine.js'
import {
  ConflictError,
  InvalidSubmissionError,
  SubmissionTooLargeError,
} from '../submission/submission-errors.js'
import { collectGraph, type GraphLimits } from './collect-graph.js'
import { isHeld } from './is-held.js'
import { OpenGraphs } from './open-graphs.js'
import type { Peer, PeerTransaction } from './peer.js'
import { BadGraphError, PeerAwayError, UnwantedGraphError } from './sync-errors.js'
import type { SyncGraph } from './sync-graph.js'
import type { OfferedOutput } from './sync-messages.js'
import { takeGraph } from './take-graph.js'

/** How many outputs a peer is asked for at once, and how many where these have one score. */
const PAGE = 1000
const LONG_PAGE = 10_000
/** How many graphs are collected while one is taken. */
const AHEAD = 4
/** Bytes of transactions that are kept for the graphs after them, as a graph often has those of the one before. */
const KEPT_BYTES = 64 * 1024 * 1024
/** How far the clock of a peer may be ahead, in milliseconds: a score beyond would hide all that comes before it. */
const CLOCK_SKEW = 60 * 60 * 1000
/** How many graphs that are not taken have a line in the log, of one round. */
const MAX_LINES = 20
/** How many graphs in a row may be none, until the peer is left for this time. */
const MAX_FAILURES = 100
/** How many pages of outputs are asked for in one round; the next one goes on behind them. */
const MAX_PAGES = 10_000

/** What came of the graphs of a round. */
interface SyncTally {
  taken: number
  /** Could not be taken, and are tried again. */
  open: number
  /** Are not for this host. */
  unwanted: number
}

export interface TopicSyncOptions {
  peer: Peer
  /** Where the peer is, by which its progress is kept. */
  url: string
  topic: string
  graph: GraphStore
  engine: OverlayEngine
  proofs: ProofVerifier
  /** Told of each graph what came of it. */
  tell: (event: OverlayEvent) => void
  limits: GraphLimits & {
    /** How long collecting one graph may take, in milliseconds. */
    graphTimeout: number
  }
  logger: Logger
}

interface Round {
  tally: SyncTally
  signal: AbortSignal
}

/** Outputs of one transaction that a peer offers. */
interface Offer {
  outpoint: Outpoint
  score: number
}

/** Brings what a peer has of a topic (`docs/sync.md`). Goes on from where it was, in this life of the node or in another. */
export class TopicSync {
  private readonly open = new OpenGraphs()
  /** Graphs in a row that were none. */
  private failures = 0
  private readonly kept = new LRUCache<string, PeerTransaction>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ view }) => view.raw.length + 1,
  })

  constructor(private readonly options: TopicSyncOptions) {}

  /**
   * Takes all that the peer offers and this host lacks.
   *
   * @throws PeerAwayError where the peer ends it; whatever this host ends it by. What was taken until then stays, and the next
   * round goes on behind it.
   */
  async round(signal: AbortSignal): Promise<void> {
    const { logger, url: peer, topic } = this.options
    const tally: SyncTally = { taken: 0, open: 0, unwanted: 0 }
    this.failures = 0
    try {
      await this.takeAll({ tally, signal })
    } finally {
      if (tally.taken + tally.open + tally.unwanted > 0) logger.info({ peer, topic, ...tally }, 'synced')
    }
  }

  private async takeAll({ tally, signal }: Round): Promise<void> {
    const { peer, url, topic, graph } = this.options
    let since = await graph.interactions.last(url, topic)
    for (let limit = PAGE, pages = 0; pages < MAX_PAGES; pages++) {
      const page = await peer.offered({ topic, since, limit }, signal)
      if (page.some(({ score }) => score < since))
        throw new PeerAwayError(`the peer listed outputs of ${topic} that were not requested`)
      await this.takePage(page, { tally, signal })
      const last = page.reduce(
        (highest, { score }) => (isScore(score) ? Math.max(highest, score) : highest),
        since,
      )
      if (last > since) {
        since = last
        limit = PAGE
        await graph.interactions.setLast(url, topic, this.open.startFrom(since))
      } else if (page.length < limit) return
      else if (limit < LONG_PAGE) limit = LONG_PAGE
      // A peer that gives no more than that of one score has no way to go past it.
      else since++
    }
  }

  private async takePage(page: OfferedOutput[], { tally, signal: stopping }: Round): Promise<void> {
    const offers = await this.lacking(page)
    const ending = new AbortController()
    const signal = AbortSignal.any([stopping, ending.signal])
    const ahead: Promise<SyncGraph>[] = []
    try {
      for (const [at, offer] of offers.entries()) {
        for (const next of offers.slice(ahead.length, at + AHEAD)) {
          const collecting = this.collect(next, signal)
          // It is waited for when it has its turn.
          collecting.catch(() => {})
          ahead.push(collecting)
        }
        signal.throwIfAborted()
        await this.take(offer, { collecting: ahead[at], tally, signal })
      }
    } finally {
      // What ended this ends those ahead of it, too: the store is left alone then.
      ending.abort(new PeerAwayError('the page was abandoned'))
      await Promise.allSettled(ahead)
    }
  }

  /** Of each transaction that the topic lacks one output, by their scores. */
  private async lacking(page: OfferedOutput[]): Promise<Offer[]> {
    const { topic, graph } = this.options
    const blocked = await graph.blocklist.list()
    const offers = new Map<string, Offer>()
    const slice = new TimeSlice()
    for (const { txid, outputIndex: vout, score } of page.sort((a, b) => a.score - b.score)) {
      await slice.yieldIfOver()
      const outpoint = { txid, vout }
      if (offers.has(txid) || blocked.has('outpoint', formatOutpoint(outpoint))) continue
      if (await isHeld(graph, { topic, txid })) this.open.close(txid)
      else offers.set(txid, { outpoint, score })
    }
    return [...offers.values()]
  }

  private async collect({ outpoint }: Offer, stopping: AbortSignal): Promise<SyncGraph> {
    const { topic, engine, graph, limits } = this.options
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new BadGraphError(`the graph took longer than ${limits.graphTimeout} ms`)),
      limits.graphTimeout,
    ).unref()
    const signal = AbortSignal.any([stopping, late.signal])
    try {
      return await collectGraph({
        offered: outpoint,
        topic,
        topics: withOrdinals([topic]),
        ask: (asked) => this.ask({ graph: outpoint, outpoint: asked }, signal),
        managers: engine.managers,
        store: graph,
        limits,
      })
    } finally {
      clearTimeout(timer)
    }
  }

  private async ask(
    asked: { graph: Outpoint; outpoint: Outpoint },
    signal: AbortSignal,
  ): Promise<PeerTransaction | undefined> {
    signal.throwIfAborted()
    const { txid, vout } = asked.outpoint
    const known = this.kept.get(txid)
    if (known !== undefined && outputOf(known.view, vout) !== undefined) return known
    const node = await this.options.peer.node(asked, signal)
    if (node !== undefined) this.kept.set(txid, node)
    return node
  }

  private async take(
    { outpoint, score }: Offer,
    told: Round & { collecting: Promise<SyncGraph> | undefined },
  ): Promise<void> {
    const { topic, engine, proofs, graph, logger, url } = this.options
    const { tally } = told
    const { txid } = outpoint
    try {
      const collected = await told.collecting
      if (collected !== undefined)
        await takeGraph(collected, {
          topics: withOrdinals([topic]),
          engine,
          proofs,
          graph,
          signal: told.signal,
        })
      if (!(await graph.admissions.isApplied(topic, txid)))
        throw new UnwantedGraphError('the topic admits no output of the offered transaction')
      const winner = await graph.transactions.winnerOver(txid)
      if (winner !== undefined) throw new ConflictError({ txid, winner })
      this.open.close(txid)
      this.count('taken', tally)
      this.failures = 0
    } catch (error) {
      const isUnwanted = error instanceof UnwantedGraphError || error instanceof SubmissionTooLargeError
      const isOpen =
        error instanceof BadGraphError ||
        error instanceof InvalidSubmissionError ||
        error instanceof ConflictError
      if (!isUnwanted && !isOpen) throw error
      if (isOpen) this.open.leave(txid, score)
      else this.open.close(txid)
      this.count(isOpen ? 'open' : 'unwanted', tally)
      // What is kept may be what is wrong with it.
      this.kept.clear()
      if (error instanceof BadGraphError && ++this.failures > MAX_FAILURES)
        throw new PeerAwayError('the peer offers one invalid graph after another', {
          cause: error,
        })
      if (tally.open + tally.unwanted <= MAX_LINES)
        logger.warn(
          { peer: url, topic, offered: formatOutpoint(outpoint), reason: error.message, again: isOpen },
          'rejected an output offered by a peer',
        )
    }
  }

  private count(result: keyof SyncTally, tally: SyncTally): void {
    tally[result]++
    this.options.tell({ kind: 'synced', result })
  }
}

function isScore(score: number): boolean {
  return score <= Date.now() + CLOCK_SKEW
}
