import { rm } from 'node:fs/promises'
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
import { appended, CHANGE, type NewRow, START } from '../../../../backend/src/facts/shared-log.js'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { readBeef } from '../../../../backend/src/graph/read-beef.js'
import { inscriptionOf } from '../../../../backend/src/graph/transaction-records.js'
import { fromHex, toHex } from '../../../../backend/src/protocol/bytes.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import {
  outputOf,
  readTransaction,
  TransactionError,
  type TransactionView,
} from '../../../../backend/src/protocol/transaction.js'
import { imagesFolder } from '../../../../backend/src/writer/local-writer.js'
import { holdersOf, purgedValueOf, withoutContent } from '../../../../backend/src/writer/purged-content.js'
import { changeRow, readStateChange } from '../../../../backend/src/writer/state-changes.js'
import { type CommandLog, type FoundRow, pagesOf } from './folder-log.js'
import { changeLog, type LogPlace } from './log-place.js'

export interface Purged {
  /** The hashes of the bodies. */
  sha256: string[]
  /** The outputs that contained them. */
  outpoints: string[]
  /** Pending or non-final transactions that contained one of them, and were forgotten. */
  forgotten: string[]
  /** Damaged transactions, which may contain one of them. */
  unread: string[]
}

/**
 * Removes the bodies of some outputs from a log, wherever they occur in it, and blocks them. The bytes are overwritten; registers
 * keep hash, type, length and position, so that the index does not change. The transactions are never served or proven again.
 *
 * In a database, gateways may run: registers are written first, so that each gateway that reads them overwrites its copy, and one
 * that reads the log from the start understands the overwritten bytes. The same command completes an interrupted one.
 *
 * @throws GeneralError if the log has no such output, or it has no body; as {@link changeLog}; StoreUnavailableError.
 */
export async function purge(
  place: LogPlace,
  outpoints: readonly Outpoint[],
  reason: string,
): Promise<Purged> {
  return await changeLog(place, async (log) => {
    const purged = await purgeLog(log, outpoints, reason)
    // Gateways on a database remove theirs when they read the registers.
    if ('folder' in place) await rm(imagesFolder(place.folder), { recursive: true, force: true })
    return purged
  })
}

export async function purgeLog(
  log: CommandLog,
  outpoints: readonly Outpoint[],
  reason: string,
): Promise<Purged> {
  return await new Purge(log).run(outpoints, reason)
}

class Purge {
  private readonly hashes = new Set<string>()
  private readonly purged: Purged = { sha256: [], outpoints: [], forgotten: [], unread: [] }
  private place = START
  /** The outputs with such a body: the number of their last register, and the value of the next if they came (again) after that. */
  private readonly holders = new Map<string, { n: number; value?: PurgedValue }>()
  /** The number and value of the registers that block the bodies, by subject. */
  private readonly blocks = new Map<string, { n: number; value: BlockedValue }>()
  /** Pending or held transactions with such a body, by subject: last number, presence, and the places of their changes. */
  private readonly waiting = new Map<string, { n: number; isThere: boolean; seqs: number[] }>()

  constructor(private readonly log: CommandLog) {}

  async run(outpoints: readonly Outpoint[], reason: string): Promise<Purged> {
    const { purged, log, holders, waiting } = this
    for (const each of outpoints) this.hashes.add(await this.hashAt(each))
    purged.sha256 = [...this.hashes]
    do await this.read()
    while (!(await this.say(reason)))
    await removePurged(log, holders.keys())
    for (const value of this.hashes) await removeBody(log, value)
    await log.discard([...waiting.values()].flatMap(({ seqs }) => seqs))
    const isForgotten = (outpoint: string): boolean => purged.forgotten.includes(parseOutpoint(outpoint).txid)
    purged.outpoints = [...holders.keys()].filter((each) => !isForgotten(each))
    return purged
  }

  /** The hash of an output's body, even if the body was removed before. */
  private async hashAt(outpoint: Outpoint): Promise<string> {
    const { log } = this
    const before = await log.get(FACT.register, registerFact(register.purged(outpoint), 1, '').key)
    if (before?.body !== undefined)
      return (readRegisterFact({ ...before, body: before.body }).value as PurgedValue).sha256
    const key = fromHex(outpoint.txid)
    const { body } = (await log.get(FACT.transaction, key)) ?? {}
    const raw = body ? readTransactionFact({ key, body }).raw : await this.waitingBytes(outpoint)
    return contentHashAt(outpoint, raw)
  }

  /** The transaction of an output that is pending or held. */
  private async waitingBytes({ txid }: Outpoint): Promise<Uint8Array | undefined> {
    let raw: Uint8Array | undefined
    for (const kind of ['pending', 'held'])
      for (let n = 1; ; n++) {
        const row = await this.log.get(CHANGE, numberedKey(`${kind} ${txid}`, n))
        if (row === undefined) break
        const bytes = readStateChange(row)?.bytes
        if (bytes !== undefined && bytes.length > 0)
          raw = kind === 'held' ? readBeef(bytes).subject.raw : bytes
      }
    return raw
  }

  private async read(): Promise<void> {
    const onDamage = ({ kind, key }: Pick<FoundRow, 'kind' | 'key'>): void => {
      if (kind === FACT.transaction) this.purged.unread.push(toHex(key))
    }
    for await (const rows of pagesOf(this.log, { from: this.place, onDamage }))
      for (const row of rows) {
        this.look(row)
        const { seq, first = 0, batch = '' } = row
        if (seq !== undefined) this.place = { seq, first, batch }
      }
  }

