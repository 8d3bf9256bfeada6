import type { AdmissionRules, NodeInput } from '../../graph/admission-rules.js'
import type { TransactionStatus } from '../../graph/conflict-resolution.js'
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
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { TOPICS } from '../../protocol/profile.js'
import {
  firstOutputs,
  outputOf,
  type TransactionOutput,
  type TransactionView,
} from '../../protocol/transaction.js'
import { parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { Effort } from './backlog.js'
import type { GraphTables, TransactionTables } from './graph-tables.js'
import { storedFlow } from './link-lineages.js'

interface DerivedAdmissions {
  /** The new admissions, with the records of their outputs. */
  records: GraphRecords
  /** The judged transactions with admitted outputs, or that spend any. */
  kept: Set<string>
  /** Judged transactions that spend ordinals: where these go follows from values that are not known yet, or is known. */
  unplaced: string[]
  placed: string[]
  /** Those left to be judged. */
  left: string[]
}

/**
 * Derives what the topics admit after transactions were inserted: of these, of their children, and of everything that spends
 * an output admitted by that. Transactions are judged parents first, usually once per write: what a transaction admits
 * follows from its own bytes and from what is known of the outputs that it spends. So the same is admitted in whatever order
 * they arrive (`spec/overlay.md`, Order independence).
 *
 * @param inserted.transactions Raw transactions of this write, of which the `fresh` ones are to be judged.
 * @param inserted.again Whether to return the records of earlier admissions, too.
 * @param inserted.children The stored transactions that spend from the `fresh` ones.
 * @param inserted.left Transactions that earlier writes left to be judged.
 * @param inserted.limit How many to judge beside the fresh ones; a large one counts for several.
 */
export async function deriveAdmissions(
  { transactions: tables }: GraphTables,
  rules: AdmissionRules,
  inserted: {
    transactions: ReadonlyMap<string, Uint8Array>
    fresh: string[]
    subjects: readonly string[]
    again: boolean
    children: string[]
    left: string[]
    limit: number
  },
): Promise<DerivedAdmissions> {
  const { transactions, fresh, subjects, again, limit } = inserted
  const known = new Set(fresh)
  const asked = new Set(subjects)
  const read = async (txid: string): Promise<TransactionView | undefined> => {
    const raw = transactions.get(txid)
    return raw === undefined ? await storedTransaction(txid, tables) : viewOf({ txid, raw })
  }
  // Nothing of a new transaction is admitted yet.
  const isNew = (txid: string): boolean => !again && known.has(txid)
  const judge = new Judge(tables, { rules, transactions, isNew })
  if (!again) await judge.lookUpSpent(fresh)
  const queue = new InsertionOrderQueue(tables)
  // A resubmitted transaction is judged again, to report again why nothing of it is admitted.
  await queue.add([...fresh, ...subjects])
  // Their children learn the value of an input, which matters if they spend an ordinal, too.
  const children = inserted.children.filter((txid) => !known.has(txid))
  await queue.add([...(await tables.spendingAdmitted(children)), ...inserted.left])
  // When each was last judged, so that spenders of an admitted output are judged after it.
  const judged = new Map<string, number>()
  let count = 0
  const others = new Effort(limit)
  let admitted: Outpoint[] = []
  const left = new Set<string>()
  for (let txid = queue.take(); txid !== undefined; txid = queue.take()) {
    if (known.has(txid) || asked.has(txid) || !others.isOver) {
      judged.set(txid, ++count)
      const transaction = await read(txid)
      if (transaction !== undefined)
        for (const each of await judge.judge(transaction, again && known.has(txid))) admitted.push(each)
      if (!known.has(txid)) others.add(transaction)
      await yieldBetweenStatements()
    } else left.add(txid)
    if (!queue.isEmpty) continue
    const spends = await tables.spendsOf(admitted)
    admitted = []
    const at = (judgedTxid: string): number => judged.get(judgedTxid) ?? -1
    await queue.add(
      spends.filter(({ outpoint, spender }) => at(spender) < at(outpoint.txid)).map(({ spender }) => spender),
    )
  }
  const { records, kept, flowsKnown } = judge
  const unplaced = [...flowsKnown].filter(([, isKnown]) => !isKnown).map(([txid]) => txid)
  // Those that are new are in no queue.
  const placed = [...flowsKnown].filter(([txid, isKnown]) => isKnown && !isNew(txid)).map(([txid]) => txid)
  return { records, kept, unplaced, placed, left: [...left] }
}

/** A node has some kilobytes and is near the front; the scripts of inputs before it are skipped. */
const A_NODE = { longest: 16 * 1024 * 1024, chunks: 128 }

/** How many inputs are looked up at once: a transaction may have any number. */
const INPUTS_AT_ONCE = 1000

/** A transaction with at most so many inputs is looked up together with others. */
const FEW_INPUTS = 50

/** From how many on, sorting is faster than inserting one by one. */
const MANY = 32

/** Transactions in insertion order, parents before children, each once. */
class InsertionOrderQueue {
  /** The next is last. */
  private readonly waiting: TransactionStatus[] = []
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
      this.waiting.sort((a, b) => b.insertionOrder - a.insertionOrder)
      return
    }
    for (const status of statuses) this.waiting.splice(this.placeOf(status), 0, status)
  }

  private placeOf({ insertionOrder }: TransactionStatus): number {
    let low = 0
    let high = this.waiting.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.waiting[middle]?.insertionOrder ?? 0) > insertionOrder) low = middle + 1
      else high = middle
    }
    return low
  }

  take(): string | undefined {
    const next = this.waiting.pop()
    // It may be queued again: it may have been judged before one of its parents.
    if (next !== undefined) this.queued.delete(next.txid)
    return next?.txid
  }
}

