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
import { decodeTopic } from '../index/admissions.js'
import type { Index } from '../index/apply.js'
import { headerRange, newHeaderFacts, readHeaders } from '../index/headers.js'
import { Heap } from '../index/heap.js'
import { type ProofTracker, shareView } from '../index/transactions.js'
import { headerAt, headerCount } from '../protocol/block-header.js'
import { equalBytes, fromHex, reversed, toHex } from '../protocol/bytes.js'
import type { HeaderStore } from '../protocol/header-store.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { TOPICS } from '../protocol/profile.js'
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
  pendingCandidate,
  raisersOf,
  relatedTo,
  UnprovenLines,
} from './pending-graph.js'

/** How much may wait because it lost a conflict. One proof may have all of it tried again, at about 1 ms each. */
const WAITING: PendingLimits = { maxTransactions: 500, maxBytes: 100 * 1024 * 1024 }

/** How often one is tried in one go: what would still change then waits for the next write that concerns it. More than any known case. */
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
  /** Subjects that lose wait, unless to a mined one. */
  keepLost?: {
    /** Who submits them, as up to 8 bytes in hex. */
    client?: string | undefined
  }
}

/** What a task at the door has changed. */
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
  rules: AdmissionRules
  /** What else is written, before these are applied. */
  prepare?: () => void
  subjects?: readonly string[]
  /** Called for what the rules do not admit of the subjects. */
  onRefusal?: OnRefusal
  /** Whether subjects that lose may wait, and by whom. */
  keepLost?: RecordTransactions['keepLost']
  mayWait?: () => boolean
  /** Whether the task has written nothing yet. */
  isFirst?: boolean
}

interface Explanation {
  /** A subject that is not among them was in the log before. */
  tried: readonly Candidate[]
  /** The topics that hold outputs of what was tried, by txid. */
  admitted: ReadonlyMap<string, ReadonlySet<string>>
  onRefusal: OnRefusal
}

/**
 * What becomes a fact. A submission is tried: it is applied to the index within a savepoint, together with the pending transactions
 * that matter to it. Nothing that is refused enters the log, and nothing that nothing admitted depends on: that is pending, and so
 * is what lost a conflict, until something makes it count (`docs/facts.md`).
 *
 * Everything here is synchronous, within a transaction of the caller on both files. After an error the caller rolls back to where
 * the task began.
 */
export class Door {
  /** Whether the task that runs has the transaction of the caller for itself. */
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

  /** What the task that ended has changed. Forgets it, and what an interrupted task left. */
  takeOutcome(): Outcome {
    const { outcome } = this
    this.outcome = { admitted: [], restored: [], deactivated: [] }
    this.queue.clear()
    return outcome
  }

  /** The pending transactions that may count or be needed because of facts that were applied. */
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
    const { log, pending, admission } = this.options
    const refused: TopicRefusal[] = []
    const rules = admission.rules((refusal) => refused.push(refusal))
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
    const prepare = (): void => {
      for (const { txid, proof } of proven) pending.prove(txid, proof)
      this.confirm(records.values())
    }
    const candidates = [...again, ...parentsFirst(fresh, ({ spends }) => spends.map(({ txid }) => txid))]
    const onRefusal: OnRefusal = (refusal) => refused.push(refusal)
    const lost = this.enter({
      isFirst: true,
      candidates,
      proofs,
      rules,
      prepare,
      subjects,
      onRefusal,
      keepLost,
      // No block can hold what is built on two spends of one coin.
      mayWait: () => !isSpentTwice([...records.values()].map(candidateOf)),
    })
    if (lost.isRefused) return { refused: [], lost: lost.subjects }
    count?.()
    this.drain()
    if (lost.subjects.length > 0) return { refused: [], lost: lost.subjects }
    return { refused: refusalsOf(subjects, refused), lost: [] }
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
    // The first chain ends with the checkpoint, which every later one contains.
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

  /** Writes a register, if it has another value. */
  private write(subject: string, value: RegisterValue): void {
    this.add(nextOf(this.options.log, subject, value))
  }

