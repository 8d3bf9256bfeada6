import type { Sql } from '../facts/connection.js'
import { FACT, type Fact, readProofFact } from '../facts/log.js'
import type { AdmissionRules, OnRefusal } from '../graph/admission-rules.js'
import type { TransactionStatus } from '../graph/conflict-resolution.js'
import { dependency } from '../graph/dependencies.js'
import type { Reason } from '../graph/errors.js'
import type { AdmissionRecord } from '../graph/records.js'
import { equalBytes } from '../protocol/bytes.js'
import type { HeaderRange } from '../protocol/header-store.js'
import { parseOutpoint } from '../protocol/outpoint.js'
import { isCoinbase, type TransactionView } from '../protocol/transaction.js'
import { decide, improvedBy, Ranks, rankBy, reasonIn, statusIn } from './active.js'
import { Admissions, BASE, firstScore } from './admissions.js'
import { Attributes } from './attributes.js'
import { applyAnchor, applyHeaders } from './headers.js'
import { Agenda, Journal, type JournalMark } from './journal.js'
import { Judge, type NewTransaction } from './judge.js'
import { Lineages } from './lineages.js'
import { outputAt } from './outputs.js'
import { type RegisterChange, Registers } from './registers.js'
import { SCHEMA } from './schema.js'
import {
  type Input,
  Proofs,
  type ProofTracker,
  type TransactionRow,
  type TransactionSource,
  Transactions,
} from './transactions.js'

export interface IndexOptions {
  /** The rules of the topics. The policy for ordinals is not asked: its decisions are in the notes of transactions. */
  rules: AdmissionRules
  tracker: ProofTracker
}

/** State of an index in memory, to restore after a rollback. */
export interface IndexMark {
  ids: [transactions: number, outputs: number]
  journal: JournalMark
}

/** Status changes of transactions, by txid. */
export interface Flips {
  /** New ones, which are neither restored nor deactivated. */
  added: string[]
  restored: string[]
  deactivated: string[]
  /** Those whose rank got worse: others that lost to them may win. */
  lowered: string[]
  /** Heights whose blocks may have changed. */
  blocks: HeaderRange[]
}

/**
 * The index of a log: everything that can be derived from its facts, in one SQLite file. All calls are synchronous; writes are
 * inside a transaction that the caller begins and commits. Except for scores, the result depends neither on the order of facts
 * nor on how they are divided into calls.
 *
 * If a call throws, the caller rolls back the transaction, and restores ({@link Index.restore}) or replaces this object.
 */
export class Index {
  private readonly agenda = new Agenda()
  private readonly journal: Journal
  private readonly transactions: Transactions
  private readonly registers: Registers
  private readonly proofs: Proofs
  private readonly ranks: Ranks
  private readonly attributes: Attributes
  private readonly lineages: Lineages
  private readonly admissions: Admissions
  private readonly judge: Judge
  /** The base of scores, once it was read. */
  private base: number | undefined

  constructor(
    private readonly sql: Sql,
    source: TransactionSource,
    { rules, tracker }: IndexOptions,
  ) {
    if (sql.get("select 1 as one from sqlite_master where name = 'tx'") === undefined) sql.exec(SCHEMA)
    this.journal = new Journal(sql)
    this.transactions = new Transactions(sql, source)
    this.registers = new Registers(sql, this.transactions)
    this.proofs = new Proofs(sql, source, tracker)
    const { agenda, journal, transactions, registers } = this
    this.ranks = new Ranks(sql, { transactions, journal, agenda })
    this.attributes = new Attributes(sql, { transactions, journal, agenda })
    const { attributes } = this
    this.lineages = new Lineages(sql, { transactions, attributes, registers, journal, agenda })
    this.admissions = new Admissions(sql, { journal, agenda })
    const { lineages, admissions } = this
    if (rules.genesis !== undefined) transactions.assumeNode(rules.genesis)
    this.judge = new Judge(sql, { transactions, lineages, admissions, journal, agenda }, rules)
  }

  /** The seq of the last fact that was applied. */
  get cursor(): number {
    return this.journal.counters.cursor
  }

  /** Looks for newly removed content, before facts are applied. */
  refresh(): void {
    this.transactions.source.refresh?.()
  }

  apply(facts: readonly Fact[]): void {
    for (let at = 0; at < facts.length; at++) {
      const [fact, next] = [facts[at], facts[at + 1]]
      if (fact === undefined) break
      const isProof =
        fact.kind === FACT.transaction &&
        next?.kind === FACT.proof &&
        equalBytes(next.key.subarray(0, 32), fact.key)
      if (isProof && this.applyWith(fact, next)) at++
      else if (!isProof) this.applyOne(fact)
      this.journal.moveTo(facts[at] ?? fact)
    }
  }

