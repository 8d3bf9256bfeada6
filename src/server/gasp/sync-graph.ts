import { parentsFirst } from '../../../backend/src/graph/ancestry.js'
import type { TopicManager } from '../../../backend/src/graph/overlay-interfaces.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { assembleBeef, encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { placement, predecessorsOf } from '../../../backend/src/protocol/ordinal-flow.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { isCoinbase, outputOf } from '../../../backend/src/protocol/transaction.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { NAME_OUTPUT } from '../../gateway/sync/sync-messages.js'
import { PeerError, type Sources } from './peer.js'

export interface GraphLimits {
  /** Transactions requested from a peer for one output. */
  maxNodes: number
  /** Bytes of the transactions of a graph. */
  maxBytes: number
}

export interface CollectOptions {
  offered: Outpoint
  topic: string
  topics: string[]
  /** Requests the transaction of an outpoint of a topic; undefined if the peer does not have it. */
  ask: (asked: { outpoint: Outpoint; topic: string }) => Promise<TransactionRecord | undefined>
  /** Requests the transactions that an admitted output was submitted with, if the peer does not have them as nodes. */
  askSources: (admitted: { topic: string; outpoint: Outpoint }) => Promise<Sources>
  managers: Record<string, Pick<TopicManager, 'identifyNeededInputs'>>
  store: AppliedReader
  limits: GraphLimits
}

/**
 * Collects everything needed to admit an offered output as the peer has it (`docs/follow.md`): its transaction, the spent nodes
 * before a mint, the lineage of an ordinal with what places it in each step, and the ancestors of unproven transactions. It stops
 * at outputs that the topics hold here.
 *
 * @throws PeerError `BAD_GRAPH` if the peer does not have what it offers, `UNWANTED` over the limits; errors of the requests.
 */
export async function collectGraph(options: CollectOptions): Promise<SyncGraph> {
  const graph = new SyncGraph(options)
  await graph.collect()
  return graph
}

type SourceOf = (txid: string) => Promise<TransactionRecord | undefined>

/** The transactions behind an offered output that this host lacks. */
export class SyncGraph {
  /** Whether a coin is missing because the peer's lookup service does not know an offered output yet. */
  isEarly = false
  private readonly transactions = new Map<string, TransactionRecord>()
  /** The topics that need each transaction. */
  private readonly wanted = new Map<string, Set<string>>()
  private readonly steps: { outpoint: Outpoint; topic: string }[] = []
  private readonly walked = new Set<string>()
  private readonly missing = new Set<string>()
  private asked = 0
  private bytes = 0

  constructor(private readonly options: CollectOptions) {}

  /** The transactions to submit, parents first, except those that their topics have by now. */
  txids(): string[] {
    const inOrder = parentsFirst(this.transactions, (record) => viewOf(record).inputs.map(({ txid }) => txid))
    return inOrder.flatMap(({ txid }) => {
      const topics = [...(this.wanted.get(txid) ?? [])]
      return topics.every((topic) => isApplied(this.options.store, { topic, txid })) ? [] : [txid]
    })
  }

  /**
   * A transaction with those that it spends, and the ancestors of unproven ones down to proven ones; undefined if one is missing.
   * Spent transactions that the store has are left out unless they are needed to verify the others.
   */
  async beef(txid: string): Promise<Uint8Array | undefined> {
    const { transactions } = this.options.store
    const get = (asked: string) => this.transactions.get(asked) ?? transactions.get(asked)
    const record = get(txid)
    if (record === undefined) return undefined
    const parents = viewOf(record).inputs.map((input) => input.txid)
    const sources = parents.filter((each) => this.transactions.has(each) && !transactions.has(each))
    return await assembleBeef([...sources, txid], { get })
  }