  private add(fact: NewFact | undefined): void {
    if (fact === undefined) return
    this.apply(this.insert([fact]))
    this.drain()
  }

  /** A proof that is verified is one of a block that the chain has, whatever was said of that before. */
  private confirm(records: Iterable<TransactionRecord>): void {
    if (this.options.tracker === 'headers') return
    for (const { proof } of records) {
      if (proof === undefined || !this.options.index.isBlockRefused(proof)) continue
      const next = nextOf(this.options.log, register.verdict(proof), true)
      if (next !== undefined) this.options.index.apply(this.insert([next]))
    }
  }

  /** Something pending that counts does so all the more when it is seen. What was rejected may make room for others. */
  private hear({ txid, status }: SightingRecord): void {
    const { pending } = this.options
    const outline = pending.outline(txid)
    if (outline === undefined) return
    if (status === 'rejected') this.lower(txid)
    else pending.raise(txid)
    if (outline.isWaiting || status === 'seen') this.queue.add(txid)
  }

  /** Something pending has a lower rank, and so has what it is built on: what lost to them may win, and what was rejected may lose. */
  private lower(txid: string): void {
    const { pending } = this.options
    this.queue.add(txid)
    for (const each of pending.lineOf(txid, 'raised')) {
      if (this.indexed.sighting(each) === 'rejected') this.queue.add(each)
      this.retry(pending.conflictsOf(each))
    }
  }

  /**
   * Tries candidates, with the pending transactions that matter to them. What is needed enters the log; the rest is pending.
   *
   * @returns The subjects that do not count. If they may not wait, everything is as before.
   */
  private enter(entering: Entering): { subjects: Lost[]; isRefused: boolean } {
    const {
      candidates,
      proofs = [],
      rules,
      prepare,
      subjects = [],
      onRefusal = () => {},
      keepLost,
    } = entering
    const { index, pending, admission } = this.options
    const limits = admission.waiting ?? WAITING
    const fresh = candidates.filter((each) => each.pending === undefined)
    const mayKeep = (lost: readonly Lost[]): boolean =>
      keepLost !== undefined &&
      lost.every(({ reason }) => reason.tier !== 'proven') &&
      isWithin(fresh, limits) &&
      entering.mayWait?.() !== false
    // A proof of what is in the log may decide about all that waits.
    const behind = proofs.length > 0 ? new Map<string, string>() : this.behindLosers(candidates)
    const early = subjects.flatMap((txid) => this.lossBehind(txid, behind.get(txid)))
    if (early.length > 0 && !mayKeep(early)) return { subjects: early, isRefused: true }
    const tried = candidates.filter(({ txid }) => !behind.has(txid))
    const all = inOrder([...relatedTo(tried, { pending, indexed: this.indexed }), ...tried])
    const facts = new Map(all.map((each) => [each.txid, factsOf(each, rules)]))
    const inLog = proofs.map(({ txid, proof }) => proofFact(txid, proof))
    const applied = (some: readonly Candidate[]): void => {
      prepare?.()
      const wanted = [...some.flatMap((each) => facts.get(each.txid) ?? factsOf(each, rules)), ...inLog]
      if (wanted.length > 0) index.apply(this.insert(wanted))
    }
    const trial = this.savepoint(entering.isFirst && this.isAlone)
    applied(all)
    const uncontested = index.uncontested()
    const counting = new Set(
      all.flatMap(({ txid }) => (uncontested.has(txid) || this.counts(txid) ? [txid] : [])),
    )
    const lost = [
      ...early,
      ...this.lossesOf(subjects.filter((txid) => !counting.has(txid) && !behind.has(txid))),
    ]
    const isLost = lost.length > 0
    if (isLost && !mayKeep(lost)) {
      trial.rollback()
      return { subjects: lost, isRefused: true }
    }
    const topics = index.topicsAdmitted()
    const needed = neededOf(all, {
      isNeeded: (txid) => topics.has(txid) || index.isNeeded(txid),
      isEligible: (each) => counting.has(each.txid) || !(each.pending?.isWaiting ?? isLost),
      ...{ counting, indexed: this.indexed, pending },
    })
    const mints = new Set(
      all.flatMap(({ txid }) => (counting.has(txid) || !this.indexed.isMint(txid) ? [] : [txid])),
    )
    const entered = new Set(needed.map(({ txid }) => txid))
    const explained = isLost ? [] : subjects
    // What enters is explained once it has what it is built on.
    const explanation = { tried: all, admitted: topics, onRefusal }
    for (const txid of explained) if (!entered.has(txid)) this.explain(txid, explanation)
    if (needed.length === all.length && all.every(({ txid }) => entered.has(txid))) trial.release()
    else {
      trial.rollback()
      applied(needed)
      if (explained.length > 0) explanation.admitted = index.topicsAdmitted()
    }
    for (const txid of explained) if (entered.has(txid)) this.explain(txid, explanation)
    for (const { txid, pending: before } of needed) if (before !== undefined) pending.delete(txid)
    const others = [...all, ...candidates.filter(({ txid }) => behind.has(txid))]
    for (const each of others) {
      const { txid, spends } = each
      const state = { isWaiting: !counting.has(txid), isMint: mints.has(txid), client: keepLost?.client }
      if (entered.has(txid)) continue
      if (each.pending === undefined) pending.add(each, spends, { ...state, isRaised: this.mayRaise(each) })
      else pending.setWaiting(txid, state.isWaiting, state)
    }
    this.collect()
    for (const each of others) this.retryAround(each, counting.has(each.txid))
    this.retry(makeRoom(pending, admission.pending))
    makeRoomToWait(
      pending,
      limits,
      fresh.map(({ txid }) => txid),
    )
    return { subjects: lost, isRefused: false }
  }

