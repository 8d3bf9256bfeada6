import type { TopicManager } from '@bsv/overlay'
import { encodeBeef } from '../../../backend/src/graph/assemble-beef.js'
import { placement, predecessorsOf } from '../../../backend/src/protocol/ordinal-flow.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { isCoinbase, outputOf, readTransaction } from '../../../backend/src/protocol/transaction.js'
import { engineBeef } from '../submission/overlay-engine.js'
import { type Holdings, isHeld } from './is-held.js'
import type { PeerTransaction } from './peer.js'
import { BadGraphError, UnwantedGraphError } from './sync-errors.js'
import { SyncGraph } from './sync-graph.js'

export interface GraphLimits {
  /** Transactions that a peer is asked for, for the sake of one output. */
  maxNodes: number
  /** Bytes of the transactions of a graph. */
  maxBytes: number
}

export interface CollectOptions {
  /** An output that a peer offers. */
  offered: Outpoint
  /** Of which topic. */
  topic: string
  /** What a transaction of the graph is given to. */
  topics: string[]
  /** Asks for the transaction of an outpoint; undefined where the peer does not have it. */
  ask: (outpoint: Outpoint) => Promise<PeerTransaction | undefined>
  managers: Record<string, Pick<TopicManager, 'identifyNeededInputs'>>
  store: Holdings
  limits: GraphLimits
}

/**
 * Collects what it takes to admit an offered output here as the peer has it (`docs/sync.md`): its transaction, the spent
 * nodes before a mint, the lineage of an ordinal with what places it in each step, and the ancestors of what is not proven.
 * It ends at what the topics have here.
 *
 * @throws BadGraphError where the peer does not have what it offers, or that can be of no such graph; UnwantedGraphError
 * over the limits; whatever asking throws.
 */
export async function collectGraph(options: CollectOptions): Promise<SyncGraph> {
  const collector = new Collector(options)
  return await collector.collect()
}

class Collector {
  private readonly graph: SyncGraph
  private readonly steps: { outpoint: Outpoint; topic: string }[] = []
  private readonly ancestors: Outpoint[] = []
  /** Ancestors of unproven ones that were looked at. */
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

  /** Has a transaction followed for a topic, unless that has it. */
  private async want(outpoint: Outpoint, topic: string): Promise<void> {
    if (await isHeld(this.options.store, { topic, txid: outpoint.txid })) return
    if (this.graph.want(outpoint.txid, topic)) this.steps.push({ outpoint, topic })
  }

  private async follow({ outpoint, topic }: { outpoint: Outpoint; topic: string }): Promise<void> {
    const { topics, offered } = this.options
    const node = await this.load(outpoint, { here: false })
    if (node === undefined) return
    if (topic === TOPICS.names) {
      for (const parent of await this.nodesBefore(node, outpoint.txid === offered.txid))
        await this.want(parent, topic)
    }
    if (topics.includes(TOPICS.ordinals)) await this.followOrdinals(node)
    if (node.proof !== undefined) return
    for (const input of node.view.inputs) this.ancestors.push(input)
    for (let next = this.ancestors.pop(); next !== undefined; next = this.ancestors.pop()) {
      if (this.walked.has(next.txid)) continue
      this.walked.add(next.txid)
      const ancestor = await this.load(next, { here: true })
      if (ancestor === undefined || ancestor.proof !== undefined) continue
      for (const input of ancestor.view.inputs) this.ancestors.push(input)
    }
  }

  /** The nodes that a mint may spend; of what is no mint there are none, and it is not offered as one. */
  private async nodesBefore(node: PeerTransaction, isOffered: boolean): Promise<Outpoint[]> {
    const manager = this.options.managers[TOPICS.names]
    try {
      const beef = engineBeef(encodeBeef([{ raw: node.view.raw }]))
      const needed = (await manager?.identifyNeededInputs?.(beef)) ?? []
      return needed.map(({ txid, outputIndex: vout }) => ({ txid, vout }))
    } catch (cause) {
      if (!isOffered) return []
      throw new UnwantedGraphError('the offered output is not of a mint of the followed tree', { cause })
    }
  }

  /** Brings what places the 1-sat outputs of a transaction, and follows the coins that they continue. */
  private async followOrdinals({ view }: PeerTransaction): Promise<void> {
    const outputValues = view.outputs.map(({ satoshis }) => satoshis)
    const output = outputValues.lastIndexOf(1)
    if (output === -1 || isCoinbase(view)) return
    const isPlaced = placement({ outputValues, output })
    const inputValues: number[] = []
    for (const input of view.inputs) {
      const source = await this.load(input, { here: true })
      const satoshis = source && outputOf(source.view, input.vout)?.satoshis
      // Behind a value that nobody knows, nothing is placed.
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
   * @param options.here Whether what the store holds will do.
   */
  private async load(
    { txid, vout }: Outpoint,
    { here }: { here: boolean },
  ): Promise<PeerTransaction | undefined> {
    const known = this.graph.transactions.get(txid)
    if (known !== undefined || this.missing.has(txid)) return known
    const node = (here ? await this.stored(txid) : undefined) ?? (await this.fetch({ txid, vout }))
    const found = node ?? (here ? undefined : await this.stored(txid))
    if (found === undefined) this.missing.add(txid)
    else this.keep(found)
    return found
  }

  private async fetch(outpoint: Outpoint): Promise<PeerTransaction | undefined> {
    const { limits, ask } = this.options
    this.asked++
    if (this.asked > limits.maxNodes)
      throw new UnwantedGraphError(`the graph has more than ${limits.maxNodes} transactions`)
    return await ask(outpoint)
  }

  private async stored(txid: string): Promise<PeerTransaction | undefined> {
    const record = await this.options.store.transactions.get(txid)
    if (record === undefined) return undefined
    const { raw, proof } = record
    return { view: readTransaction(raw, { txid }), ...(proof && { proof }) }
  }

  private keep(node: PeerTransaction): void {
    const { maxBytes } = this.options.limits
    this.bytes += node.view.raw.length
    if (this.bytes > maxBytes) throw new UnwantedGraphError(`the graph has more than ${maxBytes} bytes`)
    this.graph.transactions.set(node.view.txid, node)
  }
}
