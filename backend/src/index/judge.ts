import type { Sql, SqlValue } from '../facts/connection.js'
import type { AdmissionRules, NodeInput, OnRefusal } from '../graph/admission-rules.js'
import { dependency } from '../graph/dependencies.js'
import { isListed, recencyOf } from '../graph/listings.js'
import { noOrdinal } from '../graph/topic-rules.js'
import {
  holdsOrdinal,
  inscriptionOf,
  isNodeOutpoint,
  OUTPUTS_WITH_ORDINALS,
  predecessorsIn,
} from '../graph/transaction-records.js'
import { fromHex } from '../protocol/bytes.js'
import { decodeMineNode } from '../protocol/mine-node.js'
import type { Predecessor } from '../protocol/ordinal-flow.js'
import { TOPICS } from '../protocol/profile.js'
import {
  firstOutputs,
  isCoinbase,
  outputOf,
  type TransactionOutput,
  type TransactionView,
} from '../protocol/transaction.js'
import { type Admissions, encodeTopic, type Held } from './admissions.js'
import { Heap } from './heap.js'
import type { Agenda, Journal } from './journal.js'
import type { Lineages, Link } from './lineages.js'
import { type OutputRow, outputAt, outputsOf, txidKey } from './outputs.js'
import type { Input, ParsedTransaction, TransactionRow, Transactions } from './transactions.js'

/** A transaction that the applied fact adds. */
export interface NewTransaction {
  row: TransactionRow
  parsed: ParsedTransaction
  inputs: Input[]
  /** The outputs that `tm_names` admits. */
  names: number[]
  hasChildren: boolean
}

/** Input for deriving the outputs of a transaction. */
interface Case extends ParsedTransaction {
  row: TransactionRow
  inputs: Input[]
  names: number[]
  /** By input: the row of the output that it spends. */
  coins: (OutputRow | undefined)[]
  isNew: boolean
  hasChildren: boolean
}

/** Whether two topics hold outputs of a transaction, and whether it spends a node. */
const HOLDING = `select id, seq, exists (select 1 from admission where tid = id and +topic = ?2) as names,
  exists (select 1 from admission where tid = id and +topic = ?3) as ordinals,
  exists (select 1 from spend s cross join node n on n.tid = s.pid and n.vout = s.vout where s.sid = id) as spends
  from tx where txid = ?1`

/**
 * Derives what topics admit of transactions, from their bytes and from the rows of the coins they spend: parents first, and
 * children again where that affects them. Admission does not depend on what is active.
 */
export class Judge {
  constructor(
    private readonly sql: Sql,
    private readonly tables: {
      transactions: Transactions
      lineages: Lineages
      admissions: Admissions
      journal: Journal
      agenda: Agenda
    },
    private readonly rules: AdmissionRules,
  ) {}