  /**
   * Those that are built on something that waits, and cannot change that: they wait with it.
   *
   * @returns The transaction that waits, by their txids.
   */
  private behindLosers(candidates: readonly Candidate[]): Map<string, string> {
    const { pending } = this.options
    const found = new Map<string, string>()
    if (pending.total('waiting').transactions === 0) return found
    const own = new Set(candidates.map(({ txid }) => txid))
    // What may raise its own rank may raise that of what it is built on.
    const raising = new Set<string>()
    for (const each of candidates.toReversed())
      if (raising.has(each.txid) || this.mayRaise(each))
        for (const { txid } of [each, ...each.spends]) raising.add(txid)
    for (const each of candidates) {
      const parent = each.spends.find(
        ({ txid }) => found.has(txid) || (!own.has(txid) && pending.outline(txid)?.isWaiting),
      )
      if (parent !== undefined && !raising.has(each.txid))
        found.set(each.txid, found.get(parent.txid) ?? parent.txid)
    }
    const raisesFact = ({ proofs, spends }: Candidate): boolean =>
      proofs.length > 0 &&
      spends.some(({ txid }) => this.indexed.ownHeight(txid) === Number.POSITIVE_INFINITY)
    // What raises its rank, or that of a fact, may decide about any other.
    const mayDecide = (each: Candidate): boolean =>
      raising.has(each.txid) && (this.isContested(each) || raisesFact(each))
    return candidates.some(mayDecide) ? new Map() : found
  }

  /** Why a subject does not count that is built on something that waits. */
  private lossBehind(txid: string, waiting: string | undefined): Lost[] {
    if (waiting === undefined) return []
    if (this.indexed.sighting(txid) === 'rejected') return [{ txid, reason: { txid, tier: 'rejected' } }]
    const { pending, admission } = this.options
    const line = pending.lineOf(waiting, 'waiting')
    const isWaiting = new Set(line)
    const first = line.find((each) => !pending.parentsOf(each).some((parent) => isWaiting.has(parent)))
    const tried = this.candidates([first ?? waiting])
    const all = inOrder([...relatedTo(tried, { pending, indexed: this.indexed }), ...tried])
    const rules = admission.rules(() => {})
    const trial = this.savepoint()
    this.options.index.apply(this.insert(all.flatMap((each) => factsOf(each, rules))))
    const lost = this.lossesOf(tried.map((each) => each.txid))
    trial.rollback()
    // If it does count by now, this one is tried after it.
    if (lost.length === 0) this.queue.add(first ?? waiting)
    return lost.map(({ reason }) => ({ txid, reason }))
  }

