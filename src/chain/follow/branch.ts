import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import type { NodeRecord, TransactionRecord } from '../../../backend/src/graph/records.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import type { FrontierCoin } from '../../../backend/src/read/frontier.js'
import { type Admission, type Gathered, type GatherLimits, gather } from '../ancestors/ancestors.js'
import type { ChainSources } from '../sources/chain-sources.js'
import { ChainSourceError, FollowError, isTooLarge } from '../sources/errors.js'
import type { FollowedOrdinals, SweptStore } from './sweep.js'

export interface FollowedNode {
  genesis: Outpoint
  store: Pick<SweptStore, 'transactions' | 'names' | 'ordinals'>
  /** Verifies a BEEF and passes it to the topics. Calls may overlap: the node queues them. */
  admit(submitted: { txid: string; beef: Uint8Array }): Promise<Admission>
}

export interface BranchOptions {
  node: FollowedNode
  source: Pick<ChainSources, 'transaction' | 'proof' | 'spenderOf'>
  ordinals: FollowedOrdinals
  /** Whether an ordinal of the store is followed. */
  isFollowed: (outpoint: Outpoint) => Promise<boolean>
  limits: GatherLimits
  /** Called with an unmined transaction that the source has, before it is admitted. */
  onSeen?(txid: string): Promise<void>
  /** The most unmined transactions that are admitted in a round: the owner of a name can create them at no cost. */
  maxUnproven: number
}

export interface Found {
  /** The coins to continue with. */
  coins: FrontierCoin[]
  /** False if parents that place an ordinal are unknown to the source. */
  isComplete: boolean
}

/** The longest time that verifying unmined transactions may take in a round, in milliseconds: they can be crafted to be slow. */
const UNPROVEN_TIME = 30_000
/** The most bytes of ancestors for each of several parallel branches. Branches that need more are followed one at a time. */
const SMALL = 16 * 1024 * 1024
/** How many inputs of a transaction are checked for followed coins: it may have any number. */
const INPUTS_CHECKED = 100
/** How many coins of an unproven transaction are asked about, to find a mined transaction that spends them instead. */
const SPENT_ASKED = 4
const MAX_LISTED = 1000
const MAX_COUNTED = 10_000
/** How many dead nodes are remembered and not asked about, and for how many milliseconds. */
const DEAD = { maxSize: 10_000, sizeCalculation: () => 1, ttl: 3_600_000 }

/** The progress since the start. */
export class FollowReport {
  mints = 0
  transfers = 0
  outputs = 0
  /** Stored transactions that got a proof. */
  known = 0
  /** Nodes that were spent by a transaction that is not a mint. */
  deadNodes = 0
  /** Ordinals that were burnt, or sent to an output that no topic admits. */
  lost = 0
  /** How often following a branch failed. */
  failed = 0
  /** The highest block in which something followed was found. */
  height: number | undefined
  /** Transactions that place ordinals, but that the source does not know. */
  readonly unknown = new Set<string>()
}

/** Takes single steps along the chain: asks what spends a coin, admits the spender, and says which coins come next. */
export class BranchFollower {
  readonly report = new FollowReport()
  private readonly largeBranches = pLimit(1)
  /** Several coins may lead to the same transaction at once. */
  private readonly inProgress = new Map<string, Promise<Brought>>()
  /** Nodes burnt by a mined transaction that is not a mint; the store does not show that they are spent. */
  private readonly dead = new LRUCache<string, true>(DEAD)
  private readonly counted = new LRUCache<string, true>({ maxSize: MAX_COUNTED, sizeCalculation: () => 1 })
  /** How many unproven transactions were admitted in this round, and the milliseconds they took. */
  private unproven = { count: 0, time: 0 }

  constructor(private readonly options: BranchOptions) {}

  /** How many unproven transactions were submitted in this round. */
  get unprovenSubmitted(): number {
    return this.unproven.count
  }

  /** Begins a new round, with a fresh allowance of unproven transactions. */
  newRound(): void {
    this.unproven = { count: 0, time: 0 }
  }

  /** Call when blocks were replaced: coins may have other spenders now. */
  onFork(): void {
    this.dead.clear()
  }

