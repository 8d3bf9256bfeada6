import type { Row, Sql } from '../facts/connection.js'
import { type FactKind, readUint32, uint32 } from '../facts/log.js'
import { numberedKey, readNumberedKey } from '../facts/registers.js'
import { CHANGE, type LogRow, type NewRow } from '../facts/shared-log.js'
import { type Pending, type PendingOutline, proofsOf, type State } from '../facts/state.js'
import { fromHex, joinBytes, readUtf8, toHex, utf8 } from '../protocol/bytes.js'
import { candidateOf } from './pending-graph.js'

/**
 * Changes of pending and held transactions, as rows of a log. The subject is `pending <txid>` or `held <txid>`; as with
 * registers, its highest number counts. The body is the length of a head (32 bits, big-endian), the head as JSON, and bytes: the
 * raw transaction, if other gateways do not have it yet, or the BEEF. An empty body removes the subject.
 */

interface PendingHead extends Pick<PendingOutline, 'isWaiting' | 'isRaised' | 'isMint'> {
  client?: string | undefined
  /** All of them, the latest last. */
  proofs?: { height: number; root: string; merklePath: string }[]
}

interface HeldHead {
  height: number
  time: number
}

export const EMPTY: Uint8Array = new Uint8Array(0)
const LENGTH_BYTES = 4

/** @param row A row of the table `pending`. @param raw Empty if other gateways have it. */
export function pendingChange(logFile: Sql, row: Row, raw: Uint8Array): Uint8Array {
  const { waiting, raised, mint, client } = row
  const proofs = proofsOf(logFile, row.txid)
  const head: PendingHead = {
    ...{ isWaiting: waiting === 1, isRaised: raised === 1, isMint: mint === 1 },
    ...(client !== null && { client }),
    ...(proofs.length > 0 && {
      proofs: proofs.map((each) => ({ ...each, merklePath: toHex(each.merklePath) })),
    }),
  }
  return writeChange(head, raw)
}

/** @param row A row of the table `held`. */
export function heldChange({ lock_height, lock_time, beef }: Row): Uint8Array {
  return writeChange({ height: lock_height, time: lock_time }, beef)
}

/** The pending and held transactions in the file of a log, in order, as changes with the number 1. */
export function* stateRows(logFile: Sql): Generator<NewRow> {
  const first = 'select * from pending where arrived > ? order by arrived limit 1'
  for (let row = logFile.get(first, 0); row !== undefined; row = logFile.get(first, row.arrived))
    yield changeRow(`pending ${toHex(row.txid)}`, 1, pendingChange(logFile, row, row.raw))
  for (const { txid } of logFile.all('select txid from held'))
    yield stateRow(logFile, `held ${toHex(txid)}`) as NewRow
}

/** The pending or held transaction of a subject in the file of a log, as a change with the number 1; undefined if there is none. */
export function stateRow(logFile: Sql, subject: string): NewRow | undefined {
  const [table, txid = ''] = subject.split(' ')
  if (table !== 'pending' && table !== 'held') return undefined
  const row = logFile.get(`select * from ${table} where txid = ?`, fromHex(txid))
  if (row === undefined) return undefined
  return changeRow(subject, 1, table === 'held' ? heldChange(row) : pendingChange(logFile, row, row.raw))
}

/** @param body By default, the subject is removed. */
export function changeRow(subject: string, n: number, body = EMPTY): NewRow {
  return { kind: CHANGE, key: numberedKey(subject, n), body }
}

/** The bytes in a change of a pending or held transaction; undefined if it was discarded, or removes the transaction. */
export function readStateChange({ body }: Pick<LogRow, 'body'>): { bytes: Uint8Array } | undefined {
  return body === undefined || body.length === 0 ? undefined : readChange(body)
}

/** Applies a change to the file of a log. */
export function applyChange(
  files: { pending: Pending; state: State },
  { key, body }: Pick<LogRow, 'key' | 'body'>,
): void {
  // It was discarded, so another change follows, or the transaction itself.
  if (body === undefined) return
  const [subject = '', txid = ''] = readNumberedKey(key).subject.split(' ')
  if (subject === 'held') applyHeld(files.state, { txid, body })
  else if (subject === 'pending') applyPending(files.pending, { txid, body })
}

function applyHeld(state: State, { txid, body }: { txid: string; body: Uint8Array }): void {
  if (body.length === 0) state.release(txid)
  else {
    const { head, bytes: beef } = readChange<HeldHead>(body)
    state.hold({ txid, lock: head, beef }, { maxCount: Number.POSITIVE_INFINITY })
  }
}

function applyPending(pending: Pending, { txid, body }: { txid: string; body: Uint8Array }): void {
  if (body.length === 0) {
    pending.delete(txid)
    return
  }
  const { head, bytes: raw } = readChange<PendingHead>(body)
  const { isWaiting, isRaised, isMint, client } = head
  const proofs = (head.proofs ?? []).map((each) => ({ ...each, merklePath: fromHex(each.merklePath) }))
  if (raw.length === 0) {
    pending.setWaiting(txid, isWaiting, { isMint })
    if (isRaised) pending.raise(txid)
  } else {
    // It takes this place among the others, also if it was refused here.
    pending.delete(txid)
    const { spends } = candidateOf({ txid, raw })
    pending.add({ txid, raw }, spends, { isWaiting, isRaised, isMint, client })
  }
  pending.replaceProofs(txid, proofs)
}

function writeChange(head: PendingHead | HeldHead, bytes: Uint8Array): Uint8Array {
  const text = utf8(JSON.stringify(head))
  return joinBytes([uint32(text.length), text, bytes])
}

function readChange<Head>(body: Uint8Array): { head: Head; bytes: Uint8Array } {
  const end = LENGTH_BYTES + readUint32(body, 0)
  return { head: JSON.parse(readUtf8(body.subarray(LENGTH_BYTES, end))) as Head, bytes: body.subarray(end) }
}

/** A fact that the operator has removed, and its place. */
export interface PrunedFact {
  kind: FactKind
  key: Uint8Array
  seq: number
}

/** A row that removes a fact. The fact may come again later, at another place. An index derived with it must be derived again. */
export function prunedRow({ kind, key, seq }: PrunedFact): NewRow {
  return changeRow(`${PRUNED} ${kind} ${toHex(key)}`, seq)
}

/** The fact that a row removes. */
export function prunedBy(row: Pick<LogRow, 'kind' | 'key'>): PrunedFact | undefined {
  if (row.kind !== CHANGE) return undefined
  const { subject, n: seq } = readNumberedKey(row.key)
  const [name, kind, key = ''] = subject.split(' ')
  return name === PRUNED ? { kind: Number(kind) as FactKind, key: fromHex(key), seq } : undefined
}

/** The places of all facts that changes in the copy of a log remove. */
export function prunedPlaces(logFile: Sql): number[] {
  const rows = logFile.all(
    'select kind, key from log where kind = ? and key between ? and ?',
    ...[CHANGE, utf8(`${PRUNED} `), utf8(`${PRUNED}!`)],
  )
  return rows.flatMap((row) => prunedBy(row as LogRow)?.seq ?? [])
}

const PRUNED = 'pruned'
