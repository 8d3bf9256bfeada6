import pLimit from 'p-limit'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { type BlockPosition, isBefore, positionOf } from './block-position.js'
import { type ChainSource, ChainSourceError } from './chain-source.js'
import { CrawlError } from './crawl-error.js'
import { newReport } from './crawl-report.js'
import { type Coin, frontier } from './frontier.js'
import { type GatherLimits, type GatherOptions, gather, knownOrSourced } from './gather.js'

/** What becomes of a transaction that is submitted. */
export type Admission =
  | { kind: 'admitted'; outputs: number }
  /** Every topic that takes it has it already. */
  | { kind: 'known' }
  /** It holds, and no topic takes any of it; `codes` are theirs. */
  | { kind: 'passed over'; why: string; codes: string[] }
  /** It does not hold, or does not count. */
  | { kind: 'refused'; why: string }

/** The node that a crawl fills. */
export interface CrawledNode {
  genesis: Outpoint
  store: Pick<GraphStore, 'transactions' | 'names' | 'ordinals' | 'admissions'>
  /** Verifies a BEEF and gives it to the topics. May be called again before it has answered: the node sees to turns. */
  admit(submitted: { txid: string; beef: Uint8Array }): Promise<Admission>
}

export interface CrawlOptions {
  node: CrawledNode
  source: ChainSource
  /** How many branches are followed at once. */
  parallel: number
  /** Whether the ordinals of names are followed, too. */
  names: boolean
  limits: GatherLimits
  /** After how many admitted transactions to stop. */
  most: number
  /** How many transactions to follow that are in no block: whoever owns a name makes them at no cost. */
  maxUnproven: number
  /** After how many milliseconds to stop. */
  maxTime: number
  /** Ends the crawl: what is being admitted is, and nothing new begins. */
  signal?: AbortSignal
}

/** How long transactions that are in no block may take to be verified in all, in milliseconds: they may be made to take long. */
const UNPROVEN_TIME = 30_000

/** How much each of several branches may hold at once, in bytes: one that needs more is followed while no other such one is. */
const SMALL = 16 * 1024 * 1024

/** How often a source is asked for a spender that does spend. */
const ASKS = 3

/**
 * Follows the tree from where the store's ends to where the chain's does, and then the ordinals of its names, by asking
 * who spends what. The store is the memory: a crawl that was ended goes on with what is there.
 *
 * Each transaction is submitted after those that it spends of, as far as they belong to the tree. Branches do not wait for each
 * other, but for one case: where something spends another coin that may be a name which was not followed so far yet, it waits until
 * nothing else is under way, and those that wait go on in the order of the chain.
 */
export class Crawl {
  readonly report = newReport()
  private readonly inTurn: ReturnType<typeof pLimit>
  private readonly largeInTurn = pLimit(1)
  private readonly followed = new Set<string>()
  private readonly submitted = new Map<string, Promise<Admission>>()
  private readonly waiting: Waiting[] = []
  /** What the source does not have in a block: it is not asked for once more by whatever is built on it. */
  private readonly unproven = new Set<string>()
  /** Of those that were followed. */
  private readonly unprovenSpent = { count: 0, time: 0 }
  private readonly end: number
  /** Where branches end that could not be followed. */
  private readonly broken: BlockPosition[] = []
  private underWay = 0
  private onIdle: () => void = () => {}
  private failure: { error: unknown } | undefined

  constructor(private readonly options: CrawlOptions) {
    this.inTurn = pLimit(options.parallel)
    this.end = performance.now() + options.maxTime
  }