  /** @throws FollowError if the source does not know the genesis, or the node refuses it. */
  async admitGenesis(): Promise<void> {
    const { node, source, limits } = this.options
    const { genesis } = node
    const isGenuine = async (): Promise<boolean> =>
      (await node.store.names.genuineNodes([genesis])).length > 0
    if (await isGenuine()) return
    const record = await source.transaction(genesis.txid, limits)
    if (record === undefined)
      throw new FollowError('NOT_KNOWN', `the source does not know the genesis ${formatOutpoint(genesis)}`)
    const { beef } = await gather(record, { store: node.store, source, limits })
    await node.admit({ txid: genesis.txid, beef })
    if (!(await isGenuine()))
      throw new FollowError('REFUSED', `the genesis ${formatOutpoint(genesis)} was not admitted`)
  }

  /**
   * Asks what spends a coin, and admits the spender.
   *
   * @throws FollowError, ChainSourceError, errors of the node.
   */
  async follow(coin: FrontierCoin): Promise<Found> {
    return await this.unlessLarge((limits) => this.followWithin(coin, limits))
  }

  /**
   * Asks whether an unproven transaction, or another one that spends the same coins, is mined by now; if nobody has seen the
   * transaction, also whether the mempool has another.
   *
   * @throws As {@link follow}.
   */
  async prove(txid: string): Promise<Found> {
    return await this.unlessLarge((limits) => this.proveWithin(txid, limits))
  }

  /**
   * Admits a transaction from a feed if it spends a followed coin, or if all ordinals are followed.
   *
   * @returns The coins to continue with.
   * @throws As {@link follow}.
   */
  async take(record: TransactionRecord): Promise<FrontierCoin[]> {
    const spent = await this.spentBy(record)
    if (spent.length === 0 && this.options.ordinals !== 'all') return []
    await this.unlessLarge((limits) => this.bring(record, limits))
    const coins: FrontierCoin[] = []
    for (const coin of spent) coins.push(...(await this.after(record.txid, coin)))
    return coins
  }

  async spentBy(record: TransactionRecord): Promise<FrontierCoin[]> {
    return await this.followedInputs(record, { all: false })
  }

  /** Restarts a branch that needs more than {@link SMALL} as the only large one; other branches continue meanwhile. */
  private async unlessLarge<Result>(work: (limits: GatherLimits) => Promise<Result>): Promise<Result> {
    const { limits } = this.options
    if (limits.maxBytes <= SMALL) return await work(limits)
    try {
      return await work({ ...limits, maxBytes: SMALL })
    } catch (error) {
      if (!isTooLarge(error)) throw error
      return await this.largeBranches(() => work(limits))
    }
  }

  private async followWithin(coin: FrontierCoin, limits: GatherLimits): Promise<Found> {
    // The coin may have become inactive since it was listed.
    if (this.dead.has(formatOutpoint(coin.outpoint)) || !(await this.isStored(coin))) return NOTHING
    const spender = await this.spenderOf(coin.outpoint, limits)
    return spender === undefined ? NOTHING : await this.followTo(coin, spender, limits)
  }

  private async followTo(
    coin: FrontierCoin,
    spender: TransactionRecord,
    limits: GatherLimits,
  ): Promise<Found> {
    const { admission, isComplete } = await this.bring(spender, limits)
    if (coin.kind === 'node' && admission.kind === 'passed over' && spender.proof !== undefined)
      this.dead.set(formatOutpoint(coin.outpoint), true)
    return { coins: await this.after(spender.txid, coin), isComplete }
  }

  private async proveWithin(txid: string, limits: GatherLimits): Promise<Found> {
    const { source, node } = this.options
    const { transactions } = node.store
    const record = transactions.get(txid)
    if (record === undefined) return NOTHING
    const proof = await source.proof(txid)
    if (proof !== undefined) {
      const { isComplete } = await this.bring({ ...record, proof }, limits)
      return { coins: [], isComplete }
    }
    const spent = await this.followedInputs(record, { all: true })
    for (const coin of spent.slice(0, SPENT_ASKED)) {
      // In a chain of unproven transactions, only the first is worth asking about.
      if (transactions.heightOf(coin.outpoint.txid) === undefined) continue
      const spender = await this.spenderOf(coin.outpoint, limits, txid)
      // A transaction in the source's mempool outranks one that nobody has seen.
      if (
        spender !== undefined &&
        (spender.proof !== undefined || transactions.tiers([txid]).get(txid) === 'unseen')
      )
        return await this.followTo(coin, spender, limits)
    }
    return NOTHING
  }

