import { isDeepStrictEqual } from 'node:util'
import type { Sighting } from '../../backend/src/graph/conflict-resolution.js'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import { Answers, type BlockedItem } from './answers.js'
import { decide, type Proof } from './decision.js'
import type { History, HistoryTransaction } from './history.js'

/** A transaction as it comes in a BEEF; with its block, where its proof comes along. */
export interface Member {
  txid: string
  proof?: Proof
}

/** What comes of a submission. */
export type Outcome =
  | { kind: 'taken' }
  /** No block can hold it yet: it waits, apart from what is known, until one can. */
  | { kind: 'held' }
  /**
   * It lost to one of these, or one of them was rejected; none are named where no block can hold it with all that it is built on.
   * Then it waits, unless it lost to one that is mined, or comes with double spends.
   */
  | { kind: 'lost'; winners: ReadonlySet<string>; waitFor: (winner: string) => void }

/**
 * What a host knows, and nothing of what it answers: the transactions that came, where each is proven, and what the
 * operator blocked. All answers are a function of these (`docs/spec/overlay.md`, Submissions), except that of two
 * unproven conflicting transactions of which the network said the same the first one counts, and that one that loses to a mined
 * one and that nothing proves is not kept.
 */
export class Model {
  private readonly insertionOrder = new Map<string, number>()
  private readonly given = new Map<string, Proof[]>()
  /** Blocks that are no more. */
  private readonly refused = new Set<string>()
  private readonly held = new Map<string, { lock: number; members: readonly Member[] }>()
  private readonly sightings = new Map<string, Sighting>()
  private readonly blocks = new Map<string, BlockedItem>()
  /** The types of content that the policy refuses now, and that it refused when transactions entered the log. */
  private refusedTypes: readonly string[]
  private readonly refusedThen = new Map<string, readonly string[]>()
  private submissions = 0
  /** The places of those that had entered the log before what happens now. */
  private placesInLog: ReadonlyMap<string, number> = new Map()
  /** What follows from what was known when somebody asked last. */
  private worked: Answers | undefined

  /** @param accepts Whether the chain has the block of a proof now. */
  constructor(
    readonly history: History,
    private readonly accepts: (proof: Proof) => boolean = () => true,
    private readonly host: { readonly tracker: ProofTracker },
  ) {
    this.refusedTypes = history.refusedTypes
  }

  /** The same knowledge, which stays as it is when this grows. */
  copy(): Model {
    const copy = new Model(this.history, this.accepts, this.host)
    const pairs = [
      [this.insertionOrder, copy.insertionOrder],
      [this.given, copy.given],
      [this.held, copy.held],
      [this.sightings, copy.sightings],
      [this.blocks, copy.blocks],
      [this.refusedThen, copy.refusedThen],
    ] as [Map<string, unknown>, Map<string, unknown>][]
    for (const [from, to] of pairs) for (const [key, value] of from) to.set(key, value)
    for (const block of this.refused) copy.refused.add(block)
    copy.submissions = this.submissions
    copy.refusedTypes = this.refusedTypes
    copy.placesInLog = this.placesInLog
    return copy
  }

  isKnown(txid: string): boolean {
    return this.insertionOrder.has(txid)
  }

  /** The blocks of transactions that are proven themselves: of several that count, the lowest, or the last that came where scripts decide. */
  get proofs(): ReadonlyMap<string, Proof> {
    return new Map(
      [...this.given].flatMap(([txid, proofs]) => {
        const counting = proofs.filter((each) => this.doesCount(each)).reverse()
        if (this.host.tracker !== 'scripts-only') counting.sort((a, b) => a.height - b.height)
        const [first] = counting
        return first === undefined ? [] : [[txid, first] as const]
      }),
    )
  }

  /** Each block that a proof leads to which counts here. */
  get blocksOfProofs(): { txid: string; proof: Proof }[] {
    return [...this.given].flatMap(([txid, proofs]) =>
      proofs.filter((each) => this.doesCount(each)).map((proof) => ({ txid, proof })),
    )
  }