/** Judges transactions by what is known of their inputs, including what this write has admitted so far. */
class Judge {
  readonly records = graphRecords({})
  readonly kept = new Set<string>()
  /** For transactions that spend ordinals, by txid: whether it is known where these go. */
  readonly flowsKnown = new Map<string, boolean>()
  /** The topics that this write admits an output to, by outpoint. */
  private readonly admitted = new Map<string, string[]>()
  /** The admissions of this write, by txid. */
  private readonly found = new Map<string, AdmissionRecord[]>()
  private readonly flows = new Map<string, Flow | undefined>()
  /** What is stored of what each of these transactions spends, or more: the topics by outpoint. */
  private readonly known = new Map<string, Map<string, string[]>>()

  constructor(
    private readonly tables: TransactionTables,
    private readonly options: {
      rules: AdmissionRules
      /** The raw transactions of this write. */
      transactions: ReadonlyMap<string, Uint8Array>
      isNew: (txid: string) => boolean
    },
  ) {}

  /** @returns The outputs of new admissions. */
  async judge(transaction: TransactionView, again: boolean): Promise<Outpoint[]> {
    const { txid } = transaction
    await yieldBetweenStatements()
    const before = await this.admissionsOf(txid)
    await yieldBetweenStatements()
    const spent = await this.admissionsSpent(transaction)
    await yieldBetweenStatements()
    const found = [
      ...(await this.names(transaction, { before, spent })),
      ...(await this.ordinals(transaction, { before, spent, again })),
      ...this.others(transaction, before),
    ]
    for (const each of found) each.score = await this.tables.scores.next()
    if (before.length > 0 || spent.size > 0 || found.length > 0) this.kept.add(txid)
    await this.addRecords(transaction, again ? [...before, ...found] : found)
    this.found.set(txid, [...(this.found.get(txid) ?? []), ...found])
    for (const { topic, outpoint } of found) {
      const key = formatOutpoint(outpoint)
      this.admitted.set(key, [...(this.admitted.get(key) ?? []), topic])
    }
    return found.map(({ outpoint }) => outpoint)
  }

  /** Looks up the stored admissions of what several new transactions spend, in fewer statements than one by one. */
  async lookUpSpent(txids: string[]): Promise<void> {
    const spending: string[] = []
    const spent: Outpoint[] = []
    for (const txid of txids) {
      const raw = this.options.transactions.get(txid)
      const inputs = raw && viewOf({ txid, raw }).inputs
      if (inputs === undefined || inputs.length > FEW_INPUTS) continue
      spending.push(txid)
      spent.push(...inputs.map(outpointOf).filter((outpoint) => !this.options.isNew(outpoint.txid)))
    }
    if (spending.length < 2) return
    const topics = topicsByOutpoint(await this.tables.admissionsAmong(spent))
    for (const txid of spending) this.known.set(txid, topics)
  }

  private async admissionsOf(txid: string): Promise<AdmissionRecord[]> {
    // The admissions of this write are not stored yet.
    const stored = this.options.isNew(txid) ? [] : await this.tables.admissionsOf([txid])
    return [...stored, ...(this.found.get(txid) ?? [])]
  }

  /** The topics that hold the spent outputs, by input index. */
  private async admissionsSpent({ txid, inputs }: TransactionView): Promise<Map<number, string[]>> {
    const stored = this.known.get(txid) ?? (await this.storedAdmissions(inputs))
    const spent = new Map<number, string[]>()
    if (stored.size === 0 && this.admitted.size === 0) return spent
    for (const [index, input] of inputs.entries()) {
      if (index % INPUTS_AT_ONCE === 0) await yieldBetweenStatements()
      const key = formatOutpoint(input)
      const topics = [...(stored.get(key) ?? []), ...(this.admitted.get(key) ?? [])]
      if (topics.length > 0) spent.set(index, topics)
    }
    return spent
  }

