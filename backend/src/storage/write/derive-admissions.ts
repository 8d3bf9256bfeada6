import type { AdmissionRules, NodeInput } from '../../graph/admission-rules.js'
import { type AdmissionRecord, type GraphRecords, graphRecords } from '../../graph/records.js'
import { storedOutput, storedTransaction, viewOf } from '../../graph/stored-transaction.js'
import {
  type Flow,
  holdsOrdinal,
  isNodeOutpoint,
  namesRecords,
  OUTPUTS_WITH_ORDINALS,
  ordinalsRecords,
} from '../../graph/transaction-records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { TOPICS } from '../../protocol/profile.js'
import { firstOutputs, outputOf, type TransactionView } from '../../protocol/transaction.js'
import { parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { Effort } from './backlog.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import { rest } from './rest.js'
import { storedFlow } from './spent-values.js'

/** What follows from transactions that have come. */
export interface Derived {
  /** What is known by now of outputs that were not admitted before, with their admissions. */
  records: GraphRecords
  /** The transactions of which something is admitted, or that spend what is; of those that were judged. */
  kept: Set<string>
  /** Those that are left to be judged. */
  left: string[]
}

/**
 * Derives what topics admit now that transactions have come: of these, of what spends them, and of whatever spends an output
 * that is admitted by that. Transactions are judged parents first, each once a write: what a transaction admits follows from
 * its own bytes and from what is known of the outputs that it spends. So the same is admitted whatever the order in which
 * they came (`spec/overlay.md`, Order independence).
 *
 * @param arrived.transactions Those that the write holds in memory, and of them the `fresh` ones, which are to be judged.
 * @param arrived.again Whether what was admitted before is to be told again.
 * @param arrived.left What earlier writes have left to be judged.
 * @param arrived.limit How many are judged beside the fresh ones; a large one counts for several.
 */
export async function deriveAdmissions(
  { transactions: tables }: GraphTables,
  rules: AdmissionRules,
  arrived: {
    transactions: ReadonlyMap<string, Uint8Array>
    fresh: string[]
    subject?: string | undefined
    again: boolean
    left: string[]
    limit: number
  },
): Promise<Derived> {
  const { transactions, fresh, subject, again, limit } = arrived
  const known = new Set(fresh)
  const read = async (txid: string): Promise<TransactionView | undefined> => {
    const raw = transactions.get(txid)
    return raw === undefined ? await storedTransaction(txid, tables) : viewOf({ txid, raw })
  }
  // Of what is told again, something may be admitted already; of what is new, nothing is.
  const isNew = (txid: string): boolean => !again && known.has(txid)
  const judge = new Judge(tables, { rules, transactions, isNew })
  const queue = new ArrivalQueue(tables)
  // What is submitted once more is judged once more, so that it shows again why nothing of it is admitted.
  await queue.add(subject === undefined ? fresh : [...fresh, subject])
  // Of what spends them, the value of an input is news; it matters where an ordinal is among the others.
  const children = (await tables.childrenOf(fresh)).filter((txid) => !known.has(txid))
  await queue.add([...(await tables.spendingAdmitted(children)), ...arrived.left])
  // By when each was judged last, so that what spends an output that is admitted is judged after that.
  const judged = new Map<string, number>()
  let turns = 0
  const others = new Effort(limit)
  let admitted: Outpoint[] = []
  const left = new Set<string>()
  for (let txid = queue.take(); txid !== undefined; txid = queue.take()) {
    if (known.has(txid) || txid === subject || !others.isOver) {
      judged.set(txid, ++turns)
      const transaction = await read(txid)
      if (transaction !== undefined)
        for (const each of await judge.judge(transaction, again && known.has(txid))) admitted.push(each)
      if (!known.has(txid)) others.add(transaction)
      await rest()
    } else left.add(txid)
    if (!queue.isEmpty) continue
    const spends = await tables.spendsOf(admitted)
    admitted = []
    const at = (judgedTxid: string): number => judged.get(judgedTxid) ?? -1
    await queue.add(
      spends.filter(({ outpoint, spender }) => at(spender) < at(outpoint.txid)).map(({ spender }) => spender),
    )
  }
  return { records: judge.records, kept: judge.kept, left: [...left] }
}

/** A node has some kilobytes, and stands near the front; before it are the scripts of inputs, which are passed over. */
const A_NODE = { longest: 16 * 1024 * 1024, chunks: 128 }

/** How many inputs are looked at together: a transaction has as many as fit into it. */
const A_PART = 1000

/** From how many on they are sorted instead of put in their places one by one. */
const MANY = 32

/** Transactions in the order in which they stand, parents before children, each once. */
class ArrivalQueue {
  /** The next stands last. */
  private readonly waiting: { txid: string; arrival: number }[] = []
  private readonly queued = new Set<string>()

  constructor(private readonly tables: TransactionTables) {}

  get isEmpty(): boolean {
    return this.waiting.length === 0
  }

  async add(txids: string[]): Promise<void> {
    const fresh = [...new Set(txids)].filter((txid) => !this.queued.has(txid))
    if (fresh.length === 0) return
    for (const txid of fresh) this.queued.add(txid)
    const statuses = await this.tables.statuses(fresh)
    if (statuses.length > MANY) {
      this.waiting.push(...statuses)
      this.waiting.sort((a, b) => b.arrival - a.arrival)
      return
    }
    for (const standing of statuses) this.waiting.splice(this.placeOf(standing), 0, standing)
  }

  /** Where one stands among those that wait; found by halves. */
  private placeOf({ arrival }: { arrival: number }): number {
    let low = 0
    let high = this.waiting.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.waiting[middle]?.arrival ?? 0) > arrival) low = middle + 1
      else high = middle
    }
    return low
  }

  take(): string | undefined {
    const next = this.waiting.pop()
    // What it admits may come to one that was judged before its parents had a place in the order.
    if (next !== undefined) this.queued.delete(next.txid)
    return next?.txid
  }
}

