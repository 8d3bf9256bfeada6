import { parentsFirst } from '../../../backend/src/graph/ancestry.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { TopicManager } from '../../../backend/src/graph/overlay-interfaces.js'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { placement, predecessorsOf } from '../../../backend/src/protocol/ordinal-flow.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { isCoinbase, outputOf, readTransaction } from '../../../backend/src/protocol/transaction.js'
import { NAME_OUTPUT } from '../../gateway/sync/sync-messages.js'
import { BadGraphError, type PeerTransaction, type Sources, UnwantedGraphError } from './peer.js'

/** A transaction to submit, and the topics that need it for those that follow. */
export interface SyncStep {
  txid: string
  wantedBy: ReadonlySet<string>
}

/** The transactions behind an offered output that this host lacks. */
export class SyncGraph {
  readonly transactions = new Map<string, PeerTransaction>()
  /** Whether the peer offers something that its lookup service does not know yet, so that a coin is missing. */
  isEarly = false
  private readonly wanted = new Map<string, Set<string>>()

  /** @param root The txid of what is offered. */
  constructor(readonly root: string) {}

  /** Notes that a topic needs a transaction. Returns whether that is new. */
  want(txid: string, topic: string): boolean {
    const topics = this.wanted.get(txid) ?? new Set()
    if (topics.has(topic)) return false
    this.wanted.set(txid, topics.add(topic))
    return true
  }

  isWanted(txid: string, topic: string): boolean {
    return this.wanted.get(txid)?.has(topic) === true
  }

  /**
   * What is to be submitted, parents before children, the root last. A transaction that cannot be verified, as some of its
   * ancestors are missing, is left out: those that follow may be admitted without it.
   */
  steps(): SyncStep[] {
    const complete = this.completeTxids()
    return this.inOrder().flatMap(({ view: { txid } }) => {
      const wantedBy = this.wanted.get(txid)
      return wantedBy === undefined || !complete.has(txid) ? [] : [{ txid, wantedBy }]
    })
  }

  /**
   * A transaction as the subject of a BEEF with the others of the graph, as if it had been submitted.
   *
   * @param stored Transactions that the store has by now, with all that they spend; they are left out.
   */
  contents(txid: string, stored: ReadonlySet<string> = new Set()): BeefContents {
    const subject = this.transactions.get(txid)?.view
    if (subject === undefined) throw new RangeError(`${txid} is not in the graph`)
    const included = (asked: string): PeerTransaction | undefined =>
      stored.has(asked) ? undefined : this.transactions.get(asked)
    const txids = this.closure(txid, included)
    const length = txids.reduce((sum, each) => sum + (included(each)?.view.raw.length ?? 0), 0)
    return {
      subject,
      transaction: (asked) => included(asked)?.view,
      proof: (asked) => included(asked)?.proof,
      ...{ txids, length },
    }
  }

  /** A proven transaction with the ones that it spends from; an unproven one with its ancestors down to proven ones. */
  private closure(txid: string, included: (txid: string) => PeerTransaction | undefined): string[] {
    const found = new Set<string>([txid])
    const waiting = [txid]
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const node = included(at)
      if (node === undefined || (node.proof !== undefined && at !== txid)) continue
      for (const { txid: source } of node.view.inputs) {
        if (found.has(source) || included(source) === undefined) continue
        found.add(source)
        if (node.proof === undefined) waiting.push(source)
      }
    }
    return [...found]
  }

  /** Those that are proven, or whose ancestors are all here down to proven ones. */
  private completeTxids(): Set<string> {
    const complete = new Set<string>()
    for (const { view, proof } of this.inOrder()) {
      if (proof !== undefined || view.inputs.every(({ txid }) => complete.has(txid))) complete.add(view.txid)
    }
    return complete
  }

  private inOrder(): PeerTransaction[] {
    return parentsFirst(this.transactions, ({ view }) => view.inputs.map(({ txid }) => txid))
  }
}

export interface GraphLimits {
  /** Transactions requested from a peer for one output. */
  maxNodes: number
  /** Bytes of the transactions of a graph. */
  maxBytes: number
}

