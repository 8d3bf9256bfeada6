import { LRUCache } from 'lru-cache'
import type { Sql } from '../facts/connection.js'
import { type Fact, proofPlace, readTransactionFact } from '../facts/log.js'
import { type PurgedValue, register } from '../facts/registers.js'
import { equalBytes, fromHex, toHex } from '../protocol/bytes.js'
import type { HeaderRange } from '../protocol/header-store.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import {
  outputOf,
  readTransaction,
  type TransactionOutput,
  type TransactionView,
} from '../protocol/transaction.js'
import { rootAt } from './headers.js'
import { hasRegister, registerIn } from './schema.js'

/** The part of the log that the index reads again. */
export interface TransactionSource {
  /** The body of a transaction's fact; undefined if there is none. */
  transaction(txid: Uint8Array): Uint8Array | undefined
  /** The key of the proof at a place. */
  proofKey(seq: number): Uint8Array
  /** Describes the body of an output that was removed; missing if none was. */
  purgedAt?: ((output: Outpoint) => PurgedValue | undefined) | undefined
  /** Whether any body was removed from a transaction. */
  isPurged?: ((txid: Uint8Array) => boolean) | undefined
  /** Looks for newly removed bodies. */
  refresh?(): void
}

export interface TransactionRow {
  id: number
  /** Null if it is not stored. */
  seq: number | null
  ord: number
  own: number | null
  mined: number | null
  seen: number
  said: number | null
  active: number
  mint: number
}

export interface ParsedTransaction {
  view: TransactionView
  /** Outputs refused by the policy of `tm_ordinals`. */
  refused: ReadonlySet<number>
  others: readonly { topic: string; vout: number }[]
}

/** Transactions that were parsed when their facts were made, by the body of the fact. */
const shared = new WeakMap<Uint8Array, TransactionView>()

/** Saves the index from parsing a transaction again when its fact is applied. */
export function shareView(body: Uint8Array, view: TransactionView): void {
  // A view into a larger buffer would keep all of that in memory.
  if (view.raw.buffer.byteLength < 2 * view.raw.length + PARSED_OVERHEAD) shared.set(body, view)
}

/** Memory for parsed transactions, in bytes. */
const PARSED_BYTES = 32 * 1024 * 1024
/** Approximate memory of one beside its raw bytes. */
const PARSED_OVERHEAD = 1000

/** An input: the output that it spends. */
export interface Input {
  pid: number
  vout: number
  /** In satoshis, if it is known. */
  value: number | undefined
  /** Whether its transaction is stored. */
  isKnown: boolean
  /** Whether it is a genuine node. */
  isNode: boolean
}

const COLUMNS = 'id, seq, ord, own, mined, seen, said, active, mint'

/** The rows of transactions and of what they spend, and their bytes. */
export class Transactions {
  private readonly parsed = new LRUCache<number, ParsedTransaction>({
    maxSize: PARSED_BYTES,
    sizeCalculation: ({ view }) => view.raw.length + PARSED_OVERHEAD,
  })
  private last: number

  constructor(
    private readonly sql: Sql,
    readonly source: TransactionSource,
  ) {
    this.last = sql.get('select max(id) as id from tx')?.id ?? 0
  }

  /** The last id given. Setting it takes ids back. */
  get lastId(): number {
    return this.last
  }

  set lastId(id: number) {
    for (let gone = id + 1; gone <= this.last; gone++) this.parsed.delete(gone)
    this.last = id
  }

  byTxid(txid: Uint8Array): TransactionRow | undefined {
    return this.sql.get(`select ${COLUMNS} from tx where txid = ?`, txid) as TransactionRow | undefined
  }

  byId(id: number): TransactionRow {
    const row = this.sql.get(`select ${COLUMNS} from tx where id = ?`, id)
    if (row === undefined) throw new Error(`the index has no transaction ${id}`)
    return row as TransactionRow
  }

  txidOf(id: number): Buffer {
    return this.sql.get('select txid from tx where id = ?', id)?.txid
  }