  mark(): IndexMark {
    const { transactions, lineages, journal } = this
    return { ids: [transactions.lastId, lineages.lastId], journal: journal.mark() }
  }

  restore({ ids: [transactions, outputs], journal }: IndexMark): void {
    this.transactions.lastId = transactions
    this.lineages.lastId = outputs
    this.base = undefined
    this.journal.restore(journal)
    this.agenda.clear()
  }

  /** Writes the journal, once before each commit. */
  flush(): void {
    this.journal.flush()
  }

  /** Notes a change that answers show but the index does not hold: of pending transactions. */
  touch(): void {
    this.journal.touch()
  }

  /** What was admitted since the last call. */
  takeAdmitted(): AdmissionRecord[] {
    const taken = this.journal.admitted.splice(0)
    if (taken.length === 0) return []
    this.base ??= Number(this.sql.get(`select ${BASE} as base`)?.base ?? 0)
    const first = firstScore(this.base)
    return taken.map((each) => ({ ...each, score: first + each.score }))
  }

  /** The transactions with outputs that topics hold since {@link takeAdmitted}, by txid. */
  admitted(): Set<string> {
    const found = new Set<string>()
    for (const { outpoint } of this.journal.admitted) found.add(outpoint.txid)
    return found
  }

  /** The new transactions since {@link takeFlips} that are active because they conflict with nothing, by txid. */
  uncontested(): Set<string> {
    const { added, flips } = this.journal
    const found = new Set<string>()
    for (const { txid, active } of added) if (active === 1) found.add(txid)
    for (const { txid } of flips) found.delete(txid)
    return found
  }

  /** Whether the last verdict on a block is that the chain does not have it. */
  isBlockRefused(block: { height: number; root: string }): boolean {
    return this.proofs.isRefused(block.height, Buffer.from(block.root, 'hex'))
  }

  /** Earlier transactions that became active or inactive since {@link takeFlips}. */
  flipped(): Pick<Flips, 'restored' | 'deactivated'> {
    const { added, flips } = this.journal
    const fresh = new Set<number>()
    for (const { id } of added) fresh.add(id)
    const [first, last] = [new Map<string, boolean>(), new Map<string, boolean>()]
    for (const { id, txid, active } of flips) {
      if (fresh.has(id)) continue
      if (!first.has(txid)) first.set(txid, active)
      last.set(txid, active)
    }
    // One that flipped back is as it was.
    const changed = [...last].filter(([txid, active]) => first.get(txid) === active)
    const to = (wanted: boolean): string[] =>
      changed.filter(([, active]) => active === wanted).map(([txid]) => txid)
    return { restored: to(true), deactivated: to(false) }
  }

  /** The status changes since the last call. */
  takeFlips(): Flips {
    const { journal } = this
    const flipped = this.flipped()
    journal.flips.length = 0
    return {
      ...flipped,
      added: journal.added.splice(0).map(({ txid }) => txid),
      lowered: [...new Set(journal.lowered.splice(0))],
      blocks: journal.blocks.splice(0),
    }
  }

  status(txid: string): TransactionStatus | undefined {
    return statusIn(this.sql, { txid })
  }

  /** Why a transaction is inactive; undefined if it is active, or not stored. */
  reasonAgainst(txid: string): Reason | undefined {
    return reasonIn(this.sql, txid)
  }

  /** Whether a topic holds an output of a stored transaction, or one that it spends. */
  isNeeded(txid: string): boolean {
    const row = this.sql.get(
      `select exists (select 1 from admission where tid = tx.id) or exists (
          select 1 from spend s join admission a on a.tid = s.pid and a.vout = s.vout where s.sid = tx.id) as needed
        from tx where txid = ?`,
      Buffer.from(txid, 'hex'),
    )
    return row?.needed === 1
  }

  /** Reports which topics hold nothing of a transaction, and why, except refusals of the policy. */
  explain(view: TransactionView, onRefusal: OnRefusal): void {
    this.judge.explain(view, onRefusal)
  }

  private applyOne(fact: Fact): void {
    this.begin(fact)
    switch (fact.kind) {
      case FACT.transaction:
        this.derive(this.addTransaction(fact).fresh)
        break
      case FACT.proof:
        this.addProof(fact)
        this.derive()
        break
      case FACT.header:
        this.judgeProofs(applyHeaders(this.sql, fact))
        this.derive()
        break
      case FACT.register:
        this.applyRegister(this.registers.apply(fact))
        break
      case FACT.body:
        break
    }
  }

