import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { FACT, readTransactionFact } from '../../../../backend/src/facts/log.js'
import {
  type BlockedValue,
  numberedKey,
  type PurgedValue,
  type RegisterValue,
  readNumberedKey,
  readRegisterFact,
  register,
  registerFact,
} from '../../../../backend/src/facts/registers.js'
import {
  CHANGE,
  type LogRow,
  type NewRow,
  type Place,
  type SharedLog,
  START,
} from '../../../../backend/src/facts/shared-log.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { fromHex, toHex } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { readTransaction, TransactionError } from '../../../../backend/src/protocol/transaction.js'
import { readStateChange } from '../../../../backend/src/writer/mirror.js'
import { holdersOf, purgedValueOf, withoutContent } from '../../../../backend/src/writer/purged-content.js'
import { type DatabasePlace, withSharedLog } from './log-place.js'
import { contentHashAt, isInBeef, type Purged } from './purge.js'

const PAGE = { limit: 1000, maxBytes: 8 * 1024 * 1024 }

/**
 * Removes bodies from a log that gateways share, while they run: as `purge` from one in a folder. The registers that say so come first:
 * each gateway that reads them overwrites its copy, and one that reads the log from the start understands what is overwritten. If it
 * is interrupted, the same command completes it.
 *
 * @throws MaintenanceError if the log has no such output, or it has no body; what {@link withSharedLog} throws; StoreUnavailableError.
 */
export async function purgeShared(
  place: DatabasePlace,
  outpoints: readonly Outpoint[],
  reason: string,
): Promise<Purged> {
  return await withSharedLog(place, { exists: true }, (shared) => purgeLog(shared, outpoints, reason))
}

/** As {@link purgeShared}. */
export async function purgeLog(
  shared: SharedLog,
  outpoints: readonly Outpoint[],
  reason: string,
): Promise<Purged> {
  return await new SharedPurge(shared).run(outpoints, reason)
}

class SharedPurge {
  private readonly hashes = new Set<string>()
  private readonly purged: Purged = { sha256: [], outpoints: [], forgotten: [], unread: [] }
  private place: Place = START
  /** The outputs with such a body, by outpoint; undefined where a register says so already. */
  private readonly holders = new Map<string, PurgedValue | undefined>()
  /** The number and value of the registers that block them, by subject. */
  private readonly blocks = new Map<string, { n: number; value: BlockedValue }>()
  /** The number of the last change of what is pending or held and has one, by subject, and whether it is there. */
  private readonly waiting = new Map<string, { n: number; isThere: boolean }>()

  constructor(private readonly shared: SharedLog) {}

  async run(outpoints: readonly Outpoint[], reason: string): Promise<Purged> {
    const { purged, shared, holders, waiting } = this
    for (const each of outpoints) this.hashes.add(await this.hashAt(each))
    purged.sha256 = [...this.hashes]
    do await this.read()
    while (!(await this.say(reason)))
    await removePurged(shared, holders.keys())
    for (const value of this.hashes) await removeBody(shared, value)
    const discarded = [...waiting].flatMap(([subject, { n }]) =>
      Array.from({ length: n }, (_, index) => numberedKey(subject, index + 1)),
    )
    await shared.discard(discarded)
    purged.outpoints = [...holders.keys()]
    return purged
  }

  /** The hash of the body of an output, also if it was removed before. */
  private async hashAt(outpoint: Outpoint): Promise<string> {
    const { shared } = this
    const before = await shared.get(FACT.register, registerFact(register.purged(outpoint), 1, '').key)
    if (before?.body !== undefined)
      return (readRegisterFact({ ...before, body: before.body }).value as PurgedValue).sha256
    const key = fromHex(outpoint.txid)
    const { body } = (await shared.get(FACT.transaction, key)) ?? {}
    const raw = body ? readTransactionFact({ key, body }).raw : await this.pending(outpoint.txid)
    return contentHashAt(outpoint, raw)
  }

  private async pending(txid: string): Promise<Uint8Array | undefined> {
    let raw: Uint8Array | undefined
    for (let n = 1; ; n++) {
      const row = await this.shared.get(CHANGE, numberedKey(`pending ${txid}`, n))
      if (row === undefined) return raw
      const bytes = readStateChange(row)?.bytes
      if (bytes !== undefined && bytes.length > 0) raw = bytes
    }
  }

  /** Reads on to the end of the log. */
  private async read(): Promise<void> {
    for (;;) {
      const rows = await this.shared.after(this.place, PAGE)
      for (const row of rows) this.look(row)
      this.place = rows.at(-1) ?? this.place
      if (rows.length === 0) return
    }
  }

