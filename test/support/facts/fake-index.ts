import { Sql } from '../../../backend/src/facts/connection.js'
import { type Fact, type NewFact, proofFact, transactionFact } from '../../../backend/src/facts/log.js'
import { type RegisterValue, registerFact } from '../../../backend/src/facts/registers.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { Index } from '../../../backend/src/index/apply.js'
import type { ProofTracker } from '../../../backend/src/index/transactions.js'
import type { FakeChain, FakeTransaction } from '../protocol/fake-chain.js'

/** An index in memory, and a log of what it was given. */
export class FakeIndex {
  readonly sql = new Sql(':memory:')
  index: Index
  private readonly bodies = new Map<string, Uint8Array>()
  private readonly numbers = new Map<string, number>()
  /** By their places, from 1. */
  private readonly keys: Uint8Array[] = []

  constructor(
    private readonly chain: Pick<FakeChain, 'deployment'>,
    private readonly tracker: ProofTracker = 'tracker',
  ) {
    this.index = this.open()
  }

  /** A new index over the same rows. */
  open(): Index {
    const source = {
      transaction: (txid: Uint8Array) => this.bodies.get(Buffer.from(txid).toString('hex')),
      proofKey: (seq: number) => this.keys[seq - 1] ?? new Uint8Array(),
    }
    const { deployment } = this.chain
    const rules = admissionRules({ deployment })
    this.index = new Index(this.sql, source, { rules, tracker: this.tracker })
    return this.index
  }

  /** Gives facts their places. */
  place(facts: readonly NewFact[]): Fact[] {
    const placed = facts.map((fact) => ({ ...fact, seq: this.keys.push(fact.key), at: 0 }))
    for (const { key, body } of placed) this.bodies.set(Buffer.from(key).toString('hex'), body)
    return placed
  }

  /** Applies facts in one commit. */
  apply(...facts: NewFact[]): void {
    this.sql.exec('begin')
    this.index.apply(this.place(facts))
    this.index.flush()
    this.sql.exec('commit')
  }

  transactions(...transactions: FakeTransaction[]): void {
    for (const each of transactions) this.apply(transactionFact(each))
  }

  /** The next value of a register. */
  register(subject: string, value: RegisterValue): void {
    const n = (this.numbers.get(subject) ?? 0) + 1
    this.numbers.set(subject, n)
    this.apply(registerFact(subject, n, value))
  }

  prove({ txid }: FakeTransaction, { height, root }: { height: number; root: string }): void {
    this.apply(proofFact(txid, { height, root, merklePath: new Uint8Array(1) }))
  }

  /** Columns of an output. */
  output({ txid }: FakeTransaction, vout: number, columns: string): Record<string, unknown> {
    const found = this.sql.all(
      `select ${columns} from out o join tx t on t.id = o.tid where t.txid = ? and o.vout = ?`,
      Buffer.from(txid, 'hex'),
      vout,
    )
    if (found[0] === undefined) throw new Error(`no row of ${txid}_${vout}`)
    return found[0]
  }

  close(): void {
    this.sql.close()
  }
}
