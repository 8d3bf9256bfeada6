import pLimit from 'p-limit'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import {
  type BlockPosition,
  type GatherLimits,
  type GatherOptions,
  gather,
  isBefore,
  positionOf,
  storedOrSourced,
} from './ancestors.js'
import type { ChainSource } from './chain-source.js'
import { ChainSourceError, CrawlError } from './errors.js'
import { type FrontierCoin, frontier } from './frontier.js'

/** The result of submitting a transaction. */
export type Admission =
  | { kind: 'admitted'; outputs: number }
  /** Every topic that admits it has it already. */
  | { kind: 'known' }
  /** It is valid, but no topic admits any of it, for the reasons in `codes`. */
  | { kind: 'passed over'; why: string; codes: string[] }
  /** It is invalid or conflicted. */
  | { kind: 'refused'; why: string }

/** The node that a crawl submits to. */
export interface CrawledNode {
  genesis: Outpoint
  store: Pick<GraphStore, 'transactions' | 'names' | 'ordinals' | 'admissions'>
  /** Verifies a BEEF and passes it to the topics. Calls may overlap: the node queues them. */
  admit(submitted: { txid: string; beef: Uint8Array }): Promise<Admission>
}

export interface CrawlOptions {
  node: CrawledNode
  source: ChainSource
  /** The most branches that are followed at once. */
  parallel: number
  /** Whether the ordinals of names are followed too. */
  names: boolean
  limits: GatherLimits
  /** The crawl stops after this many admitted transactions. */
  most: number
  /** The most unmined transactions that are followed: the owner of a name can create them at no cost. */
  maxUnproven: number
  /** The crawl stops after this many milliseconds. */
  maxTime: number
  /** Stops the crawl: submissions that have begun are completed, and nothing new begins. */
  signal?: AbortSignal
}

/** The progress of a crawl. */
export interface CrawlReport {
  mints: number
  transfers: number
  outputs: number
  /** Transactions that were known, and followed again because they were unproven. */
  known: number
  /** Nodes that were spent by a transaction that is no mint. */
  deadNodes: number
  /** Ordinals of names that were burnt, or sent to an output that no topic admits. */
  lostNames: number
  /** Unmined transactions at the ends of branches. */
  unproven: Set<string>
  /** Transactions that place ordinals, and that the source does not know. */
  unknown: Set<string>
  /** Branches that could not be followed, each with its reason. */
  failures: string[]
  /** Why it stopped early; undefined if it did not. */
  stopped?: 'by signal' | 'at limit' | 'at time limit'
}

function newReport(): CrawlReport {
  return {
    ...{ mints: 0, transfers: 0, outputs: 0, known: 0, deadNodes: 0, lostNames: 0 },
    ...{ unproven: new Set(), unknown: new Set(), failures: [] },
  }
}

/** The longest time that verifying unmined transactions may take in total, in milliseconds: they can be crafted to be slow. */
const UNPROVEN_TIME = 30_000

/** The most bytes of ancestors that each of several branches may hold. Branches that need more are followed one at a time. */
const SMALL = 16 * 1024 * 1024

/** How often a source is asked for a spender that does spend. */
const ATTEMPTS = 3

/**
 * Follows the name tree from the end of the stored one to the end of the chain's, and the ordinals of its names, by asking a
 * chain source for spenders. All state is in the store: a crawl that was stopped continues from there.
 *
 * Each transaction is submitted after its parents in the tree. Branches do not wait for each other, with one exception: if a
 * transaction spends another coin that may be a name which was not followed so far yet, it waits until nothing else is in
 * progress, and those that wait continue in the order of the chain.
 */