/** Judges transactions by what is known of their inputs, with what the same write has admitted so far. */
class Judge {
  readonly records = graphRecords({})
  readonly kept = new Set<string>()
  /** The topics that hold an output by this write. */
  private readonly admitted = new Map<string, string[]>()
  /** What this write admits, by txid. */
  private readonly found = new Map<string, AdmissionRecord[]>()
  private readonly flows = new Map<string, Flow | undefined>()
  private readonly score = Date.now()

  constructor(
    private readonly tables: TransactionTables,
    private readonly options: {
      rules: AdmissionRules
      /** Those that the write holds in memory. */
      transactions: ReadonlyMap<string, Uint8Array>
      isNew: (txid: string) => boolean
    },
  ) {}

  /** @returns The outputs that a topic admits and did not before. */
  async judge(transaction: TransactionView, again: boolean): Promise<Outpoint[]> {
    const { txid } = transaction
    await rest()
    const before = await this.admissionsOf(txid)
    await rest()
    const spent = await this.admissionsSpent(transaction)
    await rest()
    const found = [
      ...(await this.names(transaction, { before, spent })),
      ...(await this.ordinals(transaction, { before, spent, again })),
    ]
    if (before.length > 0 || spent.size > 0 || found.length > 0) this.kept.add(txid)
    const told = again ? [...before, ...found] : found
    await this.tell(transaction, told)
    this.found.set(txid, [...(this.found.get(txid) ?? []), ...found])
    for (const { topic, outpoint } of found) {
      const key = formatOutpoint(outpoint)
      this.admitted.set(key, [...(this.admitted.get(key) ?? []), topic])
    }
    return found.map(({ outpoint }) => outpoint)
  }

  private async admissionsOf(txid: string): Promise<AdmissionRecord[]> {
    // What this write has admitted is not stored yet.
    const stored = this.options.isNew(txid) ? [] : await this.tables.admissionsOf([txid])
    return [...stored, ...(this.found.get(txid) ?? [])]
  }

  /** The topics that hold what a transaction spends, by the index of the input. */
  private async admissionsSpent({ inputs }: TransactionView): Promise<Map<number, string[]>> {
    const stored = new Map<string, string[]>()
    for (const part of parts(inputs, A_PART)) {
      const known = part.map(outpointOf).filter(({ txid }) => !this.options.isNew(txid))
      for (const { topic, outpoint } of await this.tables.admissionsAmong(known)) {
        const key = formatOutpoint(outpoint)
        stored.set(key, [...(stored.get(key) ?? []), topic])
      }
    }
    const spent = new Map<number, string[]>()
    if (stored.size === 0 && this.admitted.size === 0) return spent
    for (const [index, input] of inputs.entries()) {
      if (index % A_PART === 0) await rest()
      const key = formatOutpoint(input)
      const topics = [...(stored.get(key) ?? []), ...(this.admitted.get(key) ?? [])]
      if (topics.length > 0) spent.set(index, topics)
    }
    return spent
  }