  private doesCount(proof: Proof): boolean {
    const { tracker } = this.host
    if (tracker === 'scripts-only') return true
    return tracker === 'headers' ? this.accepts(proof) : !this.refused.has(blockOf(proof))
  }

  /**
   * Takes a submission whose scripts and proofs are valid, unless it loses.
   *
   * @param members All in the BEEF, the subject last.
   * @param tip The height of the last block; without it, everything is final.
   */
  submit(members: readonly Member[], tip = Number.POSITIVE_INFINITY): Outcome {
    const { history } = this
    const learned = learnedOf(history, members)
    const subject = learned.at(-1)
    if (subject === undefined) throw new Error('nothing is submitted')
    this.submissions++
    const after = this.copy()
    after.learn(learned)
    const { insertionOrder, proofs, sightings } = after
    const genuine = genuineOf(history, insertionOrder)
    const waitFor = (winner: string): void => {
      const spent = learned.flatMap(({ txid }) => history.byTxid.get(txid)?.spends ?? [])
      if (new Set(spent).size === spent.length && !isMined(history, winner, { insertionOrder, proofs }))
        this.learn(learned)
    }
    const lock = this.lockOf(learned)
    if (lock > tip) {
      this.learn(learned.filter(({ proof }) => proof !== undefined))
      this.held.set(subject.txid, { lock, members })
      return { kind: 'held' }
    }
    if (hasDoubleSpend(verifiedBy(history, members), history, genuine))
      return { kind: 'lost', winners: new Set(), waitFor }
    const places = this.placed(insertionOrder)
    const { counts, winnersOver } = decide(history, { insertionOrder: places, proofs, sightings, genuine })
    if (!counts.has(subject.txid) && !isMined(history, subject.txid, { insertionOrder, proofs })) {
      const isHopeless = conflictsWithin(history, subject.txid)
      return { kind: 'lost', winners: isHopeless ? new Set() : winnersOver(subject.txid), waitFor }
    }
    this.learn(learned)
    return { kind: 'taken' }
  }

  /** What waits that the next block may hold, in the order in which it is taken. */
  finalAt(tip: number): { txid: string; members: readonly Member[] }[] {
    return [...this.held]
      .map(([txid, each]) => ({ txid, ...each }))
      .filter(({ lock }) => lock <= tip)
      .sort((a, b) => a.lock - b.lock || (a.txid < b.txid ? -1 : 1))
  }

  /** No longer waits until it is final. */
  release(txid: string): void {
    this.held.delete(txid)
  }

  /** The highest lock of those that nothing proves; 0 for none. */
  private lockOf(members: readonly Member[]): number {
    const { proofs, history } = this
    const locks = members
      .filter(({ txid, proof }) => proof === undefined && !proofs.has(txid))
      .map(({ txid }) => history.byTxid.get(txid)?.lockHeight ?? 0)
    return Math.max(0, ...locks)
  }

  /** Takes a proof of a transaction that is known. */
  prove(txid: string, { height, root }: Proof): void {
    const before = this.given.get(txid) ?? []
    if (!before.some((each) => each.root === root)) this.given.set(txid, [...before, { height, root }])
    this.refused.delete(blockOf({ height, root }))
  }

  /** Takes a block back: the chain no longer has it. */
  refuse(block: Proof): void {
    this.refused.add(blockOf(block))
  }

  /** Forgets the proof of one transaction. */
  forget(txid: string, proof: Proof): void {
    const left = this.given.get(txid)?.filter((each) => blockOf(each) !== blockOf(proof)) ?? []
    this.given.set(txid, left)
  }

  /** Takes what the network said of a transaction, known or not. */
  sight(txid: string, status: Sighting): void {
    this.sightings.set(txid, status)
  }

  /** What the network said last of transactions. */
  get said(): ReadonlyMap<string, Sighting> {
    return this.sightings
  }