export class Crawl {
  readonly report = newReport()
  private readonly branches: ReturnType<typeof pLimit>
  private readonly largeBranches = pLimit(1)
  private readonly followed = new Set<string>()
  private readonly submitted = new Map<string, Promise<Admission>>()
  private readonly waiting: Waiting[] = []
  /** Txids without a proof at the source: descendants do not ask for them again. */
  private readonly unproven = new Set<string>()
  /** The unproven transactions that were followed. */
  private readonly unprovenSpent = { count: 0, time: 0 }
  private readonly end: number
  /** The ends of branches that could not be followed. */
  private readonly broken: BlockPosition[] = []
  private running = 0
  private onIdle: () => void = () => {}
  private failure: { error: unknown } | undefined

  constructor(private readonly options: CrawlOptions) {
    this.branches = pLimit(options.parallel)
    this.end = performance.now() + options.maxTime
  }

  /**
   * Crawls to the end, or until stopped; {@link report} has the progress.
   *
   * @throws CrawlError if the source does not know the genesis, or the node refuses it; ChainSourceError `NO_ANSWER`; errors
   * of the node itself.
   */
  async run(): Promise<void> {
    await this.unlessStopped(undefined, () => this.startAtGenesis())
    if (!this.isOver) {
      for await (const coin of frontier(this.options.node.store, { names: this.options.names }))
        this.follow(coin)
    }
    for (;;) {
      await this.idle()
      if (this.failure !== undefined) throw this.failure.error
      if (this.isOver || this.waiting.length === 0) return
      this.resumeWaiting()
    }
  }

  private get isOver(): boolean {
    if (this.options.signal?.aborted === true) this.report.stopped ??= 'by signal'
    if (performance.now() > this.end) this.report.stopped ??= 'at time limit'
    return this.failure !== undefined || this.report.stopped !== undefined
  }

  private async startAtGenesis(): Promise<void> {
    const { node } = this.options
    const { genesis } = node
    if ((await node.store.transactions.heightOf(genesis.txid)) !== undefined) return
    const record = await storedOrSourced(genesis.txid, this.gathering())
    if (record === undefined)
      throw new CrawlError('NOT_KNOWN', `the source does not know the genesis ${formatOutpoint(genesis)}`)
    await this.submit(record, await gather(record, this.gathering()))
    if (this.report.stopped !== undefined) return
    if ((await node.store.names.genuineNodes([genesis])).length === 0)
      throw new CrawlError('REFUSED', `the genesis ${formatOutpoint(genesis)} was not admitted`)
  }

  /** Follows a coin as soon as a branch is free; each once. */
  private follow(coin: FrontierCoin): void {
    const key = `${coin.kind} ${formatOutpoint(coin.outpoint)}`
    if (this.followed.has(key)) return
    this.followed.add(key)
    this.begin(coin, { mayWait: true })
  }

  private begin(
    coin: FrontierCoin,
    { mayWait, isLarge = false }: Pick<Attempt, 'mayWait'> & Partial<Attempt>,
  ): void {
    this.running++
    void (isLarge ? this.largeBranches : this.branches)(async () => {
      if (!this.isOver) await this.unlessStopped(coin, () => this.unlessLarge(coin, { mayWait, isLarge }))
      this.running--
      if (this.running === 0) this.onIdle()
    })
  }

  /** A branch that needs more than {@link SMALL} starts again as a large one, and meanwhile others continue. */
  private async unlessLarge(coin: FrontierCoin, attempt: Attempt): Promise<void> {
    try {
      await this.followOne(coin, attempt)
    } catch (error) {
      const canBeLarger = !attempt.isLarge && this.options.limits.maxBytes > SMALL
      if (!canBeLarger || !isTooLarge(error)) throw error
      this.begin(coin, { ...attempt, isLarge: true })
    }
  }

  private async idle(): Promise<void> {
    if (this.running === 0) return
    await new Promise<void>((resolve) => {
      this.onIdle = resolve
    })
  }

