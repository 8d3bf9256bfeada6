import type { Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import {
  bodyFact,
  FACT,
  type Fact,
  type NewFact,
  proofFact,
  proofPlace,
  transactionFact,
} from '../facts/log.js'
import {
  type BlockedValue,
  latestOf,
  nextOf,
  pinOf,
  type RegisterValue,
  register,
} from '../facts/registers.js'
import type { Pending, PendingOutline } from '../facts/state.js'
import type {
  AdmissionOptions,
  AdmissionRules,
  OnRefusal,
  PendingLimits,
  TopicRefusal,
} from '../graph/admission-rules.js'
import { parentsFirst } from '../graph/ancestry.js'
import type { BlockedRecord, BlockedSubject } from '../graph/blocklist.js'
import type { RecordedSightings, SightingRecord } from '../graph/conflict-resolution.js'
import type { Reason } from '../graph/errors.js'
import { nativeHash256 } from '../graph/native-hash.js'
import type { AdmissionRecord, Block, Proof, TransactionRecord } from '../graph/records.js'
import { viewOf } from '../graph/stored-transaction.js'
import { inscriptionOf, OUTPUTS_WITH_ORDINALS } from '../graph/transaction-records.js'
import type { Index } from '../index/apply.js'
import { headerRange, newHeaderFacts, readHeaders } from '../index/headers.js'
import { Heap } from '../index/heap.js'
import { type ProofTracker, shareView } from '../index/transactions.js'
import { headerAt, headerCount } from '../protocol/block-header.js'
import { equalBytes, fromHex, reversed, toHex } from '../protocol/bytes.js'
import type { HeaderStore } from '../protocol/header-store.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { firstOutputs } from '../protocol/transaction.js'
import {
  type Candidate,
  candidateOf,
  IndexedSpends,
  inOrder,
  isSpentTwice,
  isWithin,
  makeRoom,
  makeRoomToWait,
  neededOf,
  parentsOf,
  pendingCandidate,
  raisersOf,
  relatedTo,
  UnprovenLines,
} from './pending-graph.js'

/** Limits for transactions that wait after losing a conflict. One proof may have all of them tried again, at about 1 ms each. */
const WAITING: PendingLimits = { maxTransactions: 500, maxBytes: 100 * 1024 * 1024 }

/**
 * How often a transaction is tried in one go; after that, it waits for the next write that concerns it. No known case needs as many.
 */
const MOST_TRIES = 32

export interface DoorOptions {
  /** The connections to both files; a transaction is open in each. */
  logFile: Sql
  indexFile: Sql
  log: LocalLog
  index: Index
  pending: Pending
  admission: AdmissionOptions
  tracker: ProofTracker
}

export interface RecordTransactions {
  /** Transactions that are refused if they do not count, unless they are mined. */
  subjects?: readonly string[]
  /**
   * Keeps subjects that lose: they wait, outside of all answers, until a proof or a sighting makes them win, and count from that
   * write on. Not if they lost to a mined one, or if their ancestors conflict with each other. Room is limited: the oldest of the
   * client that has the most go first.
   */
  keepLost?: {
    /** The client that submits them, as up to 8 bytes in hex. */
    client?: string | undefined
  }
}

/** The changes made by a task at the door. */
export interface Outcome {
  admitted: AdmissionRecord[]
  restored: string[]
  deactivated: string[]
}

interface Lost {
  txid: string
  reason: Reason
}

interface Entering {
  /** New transactions, parents first, and pending ones. */
  candidates: Candidate[]
  /** Proofs of transactions that are in the log. */
  proofs?: readonly { txid: string; proof: Proof }[]
  /** Makes further writes, before the transactions are applied. */
  prepare?: () => void
  subjects?: readonly string[]
  /** Called for outputs that the policy refuses. */
  onRefusal?: OnRefusal
  /** Whether subjects that lose may wait. */
  mayKeep?: (lost: readonly Lost[]) => boolean
  /** The client that submitted them. */
  client?: string | undefined
  /** Candidates that wait with another transaction, by txid (`behindLosers`). */
  behind?: ReadonlyMap<string, string> | undefined
  /** Whether the task has written nothing yet. */
  isFirst?: boolean
}

/**
 * Decides what becomes a fact. A submission is tried: it is applied to the index within a savepoint, together with the pending
 * transactions that matter to it. Refused transactions stay out of the log. Those that nothing admitted depends on, or that lost
 * a conflict, are pending until they are needed or count (`docs/facts.md`).
 *
 * Everything here is synchronous, within the caller's transactions on both files. After an error the caller rolls back to where
 * the task began.
 */
export class Door {
  /** Whether the running task is alone in the caller's transaction. */
  isAlone = false
  private readonly indexed: IndexedSpends
  private readonly lines: UnprovenLines
  /** Pending transactions to be tried again. */
  private readonly queue = new Set<string>()
  private outcome: Outcome = { admitted: [], restored: [], deactivated: [] }

  constructor(private readonly options: DoorOptions) {
    const { indexFile, pending, admission } = options
    this.indexed = new IndexedSpends(indexFile)
    this.lines = new UnprovenLines({ indexFile, pending, most: admission.unprovenDescendants })
  }

  /** Returns and clears the changes of the last task, also of an interrupted one. */
  takeOutcome(): Outcome {
    const { outcome } = this
    this.outcome = { admitted: [], restored: [], deactivated: [] }
    this.queue.clear()
    return outcome
  }

  /** The pending transactions that may count or be needed because of applied facts. */
  affected(): string[] {
    this.collect()
    const found = [...this.queue]
    this.takeOutcome()
    return found
  }

  /** Tries pending transactions again. */
  retryPending(txids: readonly string[]): void {
    for (const txid of txids) this.queue.add(txid)
    this.drain()
  }

  /** See `Writer.record`. @throws GeneralError `TOO_MANY_DESCENDANTS` */
  record(
    transactions: readonly TransactionRecord[],
    { subjects = [], keepLost }: RecordTransactions = {},
  ): { refused: TopicRefusal[]; lost: Lost[] } {
    const { log, index, pending, admission } = this.options
    const refused: TopicRefusal[] = []
    const onRefusal: OnRefusal = (refusal) => {
      if (subjects.includes(refusal.txid)) refused.push(refusal)
    }
    const records = byTxid(transactions)
    const fresh = new Map<string, Candidate>()
    const proofs: { txid: string; proof: Proof }[] = []
    const again: Candidate[] = []
    const proven: { txid: string; proof: Proof }[] = []
    for (const record of records.values()) {
      const { txid, proof } = record
      if (log.has(FACT.transaction, fromHex(txid))) {
        if (proof !== undefined && !log.has(FACT.proof, proofFact(txid, proof).key))
          proofs.push({ txid, proof })
      } else if (pending.has(txid)) {
        if (proof !== undefined) proven.push({ txid, proof })
        if (proof !== undefined || subjects.includes(txid))
          for (const each of this.candidates([txid]))
            again.push(proof === undefined ? each : { ...each, proofs: [...each.proofs, proof] })
      } else fresh.set(txid, candidateOf(record))
    }
    const isUnproven = subjects.some((txid) => records.get(txid)?.proof === undefined)
    const count = isUnproven ? this.lines.roomFor(records, fresh) : undefined
    const confirmed = this.refusedProofs(records)
    const prepare = (): void => {
      for (const { txid, proof } of proven) pending.prove(txid, proof)
      for (const proof of confirmed) {
        const next = nextOf(log, register.verdict(proof), true)
        if (next !== undefined) this.options.index.apply(this.insert([next]))
      }
    }
    const candidates = [...again, ...parentsFirst(fresh, parentsOf)]
    const mayKeep = (lost: readonly Lost[]): boolean =>
      keepLost !== undefined &&
      lost.every(({ reason }) => reason.tier !== 'proven') &&
      isWithin([...fresh.values()], admission.waiting ?? WAITING) &&
      // No block can hold what is built on two spends of one coin.
      !isSpentTwice([...records.values()].map(candidateOf))
    const isAnyWaiting = pending.total('waiting').transactions > 0
    const raising = isAnyWaiting ? this.raisingOf(candidates) : new Set<string>()
    const mayFree = isAnyWaiting && proofs.length + confirmed.length + raising.size > 0
    // Transactions that begin to count by this may decide about its subjects, so the outcome is read at the end.
    const all = mayFree ? this.savepoint(this.isAlone) : undefined
    const client = keepLost?.client
    const entering = { candidates, proofs, prepare, client, onRefusal, isFirst: true }
    const left = mayFree && isUnproven ? this.enterProven(entering) : undefined
    const entered = this.enter({
      ...(left === undefined ? entering : { candidates: left, client, onRefusal }),
      subjects,
      behind: isAnyWaiting && !mayFree ? this.behindLosers(candidates, raising) : undefined,
      mayKeep: (lost) => mayFree || mayKeep(lost),
    })
    if (entered.isRefused) return { refused: [], lost: entered.lost }
    this.drain()
    const lost = mayFree ? subjects.flatMap((txid) => this.lossOf(txid, entered.lost)) : entered.lost
    if (mayFree && lost.length > 0 && !mayKeep(lost)) {
      all?.rollback()
      this.takeOutcome()
      return { refused: [], lost }
    }
    all?.release()
    count?.()
    if (lost.length > 0) return { refused: [], lost }
    for (const txid of subjects) {
      const record = records.get(txid)
      if (record !== undefined) index.explain(viewOf(record), onRefusal)
    }
    return { refused, lost }
  }

  /** See `Writer.disprove`. @returns How many transactions lost their proof. */
  disprove(block: Block): number {
    const { log, indexFile, pending, tracker } = this.options
    if (tracker === 'headers') return 0
    const subject = register.verdict(block)
    const { height, root } = block
    const known = latestOf(log, subject)?.value === false
    const proofs = known ? [] : indexFile.all('select seq from proof where height = ?', height)
    const isOfBlock = (key?: Uint8Array): boolean => key !== undefined && toHex(proofPlace(key).root) === root
    const count = proofs.filter(({ seq }) => isOfBlock(log.keyAt(seq)?.key)).length
    if (count > 0) this.write(subject, false)
    const unproven = pending.disprove(block)
    for (const txid of unproven) this.lower(txid)
    this.drain()
    return count + unproven.length
  }

  sightings(records: readonly SightingRecord[]): RecordedSightings {
    const last = new Map(records.map((record) => [record.txid, record]))
    const changed: SightingRecord[] = []
    const facts: Fact[] = []
    for (const record of last.values()) {
      const next = nextOf(this.options.log, register.sighting(record.txid), record.status)
      if (next === undefined) continue
      changed.push(record)
      facts.push(...this.insert([next]))
      this.hear(record)
    }
    this.apply(facts)
    this.drain()
    const { restored, deactivated } = this.outcome
    return { changed, restored, deactivated }
  }

  block({ kind, value, reason, since }: BlockedRecord): BlockedRecord {
    const latest = this.blocked({ kind, value })
    const record = { kind, value, reason, since: latest?.blocked === true ? latest.since : since }
    this.write(register.block(record), { blocked: true, reason, since: record.since })
    return record
  }

  unblock(subject: BlockedSubject): boolean {
    const latest = this.blocked(subject)
    if (latest?.blocked !== true) return false
    this.write(register.block(subject), { ...latest, blocked: false })
    return true
  }

  evict(outpoint: Outpoint, since: number): void {
    const subject: BlockedSubject = { kind: 'outpoint', value: formatOutpoint(outpoint) }
    if (this.blocked(subject)?.blocked !== true) this.block({ ...subject, reason: 'evicted', since })
  }

  /** See `Settings.set`. */
  pin(name: string, value: string, from?: string): void {
    this.add(pinOf(this.options.log, { name, value, from }))
  }

  replaceHeaders({ height, headers, tip }: Parameters<HeaderStore['replaceFrom']>[0]): boolean {
    const stored = this.tipHeader()
    if (stored === undefined || tip === undefined ? stored !== tip : !equalBytes(stored, tip)) return false
    const count = headerCount(headers)
    if (count === 0) return true
    const last = headerAt(headers, count - 1)
    // The first chain ends with the checkpoint, which every later chain contains.
    if (tip === undefined)
      this.write(register.setting(ANCHOR), `${height + count - 1} ${toHex(reversed(nativeHash256(last)))}`)
    this.applyHeaders(height, headers)
    const replaced = this.tipHeader()
    return replaced !== undefined && equalBytes(replaced, last)
  }

  addHeadersBelow({ to, headers }: Parameters<HeaderStore['addBelow']>[0]): boolean {
    if (headerRange(this.options.indexFile)?.from !== to + 1) return false
    this.applyHeaders(to + 1 - headerCount(headers), headers)
    return true
  }

  clearHeaders(): void {
    this.write(register.setting(ANCHOR), '')
  }

  private applyHeaders(height: number, headers: Uint8Array): void {
    this.apply(this.insert(newHeaderFacts(this.options.indexFile, { height, headers })))
    this.drain()
  }

  private tipHeader(): Uint8Array | undefined {
    const { indexFile } = this.options
    const range = headerRange(indexFile)
    return range && readHeaders(indexFile, { from: range.to, count: 1 })
  }

  private blocked(subject: BlockedSubject): BlockedValue | undefined {
    return latestOf(this.options.log, register.block(subject))?.value as BlockedValue | undefined
  }

  /** Writes a register, unless it has that value. */
  private write(subject: string, value: RegisterValue): void {
    this.add(nextOf(this.options.log, subject, value))
  }

  private add(fact: NewFact | undefined): void {
    if (fact === undefined) return
    this.apply(this.insert([fact]))
    this.drain()
  }

  /** Proofs by blocks that were refused before. As the proofs are verified, the chain does have these blocks. */
  private refusedProofs(records: ReadonlyMap<string, TransactionRecord>): Proof[] {
    const { tracker, index } = this.options
    if (tracker === 'headers') return []
    const found: Proof[] = []
    for (const { proof } of records.values())
      if (proof !== undefined && index.isBlockRefused(proof)) found.push(proof)
    return found
  }

  /** Raises a pending transaction that was seen; one that was rejected may make room for others. */
  private hear({ txid, status }: SightingRecord): void {
    const { pending } = this.options
    if (!pending.has(txid)) return
    if (status === 'seen') {
      pending.raise(txid)
      this.queue.add(txid)
    } else this.lower(txid)
  }

  /** A pending transaction lost rank, and so its ancestors: queues those that may win against them, and ancestors that may lose. */
  private lower(txid: string): void {
    const { pending } = this.options
    this.queue.add(txid)
    for (const each of pending.lineOf(txid, 'raised')) {
      if (pending.outline(each)?.isWaiting) continue
      if (this.indexed.sighting(each) === 'rejected') this.queue.add(each)
      this.retry(pending.conflictsOf(each))
    }
  }

  /** Deletes a pending transaction, and queues those that this affects. */
  private remove(txid: string): void {
    const { pending } = this.options
    this.lower(txid)
    this.retry(pending.childrenOf(txid))
    pending.delete(txid)
  }

  /**
   * Tries candidates, with the pending transactions that matter to them. What is needed enters the log, all else is pending.
   *
   * @returns The subjects that do not count. If these may not wait, nothing is changed.
   */
  private enter(entering: Entering): { lost: Lost[]; isRefused: boolean } {
    const { candidates, proofs = [], subjects = [], prepare, client, onRefusal } = entering
    const { mayKeep = () => true, behind = new Map<string, string>() } = entering
    const { index, pending, admission } = this.options
    const limits = admission.waiting ?? WAITING
    const fresh = candidates.filter((each) => each.pending === undefined)
    const early = [...behind].flatMap(([txid, waiting]) =>
      subjects.includes(txid) ? this.lossBehind(txid, waiting) : [],
    )
    if (early.length > 0 && !mayKeep(early)) return { lost: early, isRefused: true }
    const inLog = proofs.map(({ txid, proof }) => proofFact(txid, proof))
    const facts = new Map<string, NewFact[]>()
    const applied = (some: readonly Candidate[]): void => {
      prepare?.()
      for (const each of some)
        if (!facts.has(each.txid)) facts.set(each.txid, factsOf(each, admission.rules, onRefusal))
      const wanted = [...some.flatMap(({ txid }) => facts.get(txid) ?? []), ...inLog]
      if (wanted.length > 0) index.apply(this.insert(wanted))
    }
    const tried = candidates.filter(({ txid }) => !behind.has(txid))
    const { all, trial, counting, outranked } = this.attempt(tried, applied, entering.isFirst && this.isAlone)
    const lost = [
      ...early,
      ...this.lossesOf(subjects.filter((txid) => !counting.has(txid) && !behind.has(txid))),
    ]
    const isLost = lost.length > 0
    if (isLost && !mayKeep(lost)) {
      trial.rollback()
      return { lost, isRefused: true }
    }
    // Mined transactions that do not count become facts, so pending ones that do not count are unmined and wait.
    const admitted = index.admitted()
    const needed = neededOf(all, {
      isNeeded: (txid) => outranked.has(txid) || admitted.has(txid) || index.isNeeded(txid),
      isEligible: ({ txid, pending: before }) =>
        counting.has(txid) || outranked.has(txid) || !(before?.isWaiting ?? isLost),
      ...{ indexed: this.indexed, pending },
    })
    const mints = new Set(
      all.flatMap(({ txid }) => (counting.has(txid) || !this.indexed.isMint(txid) ? [] : [txid])),
    )
    const entered = new Set(needed.map(({ txid }) => txid))
    if (needed.length === all.length && all.every(({ txid }) => entered.has(txid))) trial.release()
    else {
      trial.rollback()
      applied(needed)
    }
    for (const { txid, pending: before } of needed) if (before !== undefined) pending.delete(txid)
    const others = [...all, ...candidates.filter(({ txid }) => behind.has(txid))]
    for (const each of others) {
      const { txid, spends } = each
      const state = { isWaiting: !counting.has(txid), isMint: mints.has(txid), client }
      if (entered.has(txid)) continue
      if (each.pending === undefined) pending.add(each, spends, { ...state, isRaised: this.mayRaise(each) })
      else pending.setWaiting(txid, state.isWaiting, state)
    }
    this.collect()
    if (pending.isEmpty) return { lost, isRefused: false }
    this.fall(lostOf(others, counting))
    this.retryAround(others, counting)
    const remove = (txid: string): void => this.remove(txid)
    makeRoom(pending, admission.pending, remove)
    makeRoomToWait(pending, limits, { fresh, remove })
    return { lost, isRefused: false }
  }

  /**
   * Enters what is proven and its ancestors before the rest, so that transactions that waited for these proofs come before those that
   * bring them, as if the proofs had come alone. @returns The rest.
   */
  private enterProven(entering: Entering): Candidate[] {
    const line = new Set<string>()
    for (const { txid, proofs, spends } of entering.candidates.toReversed())
      if (line.has(txid) || proofs.length > 0)
        for (const each of [txid, ...spends.map((spent) => spent.txid)]) line.add(each)
    this.enter({ ...entering, candidates: entering.candidates.filter(({ txid }) => line.has(txid)) })
    this.drain()
    const left = entering.candidates.filter(({ txid }) => !line.has(txid))
    return left.flatMap((each) => (each.pending === undefined ? each : this.candidates([each.txid])))
  }

  /** Applies candidates and related pending transactions, to see which of them count. */
  private attempt(tried: readonly Candidate[], apply: (some: readonly Candidate[]) => void, isFirst = false) {
    const { index, pending } = this.options
    for (let given = tried; ; ) {
      const all = pending.isEmpty
        ? given
        : inOrder([...relatedTo(given, { pending, indexed: this.indexed }), ...given])
      const trial = this.savepoint(isFirst)
      apply(all)
      const counting = new Set<string>()
      const outranked = new Set<string>()
      const uncontested = index.uncontested()
      for (const { txid } of all) {
        const status = uncontested.has(txid) ? undefined : index.status(txid)
        if (!status?.isInactive) counting.add(txid)
        else if (status.mined !== undefined) outranked.add(txid)
      }
      const between = this.between(all, counting)
      if (between.length === 0) return { all, trial, counting, outranked }
      trial.rollback()
      given = [...given, ...between]
    }
  }

  /** Further pending transactions to try: those between a loser and a tried transaction built on it, which may raise its rank. */
  private between(all: readonly Candidate[], counting: ReadonlySet<string>): Candidate[] {
    if (this.options.pending.total('pending').transactions === 0) return []
    const fallen = this.builtOn([...lostOf(all, counting), ...this.options.index.flipped().deactivated])
    for (const { txid } of all) fallen.delete(txid)
    const isOnFallen = all.some(({ spends }) => spends.some(({ txid }) => fallen.has(txid)))
    return isOnFallen ? this.candidates([...fallen]) : []
  }

  /**
   * Candidates that are built on a waiting transaction and cannot raise it: they wait with it.
   *
   * @returns The waiting transaction, by the txids of these candidates.
   */
  private behindLosers(candidates: readonly Candidate[], raising: ReadonlySet<string>): Map<string, string> {
    const { pending } = this.options
    const found = new Map<string, string>()
    const own = new Set(candidates.map(({ txid }) => txid))
    for (const each of candidates) {
      const parent = each.spends.find(
        ({ txid }) => found.has(txid) || (!own.has(txid) && pending.outline(txid)?.isWaiting),
      )
      if (parent !== undefined && !raising.has(each.txid))
        found.set(each.txid, found.get(parent.txid) ?? parent.txid)
    }
    return found
  }

  /**
   * Candidates that may rank better than by their places, by themselves or through descendants, and the transactions they spend from.
   */
  private raisingOf(candidates: readonly Candidate[]): Set<string> {
    const raising = new Set<string>()
    for (const each of candidates.toReversed())
      if (raising.has(each.txid) || this.mayRaise(each))
        for (const { txid } of [each, ...each.spends]) raising.add(txid)
    return raising
  }

  /** Why a subject built on a waiting transaction does not count. */
  private lossBehind(txid: string, waiting: string): Lost[] {
    if (this.indexed.sighting(txid) === 'rejected') return [{ txid, reason: { txid, tier: 'rejected' } }]
    const { pending, admission } = this.options
    const line = pending.lineOf(waiting, 'waiting')
    const isWaiting = new Set(line)
    const first = line.find((each) => !pending.parentsOf(each).some((parent) => isWaiting.has(parent)))
    const tried = this.candidates([first ?? waiting])
    const { trial } = this.attempt(tried, (all) =>
      this.options.index.apply(this.insert(all.flatMap((each) => factsOf(each, admission.rules)))),
    )
    const lost = this.lossesOf(tried.map((each) => each.txid))
    trial.rollback()
    // If the waiting one counts by now, it is tried again, and the subject after it.
    if (lost.length === 0) this.queue.add(first ?? waiting)
    return lost.map(({ reason }) => ({ txid, reason }))
  }

  /** Why a subject does not count, once everything that it may depend on was tried. @param before The reasons when it came. */
  private lossOf(txid: string, before: readonly Lost[]): Lost[] {
    const { pending, index } = this.options
    const outline = pending.outline(txid)
    if (outline?.isWaiting) return this.lossBehind(txid, txid)
    if (outline !== undefined || index.status(txid) !== undefined) return this.lossesOf([txid])
    return before.filter((each) => each.txid === txid)
  }

  /** Whether more than its place may rank a transaction, and so its ancestors. */
  private mayRaise({ txid, proofs, pending: own }: Candidate): boolean {
    if (proofs.length > 0) return true
    if (own !== undefined) return own.isRaised
    const isKnown = this.indexed.sighting(txid) === 'seen' || this.indexed.hasChildBeside(txid)
    return isKnown || this.options.pending.childrenOf(txid).length > 0
  }

  /** Queues those built on transactions that count now, and those that wait for coins of transactions that no longer count. */
  private retryAround(candidates: readonly Candidate[], counting: ReadonlySet<string>): void {
    const { pending } = this.options
    if (pending.total('waiting').transactions === 0) return
    for (const { txid, spends, pending: before } of candidates) {
      const isCounting = counting.has(txid)
      if (isCounting && before?.isWaiting !== false) this.retry(pending.childrenOf(txid))
      else if (!isCounting && before?.isWaiting === false)
        for (const spent of spends) this.retry(pending.spendersOf(spent, { isWaiting: true }))
    }
  }

  /** The pending transactions that count and are built on any of these. */
  private builtOn(txids: readonly string[]): Set<string> {
    const { pending } = this.options
    const found = new Set(pending.total('pending').transactions > 0 ? txids : [])
    for (const txid of found)
      for (const child of pending.childrenOf(txid))
        if (pending.outline(child)?.isWaiting === false) found.add(child)
    for (const txid of txids) found.delete(txid)
    return found
  }

  /** Makes descendants of losers wait, or queues them if more than their places may rank them. */
  private fall(lost: readonly string[]): void {
    const { pending } = this.options
    for (const txid of this.builtOn(lost))
      if (pending.outline(txid)?.isRaised) this.queue.add(txid)
      else {
        pending.setWaiting(txid, true)
        this.retry(pending.conflictsOf(txid))
      }
  }

  /** Takes the changes made by applied facts, and queues what may count or be needed because of them. */
  private collect(): void {
    const { index, pending } = this.options
    const admitted = index.takeAdmitted()
    const { added, restored, deactivated, lowered, blocks } = index.takeFlips()
    this.outcome.admitted.push(...admitted)
    this.outcome.restored.push(...restored)
    this.outcome.deactivated.push(...deactivated)
    if (pending.isEmpty) return
    // A spender of something admitted is needed.
    const outputs = new Map<string, Set<number>>()
    for (const { outpoint } of admitted)
      outputs.set(outpoint.txid, (outputs.get(outpoint.txid) ?? new Set()).add(outpoint.vout))
    for (const [txid, vouts] of outputs)
      for (const { spender, vout } of pending.spendsFrom(txid)) if (vouts.has(vout)) this.queue.add(spender)
    for (const range of blocks) for (const txid of pending.provenIn(range)) this.lower(txid)
    // A transaction that raises the rank of a fact becomes one, too.
    for (const txid of [...added, ...lowered])
      for (const each of raisersOf(txid, { pending, indexed: this.indexed })) this.queue.add(each)
    for (const txid of restored) this.retry(pending.childrenOf(txid))
    for (const txid of deactivated) this.retry(pending.childrenOf(txid), false)
    for (const txid of new Set([...lowered, ...deactivated]))
      for (const spent of this.indexed.spendsOf(txid))
        this.retry(pending.spendersOf(spent, { isWaiting: true }))
  }

  /** Queues the transactions that wait, or else those that do not. */
  private retry(txids: readonly string[], isWaiting = true): void {
    for (const txid of txids)
      if (this.options.pending.outline(txid)?.isWaiting === isWaiting) this.queue.add(txid)
  }

  /** Tries queued transactions until nothing changes any more, always the oldest first. */
  private drain(): void {
    const { pending } = this.options
    if (this.queue.size === 0) return
    const left = new Heap<PendingOutline>((one, other) => one.arrived < other.arrived)
    const isLeft = new Set<string>()
    const tries = new Map<string, number>()
    const first = (): string | undefined => {
      for (const txid of this.queue) {
        const outline = isLeft.has(txid) ? undefined : pending.outline(txid)
        if (outline === undefined) continue
        isLeft.add(txid)
        left.push(outline)
      }
      this.queue.clear()
      return left.pop()?.txid
    }
    for (let txid = first(); txid !== undefined; txid = first()) {
      isLeft.delete(txid)
      const tried = (tries.get(txid) ?? 0) + 1
      tries.set(txid, tried)
      if (tried <= MOST_TRIES && !this.isHopeless(txid)) this.enter({ candidates: this.candidates([txid]) })
    }
  }

  /**
   * Whether a waiting transaction loses in any case: nothing raises its rank, and it is built on a waiting one, or one of its coins is
   * spent by something active, or by an earlier pending one that counts. Saves trying them all, as any number may wait for one coin.
   */
  private isHopeless(txid: string): boolean {
    const { pending } = this.options
    const own = pending.outline(txid)
    if (own === undefined || !own.isWaiting || own.isRaised) return false
    return pending
      .spendsOf(txid)
      .some(
        (spent) =>
          (pending.outline(spent.txid)?.isWaiting ?? this.indexed.isInactive(spent.txid)) ||
          this.indexed.hasActiveOpponent(spent, own.isMint) ||
          pending
            .spendersOf(spent, { isWaiting: false })
            .some((other) => (pending.outline(other)?.arrived ?? own.arrived) < own.arrived),
      )
  }

  private candidates(txids: readonly string[]): Candidate[] {
    return txids.flatMap((txid) => pendingCandidate(txid, this.options.pending) ?? [])
  }

  /** What subjects that do not count lost to, except for mined ones, about which the chain decides. */
  private lossesOf(subjects: readonly string[]): Lost[] {
    const { index } = this.options
    return subjects.flatMap((txid) => {
      const isMined = index.status(txid)?.mined !== undefined
      const reason = isMined ? undefined : index.reasonAgainst(txid)
      return reason === undefined ? [] : [{ txid, reason }]
    })
  }

  private insert(facts: readonly NewFact[]): Fact[] {
    return facts.flatMap((fact) => this.options.log.insert(fact) ?? [])
  }

  private apply(facts: readonly Fact[]): void {
    if (facts.length > 0) this.options.index.apply(facts)
    this.collect()
  }

  /**
   * A savepoint on both files. Savepoints are nested.
   *
   * @param isFirst Whether the transaction has no writes yet: then it serves as the savepoint itself, and SQLite copies no pages.
   */
  private savepoint(isFirst = false): { release(): void; rollback(): void } {
    const { logFile, indexFile, index, pending } = this.options
    const exec = (statements: string): void => {
      for (const file of [logFile, indexFile]) file.exec(statements)
    }
    if (!isFirst) exec('savepoint door')
    const [mark, totals] = [index.mark(), pending.mark()]
    return {
      release() {
        if (!isFirst) exec('release door')
      },
      rollback() {
        exec(isFirst ? 'rollback; begin immediate' : 'rollback to door; release door')
        index.restore(mark)
        pending.restore(totals)
      },
    }
  }
}

const ANCHOR = 'anchor'

/** Candidates that do not count, but did before or are new. */
function lostOf(candidates: readonly Candidate[], counting: ReadonlySet<string>): string[] {
  return candidates.flatMap(({ txid, pending }) => (counting.has(txid) || pending?.isWaiting ? [] : [txid]))
}

/** Each transaction once: with its proof, if one of the records has it. */
function byTxid(records: readonly TransactionRecord[]): Map<string, TransactionRecord> {
  const found = new Map<string, TransactionRecord>()
  for (const record of records)
    if (found.get(record.txid)?.proof === undefined) found.set(record.txid, record)
  return found
}

/** The facts of a transaction: bodies that are not contiguous in it, itself, and its proofs. */
function factsOf(record: Candidate, rules: AdmissionRules, onRefusal?: OnRefusal): NewFact[] {
  const view = viewOf(record)
  const bodies: NewFact[] = []
  const refused: number[] = []
  for (const [vout, output] of firstOutputs(view, OUTPUTS_WITH_ORDINALS).entries()) {
    if (!rules.permits(view, vout, onRefusal)) refused.push(vout)
    const body = inscriptionOf(output).content?.body
    if (body !== undefined && body.buffer !== view.raw.buffer) bodies.push(bodyFact(body))
  }
  const others = rules.others?.(view) ?? []
  const own = transactionFact(record, { refused, others })
  shareView(own.body, view)
  return [...bodies, own, ...record.proofs.map((each) => proofFact(record.txid, each))]
}