  private look(row: LogRow): void {
    const { kind, key, body } = row
    if (kind === CHANGE) this.lookAtChange(row)
    else if (kind === FACT.register && body !== undefined) this.lookAtRegister({ key, body })
    else if (kind === FACT.transaction && body !== undefined) {
      const txid = toHex(key)
      const known = this.waiting.get(`pending ${txid}`)
      // A fact says as much of what was pending.
      if (known !== undefined) known.isThere = false
      for (const [vout, value] of this.found(readTransactionFact({ key, body }).raw, txid))
        this.holders.set(formatOutpoint({ txid, vout }), value)
    }
  }

  private lookAtRegister(fact: { key: Uint8Array; body: Uint8Array }): void {
    const { subject, n, value } = readRegisterFact(fact)
    const [kind, name = '', hash = ''] = subject.split(' ')
    if (kind === 'purged' && this.hashes.has((value as PurgedValue).sha256)) this.holders.set(name, undefined)
    if (kind === 'block' && this.hashes.has(hash))
      this.blocks.set(subject, { n, value: value as BlockedValue })
  }

  private lookAtChange(row: LogRow): void {
    const { subject, n } = readNumberedKey(row.key)
    const [kind, txid = ''] = subject.split(' ')
    if (kind !== 'pending' && kind !== 'held') return
    const bytes = readStateChange(row)?.bytes
    const isThere = row.body?.length !== 0
    const isHolder =
      bytes !== undefined &&
      bytes.length > 0 &&
      (kind === 'held' ? isInBeef(bytes, this.hashes) : this.found(bytes, txid).size > 0)
    if (isHolder || this.waiting.has(subject)) this.waiting.set(subject, { n, isThere })
  }

  /** The outputs of a transaction with such a body. What cannot be read is noted. */
  private found(raw: Uint8Array, txid: string): Map<number, PurgedValue> {
    try {
      const view = readTransaction(raw, { txid })
      const found = holdersOf(view, this.hashes)
      return new Map(found.map(({ vout, output }) => [vout, purgedValueOf(output, view)]))
    } catch (error) {
      if (!isDamage(error) && !(error instanceof TransactionError)) throw error
      this.purged.unread.push(txid)
      return new Map()
    }
  }

  /** Writes what is not said yet. @returns Whether nobody else has written meanwhile. */
  private async say(reason: string): Promise<boolean> {
    const { purged, shared, place } = this
    const rows: NewRow[] = [...this.holders].flatMap(([outpoint, value]) =>
      value === undefined ? [] : [registerFact(register.purged(parseOutpoint(outpoint)), 1, value)],
    )
    for (const hash of this.hashes) {
      const subject = register.block({ kind: 'content', value: hash })
      const { n, value: before } = this.blocks.get(subject) ?? { n: 0 }
      const since = before?.blocked ? before.since : Date.now()
      const value: RegisterValue = { blocked: true, reason, since }
      if (!isDeepStrictEqual(before, value)) rows.push(registerFact(subject, n + 1, value))
    }
    const forgotten = [...this.waiting].filter(([, { isThere }]) => isThere)
    for (const [subject, { n }] of forgotten)
      rows.push({ kind: CHANGE, key: numberedKey(subject, n + 1), body: new Uint8Array() })
    purged.forgotten = forgotten.map(([subject]) => subject.split(' ')[1] ?? '')
    if (rows.length === 0) return true
    return await shared.insert({ first: place.seq + 1, id: randomBytes(8), at: Date.now(), rows })
  }
}

/** Overwrites the bodies of outputs, which registers say to be removed, in the transactions of a log. */
export async function removePurged(shared: SharedLog, outpoints: Iterable<string>): Promise<void> {
  for (const each of outpoints) {
    const { txid, vout } = parseOutpoint(each)
    const key = fromHex(txid)
    const row = await shared.get(FACT.transaction, key)
    if (row?.body === undefined) continue
    const body = withoutContent({ key, body: row.body }, vout)
    if (!body.equals(row.body)) await shared.overwrite(row, body)
  }
}

/** Removes a body that is a fact of its own. */
export async function removeBody(shared: SharedLog, hash: string): Promise<void> {
  const key = fromHex(hash)
  const row = await shared.get(FACT.body, key)
  if (row?.body === undefined) return
  await shared.overwrite(row, new Uint8Array(row.body.length))
  await shared.discard([key], FACT.body)
}