  /** If one branch cannot be followed, the others continue; a source or a node that does not answer stops them all. */
  private async unlessStopped(coin: FrontierCoin | undefined, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      // Any error may be a result of the abort.
      if (this.options.signal?.aborted === true) return
      if (coin !== undefined && isOfBranch(error)) await this.giveUp(coin, error.message)
      else this.failure ??= { error }
    }
  }

  private async giveUp({ outpoint: { txid } }: FrontierCoin, why: string): Promise<void> {
    this.report.failures.push(why)
    const record = await this.options.node.store.transactions.get(txid)
    if (record !== undefined) this.broken.push(positionOf(record, { ancestors: 0 }))
  }

  private async followOne(coin: FrontierCoin, { mayWait, isLarge }: Attempt): Promise<void> {
    const { store } = this.options.node
    const gathering = this.gathering({ isLarge })
    const spender = await this.spenderOf(coin.outpoint, gathering)
    if (spender === undefined) {
      const { txid } = coin.outpoint
      if ((await store.transactions.heightOf(txid)) === undefined) this.report.unproven.add(txid)
      return
    }
    let admission = this.submitted.get(spender.txid)
    if (admission === undefined) {
      if (spender.proof === undefined) this.requireFewUnproven(spender.txid)
      const gathered = await gather(spender, gathering)
      const { position, doubtful } = gathered
      if (doubtful.length > 0 && mayWait) {
        this.waiting.push({ coin, txid: spender.txid, position, doubtful })
        return
      }
      // Another branch may have submitted it meanwhile.
      admission = this.submitted.get(spender.txid) ?? this.submit(spender, gathered)
    }
    const end = await admission
    if (this.isOver) return
    if (end.kind === 'refused') throw new CrawlError('REFUSED', `${spender.txid}: ${end.why}`)
    if (coin.kind === 'node') await this.afterMint(spender.txid)
    else await this.afterTransfer(spender, coin.outpoint)
  }

  private gathering({ isLarge = true } = {}): GatherOptions {
    const { node, source, limits } = this.options
    const maxBytes = isLarge ? limits.maxBytes : Math.min(limits.maxBytes, SMALL)
    return { store: node.store, source, limits: { ...limits, maxBytes }, unproven: this.unproven }
  }

  /** @throws CrawlError `UNPROVEN` */
  private requireFewUnproven(txid: string): void {
    const { count, time } = this.unprovenSpent
    const { maxUnproven } = this.options
    if (count < maxUnproven && time < UNPROVEN_TIME) return
    const why =
      count < maxUnproven
        ? `others already took ${UNPROVEN_TIME / 1000} seconds`
        : `${count} others were already followed`
    throw new CrawlError('UNPROVEN', `${txid} is unmined, and ${why}: it will be followed once it is mined`)
  }

  /** The transaction that spends an outpoint, as the source says and its bytes confirm. */
  private async spenderOf(
    outpoint: Outpoint,
    gathering: GatherOptions,
  ): Promise<TransactionRecord | undefined> {
    const { source } = this.options
    const shown = formatOutpoint(outpoint)
    let why = ''
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const txid = await source.spenderOf(outpoint)
      if (txid === undefined) return undefined
      const record = (await this.admitted(txid)) ?? (await storedOrSourced(txid, gathering))
      if (record !== undefined && spends(record, outpoint)) return record
      why = record === undefined ? 'it does not know' : 'does not spend it'
      why = `the source says that ${shown} is spent by ${txid}, which ${why}`
    }
    throw new CrawlError('NO_SPEND', why)
  }

  /** A transaction that was submitted before, if a topic has admitted it: the source is not asked again. */
  private async admitted(txid: string): Promise<TransactionRecord | undefined> {
    if ((await this.submitted.get(txid)) === undefined) return undefined
    return await this.options.node.store.transactions.get(txid)
  }

  private submit(
    { txid, proof }: TransactionRecord,
    { beef, unknown }: { beef: Uint8Array; unknown: string[] },
  ): Promise<Admission> {
    const { node, most } = this.options
    const { report } = this
    if (this.submitted.size >= most) report.stopped ??= 'at limit'
    if (this.isOver) return Promise.resolve({ kind: 'known' })
    const began = performance.now()
    if (proof === undefined) this.unprovenSpent.count++
    const admission = node.admit({ txid, beef }).then(async (end) => {
      if (proof === undefined) this.unprovenSpent.time += performance.now() - began
      if (end.kind === 'known') report.known++
      if (end.kind !== 'admitted') return end
      report.outputs += end.outputs
      // Nothing places the genesis.
      if (txid === node.genesis.txid) return end
      for (const each of unknown) report.unknown.add(each)
      if ((await this.nodesOf(txid)).length > 0) report.mints++
      else report.transfers++
      return end
    })
    this.submitted.set(txid, admission)
    return admission
  }

  private async nodesOf(txid: string): Promise<Outpoint[]> {
    const nodes = await this.options.node.store.names.genuineNodes([0, 1].map((vout) => ({ txid, vout })))
    return nodes.map(({ outpoint }) => outpoint)
  }

  private async afterMint(txid: string): Promise<void> {
    const nodes = await this.nodesOf(txid)
    if (nodes.length === 0) this.report.deadNodes++
    for (const outpoint of nodes) this.follow({ kind: 'node', outpoint })
    if (nodes.length > 0 && this.options.names) this.follow({ kind: 'ordinal', outpoint: { txid, vout: 2 } })
  }

  private async afterTransfer({ txid, raw }: TransactionRecord, from: Outpoint): Promise<void> {
    const { outputs } = readTransaction(raw, { txid })
    for (const [vout, { satoshis }] of outputs.entries()) {
      if (satoshis !== 1) continue
      const output = await this.options.node.store.ordinals.output({ txid, vout })
      if (output?.previous === undefined || !isSame(output.previous, from)) continue
      this.follow({ kind: 'ordinal', outpoint: { txid, vout } })
      return
    }
    this.report.lostNames++
  }

  /**
   * Resumes the first waiting transaction in the order of the chain, and those that wait for older coins alone: nothing that
   * is still to be followed can lead to those. A branch that could not be followed may lead to anything after its end, which
   * waits for the next crawl.
   */
  private resumeWaiting(): void {
    const waiting = this.waiting.splice(0)
    const first = waiting.map(({ position }) => position).reduce(earlier)
    const end = this.broken.reduce(earlier, first)
    for (const each of waiting) {
      const { coin, txid, position, doubtful } = each
      const isFirst = end === first && !isBefore(first, position)
      if (isFirst || doubtful.every((left) => isBefore(left, end))) this.begin(coin, { mayWait: false })
      else if (end === first) this.waiting.push(each)
      else this.report.failures.push(`${txid} moves an ordinal of another branch, which was not followed`)
    }
  }
}

