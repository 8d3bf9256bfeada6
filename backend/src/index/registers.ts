import type { Sql } from '../facts/connection.js'
import type { Fact } from '../facts/log.js'
import {
  type BlockedValue,
  blockedSubject,
  type RegisterValue,
  readRegisterFact,
  register,
} from '../facts/registers.js'
import type { BlockedSubject } from '../graph/blocklist.js'
import { formatOutpoint } from '../protocol/outpoint.js'
import { hasRegister, registerIn } from './schema.js'
import type { Transactions } from './transactions.js'

export type RegisterChange =
  | { kind: 'block'; subject: BlockedSubject; blocked: boolean }
  /** The id of the transaction. */
  | { kind: 'sighting'; id: number }
  | { kind: 'verdict'; height: number }
  | { kind: 'setting'; name: string }
  | { kind: 'purged' }

/** Registers: of the facts about one subject, the one with the highest number counts. */
export class Registers {
  private hasBlockedOutputs: boolean

  constructor(
    private readonly sql: Sql,
    private readonly transactions: Transactions,
  ) {
    this.hasBlockedOutputs = hasRegister(sql, BLOCKED_OUTPUTS)
  }

  /** @returns Undefined if it changes nothing: a later one is known, or it says the same. */
  apply(fact: Fact): RegisterChange | undefined {
    const { subject, n, value } = readRegisterFact(fact)
    const [kind, ...words] = subject.split(' ')
    // Outputs are derived with it from the beginning: `Lineages`.
    if (kind === 'purged') return { kind }
    if (kind === 'sighting') return this.sight(Buffer.from(words[0] ?? '', 'hex'), { n, value })
    const before = registerIn(this.sql, subject)
    const changed = this.sql.run(
      `insert into register (subject, n, value) values (?, ?, ?)
        on conflict (subject) do update set n = excluded.n, value = excluded.value where excluded.n > n`,
      ...[subject, n, JSON.stringify(value)],
    )
    if (changed === 0) return undefined
    switch (kind) {
      case 'block':
        this.hasBlockedOutputs ||= subject.startsWith(BLOCKED_OUTPUTS)
        if (isBlocking(before) === isBlocking(value)) return undefined
        return { kind, subject: blockedSubject(subject), blocked: isBlocking(value) }
      case 'verdict':
        return { kind, height: Number(words[0]) }
      case 'setting':
        return { kind, name: words.join(' ') }
      default:
        throw new Error(`an unknown register: ${subject}`)
    }
  }

  hasOutput({ tid, vout }: { tid: number; vout: number }): boolean {
    if (!this.hasBlockedOutputs) return false
    const value = formatOutpoint({ txid: this.transactions.txidOf(tid).toString('hex'), vout })
    return isBlocking(registerIn(this.sql, register.block({ kind: 'outpoint', value })))
  }

  private sight(txid: Buffer, { n, value }: { n: number; value: RegisterValue }): RegisterChange | undefined {
    const { id } = this.transactions.refer(txid)
    const changed = this.sql.run(
      'update tx set said = ?1, sighting = ?2 where id = ?3 and ifnull(sighting, 0) < ?2',
      ...[value === 'seen' ? 1 : 0, n, id],
    )
    return changed > 0 ? { kind: 'sighting', id } : undefined
  }
}

const BLOCKED_OUTPUTS = register.block({ kind: 'outpoint', value: '' })

function isBlocking(value: RegisterValue | undefined): boolean {
  return (value as BlockedValue | undefined)?.blocked === true
}
