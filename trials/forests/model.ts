import { TOPICS } from '../../backend/src/protocol/profile.js'
import { type Decision, decide, type Facts } from './decision.js'
import type { Forest, ForestTransaction } from './forest.js'

export type Topic = (typeof TOPICS)['names' | 'ordinals']

/** A transaction as it is recorded: where it is proven, by a block of this height and root. */
export interface NewRecords {
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

/** A store as it should be after one submission after the other: all that it holds follows from what it knows. */
export class ForestModel {
  insertionOrder = new Map<string, number>()
  proofs = new Map<string, { height: number; root: string }>()
  /** What each topic holds, by outpoint, whether it counts or not. */
  held: Holdings = { [TOPICS.names]: new Set(), [TOPICS.ordinals]: new Set() }

  constructor(readonly forest: Forest) {}

  get decision(): Decision {
    return decide(this.forest, factsOf(this.insertionOrder, this.proofs, this.held))
  }

  /**
   * Takes a submission whose scripts and proofs hold.
   *
   * @param members Everything in its BEEF, the subject last.
   */
  submit(members: readonly NewRecords[]): Outcome {
    const subject = members.at(-1)
    const transaction = subject && this.forest.byTxid.get(subject.txid)
    if (subject === undefined || transaction === undefined) throw new Error('nothing is submitted')
    const insertionOrder = new Map(this.insertionOrder)
    const proofs = new Map(this.proofs)
    const submission = insertionOrder.size
    for (const { txid, proof } of knownBy(members, this.forest)) {
      if (!insertionOrder.has(txid)) insertionOrder.set(txid, submission)
      if (proof !== undefined) proofs.set(txid, proof)
    }
    const held = holdingsOf(this.forest, insertionOrder)
    if (this.isImpossible(members, held)) return { kind: 'impossible' }
    const decision = decide(this.forest, factsOf(insertionOrder, proofs, held))
    if (!decision.counts.has(subject.txid) && !this.isMined(subject.txid, insertionOrder, proofs))
      return { kind: 'lost', winners: decision.winnersOver(subject.txid) }
    this.insertionOrder = insertionOrder
    this.proofs = proofs
    this.held = held
    const admitted = (topic: Topic): number[] =>
      transaction.said.flatMap((_, vout) => (held[topic].has(transaction.outpoint(vout)) ? [vout] : []))
    return {
      kind: 'taken',
      admitted: { [TOPICS.names]: admitted(TOPICS.names), [TOPICS.ordinals]: admitted(TOPICS.ordinals) },
    }
  }

  /** Whether two of the unproven transactions that the subject is built on, itself included, spend the same. */
  private isImpossible(members: readonly NewRecords[], holdings: Holdings): boolean {
    const held = holdings[TOPICS.names]
    const unproven = needed(members, this.forest).filter(({ proof }) => proof === undefined)
    const spent = unproven.flatMap(({ txid }) =>
      (this.forest.byTxid.get(txid)?.spends ?? []).filter(
        (each) => !held.has(each) || each.endsWith('_2') || held.has(`${txid}_0`),
      ),
    )
    return new Set(spent).size < spent.length
  }

  /** Takes the block that holds a transaction which is known. */
  prove(txid: string, { height, root }: { height: number; root: string }): void {
    this.proofs.set(txid, { height, root })
  }

  /** Takes the proof of a transaction back. */
  disprove(txid: string): void {
    this.proofs.delete(txid)
  }

  private isMined(txid: string, insertionOrder: Map<string, number>, proofs: Map<string, unknown>): boolean {
    if (proofs.has(txid)) return true
    return [...insertionOrder.keys()].some(
      (each) =>
        this.forest.byTxid.get(each)?.spends.some((spent) => spent.startsWith(txid)) &&
        this.isMined(each, insertionOrder, proofs),
    )
  }
}

type Holdings = Record<Topic, Set<string>>

/** What topics hold of all that is known: worked out until nothing more follows. */
function holdingsOf(forest: Forest, insertionOrder: ReadonlyMap<string, number>): Holdings {
  const held: Holdings = { [TOPICS.names]: new Set(), [TOPICS.ordinals]: new Set() }
  const isKnown = (txid: string): boolean => insertionOrder.has(txid)
  const known = [...forest.byTxid.values()].filter(({ txid }) => isKnown(txid))
  for (let before = -1; before < held[TOPICS.names].size + held[TOPICS.ordinals].size; ) {
    before = held[TOPICS.names].size + held[TOPICS.ordinals].size
    for (const transaction of known) {
      for (const vout of mintedBy(forest, transaction, held[TOPICS.names]))
        held[TOPICS.names].add(transaction.outpoint(vout))
      for (const [vout, { satoshis, content, map }] of transaction.said.entries()) {
        const received = previousOf(forest, transaction, vout, isKnown)
        const holds = content !== undefined || (satoshis === 1 && map !== undefined)
        if (holds || (typeof received === 'string' && held[TOPICS.ordinals].has(received)))
          held[TOPICS.ordinals].add(transaction.outpoint(vout))
      }
    }
  }
  return held
}

/** Genesis, and mints from nodes that the topic holds. */
function mintedBy(forest: Forest, { txid, mint }: ForestTransaction, names: ReadonlySet<string>): number[] {
  if (txid === forest.genesis.txid) return [0]
  return mint !== undefined && names.has(mint.node) ? [0, 1, 2] : []
}

function factsOf(
  insertionOrder: ReadonlyMap<string, number>,
  proofs: ReadonlyMap<string, { height: number }>,
  held: Holdings,
): Facts {
  return {
    insertionOrder,
    heights: new Map([...proofs].map(([txid, { height }]) => [txid, height])),
    names: held[TOPICS.names],
    admitted: new Set(insertionOrder.keys()),
  }
}

/** What is known by a BEEF: all of it that its subject is built on, however far back. */
function knownBy(members: readonly NewRecords[], { byTxid }: Forest): NewRecords[] {
  const here = new Map(members.map((each) => [each.txid, each]))
  const found = new Set<string>([members.at(-1)?.txid ?? ''])
  for (const txid of found)
    for (const spent of byTxid.get(txid)?.spends ?? [])
      if (here.has(spent.slice(0, 64))) found.add(spent.slice(0, 64))
  return [...found].flatMap((txid) => here.get(txid) ?? [])
}

/** The subject and, where it is not proven, what it is built on, down to proven ones. */
function needed(members: readonly NewRecords[], { byTxid }: Forest): NewRecords[] {
  const here = new Map(members.map((each) => [each.txid, each]))
  const found = new Set<NewRecords>()
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