  /** What `tm_names` admits and did not before. */
  private async names(
    transaction: TransactionView,
    { before, spent }: { before: AdmissionRecord[]; spent: Map<number, string[]> },
  ): Promise<AdmissionRecord[]> {
    const { rules } = this.options
    const { genesis } = rules
    if (before.some(({ topic }) => topic === TOPICS.names)) return []
    const nodeInputs: NodeInput[] = []
    for (const [input, topics] of spent) {
      const outpoint = transaction.inputs[input]
      if (outpoint === undefined || genesis === undefined) continue
      if (!topics.includes(TOPICS.names) || !isNodeOutpoint(outpoint, genesis)) continue
      nodeInputs.push({ input, spent: await this.output(outpoint) })
    }
    return rules.names(transaction, nodeInputs).map((vout) => this.admission(TOPICS.names, transaction, vout))
  }

  /** A node that is spent; of a stored transaction, what stands around it is not read. */
  private async output(outpoint: Outpoint): Promise<NodeInput['spent']> {
    const { transactions } = this.options
    const raw = transactions.get(outpoint.txid)
    if (raw !== undefined) return outputOf(viewOf({ txid: outpoint.txid, raw }), outpoint.vout)
    return await storedOutput(outpoint, this.tables, A_NODE)
  }

  /** What `tm_ordinals` admits and did not before. */
  private async ordinals(
    transaction: TransactionView,
    { before, spent, again }: { before: AdmissionRecord[]; spent: Map<number, string[]>; again: boolean },
  ): Promise<AdmissionRecord[]> {
    const { rules } = this.options
    const { txid } = transaction
    const outputs = firstOutputs(transaction, OUTPUTS_WITH_ORDINALS)
    const held = new Set(
      before.filter(({ topic }) => topic === TOPICS.ordinals).map(({ outpoint }) => outpoint.vout),
    )
    const ordinals = new Set(
      [...spent].filter(([, topics]) => topics.includes(TOPICS.ordinals)).map(([input]) => input),
    )
    const flow = ordinals.size === 0 ? undefined : await storedFlow(this.tables, transaction)
    const found: AdmissionRecord[] = []
    let candidates = held.size
    for (const [vout, output] of outputs.entries()) {
      if (vout % ROWS_A_STATEMENT === 0) await rest()
      if (held.has(vout)) continue
      const predecessor = flow?.predecessors[vout]
      const receives = predecessor?.kind === 'input' && ordinals.has(predecessor.input)
      if (!receives && !holdsOrdinal(output)) continue
      candidates++
      if (rules.permits(transaction, vout)) found.push(this.admission(TOPICS.ordinals, transaction, vout))
    }
    if (candidates === 0 && !again) {
      const unknown = flow?.inputValues.indexOf(undefined) ?? -1
      const isBehind = unknown !== -1 && [...ordinals].some((input) => input >= unknown)
      rules.onNoOrdinal?.(transaction, isBehind ? unknown : undefined)
    }
    this.flows.set(txid, flow)
    return found
  }

  /** Takes down what admissions say of outputs. */
  private async tell(transaction: TransactionView, admissions: AdmissionRecord[]): Promise<void> {
    const { txid } = transaction
    const { records } = this
    const { genesis } = this.options.rules
    const isOrdinal = admissions.some(({ topic }) => topic === TOPICS.ordinals)
    const flow = this.flows.get(txid) ?? (isOrdinal ? await storedFlow(this.tables, transaction) : undefined)
    this.flows.delete(txid)
    for (const part of parts(admissions, ROWS_A_STATEMENT)) {
      for (const { topic, outpoint } of part) {
        const { vout } = outpoint
        if (topic === TOPICS.names && genesis !== undefined)
          addTo(records, namesRecords({ transaction, vout, genesis }))
        if (topic === TOPICS.ordinals && flow !== undefined)
          addTo(records, ordinalsRecords({ transaction, vout, flow }))
      }
      await rest()
    }
    // One by one: a call takes fewer arguments than a transaction has outputs.
    for (const admission of admissions) records.admissions.push(admission)
    for (const topic of new Set(admissions.map((each) => each.topic))) records.applied.push({ topic, txid })
  }

  private admission(topic: string, { txid }: TransactionView, vout: number): AdmissionRecord {
    return { topic, outpoint: { txid, vout }, score: this.score }
  }
}

function outpointOf({ txid, vout }: Outpoint): Outpoint {
  return { txid, vout }
}

function addTo(records: GraphRecords, { outputs, contents, maps, nodes, names }: GraphRecords): void {
  records.outputs.push(...outputs)
  records.contents.push(...contents)
  records.maps.push(...maps)
  records.nodes.push(...nodes)
  records.names.push(...names)
}