  block(item: BlockedItem): void {
    this.blocks.set(`${item.kind} ${item.value}`, item)
  }

  unblock({ kind, value }: BlockedItem): void {
    this.blocks.delete(`${kind} ${value}`)
  }

  get blocked(): BlockedItem[] {
    return [...this.blocks.values()]
  }

  get answers(): Answers {
    const { history, insertionOrder, proofs, sightings, blocked } = this
    // What is known goes on to grow.
    const facts = {
      insertionOrder: this.placed(insertionOrder),
      proofs,
      sightings: new Map(sightings),
      genuine: genuineOf(history, insertionOrder),
      blocked,
      refused: new Map(
        [...insertionOrder.keys()].map((txid) => [txid, this.refusedThen.get(txid) ?? this.refusedTypes]),
      ),
    }
    if (this.worked === undefined || !isDeepStrictEqual(this.worked.facts, facts))
      this.worked = new Answers(history, facts)
    return this.worked
  }

  private learn(members: readonly Member[]): void {
    for (const [at, { txid, proof }] of members.entries()) {
      if (!this.insertionOrder.has(txid)) this.insertionOrder.set(txid, this.placeOf(at))
      if (proof !== undefined) this.prove(txid, proof)
    }
  }

  /** Takes the places that transactions have in the log of a host: what was pending enters it later than it came. */
  enterLog(places: ReadonlyMap<string, number>): void {
    for (const txid of places.keys())
      if (!this.placesInLog.has(txid)) this.refusedThen.set(txid, this.refusedTypes)
    this.placesInLog = places
  }

  /** What is in the log comes by its place there, and then what is not, as it came. */
  private placed(insertionOrder: ReadonlyMap<string, number>): Map<string, number> {
    const { placesInLog } = this
    const last = Math.max(0, ...placesInLog.values())
    return new Map([...insertionOrder].map(([txid, came]) => [txid, placesInLog.get(txid) ?? last + came]))
  }

  /** Takes another policy, which changes nothing for what is in the log. @returns The types that it refuses. */
  narrow(type: string): readonly string[] {
    this.refusedTypes = [...new Set([...this.refusedTypes, type])]
    return this.refusedTypes
  }

  /**
   * Forgets the facts that nobody has seen, except genesis and those on which anything else is built, pending or not.
   *
   * @returns How many these are.
   */
  prune(): number {
    const { history, insertionOrder, placesInLog, sightings, given } = this
    const { proofs } = this
    const keeps = ({ txid }: HistoryTransaction): boolean =>
      !placesInLog.has(txid) ||
      txid === history.genesis.txid ||
      proofs.has(txid) ||
      sightings.get(txid) === 'seen'
    const known = history.transactions.filter(({ txid }) => insertionOrder.has(txid))
    const kept = new Set(known.filter(keeps))
    // What spends from them keeps them.
    for (const { spends } of kept)
      for (const spent of spends) {
        const parent = history.byTxid.get(spent.slice(0, 64))
        if (parent !== undefined && insertionOrder.has(parent.txid)) kept.add(parent)
      }
    const dropped = known.filter((each) => !kept.has(each))
    for (const { txid } of dropped)
      for (const each of [insertionOrder, given, this.refusedThen]) each.delete(txid)
    return dropped.length
  }

  private placeOf(member: number): number {
    return this.submissions + member / MOST_MEMBERS
  }
}

/** More than any submission has. */
const MOST_MEMBERS = 1024

function blockOf({ height, root }: Proof): string {
  return `${height} ${root}`
}

/** All of a BEEF that its subject is built on, however far back. A host ignores anything else in it. */
function learnedOf({ byTxid }: History, members: readonly Member[]): Member[] {
  const here = new Set(members.map(({ txid }) => txid))
  const learned = new Set([members.at(-1)?.txid ?? ''])
  for (const txid of learned)
    for (const spent of byTxid.get(txid)?.spends ?? [])
      if (here.has(spent.slice(0, 64))) learned.add(spent.slice(0, 64))
  return members.filter(({ txid }) => learned.has(txid))
}

