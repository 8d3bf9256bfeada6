import type { BlockedRecord } from '../../graph/blocklist.js'
import { beefOfHook, type FailedHook, subjectOf } from '../../graph/hook-outbox.js'
import type { HeldSubmission } from '../../graph/host-store.js'
import { UNKNOWN_RECENCY } from '../../graph/listings.js'
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
import { bytesOf, hashColumn, hexOf, type Lineage, outpointColumns, outpointOf } from './columns.js'
import type { Row } from './rows.js'

/** Records as rows: of tables, or as documents of collections. */

export type RecordRow = Record<string, unknown>

/**
 * An output at its place in a lineage, and in the list of inscriptions if it is in that. The row is written out because a transaction may have
 * thousands of outputs, and spreading objects takes ten times as long.
 */
export function outputRow(
  output: OutputRecord,
  { lineage, step, recency }: { lineage: Lineage; step: number; recency?: number | undefined },
): RecordRow {
  const { outpoint, satoshis, content, owner, parent, mapLength, previous, unsettled, carrier } = output
  const named = parent ?? output.claimedParent
  const { txid, vout } = outpoint
  const [lineageTxid, lineageVout] = lineage
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
    parent_txid: named ? hashColumn(named.txid) : null,
    parent_vout: named ? named.vout : null,
    parent_step: parent ? step : null,
    map_length: mapLength ?? null,
    map_step: mapLength === undefined ? null : step,
    merged_length: null,
    recency: recency ?? null,
  }
}

export function nodeRow({ outpoint, domain }: NodeRecord): RecordRow {
  return { ...outpointColumns(outpoint), domain }
}

export function nameRow({ outpoint, name }: NameRecord, recency = UNKNOWN_RECENCY): RecordRow {
  return { name, ...outpointColumns(outpoint), recency }
}

export function spendRow({ outpoint, spender, satoshis }: SpendRecord): RecordRow {
  const { txid, vout } = outpoint
  return { txid: hashColumn(txid), vout, spender: hashColumn(spender), satoshis: satoshis ?? null }
}

/** A transaction that nothing admitted depends on. `bytes` is the length of the raw transaction. */
export interface PendingRecord {
  txid: string
  proven: boolean
  insertionOrder: number
  bytes: number
  /** Whether it waits because it, or what came with it, lost a conflict. */
  waiting: boolean
  /** A hash of who submitted it, in hex, if it waits and that is known. */
  client?: string | undefined
}

export function pendingRow({
  txid,
  proven,
  insertionOrder,
  bytes,
  waiting,
  client,
}: PendingRecord): RecordRow {
  const submittedBy = client === undefined ? null : Buffer.from(client, 'hex')
  return { txid: hashColumn(txid), proven, arrival: insertionOrder, bytes, waiting, client: submittedBy }
}

export function admissionRow({ outpoint, topic, score }: AdmissionRecord): RecordRow {
  const { txid, vout } = outpoint
  return { txid: hashColumn(txid), vout, topic, score }
}

export function appliedRow({ txid, topic }: AppliedRecord): RecordRow {
  return { txid: hashColumn(txid), topic }
}

export function pendingOf({ txid, proven, arrival, bytes, waiting, client }: Row): PendingRecord {
  return {
    txid: hexOf(txid),
    proven: Number(proven) === 1,
    insertionOrder: Number(arrival),
    bytes: Number(bytes),
    waiting: Number(waiting) === 1,
    client: client === null ? undefined : hexOf(client),
  }
}

export function heldRow({ txid, lock, beef }: HeldSubmission): RecordRow {
  return {
    txid: hashColumn(txid),
    lock_height: lock.height,
    lock_time: lock.time,
    beef: Buffer.from(beef),
  }
}

export function heldOf({ txid, lock_height, lock_time, beef }: Row): HeldSubmission {
  return {
    txid: hexOf(txid),
    lock: { height: Number(lock_height), time: Number(lock_time) },
    beef: Uint8Array.from(bytesOf(beef)),
  }
}

/** The columns of a transaction's row that hold its proof. */
export function proofColumns(proof: TransactionRecord['proof']): RecordRow {
  return {
    merkle_path: proof ? Buffer.from(proof.merklePath) : null,
    height: proof?.height ?? null,
    merkle_root: proof ? hashColumn(proof.root) : null,
  }
}

/** The records of transactions' outputs. */
export interface OutputFacts {
  outputs: OutputRecord[]
  nodes: NodeRecord[]
  names: NameRecord[]
}

/** The output records of inactive transactions, as rows. */
export function inactiveFactRows({ outputs, nodes, names }: OutputFacts): RecordRow[] {
  const row = (kind: string, fact: { outpoint: Outpoint }): RecordRow => ({
    ...outpointColumns(fact.outpoint),
    kind,
    body: Buffer.from(JSON.stringify(fact), 'utf8'),
    content_sha256: null,
  })
  return [
    ...outputs.map(({ parent, ...output }) => ({
      // Whether a parent counts is decided again when the output is restored.
      ...row('output', parent ? { ...output, claimedParent: parent } : output),
      content_sha256: output.content ? hashColumn(output.content.sha256) : null,
    })),
    ...nodes.map((node) => row('node', node)),
    ...names.map((name) => row('name', name)),
  ]
}