  private async storedAdmissions(inputs: TransactionView['inputs']): Promise<Map<string, string[]>> {
    const admissions: AdmissionRecord[] = []
    for (const part of parts(inputs, INPUTS_AT_ONCE)) {
      const stored = part.map(outpointOf).filter(({ txid }) => !this.options.isNew(txid))
      for (const each of await this.tables.admissionsAmong(stored)) admissions.push(each)
    }
    return topicsByOutpoint(admissions)
  }

  /** The new admissions to `tm_names`. */
  private async names(
    transaction: TransactionView,
    { before, spent }: { before: AdmissionRecord[]; spent: Map<number, string[]> },
  ): Promise<AdmissionRecord[]> {
    const { rules } = this.options
    const { genesis } = rules
    if (before.some(({ topic }) => topic === TOPICS.names)) return []
    const nodeInputs: NodeInput[] = []
    if (genesis !== undefined && rules.assumesGenesis === true) {
      const input = transaction.inputs.findIndex((each) => isSameOutpoint(each, genesis))
      if (input !== -1) nodeInputs.push({ input, spent: await this.output(genesis) })
    }
    for (const [input, topics] of spent) {
      const outpoint = transaction.inputs[input]
      if (outpoint === undefined || genesis === undefined) continue
      if (!topics.includes(TOPICS.names) || !isNodeOutpoint(outpoint, genesis)) continue
      if (rules.assumesGenesis === true && isSameOutpoint(outpoint, genesis)) continue
      nodeInputs.push({ input, spent: await this.output(outpoint) })
    }
    return rules.names(transaction, nodeInputs).map((vout) => admission(TOPICS.names, transaction, vout))
  }

  /** A spent node; of a stored transaction, only the node is read. */
  private async output(outpoint: Outpoint): Promise<NodeInput['spent']> {
    const { transactions } = this.options
    const raw = transactions.get(outpoint.txid)
    if (raw !== undefined) return outputOf(viewOf({ txid: outpoint.txid, raw }), outpoint.vout)
    return await storedOutput(outpoint, this.tables, A_NODE)
  }

  /** The new admissions to `tm_ordinals`. */
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
      if (vout % ROWS_A_STATEMENT === 0) await yieldBetweenStatements()
      if (held.has(vout)) continue
      const predecessor = flow?.predecessors[vout]
      const receives = predecessor?.kind === 'input' && ordinals.has(predecessor.input)
      if (!receives && !holdsOrdinal(output)) continue
      candidates++
      if (rules.permits(transaction, vout)) found.push(admission(TOPICS.ordinals, transaction, vout))
    }
    if (candidates === 0 && !again) {
      const unknown = flow?.inputValues.indexOf(undefined) ?? -1
      const isBehind = unknown !== -1 && [...ordinals].some((input) => input >= unknown)
      rules.onNoOrdinal?.(transaction, isBehind ? unknown : undefined)
    }
    this.flows.set(txid, flow)
    if (flow !== undefined) this.flowsKnown.set(txid, !isUnplaced(outputs, flow, ordinals))
    return found
  }

  /** The new admissions to further topics. */
  private others(transaction: TransactionView, before: AdmissionRecord[]): AdmissionRecord[] {
    const held = new Set(before.map(({ topic, outpoint }) => `${topic} ${outpoint.vout}`))
    return (this.options.rules.others?.(transaction) ?? [])
      .filter(({ topic, vout }) => !held.has(`${topic} ${vout}`))
      .map(({ topic, vout }) => admission(topic, transaction, vout))
  }

  /** Adds the records of admitted outputs. */
  private async addRecords(transaction: TransactionView, admissions: AdmissionRecord[]): Promise<void> {
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
      await yieldBetweenStatements()
    }
    // One by one: a transaction may have more outputs than a call takes arguments.
    for (const admission of admissions) records.admissions.push(admission)
    for (const topic of new Set(admissions.map((each) => each.topic))) records.applied.push({ topic, txid })
  }
}

/** Gets its score when the transaction is judged. */
function admission(topic: string, { txid }: TransactionView, vout: number): AdmissionRecord {
  return { topic, outpoint: { txid, vout }, score: 0 }
}

/** Whether an output may receive one of the ordinals that are spent, and has nothing else to be admitted for. */
function isUnplaced(
  outputs: readonly TransactionOutput[],
  { inputValues, predecessors }: Flow,
  ordinals: ReadonlySet<number>,
): boolean {
  const unknown = inputValues.indexOf(undefined)
  if (unknown === -1 || ![...ordinals].some((input) => input >= unknown)) return false
  return outputs.some(
    (output, vout) =>
      output.satoshis === 1 && predecessors[vout]?.kind === 'unknown' && !holdsOrdinal(output),
  )
}

function topicsByOutpoint(admissions: AdmissionRecord[]): Map<string, string[]> {
  const topics = new Map<string, string[]>()
  for (const { topic, outpoint } of admissions) {
    const key = formatOutpoint(outpoint)
    topics.set(key, [...(topics.get(key) ?? []), topic])
  }
  return topics
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
