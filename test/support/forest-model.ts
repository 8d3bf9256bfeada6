import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { Forest, ForestTransaction } from './forest.js'
import { type Decision, decide, type Facts } from './forest-decision.js'

export type Topic = (typeof TOPICS)['names' | 'ordinals']

/** A transaction as it is told: where it is proven, by a block of this height and root. */
export interface Told {
  txid: string
  proof?: { height: number; root: string }
}

/** What comes of a submission. */
export type Outcome =
  | { kind: 'taken'; admitted: Record<Topic, number[]> }
  /** The winner is one of these. */
  | { kind: 'lost'; winners: Set<string> }
  /** No block can hold it with all that it is built on: some of that spends the same. */
  | { kind: 'impossible' }

/** A store as it should be, told of one submission after the other. */
export class ForestModel {
  readonly arrivals = new Map<string, number>()
  readonly proofs = new Map<string, { height: number; root: string }>()
  /** What each topic holds, by outpoint, whether it counts or not. */
  readonly held: Record<Topic, Set<string>> = { [TOPICS.names]: new Set(), [TOPICS.ordinals]: new Set() }
  /** Those of which a topic holds something. */
  readonly subjects = new Set<string>()
  /** Those that are known for their own sake: these, and what burns an ordinal. */
  readonly recorded = new Set<string>()
  private readonly applied: Record<Topic, Set<string>> = {
    [TOPICS.names]: new Set(),
    [TOPICS.ordinals]: new Set(),
  }

  constructor(readonly forest: Forest) {}

  get decision(): Decision {
    return decide(this.forest, this.facts(this.arrivals, this.proofs))
  }

  /**
   * Tells of a submission whose scripts and proofs hold.
   *
   * @param members Everything in its BEEF, the subject last.
   */
  submit(members: readonly Told[]): Outcome {
    const subject = members.at(-1)
    const transaction = subject && this.forest.byTxid.get(subject.txid)
    if (subject === undefined || transaction === undefined) throw new Error('nothing is submitted')
    const admitted = {
      [TOPICS.names]: this.names(transaction),
      [TOPICS.ordinals]: this.ordinals(transaction, members),
    }
    const told = new Map<string, Told>()
    const isAdmitted = admitted[TOPICS.names].length > 0 || admitted[TOPICS.ordinals].length > 0
    const isSubject = isAdmitted || this.burns(transaction)
    for (const each of needed(members, this.forest)) {
      // Of what is not told anew, its proof is, where it is known.
      const isNews = each.proof !== undefined && this.arrivals.has(each.txid)
      if (isSubject || isNews) told.set(each.txid, each)
    }
    const isOrdinals = admitted[TOPICS.ordinals].length > 0 || this.applied[TOPICS.ordinals].has(subject.txid)
    if (subject.proof !== undefined && isOrdinals) {
      const placing = new Set(this.placing(transaction, members))
      for (const each of members)
        if (placing.has(each.txid) && !told.has(each.txid)) told.set(each.txid, each)
    }

    const isKnown = told.has(subject.txid) || this.arrivals.has(subject.txid)
    if (
      isKnown &&
      this.isImpossible(members, { admitted: isAdmitted, minted: admitted[TOPICS.names].length > 0 })
    )
      return { kind: 'impossible' }

    const arrivals = new Map(this.arrivals)
    const proofs = new Map(this.proofs)
    const telling = arrivals.size
    for (const { txid, proof } of told.values()) {
      if (!arrivals.has(txid)) arrivals.set(txid, telling)
      if (proof !== undefined) proofs.set(txid, proof)
    }
    const names = admitted[TOPICS.names].map((vout) => transaction.outpoint(vout))
    const decision = decide(
      this.forest,
      this.facts(arrivals, proofs, isAdmitted ? { names, subject } : undefined),
    )
    const isSilent = arrivals.has(subject.txid) && !decision.counts.has(subject.txid)
    if (isSilent && !this.isMined(subject.txid, arrivals, proofs))
      return { kind: 'lost', winners: decision.winnersOver(subject.txid) }
    for (const [txid, arrival] of arrivals) this.arrivals.set(txid, arrival)
    for (const [txid, proof] of proofs) this.proofs.set(txid, proof)
    if (isAdmitted) this.subjects.add(subject.txid)
    if (isSubject) this.recorded.add(subject.txid)
    for (const topic of [TOPICS.names, TOPICS.ordinals] as const) {
      for (const vout of admitted[topic]) this.held[topic].add(transaction.outpoint(vout))
      if (admitted[topic].length > 0) this.applied[topic].add(transaction.txid)
    }
    return { kind: 'taken', admitted }
  }

  /** Whether two of the unproven transactions that the subject is built on, itself included, spend the same. */
  private isImpossible(members: readonly Told[], subject: { admitted: boolean; minted: boolean }): boolean {
    const held = this.held[TOPICS.names]
    const own = members.at(-1)?.txid
    const isNoMint = (txid: string): boolean =>
      txid === own && subject.admitted ? !subject.minted : this.subjects.has(txid) && !held.has(`${txid}_0`)
    const unproven = needed(members, this.forest).filter(({ proof }) => proof === undefined)
    const spent = unproven.flatMap(({ txid }) =>
      (this.forest.byTxid.get(txid)?.spends ?? []).filter(
        (each) => !held.has(each) || each.endsWith('_2') || !isNoMint(txid),
      ),
    )
    return new Set(spent).size < spent.length
  }