  /**
   * The transaction that spends an outpoint.
   *
   * @param known The stored spender, if it is known to be in no block: it is not returned.
   */
  private async spenderOf(
    outpoint: Outpoint,
    { maxBytes }: GatherLimits,
    known?: string,
  ): Promise<TransactionRecord | undefined> {
    const { source, node } = this.options
    const { transactions } = node.store
    const stored = transactions.spenderOf(outpoint)
    if (stored !== undefined && transactions.heightOf(stored) !== undefined) return transactions.get(stored)
    try {
      return await source.spenderOf(outpoint, { maxBytes, known })
    } catch (error) {
      const isUnknown = error instanceof ChainSourceError && error.code === 'NOT_KNOWN'
      // A source need not know unmined transactions.
      if (!isUnknown || transactions.heightOf(outpoint.txid) !== undefined) throw error
      return undefined
    }
  }

  private async isStored({ kind, outpoint }: FrontierCoin): Promise<boolean> {
    const { names, ordinals } = this.options.node.store
    if (kind === 'node') return (await names.genuineNodes([outpoint])).length > 0
    return ordinals.output(outpoint) !== undefined
  }

  /**
   * Admits a transaction with its ancestors, unless the store has all of them.
   *
   * @throws FollowError `REFUSED`
   */
  private async bring(record: TransactionRecord, limits: GatherLimits): Promise<Brought> {
    const { txid } = record
    const known = this.inProgress.get(txid)
    if (known !== undefined) return await known
    const bringing = this.gatherAndAdmit(record, limits).finally(() => this.inProgress.delete(txid))
    this.inProgress.set(txid, bringing)
    return await bringing
  }

  private async gatherAndAdmit(record: TransactionRecord, limits: GatherLimits): Promise<Brought> {
    const { node } = this.options
    const { txid, proof } = record
    const { transactions } = node.store
    const isNews = proof === undefined ? !transactions.has(txid) : transactions.heightOf(txid) === undefined
    if (isNews && proof === undefined) this.requireFewUnproven(txid)
    const { beef, fetched, unknown } = await this.gathered(record, limits)
    if (unknown !== undefined && this.report.unknown.size < MAX_LISTED) this.report.unknown.add(unknown)
    const isComplete = unknown === undefined
    // Before the admission, as a transaction that nobody has seen may have spent the same coin.
    if (proof === undefined) await this.options.onSeen?.(txid)
    if (!isNews && fetched.length === 0) return { admission: { kind: 'known' }, isComplete }
    if (proof === undefined) this.unproven.count++
    const began = monotonic()
    const admission = await node.admit({ txid, beef })
    if (proof === undefined) this.unproven.time += monotonic() - began
    if (admission.kind === 'refused') throw new FollowError('REFUSED', `${txid}: ${admission.why}`)
    if (proof !== undefined) this.report.height = Math.max(this.report.height ?? 0, proof.height)
    if (isNews && admission.kind === 'known') this.report.known++
    if (admission.kind === 'admitted') await this.count([txid, ...fetched], admission)
    return { admission, isComplete }
  }

  /** Unproven ancestors count like unproven transactions, even if they are too many. */
  private async gathered(record: TransactionRecord, limits: GatherLimits): Promise<Gathered> {
    const { node, source, maxUnproven } = this.options
    const options = { store: node.store, source, limits }
    if (record.proof !== undefined) return await this.gatheredProven(record, options)
    try {
      const left = Math.max(0, maxUnproven - this.unproven.count)
      const found = await gather(record, { ...options, maxUnproven: left })
      this.unproven.count += found.unproven
      return found
    } catch (error) {
      if (error instanceof FollowError && error.code === 'UNPROVEN') this.unproven.count = maxUnproven
      throw error
    }
  }