/** Reads such rows back, in the order of the transactions. */
export function inactiveFactsOf(rows: { kind: string; body: unknown }[], txids: string[]): OutputFacts {
  const facts: OutputFacts = { outputs: [], nodes: [], names: [] }
  const lists: Record<string, unknown[]> = {
    output: facts.outputs,
    node: facts.nodes,
    name: facts.names,
  }
  for (const { kind, body } of rows)
    lists[kind]?.push(JSON.parse(Buffer.from(bytesOf(body)).toString('utf8')))
  // Ordinals pass through the transactions in this order, so that each lineage grows at its end.
  const place = new Map(txids.map((txid, at) => [txid, at]))
  facts.outputs.sort((a, b) => (place.get(a.outpoint.txid) ?? 0) - (place.get(b.outpoint.txid) ?? 0))
  return facts
}

export function blockedRow({ kind, value, reason, since }: BlockedRecord): RecordRow {
  const outpoint = kind === 'outpoint' ? outpointColumns(parseOutpoint(value)) : { txid: null, vout: null }
  return { kind, value, ...outpoint, reason, since }
}

export function failedHookRow(failed: FailedHook): RecordRow {
  const beef = beefOfHook(failed)
  return {
    subject: subjectColumn(failed),
    service: failed.service,
    hook: failed.hook,
    topic: failed.hook === 'evicted' ? null : failed.topic,
    ...outpointColumns(failed.outpoint),
    spender: failed.hook === 'spent' ? hashColumn(failed.spender) : null,
    beef: beef === undefined ? null : beefOwner(beef),
  }
}

/** @param read Reads the blob of an owner. */
export async function failedHookOf(
  row: Row,
  read: (owner: Buffer) => Promise<Uint8Array | undefined>,
): Promise<FailedHook> {
  const { service, hook } = row
  const common = { service, outpoint: outpointOf(row) }
  const topic = row.topic ?? ''
  if (hook === 'evicted') return { ...common, hook }
  const beef = row.beef === null ? undefined : await read(hashColumn(hexOf(row.beef)))
  if (hook === 'spent') return { ...common, hook, topic, spender: hexOf(row.spender), ...(beef && { beef }) }
  if (beef === undefined) throw new Error(`the failed hook of ${common.outpoint.txid} has no BEEF`)
  return { ...common, hook, topic, beef }
}

/** The key of a failed hook: two with the same subject are one. */
export function subjectColumn(failed: FailedHook): Buffer {
  return sha256(utf8(subjectOf(failed)))
}

/** The owner of the BEEF's chunks. Not its hash: an inscribed body may be the same bytes but is deleted independently. */
export function beefOwner(beef: Uint8Array): Buffer {
  return sha256(utf8(`BEEF of a note ${sha256(beef).toString('hex')}`))
}

/** The columns that {@link outputOf} reads. Listed, because decoding a column takes the driver longer than finding the row. */
export const OUTPUT = [
  'txid',
  'vout',
  'satoshis',
  'content_sha256',
  'content_type',
  'content_length',
  'previous_txid',
  'previous_vout',
  'unsettled',
  'carrier',
  'owner',
  'parent_txid',
  'parent_vout',
  'parent_step',
  'map_length',
]

/** @param row What is not in it is missing. */
export function outputOf(row: Row): OutputRecord {
  const content = contentOf(row)
  return {
    outpoint: outpointOf(row),
    satoshis: Number(row.satoshis),
    ...(content && { content }),
    ...(isThere(row.owner) && { owner: hexOf(row.owner) }),
    ...(isThere(row.parent_txid) && {
      [isThere(row.parent_step) ? 'parent' : 'claimedParent']: outpointOf({
        txid: row.parent_txid,
        vout: row.parent_vout,
      }),
    }),
    ...(isThere(row.map_length) && { mapLength: Number(row.map_length) }),
    ...(isThere(row.previous_txid) && {
      previous: outpointOf({ txid: row.previous_txid, vout: row.previous_vout }),
    }),
    ...(Number(row.unsettled) === 1 && { unsettled: true }),
    ...(Number(row.carrier) === 1 && { carrier: true }),
  }
}

function isThere(column: unknown): boolean {
  return column !== null && column !== undefined
}

/** The content of an output; undefined if it has none. */
export function contentOf(row: Row): OutputRecord['content'] {
  if (row.content_sha256 === null) return undefined
  return {
    sha256: hexOf(row.content_sha256),
    contentType: Buffer.from(bytesOf(row.content_type)).toString('utf8'),
    length: Number(row.content_length),
  }
}