  /** Tells of the block that holds a transaction which is known. */
  prove(txid: string, { height, root }: { height: number; root: string }): void {
    this.proofs.set(txid, { height, root })
  }

  /** Takes the proof of a transaction back. */
  disprove(txid: string): void {
    this.proofs.delete(txid)
  }

  isApplied(topic: Topic, txid: string): boolean {
    return this.applied[topic].has(txid)
  }

  private facts(
    arrivals: Map<string, number>,
    proofs: Map<string, { height: number }>,
    more: { names: string[]; subject?: Told } = { names: [] },
  ): Facts {
    const { txid } = more.subject ?? {}
    return {
      arrivals,
      heights: new Map([...proofs].map(([txid, { height }]) => [txid, height])),
      names: new Set([...this.held[TOPICS.names], ...more.names]),
      admitted: new Set([...this.subjects, ...(txid === undefined ? [] : [txid])]),
    }
  }

  private isMined(txid: string, arrivals: Map<string, number>, proofs: Map<string, unknown>): boolean {
    if (proofs.has(txid)) return true
    return [...arrivals.keys()].some(
      (each) =>
        this.forest.byTxid.get(each)?.spends.some((spent) => spent.startsWith(txid)) &&
        this.isMined(each, arrivals, proofs),
    )
  }

  /** Whether it spends what `tm_ordinals` holds, and leaves nothing that it does. */
  private burns({ txid, spends }: ForestTransaction): boolean {
    const { held, applied } = { held: this.held[TOPICS.ordinals], applied: this.applied[TOPICS.ordinals] }
    return !applied.has(txid) && spends.some((spent) => held.has(spent))
  }

  /** Genesis, and mints from nodes that the topic holds. */
  private names({ txid, mint }: ForestTransaction): number[] {
    if (this.applied[TOPICS.names].has(txid)) return []
    if (txid === this.forest.genesis.txid) return [0]
    return mint !== undefined && this.held[TOPICS.names].has(mint.node) ? [0, 1, 2] : []
  }

  /** What has content, 1-sat outputs with MAP, and those that receive what the topic holds. */
  private ordinals(transaction: ForestTransaction, members: readonly Told[]): number[] {
    if (this.applied[TOPICS.ordinals].has(transaction.txid)) return []
    const here = new Set(members.map(({ txid }) => txid))
    const isKnown = (txid: string): boolean => here.has(txid) || this.arrivals.has(txid)
    return transaction.said.flatMap(({ satoshis, content, map }, vout) => {
      const received = previousOf(this.forest, transaction, vout, isKnown)
      const holds = content !== undefined || (satoshis === 1 && map !== undefined)
      return holds || (typeof received === 'string' && this.held[TOPICS.ordinals].has(received)) ? [vout] : []
    })
  }

  /** Those of the members that tell what the last 1-sat output of a transaction receives. */
  private placing(transaction: ForestTransaction, members: readonly Told[]): string[] {
    const here = new Set(members.map(({ txid }) => txid))
    const last = transaction.said.findLastIndex(({ satoshis }) => satoshis === 1)
    if (last === -1) return []
    const start = startOf(transaction, last)
    const placing = new Set<string>()
    let end = 0
    for (const spent of transaction.spends) {
      if (end > start) break
      const txid = spent.slice(0, 64)
      if (here.has(txid)) placing.add(txid)
      end += here.has(txid) ? (this.forest.byTxid.get(txid)?.said[Number(spent.slice(65))]?.satoshis ?? 0) : 0
    }
    return [...placing]
  }
}

/** The subject and, where it is not proven, what it is built on, down to proven ones. */
function needed(members: readonly Told[], { byTxid }: Forest): Told[] {
  const here = new Map(members.map((each) => [each.txid, each]))
  const found = new Set<Told>()
  const add = (txid: string): void => {
    const member = here.get(txid)
    if (member === undefined || found.has(member)) return
    found.add(member)
    if (member.proof === undefined)
      for (const spent of byTxid.get(txid)?.spends ?? []) add(spent.slice(0, 64))
  }
  add(members.at(-1)?.txid ?? '')
  return [...found]
}

function startOf({ said }: ForestTransaction, vout: number): number {
  return said.slice(0, vout).reduce((sum, { satoshis }) => sum + satoshis, 0)
}

/**
 * The 1-sat coin that an output receives, satoshi by satoshi; undefined where it receives none, and `unknown` where a
 * value before it is that of a transaction which is not known.
 */
export function previousOf(
  { byTxid }: Pick<Forest, 'byTxid'>,
  transaction: ForestTransaction,
  vout: number,
  isKnown: (txid: string) => boolean,
): string | 'unknown' | undefined {
  if (transaction.said[vout]?.satoshis !== 1) return undefined
  let left = startOf(transaction, vout)
  for (const spent of transaction.spends) {
    const txid = spent.slice(0, 64)
    if (!isKnown(txid)) return 'unknown'
    const satoshis = byTxid.get(txid)?.said[Number(spent.slice(65))]?.satoshis ?? 0
    if (left < satoshis) return left === 0 && satoshis === 1 ? spent : undefined
    left -= satoshis
  }
  return undefined
}