  /**
   * A mint does not need the transactions that place its ordinals. If they are too much for a submission, the mint comes with a
   * part of them; otherwise all names below it would be lost.
   */
  private async gatheredProven(
    record: TransactionRecord,
    options: Parameters<typeof gather>[1],
  ): Promise<Gathered> {
    const found = await gather(record, options)
    const { failure } = found
    if (failure === undefined) return found
    const isSmall = options.limits.maxBytes < this.options.limits.maxBytes
    if (failure.code !== 'TOO_MANY' && !(isTooLarge(failure) && !isSmall)) throw failure
    if ((await this.nodesSpent(readTransaction(record.raw, record))).length === 0) throw failure
    return found
  }

  /** Counts a transaction and the mints among its ancestors: a mint may place an ordinal before its own branch gets to it. */
  private async count([txid = '', ...ancestors]: string[], { outputs }: { outputs: number }): Promise<void> {
    const { report } = this
    report.outputs += outputs
    const mints = new Set((await this.nodesOf(txid, ...ancestors)).map(({ outpoint }) => outpoint.txid))
    if (!mints.has(txid)) report.transfers++
    for (const mint of mints) {
      if (!this.counted.has(mint)) report.mints++
      this.counted.set(mint, true)
    }
  }

  /** @throws FollowError `UNPROVEN` */
  private requireFewUnproven(txid: string): void {
    const { count, time } = this.unproven
    const { maxUnproven } = this.options
    if (count < maxUnproven && time < UNPROVEN_TIME) return
    const why =
      count < maxUnproven
        ? `others already took ${UNPROVEN_TIME / 1000} seconds`
        : `${count} others were already followed`
    throw new FollowError('UNPROVEN', `${txid} is unmined, and ${why}: it will be followed once it is mined`)
  }

  /** The coins to continue with after a transaction that spends a coin: the tips of what is stored from there on. */
  private async after(txid: string, { kind, outpoint }: FrontierCoin): Promise<FrontierCoin[]> {
    const { ordinals, node } = this.options
    const { store } = node
    const coins: FrontierCoin[] = []
    if (kind === 'ordinal') {
      const tip = await store.ordinals.currentOutput(outpoint)
      if (tip === undefined) this.report.lost++
      else if (!isSameOutpoint(tip, outpoint)) coins.push({ kind, outpoint: tip })
      return coins
    }
    const nodes = await this.nodesOf(txid)
    if (nodes.length === 0) this.report.deadNodes++
    for (const { domain } of nodes) {
      const live = store.names.liveNode(domain)
      if (live !== undefined) coins.push({ kind, outpoint: live })
    }
    const tip = nodes.length === 0 || ordinals === 'none' ? undefined : { txid, vout: 2 }
    const current = tip && (await store.ordinals.currentOutput(tip))
    if (current !== undefined) coins.push({ kind: 'ordinal', outpoint: current })
    return coins
  }

  private async nodesOf(...txids: string[]) {
    const outpoints = txids.flatMap((txid) => [0, 1].map((vout) => ({ txid, vout })))
    return await this.options.node.store.names.genuineNodes(outpoints)
  }

  /** The stored nodes that a transaction spends, at any input. */
  private async nodesSpent({ inputs }: Pick<TransactionView, 'inputs'>): Promise<NodeRecord[]> {
    return await this.options.node.store.names.genuineNodes(inputs.map(({ txid, vout }) => ({ txid, vout })))
  }

  /**
   * The inputs of a transaction that are stored nodes or ordinals.
   *
   * @param options.all Whether ordinals that are not followed count, too.
   */
  private async followedInputs(
    { txid, raw }: TransactionRecord,
    { all }: { all: boolean },
  ): Promise<FrontierCoin[]> {
    const { node, isFollowed } = this.options
    const { ordinals } = node.store
    const transaction = readTransaction(raw, { txid })
    const nodes = await this.nodesSpent(transaction)
    const coins: FrontierCoin[] = nodes.map(({ outpoint }) => ({ kind: 'node', outpoint }))
    for (const { txid, vout } of transaction.inputs.slice(0, INPUTS_CHECKED)) {
      const outpoint = { txid, vout }
      if (nodes.some((each) => isSameOutpoint(each.outpoint, outpoint))) continue
      if (ordinals.output(outpoint) === undefined) continue
      if (all || (await isFollowed(outpoint))) coins.push({ kind: 'ordinal', outpoint })
    }
    return coins
  }
}

const NOTHING: Found = { coins: [], isComplete: true }

interface Brought {
  admission: Admission
  isComplete: boolean
}