  /**
   * Crawls to the end, or to where it is ended; {@link report} says how far.
   *
   * @throws CrawlError where the source does not know the genesis, or shows one that the node refuses; ChainSourceError
   * `NO_ANSWER`; what the node throws that is nobody's fault here.
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
      this.letGo()
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
    const record = await knownOrSourced(genesis.txid, this.gathering())
    if (record === undefined)
      throw new CrawlError('NOT_KNOWN', `the source does not know the genesis ${formatOutpoint(genesis)}`)
    await this.submit(record, await gather(record, this.gathering()))
    if (this.report.stopped !== undefined) return
    if ((await node.store.names.genuineNodes([genesis])).length === 0)
      throw new CrawlError('REFUSED', `the genesis ${formatOutpoint(genesis)} was not admitted`)
  }

  /** Follows a coin when it has its turn; each once. */
  private follow(coin: Coin): void {
    const key = `${coin.kind} ${formatOutpoint(coin.outpoint)}`
    if (this.followed.has(key)) return
    this.followed.add(key)
    this.begin(coin, { mayWait: true })
  }

  private begin(coin: Coin, { mayWait, isLarge = false }: Pick<Turn, 'mayWait'> & Partial<Turn>): void {
    this.underWay++
    void (isLarge ? this.largeInTurn : this.inTurn)(async () => {
      if (!this.isOver) await this.unlessStopped(coin, () => this.unlessLarge(coin, { mayWait, isLarge }))
      this.underWay--
      if (this.underWay === 0) this.onIdle()
    })
  }

  /** A branch that turns out to need more than {@link SMALL} lets the others go on, and begins anew when it has its turn. */
  private async unlessLarge(coin: Coin, turn: Turn): Promise<void> {
    try {
      await this.goOn(coin, turn)
    } catch (error) {
      const canBeLarger = !turn.isLarge && this.options.limits.maxBytes > SMALL
      if (!canBeLarger || !isTooLarge(error)) throw error
      this.begin(coin, { ...turn, isLarge: true })
    }
  }

  private async idle(): Promise<void> {
    if (this.underWay === 0) return
    await new Promise<void>((resolve) => {
      this.onIdle = resolve
    })
  }

  /** One branch that cannot be followed leaves the others; a source or a node that does not answer ends all. */
  private async unlessStopped(coin: Coin | undefined, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      // What was ended fails in any way.
      if (this.options.signal?.aborted === true) return
      if (coin !== undefined && isOfBranch(error)) await this.giveUp(coin, error.message)
      else this.failure ??= { error }
    }
  }

  private async giveUp({ outpoint: { txid } }: Coin, why: string): Promise<void> {
    this.report.failures.push(why)
    const record = await this.options.node.store.transactions.get(txid)
    if (record !== undefined) this.broken.push(positionOf(record, { ancestors: 0 }))
  }

  private async goOn(coin: Coin, { mayWait, isLarge }: Turn): Promise<void> {
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
      // Another branch may have come to it meanwhile.
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

  /** What spends an outpoint, as the source says and its bytes show. */
  private async spenderOf(
    outpoint: Outpoint,
    gathering: GatherOptions,
  ): Promise<TransactionRecord | undefined> {
    const { source } = this.options
    const shown = formatOutpoint(outpoint)
    let why = ''
    for (let asks = ASKS; asks > 0; asks--) {
      const txid = await source.spenderOf(outpoint)
      if (txid === undefined) return undefined
      const record = (await this.taken(txid)) ?? (await knownOrSourced(txid, gathering))
      if (record !== undefined && spends(record, outpoint)) return record
      why = record === undefined ? 'it does not know' : 'does not spend it'
      why = `the source says that ${shown} is spent by ${txid}, which ${why}`
    }
    throw new CrawlError('NO_SPEND', why)
  }

  /** What was submitted before, as far as any topic took it: it is not asked for once more. */
  private async taken(txid: string): Promise<TransactionRecord | undefined> {
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
      // The genesis is no ordinal that anything places.
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
   * Lets the first of those that wait go on, in the order of the chain, and whoever waits for coins that are older than it:
   * nothing that is still to be followed can lead to those. Where a branch could not be followed, it may lead to whatever
   * comes after its end: that waits for the next crawl.
   */
  private letGo(): void {
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
interface Turn {
  /** Whether it may be left until nothing else is under way. */
  mayWait: boolean
  /** Whether it may hold as much as a submission may have. */
  isLarge: boolean
}

/** A coin whose spender waits. */
interface Waiting {
  coin: Coin
  /** Of the spender, and where it stands. */
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