  /**
   * Applies a transaction together with its proof, the next fact, if that gives the same as applying one after the other.
   *
   * @returns False if only the transaction was applied.
   */
  private applyWith(fact: Fact, proof: Fact): boolean {
    this.begin(fact)
    const { fresh, isProven } = this.addTransaction(fact, proof)
    if (!isProven) {
      this.derive(fresh)
      return false
    }
    this.judge.judgeAll(fresh)
    // Changes to others come with the proof, and get its place.
    this.agenda.seq = proof.seq
    this.derive()
    return true
  }

  private begin({ seq }: Fact): void {
    this.agenda.seq = seq
    this.agenda.lastEarlierOutput = this.lineages.lastId
  }

  /**
   * Writes the rows of a transaction and of its spends. Also writes its proof, if nothing is built on the transaction and it conflicts
   * with nothing: then it makes no difference whether the proof comes with it.
   */
  private addTransaction(fact: Fact, proof?: Fact): { fresh: NewTransaction; isProven: boolean } {
    const { sql, transactions, ranks, journal, agenda } = this
    const { key: txid, body, seq } = fact
    const known = transactions.byTxid(txid)
    if (known !== undefined && known.seq !== null) throw new Error(`the fact ${seq} occurs twice`)
    const id = known?.id ?? transactions.newId()
    const parsed = transactions.parse(id, txid, body)
    const { view } = parsed
    const children = known === undefined ? [] : transactions.children(id)
    journal.counters.transactions++
    journal.change(dependency.proof(view.txid))
    const inputs: Input[] = []
    const spent = new Set<string>()
    const spends: (number | null)[][] = []
    let isContested = known?.said === 0
    const lower: TransactionRow[] = []
    for (const { txid, vout } of isCoinbase(view) ? [] : view.inputs) {
      const outpoint = `${txid}_${vout}`
      const { parent, isSpent, isNode } = transactions.coin(Buffer.from(txid, 'hex'), vout)
      const isKnown = parent.seq !== null
      const value = isKnown ? transactions.valueOf(parent.id, vout) : undefined
      inputs.push({ pid: parent.id, vout, value, isKnown, isNode })
      if (spent.has(outpoint)) continue
      spent.add(outpoint)
      if (isSpent || (isKnown && parent.active === 0)) isContested = true
      if (isKnown) lower.push(parent)
      journal.change(dependency.spend({ txid, vout }))
      spends.push([parent.id, vout, id, value ?? null])
    }
    sql.insertAll('insert into spend (pid, vout, sid, value)', spends)
    const active = isContested ? 0 : 1
    journal.added.push({ id, txid: view.txid, active })
    const isProven = proof !== undefined && children.length === 0 && !isContested
    const said = known?.said ?? null
    const proven = isProven ? this.proofs.add(id, proof, known === undefined) : null
    const own = known === undefined ? rankBy(seq, proven, said) : ranks.ownRank(id, seq, said)
    const rank = children.reduce(improvedBy, own)
    const names = this.judge.names(view, inputs)
    const mint = names.length > 0 && !this.judge.isRoot(view) ? 1 : 0
    sql.run(
      `insert into tx (id, txid, seq, length, ord, own, mined, seen, active, mint) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        on conflict (id) do update set seq = excluded.seq, length = excluded.length, ord = excluded.ord, own = excluded.own,
        mined = excluded.mined, seen = excluded.seen, active = excluded.active, mint = excluded.mint`,
      ...[id, txid, seq, view.raw.length, rank.ord, rank.own, rank.mined, rank.seen, active, mint],
    )
    for (const parent of lower) ranks.improve(parent, rank)
    if (isContested) agenda.toDecide.add(id)
    for (const child of children) {
      agenda.toJudge.add(child.id)
      // The children were decided without it.
      if (isContested) agenda.toDecide.add(child.id)
    }
    if (children.length > 0) this.writeValues(id)
    const row = { ...rank, id, seq, said, active, mint }
    return { fresh: { row, parsed, inputs, names, hasChildren: children.length > 0 }, isProven }
  }

  /** Fills in the output values of a transaction that came after its children. */
  private writeValues(id: number): void {
    for (const { vout } of this.sql.all('select distinct vout from spend where pid = ?', id)) {
      const satoshis = this.transactions.outputOf(id, vout)?.satoshis
      if (satoshis !== undefined)
        this.sql.run('update spend set value = ? where pid = ? and vout = ?', satoshis, id, vout)
    }
  }

