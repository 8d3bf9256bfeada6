import type { Sql } from '../facts/connection.js'
import type { Fact } from '../facts/log.js'
import { type BlockedValue, readRegisterFact } from '../facts/registers.js'
import type { Transactions } from './transactions.js'

export type RegisterChange =
  | { kind: 'block'; subject: { kind: string; value: string }; blocked: boolean }
  /** The id of the transaction. */
  | { kind: 'sighting'; id: number }
  | { kind: 'verdict'; height: number; root: Buffer }
  | { kind: 'setting'; name: string }
  | { kind: 'purged' }

/** Registers: of the facts about one subject, the one with the highest number counts. */
export class Registers {
  private hasBlockedOutputs: boolean

  constructor(
    private readonly sql: Sql,
    private readonly transactions: Transactions,
  ) {
    this.hasBlockedOutputs =
      sql.get("select 1 as one from blocked where kind = 'outpoint' limit 1") !== undefined
  }

  /** @returns Undefined if it changes nothing: a later one is known, or it says the same. */
  apply(fact: Fact): RegisterChange | undefined {
    const { subject, n, value } = readRegisterFact(fact)
    const [kind, ...words] = subject.split(' ')
    switch (kind) {
      case 'block':
        return this.block(words[0] ?? '', { value: words.slice(1).join(' '), n, ...(value as BlockedValue) })
      case 'sighting':
        return this.sight(Buffer.from(words[0] ?? '', 'hex'), n, value === 'seen' ? 1 : 0)
      case 'verdict':
        return this.judgeBlock(Number(words[0]), Buffer.from(words[1] ?? '', 'hex'), {
          n,
          ok: value === true ? 1 : 0,
        })
      case 'setting':
        return this.set(words.join(' '), n, String(value))
      case 'purged':
        // Outputs are derived with it from the beginning: `Lineages`.
        return { kind: 'purged' }
      default:
        throw new Error(`an unknown register: ${subject}`)
    }
  }

  hasOutput({ tid, vout }: { tid: number; vout: number }): boolean {
    if (!this.hasBlockedOutputs) return false
    const outpoint = `${this.transactions.txidOf(tid).toString('hex')}_${vout}`
    return this.isBlocked('outpoint', outpoint)
  }

  isBlocked(kind: string, value: string): boolean {
    const row = this.sql.get('select blocked from blocked where kind = ? and value = ?', kind, value)
    return row?.blocked === 1
  }

  private block(
    kind: string,
    { value, blocked, reason, since, n }: BlockedValue & { value: string; n: number },
  ): RegisterChange | undefined {
    const before = this.isBlocked(kind, value)
    const changed = this.sql.run(
      `insert into blocked (kind, value, blocked, reason, since, n) values (?, ?, ?, ?, ?, ?)
        on conflict (kind, value) do update set blocked = excluded.blocked, reason = excluded.reason, since = excluded.since,
        n = excluded.n where excluded.n > n`,
      ...[kind, value, blocked ? 1 : 0, reason, since, n],
    )
    if (kind === 'outpoint') this.hasBlockedOutputs = true
    return changed > 0 && before !== blocked
      ? { kind: 'block', subject: { kind, value }, blocked }
      : undefined
  }

  private sight(txid: Buffer, n: number, said: number): RegisterChange | undefined {
    const { id } = this.transactions.refer(txid)
    const changed = this.sql.run(
      'insert into sighting (tid, n) values (?, ?) on conflict (tid) do update set n = excluded.n where excluded.n > n',
      id,
      n,
    )
    if (changed === 0) return undefined
    this.sql.run('update tx set said = ? where id = ?', said, id)
    return { kind: 'sighting', id }
  }

  private judgeBlock(
    height: number,
    root: Buffer,
    { n, ok }: { n: number; ok: number },
  ): RegisterChange | undefined {
    const changed = this.sql.run(
      `insert into verdict (height, root, ok, n) values (?, ?, ?, ?)
        on conflict (height, root) do update set ok = excluded.ok, n = excluded.n where excluded.n > n`,
      ...[height, root, ok, n],
    )
    return changed > 0 ? { kind: 'verdict', height, root } : undefined
  }

  private set(name: string, n: number, value: string): RegisterChange | undefined {
    const changed = this.sql.run(
      `insert into setting (name, value, n) values (?, ?, ?)
        on conflict (name) do update set value = excluded.value, n = excluded.n where excluded.n > n`,
      ...[name, value, n],
    )
    return changed > 0 ? { kind: 'setting', name } : undefined
  }
}