  async collect(): Promise<void> {
    const { offered, topic } = this.options
    this.want(offered, topic)
    for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) await this.follow(step)
    if (!this.transactions.has(offered.txid))
      throw new PeerError('BAD_GRAPH', 'the peer does not have the output that it offers')
    if ((await this.beef(offered.txid)) === undefined)
      throw new PeerError('BAD_GRAPH', 'the peer does not have all ancestors of the output that it offers')
  }

  private want(outpoint: Outpoint, topic: string): void {
    const { txid } = outpoint
    const topics = this.wanted.get(txid) ?? new Set()
    if (topics.has(topic) || isApplied(this.options.store, { topic, txid })) return
    this.wanted.set(txid, topics.add(topic))
    // Names first: they show which coins are nodes.
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
      for (const parent of parents) this.want(parent, topic)
      hasSources = parents.length > 0
    }
    let asked: Promise<Sources> | undefined
    const sourceOf: SourceOf = async (txid) => {
      // No lookup service ever has the genesis, nor a node among ordinals: then no answer does not mean "not yet".
      if (!hasSources) return undefined
      asked ??= this.options.askSources({ outpoint, topic })
      const sources = await asked
      if (sources === 'not yet') this.isEarly = true
      return sources === 'not yet' ? undefined : sources.get(txid)
    }
    if (topics.includes(TOPICS.ordinals)) await this.followOrdinals(node, sourceOf)
    if (node.proof !== undefined) return
    const ancestors = [...viewOf(node).inputs]
    for (let next = ancestors.pop(); next !== undefined; next = ancestors.pop()) {
      if (this.walked.has(next.txid)) continue
      this.walked.add(next.txid)
      const ancestor = await this.load({ outpoint: next, topic }, sourceOf)
      if (ancestor === undefined || ancestor.proof !== undefined) continue
      for (const input of viewOf(ancestor).inputs) ancestors.push(input)
    }
  }

  /** Whether an output is a node, as far as is known by now: only the topic of names holds nodes. */
  private isNode({ txid, vout }: Outpoint): boolean {
    if (vout === NAME_OUTPUT) return false
    const { names } = TOPICS
    return this.wanted.get(txid)?.has(names) === true || isApplied(this.options.store, { topic: names, txid })
  }

  /** The nodes that a mint may spend; none if the transaction is not a mint. */
  private async nodesBefore(node: TransactionRecord, isOffered: boolean): Promise<Outpoint[]> {
    const manager = this.options.managers[TOPICS.names]
    try {
      // Topic managers take bytes too, though their type does not say so.
      const beef = encodeBeef([{ raw: node.raw }]) as unknown as number[]
      const needed = (await manager?.identifyNeededInputs?.(beef)) ?? []
      return needed.map(({ txid, outputIndex: vout }) => ({ txid, vout }))
    } catch (cause) {
      if (!isOffered) return []
      throw new PeerError('UNWANTED', 'the offered output is not of a mint of the followed tree', {
        cause,
      })
    }
  }

  /** Loads the transactions that place the 1-sat outputs of a transaction, and follows the coins that they continue. */
  private async followOrdinals(record: TransactionRecord, sourceOf: SourceOf): Promise<void> {
    const view = viewOf(record)
    const outputValues = view.outputs.map(({ satoshis }) => satoshis)
    const output = outputValues.lastIndexOf(1)
    if (output === -1 || isCoinbase(view)) return
    const isPlaced = placement({ outputValues, output })
    const inputValues: number[] = []
    for (const input of view.inputs) {
      const source = await this.load({ outpoint: input, topic: TOPICS.ordinals }, sourceOf)
      const satoshis = source && outputOf(viewOf(source), input.vout)?.satoshis
      // After an unknown value, nothing can be placed.
      if (satoshis === undefined) break
      inputValues.push(satoshis)
      if (isPlaced(satoshis)) break
    }
    const known = view.inputs.map((_, input) => inputValues[input])
    for (const each of predecessorsOf({ inputValues: known, outputValues })) {
      const carried = each.kind === 'input' ? view.inputs[each.input] : undefined
      if (carried !== undefined) this.want(carried, TOPICS.ordinals)
    }
  }

  /**
   * A transaction of the graph.
   *
   * @param sourceOf Given for an ancestor of the followed transaction: this host may have it, or the peer may have it only
   * together with that transaction.
   */
  private async load(
    asked: { outpoint: Outpoint; topic: string },
    sourceOf?: SourceOf,
  ): Promise<TransactionRecord | undefined> {
    const { txid } = asked.outpoint
    const known = this.transactions.get(txid)
    if (known !== undefined || this.missing.has(txid)) return known
    const { transactions } = this.options.store
    const node = (sourceOf && transactions.get(txid)) ?? (await this.fetch(asked))
    const found = node ?? (sourceOf === undefined ? transactions.get(txid) : await sourceOf(txid))
    if (found === undefined) this.missing.add(txid)
    else this.add(found)
    return found
  }

  private async fetch(asked: { outpoint: Outpoint; topic: string }): Promise<TransactionRecord | undefined> {
    const { limits, ask } = this.options
    this.asked++
    if (this.asked > limits.maxNodes)
      throw new PeerError('UNWANTED', `the graph has more than ${limits.maxNodes} transactions`)
    return await ask(asked)
  }

  private add(node: TransactionRecord): void {
    const { maxBytes } = this.options.limits
    this.bytes += node.raw.length
    if (this.bytes > maxBytes) throw new PeerError('UNWANTED', `the graph has more than ${maxBytes} bytes`)
    this.transactions.set(node.txid, node)
  }
}

/** The part of a store that says whether a transaction is still needed. */
export type AppliedReader = Pick<FactStore, 'transactions' | 'admissions'>

/** Whether a topic has a transaction and it is active: a peer may have a proof for one that has lost a conflict here. */
export function isApplied(store: AppliedReader, { topic, txid }: { topic: string; txid: string }): boolean {
  return store.admissions.isApplied(topic, txid) && store.transactions.reasonAgainst(txid) === undefined
}