  /** The row of a transaction, created if missing. */
  refer(txid: Uint8Array): TransactionRow {
    return this.byTxid(txid) ?? this.make(txid)
  }

  /** Makes an output a node before its transaction is stored: it is inactive, as it is in no answer. */
  assumeNode({ txid, vout }: Outpoint): void {
    const { id } = this.refer(fromHex(txid))
    this.sql.run("insert or ignore into node (tid, vout, domain, active) values (?, ?, '', 0)", id, vout)
  }

  private make(txid: Uint8Array): TransactionRow {
    const id = ++this.last
    this.sql.run('insert into tx (id, txid) values (?, ?)', id, txid)
    return { id, seq: null, ord: 0, own: null, mined: null, seen: 0, said: null, active: 1, mint: 0 }
  }

  /** The row of a transaction, created if missing, and the state of one of its outputs. */
  coin(txid: Uint8Array, vout: number): { parent: TransactionRow; isSpent: boolean; isNode: boolean } {
    const known = this.sql.get(
      `select ${COLUMNS}, exists (select 1 from spend where pid = id and vout = ?1) as spent,
        exists (select 1 from node where tid = id and vout = ?1) as node from tx where txid = ?2`,
      vout,
      txid,
    )
    if (known === undefined) return { parent: this.make(txid), isSpent: false, isNode: false }
    return { parent: known as TransactionRow, isSpent: known.spent === 1, isNode: known.node === 1 }
  }

  /** The id for a new transaction, whose row the caller writes. */
  newId(): number {
    return ++this.last
  }

  /**
   * Parses a transaction, even if one is cached under its id: that may be from a fact that was rolled back, while the fact that is
   * applied now may carry the notes of another gateway.
   */
  parse(id: number, txid: Uint8Array, body: Uint8Array): ParsedTransaction {
    const { txid: text, raw, notes } = readTransactionFact({ key: txid, body })
    const parsed = {
      view: shared.get(body) ?? readTransaction(raw, { txid: text }),
      refused: new Set(notes.refused),
      others: notes.others,
    }
    this.parsed.set(id, parsed)
    return parsed
  }

  parsedOf(id: number): ParsedTransaction {
    const known = this.parsed.get(id)
    if (known !== undefined) return known
    const txid = this.txidOf(id)
    const body = this.source.transaction(txid)
    if (body === undefined) throw new Error(`the log lacks the transaction ${txid.toString('hex')}`)
    return this.parse(id, txid, body)
  }

  /** The value of an output of a stored transaction in satoshis; undefined if it has no such output. */
  valueOf(id: number, vout: number): number | undefined {
    const parsed = this.parsed.get(id)
    // Most coins that ordinals are moved with have a row, which is cheaper to read than their transaction.
    const row = parsed ? undefined : this.sql.get('select sats from out where tid = ? and vout = ?', id, vout)
    return row?.sats ?? outputOf((parsed ?? this.parsedOf(id)).view, vout)?.satoshis
  }

  outputOf(id: number, vout: number): TransactionOutput | undefined {
    return outputOf(this.parsedOf(id).view, vout)
  }

  /** The coins that a transaction spends, unordered. `value` is null if unknown. */
  spends(
    id: number,
  ): { txid: Buffer; seq: number | null; pid: number; vout: number; value: number | null; node: number }[] {
    return this.sql.all(
      `select t.txid, t.seq, s.pid, s.vout, s.value, exists (select 1 from node where tid = s.pid and vout = s.vout) as node
        from spend s join tx t on t.id = s.pid where s.sid = ?`,
      id,
    ) as never
  }

  /** The same in the order of its inputs. */
  inputsOf(id: number, view: TransactionView): Input[] {
    const spends = new Map(this.spends(id).map((each) => [`${each.txid.toString('hex')}_${each.vout}`, each]))
    return view.inputs.map((input) => {
      const spend = spends.get(formatOutpoint(input))
      if (spend === undefined) throw new Error(`the index lacks what ${view.txid} spends`)
      const { pid, vout, value, seq, node } = spend
      return { pid, vout, value: value ?? undefined, isKnown: seq !== null, isNode: node === 1 }
    })
  }