  private addProof(fact: Fact): void {
    const { txid } = readProofFact(fact)
    const { id } = this.transactions.refer(Buffer.from(txid, 'hex'))
    this.proofs.add(id, fact)
    this.journal.change(dependency.proof(txid))
    this.ranks.rank([id])
  }

  /** Judges proofs by blocks of these heights again. */
  private judgeProofs(ranges: readonly HeaderRange[]): void {
    this.journal.blocks.push(...ranges)
    const ids = this.proofs.judgeBlocks(ranges)
    for (const id of ids) this.journal.change(dependency.proof(this.transactions.txidOf(id).toString('hex')))
    this.ranks.rank(ids)
  }

  private applyRegister(change: RegisterChange | undefined): void {
    switch (change?.kind) {
      case 'block':
        this.applyBlock(change)
        break
      case 'sighting':
        this.ranks.rank([change.id])
        this.agenda.toDecide.add(change.id)
        break
      case 'verdict':
        this.proofs.hasVerdicts = true
        this.judgeProofs([{ from: change.height, to: change.height }])
        break
      case 'setting':
        this.base = undefined
        if (change.name === 'anchor') this.judgeProofs(applyAnchor(this.sql))
        break
      case 'purged':
        // Any answer with bytes may contain it.
        this.journal.changeAll()
        this.journal.counters.blocks++
        break
    }
    this.derive()
  }

  /** The MAP of a blocked output does not count at later steps. Unblocked outputs are offered to peers again. */
  private applyBlock({
    subject: { kind, value },
    blocked,
  }: Extract<RegisterChange, { kind: 'block' }>): void {
    this.journal.changeAll()
    this.journal.counters.blocks++
    const outputs = this.outputsBlockedBy(kind, value)
    if (kind === 'outpoint')
      for (const { tid, vout } of outputs) {
        const row = outputAt(this.sql, tid, vout)
        if (row !== undefined) this.lineages.renumber(row)
      }
    if (!blocked) this.admissions.offerOutputs(outputs)
  }

  private outputsBlockedBy(kind: string, value: string): { tid: number; vout: number }[] {
    const { sql } = this
    if (kind === 'name') return sql.all('select tid, vout from name where name = ?', value) as never
    if (kind === 'content')
      return sql.all(
        'select tid, vout from out where sha = ? and carrier = 0',
        Buffer.from(value, 'hex'),
      ) as never
    const { txid, vout } = parseOutpoint(value)
    const row = this.transactions.byTxid(Buffer.from(txid, 'hex'))
    return row === undefined ? [] : [{ tid: row.id, vout }]
  }

  private derive(fresh?: NewTransaction): void {
    const { agenda } = this
    if (fresh !== undefined || agenda.toJudge.size > 0) this.judge.judgeAll(fresh)
    if (agenda.toDecide.size > 0) this.decide(fresh?.row.id)
    this.attributes.index()
  }

  /** Decides which transactions are active, and stores that. @param fresh The transaction that this fact adds. */
  private decide(fresh: number | undefined): void {
    const { sql, agenda, journal } = this
    const restored: number[] = []
    const deactivated: number[] = []
    for (const { id, txid, isInactive } of decide(agenda.toDecide, sql)) {
      const active = isInactive ? 0 : 1
      sql.run('update tx set active = ? where id = ?', active, id)
      sql.run('update node set active = ? where tid = ?', active, id)
      const names = sql.run('update name set active = ? where tid = ?', active, id)
      const listed = sql.get('select count(*) as n from out where tid = ? and recency is not null', id)?.n
      sql.run('update out set active = ? where tid = ?', active, id)
      journal.counters.names += isInactive ? -names : names
      journal.counters.inscriptions += isInactive ? -listed : listed
      this.noteOrdinals(id)
      journal.flips.push({ id, txid, active: !isInactive })
      if (id !== fresh) journal.changeAll()
      if (isInactive) deactivated.push(id)
      else if (id !== fresh) restored.push(id)
    }
    agenda.toDecide.clear()
    this.admissions.offerAgain({ restored, deactivated })
  }

  /** Notes the ordinals among a transaction's outputs and spent coins. */
  private noteOrdinals(id: number): void {
    const { lineages, unnumbered } = this.agenda
    const own = this.sql.all('select oid, lin from out where tid = ?', id)
    const spent = this.sql.all(
      'select o.oid, o.lin from spend s join out o on o.tid = s.pid and o.vout = s.vout where s.sid = ?',
      id,
    )
    for (const { oid, lin } of [...own, ...spent])
      if (lin === null) unnumbered.add(oid)
      else lineages.add(lin)
  }
}
