import type { Sql } from '../../../../backend/src/facts/connection.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT, readTransactionFact } from '../../../../backend/src/facts/log.js'
import {
  type BlockedValue,
  latestOf,
  nextOf,
  purgedAt,
  type RegisterValue,
  register,
} from '../../../../backend/src/facts/registers.js'
import { Pending, State } from '../../../../backend/src/facts/state.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { readBeef } from '../../../../backend/src/graph/read-beef.js'
import { inscriptionOf } from '../../../../backend/src/graph/transaction-records.js'
import { fromHex, toHex } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../../backend/src/protocol/outpoint.js'
import {
  outputOf,
  readTransaction,
  TransactionError,
  type TransactionView,
} from '../../../../backend/src/protocol/transaction.js'
import { holdersOf, overwriteContent, purgedValueOf } from '../../../../backend/src/writer/purged-content.js'
import { changeLog } from './folder.js'
import { MaintenanceError } from './maintenance-error.js'

/** What was removed. */
export interface Purged {
  /** The hashes of the bodies. */
  sha256: string[]
  /** The outputs that they stood in. */
  outpoints: string[]
  /** Transactions that were pending or not final, and had one of them: they are forgotten. */
  forgotten: string[]
  /** Transactions that are damaged, so that it is not known whether they have one. */
  unread: string[]
}

/**
 * Removes the bodies of some outputs from a log, wherever they stand in it, and blocks them. The bytes are overwritten; registers keep
 * hash, type, length and position, so that the index stays as it is. The transactions are never served or proven again.
 *
 * @throws MaintenanceError if the log has no such output, or it has no body; what {@link changeLog} throws.
 */
export async function purge(folder: string, outpoints: readonly Outpoint[], reason: string): Promise<Purged> {
  const purging = (log: LocalLog, sql: Sql): Purged => new Purge(log, sql).run(outpoints, reason)
  return await changeLog(folder, purging, { cleans: () => true })
}

class Purge {
  private readonly hashes = new Set<string>()
  private readonly purged: Purged = { sha256: [], outpoints: [], forgotten: [], unread: [] }

  constructor(
    private readonly log: LocalLog,
    private readonly sql: Sql,
  ) {}

  run(outpoints: readonly Outpoint[], reason: string): Purged {
    const { log, sql, purged } = this
    for (const each of outpoints) this.hashes.add(this.hashAt(each))
    purged.sha256 = [...this.hashes]
    for (let seq = 1; seq <= log.last; seq++) {
      const { kind, key } = log.keyAt(seq) ?? {}
      if (kind === FACT.transaction && key !== undefined) this.purgeFact(key)
    }
    this.forgetPending()
    this.forgetHeld()
    for (const value of purged.sha256) {
      for (const table of ['log', 'chunk'])
        sql.run(`delete from ${table} where kind = ? and key = ?`, FACT.body, fromHex(value))
      const subject = register.block({ kind: 'content', value })
      const { blocked, since } = (latestOf(log, subject)?.value ?? {}) as Partial<BlockedValue>
      this.set(subject, { blocked: true, reason, since: (blocked && since) || Date.now() })
    }
    return purged
  }

  /** The hash of the body of an output, also if it was removed before. */
  private hashAt(outpoint: Outpoint): string {
    const { log, sql } = this
    const before = purgedAt(log, outpoint)
    if (before !== undefined) this.purged.outpoints.push(formatOutpoint(outpoint))
    if (before !== undefined) return before.sha256
    const key = fromHex(outpoint.txid)
    const fact = log.get(FACT.transaction, key)
    const raw = fact
      ? readTransactionFact(fact).raw
      : sql.get('select raw from pending where txid = ?', key)?.raw
    return contentHashAt(outpoint, raw)
  }

  private purgeFact(key: Uint8Array): void {
    const { log, purged } = this
    const txid = toHex(key)
    try {
      const body = Buffer.from(log.get(FACT.transaction, key)?.body as Uint8Array)
      const view = readTransaction(readTransactionFact({ key, body }).raw, { txid })
      const found = holdersOf(view, this.hashes)
      for (const { vout, output } of found) {
        this.set(register.purged({ txid, vout }), purgedValueOf(output, view))
        purged.outpoints.push(formatOutpoint({ txid, vout }))
      }
      // Only now: the same bytes may be the content of one output and part of another.
      for (const { output } of found) overwriteContent(output)
      if (found.length > 0) log.overwrite(FACT.transaction, key, body)
    } catch (error) {
      if (!isDamage(error) && !(error instanceof TransactionError)) throw error
      purged.unread.push(txid)
    }
  }

  private forgetPending(): void {
    const pending = new Pending(this.sql)
    for (const { txid: key } of this.sql.all('select txid from pending')) {
      const txid = toHex(key)
      const raw = pending.get(txid)?.raw
      if (raw === undefined || holdersOf(readTransaction(raw, { txid }), this.hashes).length === 0) continue
      pending.delete(txid)
      this.purged.forgotten.push(txid)
    }
  }

  private forgetHeld(): void {
    for (const { txid: key, beef } of this.sql.all('select txid, beef from held')) {
      if (!isInBeef(beef, this.hashes)) continue
      const txid = toHex(key)
      new State(this.sql).release(txid)
      this.purged.forgotten.push(txid)
    }
  }

  private set(subject: string, value: RegisterValue): void {
    const fact = nextOf(this.log, subject, value)
    if (fact !== undefined) this.log.insert(fact)
  }
}

/** The hash of the body of an output. @param raw Its transaction, if that is known. @throws MaintenanceError if it has none. */
export function contentHashAt(outpoint: Outpoint, raw: Uint8Array | undefined): string {
  const output = raw && outputOf(readTransaction(raw, outpoint), outpoint.vout)
  const content = output && inscriptionOf(output).content
  if (content === undefined) throw new MaintenanceError(`there is no content in ${formatOutpoint(outpoint)}`)
  return sha256(content.body).toString('hex')
}

/** Whether a transaction of a BEEF has one of some bodies. */
export function isInBeef(beef: Uint8Array, hashes: ReadonlySet<string>): boolean {
  const { txids, transaction } = readBeef(beef)
  return txids.some((txid) => holdersOf(transaction(txid) as TransactionView, hashes).length > 0)
}