export interface CollectOptions {
  /** An output that a peer offers. */
  offered: Outpoint
  /** Of which topic. */
  topic: string
  /** The topics that its transactions are submitted to. */
  topics: string[]
  /** Requests the transaction of an outpoint of a topic; undefined if the peer does not have it. */
  ask: (asked: { outpoint: Outpoint; topic: string }) => Promise<PeerTransaction | undefined>
  /** Requests what an admitted output of a topic was submitted with, where the peer does not have it as nodes. */
  askSources: (admitted: { topic: string; outpoint: Outpoint }) => Promise<Sources>
  managers: Record<string, Pick<TopicManager, 'identifyNeededInputs'>>
  store: AppliedReader
  limits: GraphLimits
}

/**
 * Collects everything needed to admit an offered output as the peer has it (`docs/sync.md`): its transaction, the spent nodes
 * before a mint, the lineage of an ordinal with what places it in each step, and the ancestors of unproven transactions. It
 * stops at what the topics hold here.
 *
 * @throws BadGraphError if the peer does not have what it offers, or the graph cannot be valid; UnwantedGraphError over the
 * limits; whatever the request throws.
 */
export async function collectGraph(options: CollectOptions): Promise<SyncGraph> {
  const collector = new Collector(options)
  return await collector.collect()
}

/** Finds a transaction among those that another one was submitted with. */
type SourceOf = (txid: string) => Promise<PeerTransaction | undefined>

class Collector {
  private readonly graph: SyncGraph
  private readonly steps: { outpoint: Outpoint; topic: string }[] = []
  private readonly ancestors: Outpoint[] = []
  /** Visited ancestors of unproven transactions. */
  private readonly walked = new Set<string>()
  private readonly missing = new Set<string>()
  private asked = 0
  private bytes = 0

  constructor(private readonly options: CollectOptions) {
    this.graph = new SyncGraph(options.offered.txid)
  }