  /** Judges the transactions on the agenda, and those that this affects. */
  judgeAll(fresh: NewTransaction | undefined): void {
    const { agenda, transactions } = this.tables
    const queue = new Heap<TransactionRow>(
      (one, other) => one.ord < other.ord || (one.ord === other.ord && one.id < other.id),
    )
    if (fresh !== undefined) queue.push(fresh.row)
    // Ranks are final here, so the queue gives parents before children.
    for (const id of agenda.toJudge) queue.push(transactions.byId(id))
    const queued = new Set(agenda.toJudge)
    agenda.toJudge.clear()
    for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
      queued.delete(row.id)
      const isFresh = row.id === fresh?.row.id
      const judged = isFresh ? fresh : this.stored(row)
      if (!this.judge({ ...judged, coins: this.coinsOf(judged.inputs), ...judged.parsed, isNew: isFresh }))
        continue
      for (const child of judged.hasChildren ? transactions.children(row.id) : []) {
        if (queued.has(child.id)) continue
        queued.add(child.id)
        queue.push(child)
      }
    }
  }

  /** Reports why topics hold nothing of a transaction. One that is not stored spends nothing that they hold. */
  explain(view: TransactionView, onRefusal: OnRefusal): void {
    const topics = [TOPICS.names, TOPICS.ordinals].map(encodeTopic)
    const row = this.sql.get(HOLDING, fromHex(view.txid), ...topics)
    if (row?.names && row.ordinals) return
    const isAsked = row !== undefined && row.seq !== null && (row.spends || !row.ordinals)
    const inputs = isAsked ? this.inputsOf(row.id, view) : []
    if (!row?.names)
      this.rules.names(view, this.nodeInputs(inputs), { isPurged: this.isPurged(view), onRefusal })
    const isHeld = firstOutputs(view, OUTPUTS_WITH_ORDINALS).some((output) => holdsOrdinal(output))
    if (row?.ordinals || isHeld) return
    const unknown = inputs.findIndex(({ value }) => value === undefined)
    const isBehind =
      unknown !== -1 && this.coinsOf(inputs).some((coin, input) => coin?.carrier === 0 && input >= unknown)
    onRefusal(noOrdinal(view, isBehind ? unknown : undefined))
  }

  private stored(row: TransactionRow): NewTransaction {
    const { transactions } = this.tables
    const parsed = transactions.parsedOf(row.id)
    const inputs = this.inputsOf(row.id, parsed.view)
    return { row, parsed, inputs, names: this.names(parsed.view, inputs), hasChildren: true }
  }

  private inputsOf(id: number, view: TransactionView): Input[] {
    return isCoinbase(view) ? [] : this.tables.transactions.inputsOf(id, view)
  }

  /** The outputs that `tm_names` admits. */
  names(view: TransactionView, inputs: Input[]): number[] {
    const nodeInputs = this.nodeInputs(inputs)
    if (nodeInputs.length === 0 && !this.isRoot(view)) return []
    return this.rules.names(view, nodeInputs, { isPurged: this.isPurged(view) })
  }

  private isPurged({ txid }: TransactionView): boolean | undefined {
    return this.tables.transactions.source.isPurged?.(fromHex(txid))
  }

  isRoot({ txid }: TransactionView): boolean {
    return txid === this.rules.genesis?.txid
  }

  private coinsOf(inputs: Input[]): Case['coins'] {
    return inputs.map(({ pid, vout, isKnown }) => (isKnown ? outputAt(this.sql, pid, vout) : undefined))
  }

  /** @returns Whether anything has changed that its children depend on. */
  private judge(judged: Case): boolean {
    const held: Held[] = []
    const isNamesChanged = this.judgeNames(judged, held)
    const isOrdinalsChanged = this.judgeOrdinals(judged, held)
    const { row, view, others, isNew } = judged
    if (isNew) for (const { topic, vout } of others) held.push({ tid: row.id, vout, topic })
    this.tables.admissions.add(view.txid, held)
    const isChanged = isNamesChanged || isOrdinalsChanged
    if (isChanged && !isNew) this.tables.journal.changeAll()
    return isChanged
  }

  private judgeNames(judged: Case, held: Held[]): boolean {
    const { row, view, inputs, names: admitted, isNew } = judged
    const isRoot = this.isRoot(view)
    const before = isNew || (row.mint === 0 && !isRoot) ? 0 : this.countNames(row.id)
    if (admitted.length === before) return false
    if (before > 0) this.removeNames(row)
    if (admitted.length > 0) this.addNames(judged, admitted, held)
    const mint = admitted.length > 0 && !isRoot ? 1 : 0
    if (mint !== row.mint) this.sql.run('update tx set mint = ? where id = ?', mint, row.id)
    row.mint = mint
    const { agenda, transactions } = this.tables
    // Only mints conflict over a node. A new one that conflicts with nothing is active already.
    if (!isNew || row.active === 0)
      for (const { input } of this.nodeInputs(inputs))
        for (const id of this.spendersOf(inputs[input])) agenda.toDecide.add(id)
    if (judged.hasChildren) for (const { id } of transactions.children(row.id)) agenda.toDecide.add(id)
    return true
  }

  private nodeInputs(inputs: Input[]): NodeInput[] {
    return inputs.flatMap(({ pid, vout, isKnown, isNode }, input) => {
      // The genesis is a node before its transaction is stored.
      const spent = isNode && isKnown ? this.tables.transactions.outputOf(pid, vout) : undefined
      return isNode ? [{ input, spent }] : []
    })
  }

  /** @param admitted The outputs that `tm_names` admits, in order. */
  private addNames({ row, view }: Case, admitted: readonly number[], held: Held[]): void {
    const { sql } = this
    const { journal } = this.tables
    const { id: tid, active } = row
    const nodes: SqlValue[][] = []
    let domain = ''
    for (const vout of admitted) {
      held.push({ tid, vout, topic: TOPICS.names })
      if (this.isNode(view, vout)) {
        domain = decodeMineNode(outputOf(view, vout)?.lockingScript ?? new Uint8Array(0)).domain
        nodes.push([tid, vout, domain, active])
        continue
      }
      // The name of output 2 is the domain of output 1, never the text of an envelope.
      sql.run(
        'insert into name (tid, vout, name, active, recency, tkey) values (?, ?, ?, ?, ?, ?)',
        ...[tid, vout, domain, active],
        recencyOf({ height: row.own ?? undefined, insertionOrder: row.ord }),
        txidKey(fromHex(view.txid)),
      )
      journal.change(dependency.name(domain))
      journal.change(dependency.names)
      journal.counters.names += active
    }
    sql.insertAll('insert or replace into node (tid, vout, domain, active)', nodes)
  }

  private isNode({ txid }: TransactionView, vout: number): boolean {
    const { genesis } = this.rules
    return genesis !== undefined && isNodeOutpoint({ txid, vout }, genesis)
  }

  /** Only a transaction that spends two nodes, of which one was unknown, loses its names: no block can hold it. */
  private removeNames({ id: tid, active }: TransactionRow): void {
    const { sql } = this
    const { admissions, journal } = this.tables
    const removed = sql.run('delete from name where tid = ?', tid)
    journal.counters.names -= active * removed
    sql.run('delete from node where tid = ?', tid)
    for (const vout of [0, 1, 2]) admissions.remove({ tid, vout, topic: TOPICS.names })
  }

  private countNames(tid: number): number {
    return this.sql.get(
      'select count(*) as n from admission where tid = ? and +topic = ?',
      tid,
      encodeTopic(TOPICS.names),
    )?.n
  }

  private judgeOrdinals(judged: Case, held: Held[]): boolean {
    const { row, view, refused, inputs, names, coins, isNew, hasChildren } = judged
    const { lineages, journal } = this.tables
    const outputs = firstOutputs(view, OUTPUTS_WITH_ORDINALS)
    let known: Predecessor[] | undefined
    const flow = (vout: number): Predecessor | undefined => {
      known ??= predecessorsIn(
        view,
        inputs.map(({ value }) => value),
      )
      return known[vout]
    }
    const hasOrdinals = coins.some((coin) => coin?.carrier === 0)
    const stored = new Map(isNew ? [] : outputsOf(this.sql, row.id).map((each) => [each.vout, each]))
    const recency = recencyOf({ height: row.own ?? undefined, insertionOrder: row.ord })
    const moved = new Set<number>()
    let isWritten = false
    let isChanged = false
    for (const [vout, output] of outputs.entries()) {
      const holds = holdsOrdinal(output)
      const before = stored.get(vout)
      const wasAdmitted = before?.carrier === 0
      if (!holds && !hasOrdinals && before === undefined) continue
      const predecessor = output.satoshis === 1 ? flow(vout) : undefined
      const receives = predecessor?.kind === 'input' && coins[predecessor.input]?.carrier === 0
      const isAdmitted = (holds || receives) && !refused.has(vout)
      if (!isAdmitted && before === undefined) continue
      const isName = row.mint === 1 && vout === 2 && names.includes(vout)
      const from = predecessor?.kind === 'input' && !isName ? inputs[predecessor.input] : undefined
      const link: Link = {
        ptid: from?.pid ?? null,
        pvout: from?.vout ?? null,
        carrier: isAdmitted ? 0 : 1,
        unresolved: predecessor?.kind === 'unknown' && !isName ? 1 : 0,
        recency: isAdmitted && isListedOutput(output) ? recency : null,
      }
      if (before !== undefined && isSameLink(before, link)) continue
      // Rows written for an earlier output may have moved the other coins.
      const read = isWritten || predecessor?.kind !== 'input' ? undefined : coins[predecessor.input]
      const coin = from && (read ?? lineages.coinAt(from.pid, from.vout))
      isWritten = true
      if (coin !== undefined) moved.add(coin.oid)
      if (before === undefined) {
        const { id: tid, active } = row
        lineages.add(judged, { ...link, tid, vout, output, active, coin, isLast: !hasChildren })
      } else lineages.relink(before.oid, link)
      if (!isAdmitted || wasAdmitted) continue
      isChanged = true
      held.push({ tid: row.id, vout, topic: TOPICS.ordinals })
      if (link.recency === null) continue
      journal.change(dependency.inscriptions)
      journal.counters.inscriptions += row.active
    }
    this.noteSpent(judged, moved)
    if (hasOrdinals || !isNew) this.notePlaced(judged, outputs, hasOrdinals ? flow : undefined)
    return isChanged
  }

  /** Notes spent ordinals: their attributes change even if no output received them. */
  private noteSpent({ coins }: Case, moved: ReadonlySet<number>): void {
    const { agenda } = this.tables
    for (const coin of coins) {
      if (coin === undefined || coin.carrier === 1) continue
      if (coin.lin === null) agenda.unnumbered.add(coin.oid)
      else if (!moved.has(coin.oid)) agenda.lineages.add(coin.lin)
    }
  }

  /** Notes whether an output may receive one of the spent ordinals, and is not admitted for anything else. */
  private notePlaced(
    { row, inputs, coins, isNew }: Case,
    outputs: readonly TransactionOutput[],
    flow: ((vout: number) => Predecessor | undefined) | undefined,
  ): void {
    const unknown = inputs.findIndex(({ value }) => value === undefined)
    const isUnplaced =
      flow !== undefined &&
      unknown !== -1 &&
      coins.some((coin, input) => coin?.carrier === 0 && input >= unknown) &&
      outputs.some(
        (output, vout) => output.satoshis === 1 && flow(vout)?.kind === 'unknown' && !holdsOrdinal(output),
      )
    if (isUnplaced || !isNew) this.tables.lineages.setUnplaced(row.id, isUnplaced)
  }

  private spendersOf(input: Input | undefined): number[] {
    if (input === undefined) return []
    const rows = this.sql.all('select sid from spend where pid = ? and vout = ?', input.pid, input.vout)
    return rows.map(({ sid }) => sid)
  }
}

function isListedOutput(output: TransactionOutput): boolean {
  const { content } = inscriptionOf(output)
  // Listing depends on the type alone.
  return (
    content !== undefined &&
    isListed({ content: { contentType: content.contentType, sha256: '', length: 0 } })
  )
}

function isSameLink(row: OutputRow, link: Link): boolean {
  return (
    row.ptid === link.ptid &&
    row.pvout === link.pvout &&
    row.carrier === link.carrier &&
    row.unresolved === link.unresolved
  )
}
