import { parentsFirst } from '../../../backend/src/graph/ancestry.js'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import type { PeerTransaction } from './peer.js'

/** A transaction to give to topics, and those of them that have to have it for the sake of what comes after. */
export interface Step {
  txid: string
  wantedBy: ReadonlySet<string>
}

/** The transactions behind an offered output, as far as this host lacks them. */
export class SyncGraph {
  readonly transactions = new Map<string, PeerTransaction>()
  private readonly wanted = new Map<string, Set<string>>()

  /** @param root The txid of what is offered. */
  constructor(readonly root: string) {}

  /** Tells that a topic has to have a transaction; returns whether that is new. */
  want(txid: string, topic: string): boolean {
    const topics = this.wanted.get(txid) ?? new Set()
    if (topics.has(topic)) return false
    this.wanted.set(txid, topics.add(topic))
    return true
  }

  /**
   * What is to be given to topics, parents before children, the root last. What cannot be verified, as something of it is
   * missing, is left out: without it what comes after may be admitted all the same, or is not.
   */
  steps(): Step[] {
    const whole = this.wholeOnes()
    return this.inOrder().flatMap(({ view: { txid } }) => {
      const wantedBy = this.wanted.get(txid)
      return wantedBy === undefined || !whole.has(txid) ? [] : [{ txid, wantedBy }]
    })
  }

  /**
   * A transaction as the subject of a BEEF with the others of the graph, as if such had come.
   *
   * @param told Those that the store holds by now with all they spend; they are left out.
   */
  contents(txid: string, told: ReadonlySet<string> = new Set()): BeefContents {
    const subject = this.transactions.get(txid)?.view
    if (subject === undefined) throw new RangeError(`${txid} is not in the graph`)
    const held = (asked: string): PeerTransaction | undefined =>
      told.has(asked) ? undefined : this.transactions.get(asked)
    const txids = this.closure(txid, held)
    const length = txids.reduce((sum, each) => sum + (held(each)?.view.raw.length ?? 0), 0)
    return {
      subject,
      transaction: (asked) => held(asked)?.view,
      proof: (asked) => held(asked)?.proof,
      ...{ txids, length },
    }
  }

  /** A transaction with what it spends, where it is proven; else with its ancestors down to proven ones. */
  private closure(txid: string, held: (txid: string) => PeerTransaction | undefined): string[] {
    const found = new Set<string>([txid])
    const waiting = [txid]
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const node = held(at)
      if (node === undefined || (node.proof !== undefined && at !== txid)) continue
      for (const { txid: source } of node.view.inputs) {
        if (found.has(source) || held(source) === undefined) continue
        found.add(source)
        if (node.proof === undefined) waiting.push(source)
      }
    }
    return [...found]
  }

  /** Those that are proven, or whose ancestors are all there down to proven ones. */
  private wholeOnes(): Set<string> {
    const whole = new Set<string>()
    for (const { view, proof } of this.inOrder()) {
      if (proof !== undefined || view.inputs.every(({ txid }) => whole.has(txid))) whole.add(view.txid)
    }
    return whole
  }

  private inOrder(): PeerTransaction[] {
    return parentsFirst(this.transactions, ({ view }) => view.inputs.map(({ txid }) => txid))
  }
}