  parents(id: number): TransactionRow[] {
    return this.sql.all(
      `select ${COLUMNS} from tx where id in (select pid from spend where sid = ?) and seq is not null`,
      id,
    ) as never
  }

  children(id: number): TransactionRow[] {
    return this.sql.all(
      `select ${COLUMNS} from tx where id in (select sid from spend where pid = ?)`,
      id,
    ) as never
  }

  /** Whether an active transaction spends an output. */
  hasActiveSpender(id: number, vout: number): boolean {
    return (
      this.sql.get(
        'select 1 as one from spend s join tx t on t.id = s.sid where s.pid = ? and s.vout = ? and t.active = 1 limit 1',
        id,
        vout,
      ) !== undefined
    )
  }
}

/**
 * What decides which proofs count. `headers`: the best chain. `tracker`: its verdicts on blocks; all proofs count that it did not
 * refuse. `scripts-only`: nothing, also no verdict of an earlier tracker; the last proof of a transaction counts.
 */
export type ProofTracker = 'headers' | 'tracker' | 'scripts-only'

/** The proofs of transactions. All are kept; which ones count changes with headers and verdicts. */
export class Proofs {
  /** Whether there is a verdict on any block. */
  hasVerdicts: boolean

  constructor(
    private readonly sql: Sql,
    private readonly source: TransactionSource,
    private readonly tracker: ProofTracker,
  ) {
    this.hasVerdicts = hasRegister(sql, 'verdict ')
  }

  /** @param isFirst Whether the transaction has no other. @returns Its height, if it counts. */
  add(id: number, fact: Fact, isFirst = false): number | null {
    const { height, root } = proofPlace(fact.key)
    const isValid = this.isValid(height, () => root)
    const row = [id, height, fact.seq, isValid ? 1 : 0]
    this.sql.run('insert into proof (tid, height, seq, ok) values (?, ?, ?, ?)', ...row)
    if (this.tracker === 'scripts-only' && !isFirst) this.judge(id)
    return isValid ? height : null
  }

  /** Judges proofs by blocks of these heights again. @returns The transactions whose counting proofs changed. */
  judgeBlocks(ranges: readonly HeaderRange[]): number[] {
    const ids = new Set<number>()
    for (const { from, to } of ranges)
      for (const { tid } of this.sql.all('select tid from proof where height between ? and ?', from, to))
        ids.add(tid)
    return [...ids].filter((id) => this.judge(id))
  }

  /** @returns Whether the counting proofs of a transaction changed. */
  private judge(id: number): boolean {
    let [hasLater, isChanged] = [false, false]
    for (const { height, seq, ok } of this.sql.all(
      'select height, seq, ok from proof where tid = ? order by seq desc',
      id,
    )) {
      const isValid = this.isValid(height, () => proofPlace(this.source.proofKey(seq)).root)
      const counts = isValid && !(hasLater && this.tracker === 'scripts-only') ? 1 : 0
      hasLater ||= isValid
      if (counts === ok) continue
      isChanged = true
      this.sql.run(
        'update proof set ok = ? where tid = ? and height = ? and seq = ?',
        counts,
        id,
        height,
        seq,
      )
    }
    return isChanged
  }

  /** @param rootOf Reads the root, which is rarely needed. */
  private isValid(height: number, rootOf: () => Uint8Array): boolean {
    if (this.tracker === 'scripts-only') return true
    if (this.tracker === 'tracker') return !this.hasVerdicts || !this.isRefused(height, rootOf())
    const known = rootAt(this.sql, height)
    return known !== undefined && equalBytes(known, rootOf())
  }

  /** Whether the last verdict on a block is that the chain does not have it. */
  isRefused(height: number, root: Uint8Array): boolean {
    if (!this.hasVerdicts) return false
    return registerIn(this.sql, register.verdict({ height, root: toHex(root) })) === false
  }
}