  async collect(): Promise<SyncGraph> {
    const { offered, topic } = this.options
    this.graph.want(offered.txid, topic)
    this.steps.push({ outpoint: offered, topic })
    for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) await this.follow(step)
    if (!this.graph.transactions.has(offered.txid))
      throw new BadGraphError('the peer does not have the output that it offers')
    if (this.graph.steps().at(-1)?.txid !== offered.txid)
      throw new BadGraphError('the peer does not have all ancestors of the output that it offers')
    return this.graph
  }

  /** Follows a transaction for a topic, unless the topic has it. */
  private async want(outpoint: Outpoint, topic: string): Promise<void> {
    if (isApplied(this.options.store, { topic, txid: outpoint.txid })) return
    if (!this.graph.want(outpoint.txid, topic)) return
    // Names first: by them it is known which coins are nodes.
    if (topic === TOPICS.names) this.steps.push({ outpoint, topic })
    else this.steps.unshift({ outpoint, topic })
  }

  private async follow({ outpoint, topic }: { outpoint: Outpoint; topic: string }): Promise<void> {
    const { topics, offered } = this.options
    const node = await this.load({ outpoint, topic })
    if (node === undefined) return
    let hasSources = topic === TOPICS.names || !this.isNode(outpoint)
    if (topic === TOPICS.names) {
      const parents = await this.nodesBefore(node, outpoint.txid === offered.txid)
      for (const parent of parents) await this.want(parent, topic)
      hasSources = parents.length > 0
    }
    let asked: Promise<Sources> | undefined
    const sourceOf: SourceOf = async (txid) => {
      // No lookup service ever has the genesis, nor a node among ordinals: then none is not "not yet".
      if (!hasSources) return undefined
      asked ??= this.options.askSources({ outpoint, topic })
      const sources = await asked
      if (sources === 'not yet') this.graph.isEarly = true
      return sources === 'not yet' ? undefined : sources.get(txid)
    }
    if (topics.includes(TOPICS.ordinals)) await this.followOrdinals(node, sourceOf)
    if (node.proof !== undefined) return
    for (const input of node.view.inputs) this.ancestors.push(input)
    for (let next = this.ancestors.pop(); next !== undefined; next = this.ancestors.pop()) {
      if (this.walked.has(next.txid)) continue
      this.walked.add(next.txid)
      const ancestor = await this.load({ outpoint: next, topic }, sourceOf)
      if (ancestor === undefined || ancestor.proof !== undefined) continue
      for (const input of ancestor.view.inputs) this.ancestors.push(input)
    }
  }

  /** Whether an output is a node, as far as that is known here by now: no topic but that of names holds it. */
  private isNode({ txid, vout }: Outpoint): boolean {
    if (vout === NAME_OUTPUT) return false
    const { names } = TOPICS
    return this.graph.isWanted(txid, names) || isApplied(this.options.store, { topic: names, txid })
  }

  /** The nodes that a mint may spend; none if the transaction is no mint. */
  private async nodesBefore(node: PeerTransaction, isOffered: boolean): Promise<Outpoint[]> {
    const manager = this.options.managers[TOPICS.names]
    try {
      // Topic managers take bytes, too; their type does not say so.
      const beef = encodeBeef([{ raw: node.view.raw }]) as unknown as number[]
      const needed = (await manager?.identifyNeededInputs?.(beef)) ?? []
      return needed.map(({ txid, outputIndex: vout }) => ({ txid, vout }))
    } catch (cause) {
      if (!isOffered) return []
      throw new UnwantedGraphError('the offered output is not of a mint of the followed tree', {
        cause,
      })
    }
  }

  /** Loads what places the 1-sat outputs of a transaction, and follows the coins that they continue. */
  private async followOrdinals({ view }: PeerTransaction, sourceOf: SourceOf): Promise<void> {
    const outputValues = view.outputs.map(({ satoshis }) => satoshis)
    const output = outputValues.lastIndexOf(1)
    if (output === -1 || isCoinbase(view)) return
    const isPlaced = placement({ outputValues, output })
    const inputValues: number[] = []
    for (const input of view.inputs) {
      const source = await this.load({ outpoint: input, topic: TOPICS.ordinals }, sourceOf)
      const satoshis = source && outputOf(source.view, input.vout)?.satoshis
      // After an unknown value, nothing can be placed.
      if (satoshis === undefined) break
      inputValues.push(satoshis)
      if (isPlaced(satoshis)) break
    }
    const known = view.inputs.map((_, input) => inputValues[input])
    for (const each of predecessorsOf({ inputValues: known, outputValues })) {
      const carried = each.kind === 'input' ? view.inputs[each.input] : undefined
      if (carried !== undefined) await this.want(carried, TOPICS.ordinals)
    }
  }

  /**
   * A transaction of the graph.
   *
   * @param sourceOf Given for one that comes before the transaction that is followed: this host may have it, or the peer may
   * have it only with that one.
   */
  private async load(
    asked: { outpoint: Outpoint; topic: string },
    sourceOf?: SourceOf,
  ): Promise<PeerTransaction | undefined> {
    const { txid } = asked.outpoint
    const known = this.graph.transactions.get(txid)
    if (known !== undefined || this.missing.has(txid)) return known
    const node = (sourceOf && this.stored(txid)) ?? (await this.fetch(asked))
    const found = node ?? (await (sourceOf ?? this.stored.bind(this))(txid))
    if (found === undefined) this.missing.add(txid)
    else this.add(found)
    return found
  }

  private async fetch(asked: { outpoint: Outpoint; topic: string }): Promise<PeerTransaction | undefined> {
    const { limits, ask } = this.options
    this.asked++
    if (this.asked > limits.maxNodes)
      throw new UnwantedGraphError(`the graph has more than ${limits.maxNodes} transactions`)
    return await ask(asked)
  }

  private stored(txid: string): PeerTransaction | undefined {
    const record = this.options.store.transactions.get(txid)
    if (record === undefined) return undefined
    const { raw, proof } = record
    return { view: readTransaction(raw, { txid }), ...(proof && { proof }) }
  }

  private add(node: PeerTransaction): void {
    const { maxBytes } = this.options.limits
    this.bytes += node.view.raw.length
    if (this.bytes > maxBytes) throw new UnwantedGraphError(`the graph has more than ${maxBytes} bytes`)
    this.graph.transactions.set(node.view.txid, node)
  }
}

/** The part of a store that says whether a transaction is needed again. */
export type AppliedReader = Pick<GraphStore, 'transactions' | 'admissions'>

/** Whether a topic has a transaction and it counts: a peer may have the proof of one that has lost a conflict. */
export function isApplied(store: AppliedReader, { topic, txid }: { topic: string; txid: string }): boolean {
  return store.admissions.isApplied(topic, txid) && store.transactions.reasonAgainst(txid) === undefined
}