  private look(row: FoundRow): void {
    const { kind, key, body } = row
    if (kind === CHANGE) this.lookAtChange(row)
    else if (kind === FACT.register && body !== undefined) this.lookAtRegister({ key, body })
    else if (kind === FACT.transaction && body !== undefined) {
      const txid = toHex(key)
      const known = this.waiting.get(`pending ${txid}`)
      // Once it is a fact, it is no longer pending.
      if (known !== undefined) known.isThere = false
      this.findIn(readTransactionFact({ key, body }).raw, txid)
    }
  }

  private lookAtRegister(fact: { key: Uint8Array; body: Uint8Array }): void {
    const { subject, n, value } = readRegisterFact(fact)
    const [kind, name = '', hash = ''] = subject.split(' ')
    if (kind === 'purged' && this.hashes.has((value as PurgedValue).sha256)) this.holders.set(name, { n })
    if (kind === 'block' && this.hashes.has(hash))
      this.blocks.set(subject, { n, value: value as BlockedValue })
  }

  private lookAtChange(row: FoundRow): void {
    const { subject, n } = readNumberedKey(row.key)
    const [kind, txid = ''] = subject.split(' ')
    if (kind !== 'pending' && kind !== 'held') return
    const bytes = readStateChange(row)?.bytes
    const isThere = row.body?.length !== 0
    const isHolder = bytes !== undefined && bytes.length > 0 && this.isIn(bytes, { kind, txid })
    const known = this.waiting.get(subject)
    if (known === undefined && !isHolder) return
    const seqs = known?.seqs ?? []
    if (row.seq !== undefined) seqs.push(row.seq)
    this.waiting.set(subject, { n, isThere, seqs })
  }

  private isIn(bytes: Uint8Array, { kind, txid }: { kind: string; txid: string }): boolean {
    if (kind === 'pending') return this.findIn(bytes, txid)
    const { txids, transaction } = readBeef(bytes)
    return txids.map((each) => this.findIn((transaction(each) as TransactionView).raw, each)).includes(true)
  }

  /** Notes the outputs of a transaction that contain such a body. A transaction that cannot be read is noted. */
  private findIn(raw: Uint8Array, txid: string): boolean {
    try {
      const view = readTransaction(raw, { txid })
      const found = holdersOf(view, this.hashes)
      for (const { vout, output } of found) {
        const outpoint = formatOutpoint({ txid, vout })
        const { n } = this.holders.get(outpoint) ?? { n: 0 }
        this.holders.set(outpoint, { n, value: purgedValueOf(output, view) })
      }
      return found.length > 0
    } catch (error) {
      if (!(error instanceof TransactionError)) throw error
      this.purged.unread.push(txid)
      return false
    }
  }

  /** Writes the missing registers and changes. @returns Whether nobody else has written meanwhile. */
  private async say(reason: string): Promise<boolean> {
    const { purged, log, place } = this
    const forgotten = [...this.waiting].filter(([, { isThere }]) => isThere)
    purged.forgotten = forgotten.map(([subject]) => subject.split(' ')[1] ?? '')
    // First, as a gateway removes what is left in its files once it has read registers.
    const rows: NewRow[] = forgotten.map(([subject, { n }]) => changeRow(subject, n + 1))
    for (const [outpoint, { n, value }] of this.holders)
      if (value !== undefined) rows.push(registerFact(register.purged(parseOutpoint(outpoint)), n + 1, value))
    for (const hash of this.hashes) {
      const subject = register.block({ kind: 'content', value: hash })
      const { n, value: before } = this.blocks.get(subject) ?? { n: 0 }
      const since = before?.blocked ? before.since : Date.now()
      const value: RegisterValue = { blocked: true, reason, since }
      if (!isDeepStrictEqual(before, value)) rows.push(registerFact(subject, n + 1, value))
    }
    return rows.length === 0 || (await log.insert(appended(place.seq, rows)))
  }
}

/** Overwrites the bodies of outputs, which registers declare removed, in the transactions of a log. */
export async function removePurged(log: CommandLog, outpoints: Iterable<string>): Promise<void> {
  for (const each of outpoints) {
    const { txid, vout } = parseOutpoint(each)
    const key = fromHex(txid)
    const row = await log.get(FACT.transaction, key)
    if (row?.body === undefined) continue
    const body = withoutContent({ key, body: row.body }, vout)
    if (!body.equals(row.body)) await log.overwrite(row, body)
  }
}

export async function removeBody(log: CommandLog, hash: string): Promise<void> {
  const key = fromHex(hash)
  const row = await log.get(FACT.body, key)
  if (row?.body === undefined) return
  await log.overwrite(row, new Uint8Array(row.body.length))
  await log.discard([row.seq])
}

/** The hash of an output's body. @param raw Its transaction, if known. @throws GeneralError if the output has no body. */
function contentHashAt(outpoint: Outpoint, raw: Uint8Array | undefined): string {
  const output = raw && outputOf(readTransaction(raw, outpoint), outpoint.vout)
  const content = output && inscriptionOf(output).content
  if (content === undefined)
    throw new GeneralError('NOT_FOUND', `there is no content in ${formatOutpoint(outpoint)}`)
  return sha256(content.body).toString('hex')
}