  /** Whether more than its place may rank a transaction, and with it what it is built on. */
  private mayRaise({ txid, proofs, pending: own }: Candidate): boolean {
    if (proofs.length > 0) return true
    if (own !== undefined) return own.isRaised
    const isKnown = this.indexed.sighting(txid) === 'seen' || this.indexed.hasChildBeside(txid)
    return isKnown || this.options.pending.childrenOf(txid).length > 0
  }

  /** Whether anything waits itself, or anything that counts spends one of its coins. */
  private isContested({ txid, spends, pending: own }: Candidate): boolean {
    const { pending } = this.options
    const isOther = (other: string): boolean => other !== txid
    return (
      own?.isWaiting === true ||
      spends.some(
        (spent) =>
          pending.outline(spent.txid)?.isWaiting === true ||
          this.indexed.spendersOf(spent).some(isOther) ||
          pending.spendersOf(spent, { isWaiting: false }).some(isOther),
      )
    )
  }

  /** Of one that counts now, or does no longer: tries again what is built on it, and what waits for its coins. */
  private retryAround({ txid, spends, pending: before }: Candidate, isCounting: boolean): void {
    const { pending } = this.options
    if (before !== undefined && before.isWaiting !== isCounting) return
    if (pending.total(isCounting ? 'waiting' : 'pending').transactions === 0) return
    this.retry(pending.childrenOf(txid), isCounting)
    if (before !== undefined && !isCounting)
      for (const spent of spends) this.retry(pending.spendersOf(spent, { isWaiting: true }))
  }

  /** Takes what facts have changed, and notes what may count or be needed because of that. */
  private collect(): void {
    const { index, pending } = this.options
    const admitted = index.takeAdmitted()
    const { added, restored, deactivated, lowered, blocks } = index.takeFlips()
    this.outcome.admitted.push(...admitted)
    this.outcome.restored.push(...restored)
    this.outcome.deactivated.push(...deactivated)
    if (pending.isEmpty) return
    // What spends something admitted is needed.
    const outputs = new Map<string, Set<number>>()
    for (const { outpoint } of admitted)
      outputs.set(outpoint.txid, (outputs.get(outpoint.txid) ?? new Set()).add(outpoint.vout))
    for (const [txid, vouts] of outputs)
      for (const { spender, vout } of pending.spendsFrom(txid)) if (vouts.has(vout)) this.queue.add(spender)
    for (const range of blocks) for (const txid of pending.provenIn(range)) this.lower(txid)
    // What raises the rank of a fact is one, too.
    for (const txid of [...added, ...lowered])
      for (const each of raisersOf(txid, { pending, indexed: this.indexed })) this.queue.add(each)
    for (const txid of restored) this.retry(pending.childrenOf(txid))
    for (const txid of deactivated) this.retry(pending.childrenOf(txid), false)
    for (const txid of new Set([...lowered, ...deactivated]))
      for (const spent of this.indexed.spendsOf(txid))
        this.retry(pending.spendersOf(spent, { isWaiting: true }))
  }

  /** Notes those that are to be tried again: of what waits, or of what does not. */
  private retry(txids: readonly string[], isWaiting = true): void {
    for (const txid of txids)
      if (this.options.pending.outline(txid)?.isWaiting === isWaiting) this.queue.add(txid)
  }

