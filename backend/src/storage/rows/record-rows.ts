import type { BlockedRecord } from '../../graph/blocklist.js'
import { type FailedHook, noteBeef, subjectOf } from '../../graph/hook-outbox.js'
import type { HeldSubmission } from '../../graph/host-store.js'
import { sha256 } from '../../graph/native-hash.js'
import type {
  AdmissionRecord,
  AppliedRecord,
  NameRecord,
  NodeRecord,
  OutputRecord,
  SpendRecord,
  TransactionRecord,
} from '../../graph/records.js'
import { utf8 } from '../../protocol/bytes.js'
import { type Outpoint, parseOutpoint } from '../../protocol/outpoint.js'
import type { Lineage } from '../read/lineages.js'
import { bytesOf, hashColumn, hexOf, type OutpointRow, outpointColumns, outpointOf } from './columns.js'

/** How records stand in rows: of tables, or the documents of collections. */

export type Row = Record<string, unknown>

/**
 * An output in the lineage in which it is known to go on, or as it stands alone. One transaction may have thousands of them,
 * so the row is written out: an object that others are spread into takes ten times as long.
 */
export function outputRow(output: OutputRecord, place?: { lineage: Lineage; step: number }): Row {
  const { outpoint, satoshis, content, owner, parent, mapLength, previous, unsettled, carrier } = output
  const { txid, vout } = outpoint
  const [lineageTxid, lineageVout] = place?.lineage ?? [hashColumn(txid), vout]
  const step = place?.step ?? 0
  return {
    txid: hashColumn(txid),
    vout,
    satoshis,
    content_sha256: content ? hashColumn(content.sha256) : null,
    content_type: content ? Buffer.from(content.contentType, 'utf8') : null,
    content_length: content ? content.length : null,
    previous_txid: previous ? hashColumn(previous.txid) : null,
    previous_vout: previous ? previous.vout : null,
    unsettled: unsettled === true,
    carrier: carrier === true,
    lineage_txid: lineageTxid,
    lineage_vout: lineageVout,
    step,
    content_step: content ? step : null,
    owner: owner === undefined ? null : hashColumn(owner),
    parent_txid: parent ? hashColumn(parent.txid) : null,
    parent_vout: parent ? parent.vout : null,
    parent_step: parent ? step : null,
    map_length: mapLength ?? null,
    map_step: mapLength === undefined ? null : step,
    merged_length: null,
  }
}

export function nodeRow({ outpoint, domain }: NodeRecord): Row {
  return { ...outpointColumns(outpoint), domain }
}

export function nameRow({ outpoint, name }: NameRecord): Row {
  return { name, ...outpointColumns(outpoint) }
}

export function spendRow({ outpoint, spender, satoshis }: SpendRecord): Row {
  const { txid, vout } = outpoint
  return { txid: hashColumn(txid), vout, spender: hashColumn(spender), satoshis: satoshis ?? null }
}

/** A transaction that nothing admitted depends on. `bytes` is the length of the raw transaction. */
export interface PendingRecord {
  txid: string
  proven: boolean
  arrival: number
  bytes: number
}

export function pendingRow({ txid, proven, arrival, bytes }: PendingRecord): Row {
  return { txid: hashColumn(txid), proven, arrival, bytes }
}

export function admissionRow({ outpoint, topic, score }: AdmissionRecord): Row {
  const { txid, vout } = outpoint
  return { txid: hashColumn(txid), vout, topic, score }
}

export function appliedRow({ txid, topic }: AppliedRecord): Row {
  return { txid: hashColumn(txid), topic }
}

export function pendingOf(row: {
  txid: unknown
  proven: unknown
  arrival: unknown
  bytes: unknown
}): PendingRecord {
  const { txid, proven, arrival, bytes } = row
  return { txid: hexOf(txid), proven: Number(proven) === 1, arrival: Number(arrival), bytes: Number(bytes) }
}

export interface HeldRow {
  txid: unknown
  lock_height: unknown
  lock_time: unknown
  beef: unknown
}

export function heldRow({ txid, lock, beef }: HeldSubmission): Row {
  return {
    txid: hashColumn(txid),
    lock_height: lock.height,
    lock_time: lock.time,
    beef: Buffer.from(beef),
  }
}