function isOfBranch(error: unknown): error is CrawlError | ChainSourceError {
  return error instanceof CrawlError || (error instanceof ChainSourceError && error.code !== 'NO_ANSWER')
}

function isTooLarge(error: unknown): boolean {
  return (
    (error instanceof CrawlError && error.code === 'TOO_LARGE') ||
    (error instanceof ChainSourceError && error.code === 'TOO_LARGE')
  )
}

function earlier(one: BlockPosition, other: BlockPosition): BlockPosition {
  return isBefore(other, one) ? other : one
}

/** How a coin is followed. */
interface Attempt {
  /** Whether it may wait until nothing else is in progress. */
  mayWait: boolean
  /** Whether its ancestors may reach the limits of a submission, instead of {@link SMALL}. */
  isLarge: boolean
}

/** A coin whose spender waits. */
interface Waiting {
  coin: FrontierCoin
  /** The spender, and its position. */
  txid: string
  position: BlockPosition
  /** See `Gathered`. */
  doubtful: BlockPosition[]
}

function spends({ txid, raw }: TransactionRecord, outpoint: Outpoint): boolean {
  return readTransaction(raw, { txid }).inputs.some((input) => isSame(input, outpoint))
}

function isSame(one: Outpoint, other: Outpoint): boolean {
  return one.txid === other.txid && one.vout === other.vout
}