  /** Tries pending transactions until nothing changes any more: of those that are left, always the one that came first. */
  private drain(): void {
    const { pending, admission } = this.options
    if (this.queue.size === 0) return
    const rules = admission.rules(() => {})
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
      if (tried <= MOST_TRIES && !this.isHopeless(txid))
        this.enter({ candidates: this.candidates([txid]), rules })
    }
  }

  /**
   * Whether one that waits loses in any case: nothing raises its rank, and it is built on something that waits, or something active
   * spends one of its coins, or something pending that came earlier and counts. Any number may wait for one coin.
   */
  private isHopeless(txid: string): boolean {
    const { pending } = this.options
    const own = pending.outline(txid)
    if (own === undefined || !own.isWaiting || own.isRaised) return false
    return pending
      .spendsOf(txid)
      .some(
        (spent) =>
          pending.outline(spent.txid)?.isWaiting === true ||
          this.indexed.hasActiveOpponent(spent, own.isMint) ||
          pending
            .spendersOf(spent, { isWaiting: false })
            .some((other) => (pending.outline(other)?.arrived ?? own.arrived) < own.arrived),
      )
  }

  private candidates(txids: readonly string[]): Candidate[] {
    return txids.flatMap((txid) => pendingCandidate(txid, this.options.pending) ?? [])
  }

  private lossesOf(subjects: readonly string[]): Lost[] {
    return subjects.flatMap((txid) => {
      const reason = this.counts(txid) ? undefined : this.options.index.reasonAgainst(txid)
      return reason === undefined ? [] : [{ txid, reason }]
    })
  }

  /** Whether a transaction is active, or mined and so no matter of ours. */
  private counts(txid: string): boolean {
    const status = this.options.index.status(txid)
    return status === undefined || !status.isInactive || status.mined !== undefined
  }

  /** Reports why topics admit nothing of a subject. */
  private explain(txid: string, { tried, admitted, onRefusal }: Explanation): void {
    const { index, admission } = this.options
    const candidate = tried.find((each) => each.txid === txid)
    const topics = (candidate && admitted.get(txid)) ?? this.topicsOf(txid)
    if (topics.has(TOPICS.names) && topics.has(TOPICS.ordinals)) return
    // Most are ordinals that spend no node: nothing has to be looked up to say that.
    if (candidate !== undefined && topics.has(TOPICS.ordinals) && !index.spendsNode(txid))
      admission.rules(onRefusal).names(viewOf(candidate), [])
    else index.explain(txid, onRefusal)
  }

  private topicsOf(txid: string): Set<string> {
    const held = this.options.indexFile.all(
      'select distinct topic from admission join tx on tx.id = admission.tid where tx.txid = ?',
      fromHex(txid),
    )
    return new Set(held.map(({ topic }) => decodeTopic(topic)))
  }

  private insert(facts: readonly NewFact[]): Fact[] {
    return facts.flatMap((fact) => this.options.log.insert(fact) ?? [])
  }

  private apply(facts: readonly Fact[]): void {
    if (facts.length > 0) this.options.index.apply(facts)
    this.collect()
  }

  /**
   * A place on both files to come back to. Savepoints are nested.
   *
   * @param isFirst Whether nothing was written yet in the transaction: then it is the savepoint, and SQLite copies no page for one.
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

/** Each transaction once: with its proof, if one of the records has it. */
function byTxid(records: readonly TransactionRecord[]): Map<string, TransactionRecord> {
  const found = new Map<string, TransactionRecord>()
  for (const record of records)
    if (found.get(record.txid)?.proof === undefined) found.set(record.txid, record)
  return found
}

/** The facts that a transaction brings: bodies that it does not hold in one part, itself, and its proofs. */
function factsOf(record: Candidate, rules: AdmissionRules): NewFact[] {
  const view = viewOf(record)
  const bodies: NewFact[] = []
  const refused: number[] = []
  for (const [vout, output] of firstOutputs(view, OUTPUTS_WITH_ORDINALS).entries()) {
    if (!rules.permits(view, vout)) refused.push(vout)
    const body = inscriptionOf(output).content?.body
    if (body !== undefined && body.buffer !== view.raw.buffer) bodies.push(bodyFact(body))
  }
  const others = rules.others?.(view) ?? []
  const own = transactionFact(record, { refused, others })
  shareView(own.body, view)
  return [...bodies, own, ...record.proofs.map((each) => proofFact(record.txid, each))]
}

function refusalsOf(subjects: readonly string[], refused: readonly TopicRefusal[]): TopicRefusal[] {
  const found = new Map<string, TopicRefusal>()
  for (const each of refused)
    if (subjects.includes(each.txid))
      found.set(`${each.txid} ${each.topic} ${each.code} ${each.message}`, each)
  return [...found.values()]
}