export function heldOf({ txid, lock_height, lock_time, beef }: HeldRow): HeldSubmission {
  return {
    txid: hexOf(txid),
    lock: { height: Number(lock_height), time: Number(lock_time) },
    beef: Uint8Array.from(bytesOf(beef)),
  }
}

/** What of a transaction's row says that it is proven. */
export function proofColumns(proof: TransactionRecord['proof']): Row {
  return {
    merkle_path: proof ? Buffer.from(proof.merklePath) : null,
    height: proof?.height ?? null,
    merkle_root: proof ? hashColumn(proof.root) : null,
  }
}

/** What transactions say of their outputs. */
export interface Facts {
  outputs: OutputRecord[]
  nodes: NodeRecord[]
  names: NameRecord[]
}

/** What transactions would say that do not count. */
export function inactiveFactRows({ outputs, nodes, names }: Facts): Row[] {
  const row = (kind: string, fact: { outpoint: Outpoint }): Row => ({
    ...outpointColumns(fact.outpoint),
    kind,
    body: Buffer.from(JSON.stringify(fact), 'utf8'),
    content_sha256: null,
  })
  return [
    ...outputs.map((output) => ({
      ...row(output.carrier ? 'carrier' : 'output', output),
      content_sha256: output.content ? hashColumn(output.content.sha256) : null,
    })),
    ...nodes.map((node) => row('node', node)),
    ...names.map((name) => row('name', name)),
  ]
}

/** What such rows say of the outputs of transactions that count again; of these, in the order of the transactions. */
export function inactiveFactsOf(rows: { kind: string; body: unknown }[], txids: string[]): Facts {
  const facts: Facts = { outputs: [], nodes: [], names: [] }
  const lists: Record<string, unknown[]> = {
    output: facts.outputs,
    carrier: facts.outputs,
    node: facts.nodes,
    name: facts.names,
  }
  for (const { kind, body } of rows)
    lists[kind]?.push(JSON.parse(Buffer.from(bytesOf(body)).toString('utf8')))
  // That is the order of ordinals through them, too: so each lineage grows at its end.
  const place = new Map(txids.map((txid, at) => [txid, at]))
  facts.outputs.sort((a, b) => (place.get(a.outpoint.txid) ?? 0) - (place.get(b.outpoint.txid) ?? 0))
  return facts
}

export function blockedRow({ kind, value, reason, since }: BlockedRecord): Row {
  const outpoint = kind === 'outpoint' ? outpointColumns(parseOutpoint(value)) : { txid: null, vout: null }
  return { kind, value, ...outpoint, reason, since }
}

export function failedHookRow(note: FailedHook): Row {
  const beef = noteBeef(note)
  return {
    subject: subjectColumn(note),
    service: note.service,
    hook: note.hook,
    topic: note.hook === 'evicted' ? null : note.topic,
    ...outpointColumns(note.outpoint),
    spender: note.hook === 'spent' ? hashColumn(note.spender) : null,
    beef: beef === undefined ? null : beefOwner(beef),
  }
}

export interface FailedHookRow extends OutpointRow {
  subject: unknown
  service: string
  hook: FailedHook['hook']
  topic: string | null
  spender: unknown
  beef: unknown
}

/** The note that a row keeps. @param read Reads the pieces of an owner. */
export async function failedHookOf(
  row: FailedHookRow,
  read: (owner: Buffer) => Promise<Uint8Array | undefined>,
): Promise<FailedHook> {
  const { service, hook } = row
  const told = { service, outpoint: outpointOf(row) }
  const topic = row.topic ?? ''
  if (hook === 'evicted') return { ...told, hook }
  const beef = row.beef === null ? undefined : await read(hashColumn(hexOf(row.beef)))
  if (hook === 'spent') return { ...told, hook, topic, spender: hexOf(row.spender), ...(beef && { beef }) }
  if (beef === undefined) throw new Error(`the note of an admission in ${told.outpoint.txid} has no BEEF`)
  return { ...told, hook, topic, beef }
}

/** What a note is about: two with the same are one. */
export function subjectColumn(note: FailedHook): Buffer {
  return sha256(utf8(subjectOf(note)))
}

/** Whose pieces hold the BEEF. Not its hash: a body that somebody inscribed may be the same bytes, and comes and goes otherwise. */
export function beefOwner(beef: Uint8Array): Buffer {
  return sha256(utf8(`BEEF of a note ${sha256(beef).toString('hex')}`))
}