/** The unproven ones by which a subject is verified: itself, and what it is built on down to proven ones. */
function verifiedBy({ byTxid }: History, members: readonly Member[]): string[] {
  const unproven = new Set(members.filter(({ proof }) => proof === undefined).map(({ txid }) => txid))
  const verified = new Set([members.at(-1)?.txid ?? ''].filter((txid) => unproven.has(txid)))
  for (const txid of verified)
    for (const spent of byTxid.get(txid)?.spends ?? [])
      if (unproven.has(spent.slice(0, 64))) verified.add(spent.slice(0, 64))
  return [...verified]
}

/** Whether two of these spend the same; of a node, only mints are spenders. */
function hasDoubleSpend(
  txids: readonly string[],
  { byTxid }: History,
  genuine: ReadonlyMap<string, string>,
): boolean {
  const spends = txids.flatMap((txid) =>
    (byTxid.get(txid)?.spends ?? []).filter(
      (spent) => !genuine.has(spent) || spent.endsWith('_2') || genuine.has(`${txid}_0`),
    ),
  )
  return new Set(spends).size < spends.length
}

/** Whether two of the transactions that one is built on, itself included, spend the same. */
export function conflictsWithin(history: History, txid: string): boolean {
  const spends = ancestryOf(history, txid).flatMap((each) => each.spends)
  return new Set(spends).size < spends.length
}

/** Whether one of the transactions that one is built on spends a node, or what looks like one, and is no mint. */
export function burnsWithin(history: History, txid: string): boolean {
  const isNode = (outpoint: string): boolean =>
    history.byTxid.get(outpoint.slice(0, 64))?.said[Number(outpoint.slice(65))]?.domain !== undefined
  return ancestryOf(history, txid).some(({ mint, spends }) => mint === undefined && spends.some(isNode))
}

/** The mints from the first name on to that of a transaction, without it. */
export function mintsBefore({ byTxid }: History, txid: string): HistoryTransaction[] {
  const before: HistoryTransaction[] = []
  for (let at = byTxid.get(txid); at?.mint !== undefined; ) {
    at = byTxid.get(at.mint.node.slice(0, 64))
    if (at !== undefined) before.push(at)
  }
  return before
}

/** A transaction, and all that it is built on. */
function ancestryOf({ byTxid }: History, txid: string): HistoryTransaction[] {
  const line = new Set([txid])
  for (const each of line) for (const spent of byTxid.get(each)?.spends ?? []) line.add(spent.slice(0, 64))
  return [...line].flatMap((each) => byTxid.get(each) ?? [])
}

/** Whether a block holds a transaction, by its own proof or that of something built on it. */
function isMined(
  history: History,
  txid: string,
  known: { insertionOrder: ReadonlyMap<string, number>; proofs: ReadonlyMap<string, Proof> },
): boolean {
  if (known.proofs.has(txid)) return true
  return [...known.insertionOrder.keys()].some(
    (each) =>
      history.byTxid.get(each)?.spends.some((spent) => spent.startsWith(txid)) &&
      isMined(history, each, known),
  )
}

/** What `tm_names` admits, by outpoint: the domain of a node, or the name of an origin. */
export function genuineOf(
  { genesis, transactions }: History,
  insertionOrder: ReadonlyMap<string, number>,
): Map<string, string> {
  // By configuration, whether its transaction is known or not.
  const genuine = new Map([[genesis.outpoint(0), '']])
  // Parents come first.
  for (const { txid, mint, said, outpoint } of transactions) {
    if (!insertionOrder.has(txid)) continue
    if (mint === undefined || !genuine.has(mint.node) || mint.node.endsWith('_2')) continue
    for (const vout of [0, 1]) genuine.set(outpoint(vout), said[vout]?.domain ?? '')
    genuine.set(outpoint(2), mint.name)
  }
  return genuine
}
