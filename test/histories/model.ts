import type { Sighting } from '../../backend/src/graph/conflict-resolution.js'
import { Answers, type BlockedItem } from './answers.js'
import { decide, type Proof } from './decision.js'
import type { History } from './history.js'

/** A transaction as it comes in a BEEF; with its block, where its proof comes along. */
export interface Member {
  txid: string
  proof?: Proof
}

/** What comes of a submission. */
export type Outcome =
  | { kind: 'taken' }
  /**
   * It lost to one of these, or one of them was rejected; none are named where no block can hold it with all that it is built on.
   * Then it waits, unless it lost to one that is mined, or comes with double spends.
   */
  | { kind: 'lost'; winners: ReadonlySet<string>; waitFor: (winner: string) => void }

/**
 * What a host knows, and nothing of what it answers: the transactions that came, where each is proven, and what the
 * operator blocked. All answers are a function of these (`spec/overlay.md`, Order independence), except that of two
 * unproven conflicting transactions of which the network said the same the first one counts, and that one that loses to a mined
 * one and that nothing proves is not kept.
 */
export class Model {
  private readonly insertionOrder = new Map<string, number>()
  private readonly proven = new Map<string, Proof>()
  private readonly sightings = new Map<string, Sighting>()
  private readonly blocks = new Map<string, BlockedItem>()
  private submissions = 0
  private worked: Answers | undefined

  constructor(readonly history: History) {}

  isKnown(txid: string): boolean {
    return this.insertionOrder.has(txid)
  }

  /** The blocks of transactions that are proven themselves. */
  get proofs(): ReadonlyMap<string, Proof> {
    return this.proven
  }

  /**
   * Takes a submission whose scripts and proofs are valid, unless it loses.
   *
   * @param members All in the BEEF, the subject last.
   */
  submit(members: readonly Member[]): Outcome {
    const { history } = this
    const learned = learnedOf(history, members)
    const subject = learned.at(-1)
    if (subject === undefined) throw new Error('nothing is submitted')
    this.submissions++
    const insertionOrder = new Map(this.insertionOrder)
    const proofs = new Map(this.proven)
    for (const { txid, proof } of learned) {
      if (!insertionOrder.has(txid)) insertionOrder.set(txid, this.submissions)
      if (proof !== undefined) proofs.set(txid, proof)
    }
    const { sightings } = this
    const genuine = genuineOf(history, insertionOrder)
    const waitFor = (winner: string): void => {
      const spent = learned.flatMap(({ txid }) => history.byTxid.get(txid)?.spends ?? [])
      if (new Set(spent).size === spent.length && !isMined(history, winner, { insertionOrder, proofs }))
        this.learn(learned)
    }
    if (hasDoubleSpend(verifiedBy(history, members), history, genuine))
      return { kind: 'lost', winners: new Set(), waitFor }
    const { counts, winnersOver } = decide(history, { insertionOrder, proofs, sightings, genuine })
    if (!counts.has(subject.txid) && !isMined(history, subject.txid, { insertionOrder, proofs })) {
      const isHopeless = conflictsWithin(history, subject.txid)
      return { kind: 'lost', winners: isHopeless ? new Set() : winnersOver(subject.txid), waitFor }
    }
    this.learn(learned)
    return { kind: 'taken' }
  }

  /** Of a submission that has to be sent again, what its subject is built on is known already. */
  learnAncestors(members: readonly Member[]): void {
    this.submissions++
    this.learn(learnedOf(this.history, members).slice(0, -1))
  }

  /** Takes a proof of a transaction that is known. */
  prove(txid: string, { height, root }: Proof): void {
    this.proven.set(txid, { height, root })
    this.worked = undefined
  }

  /** Takes a proof back: the chain no longer has its block. */
  disprove(txid: string): void {
    this.proven.delete(txid)
    this.worked = undefined
  }

  /** Takes what the network said of a transaction, known or not. */
  sight(txid: string, status: Sighting): void {
    this.sightings.set(txid, status)
    this.worked = undefined
  }

  /** What the network said last of transactions. */
  get said(): ReadonlyMap<string, Sighting> {
    return this.sightings
  }

  block(item: BlockedItem): void {
    this.blocks.set(`${item.kind} ${item.value}`, item)
    this.worked = undefined
  }

  unblock({ kind, value }: BlockedItem): void {
    this.blocks.delete(`${kind} ${value}`)
    this.worked = undefined
  }

  get blocked(): BlockedItem[] {
    return [...this.blocks.values()]
  }

  get answers(): Answers {
    const { history, insertionOrder, proven, sightings, blocked } = this
    // What is known goes on to grow.
    this.worked ??= new Answers(history, {
      insertionOrder: new Map(insertionOrder),
      proofs: new Map(proven),
      sightings: new Map(sightings),
      genuine: genuineOf(history, insertionOrder),
      blocked,
    })
    return this.worked
  }

  private learn(members: readonly Member[]): void {
    for (const { txid, proof } of members) {
      if (!this.insertionOrder.has(txid)) this.insertionOrder.set(txid, this.submissions)
      if (proof !== undefined) this.proven.set(txid, proof)
    }
    this.worked = undefined
  }
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
export function conflictsWithin({ byTxid }: History, txid: string): boolean {
  const line = new Set([txid])
  for (const each of line) for (const spent of byTxid.get(each)?.spends ?? []) line.add(spent.slice(0, 64))
  const spends = [...line].flatMap((each) => byTxid.get(each)?.spends ?? [])
  return new Set(spends).size < spends.length
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
  const genuine = new Map<string, string>()
  // Parents come first.
  for (const { txid, mint, said, outpoint } of transactions) {
    if (!insertionOrder.has(txid)) continue
    if (txid === genesis.txid) genuine.set(outpoint(0), '')
    if (mint === undefined || !genuine.has(mint.node) || mint.node.endsWith('_2')) continue
    for (const vout of [0, 1]) genuine.set(outpoint(vout), said[vout]?.domain ?? '')
    genuine.set(outpoint(2), mint.name)
  }
  return genuine
}
