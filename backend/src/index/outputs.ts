import type { Sql } from '../facts/connection.js'
import { encodeMap } from '../graph/map-coder.js'
import { sha256 } from '../graph/native-hash.js'
import { inscriptionOf } from '../graph/transaction-records.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { TransactionOutput, TransactionView } from '../protocol/transaction.js'
import type { MapPlace } from './map-snapshots.js'

/* The rows of `out`. A statement names no more columns than it needs, as the driver is slow for each. */

/** An output's place in its lineage; all null while that is unknown. Outputs are named by the ids of their rows. */
export interface Place extends MapPlace {
  lin: number | null
  step: number | null
  origin: number | null
  latest: number | null
  latestparent: number | null
  mprev: number | null
}

export const PLACE = [
  'lin',
  'step',
  'origin',
  'latest',
  'latestparent',
  'lastmap',
  'mprev',
  'snap',
  'since',
] as const

export const UNPLACED = { ...Object.fromEntries(PLACE.map((column) => [column, null])), since: 0 } as Place

/** The columns of an output that its place depends on. */
export interface OutputRow extends Place {
  oid: number
  tid: number
  vout: number
  /** The coin that it received. */
  ptid: number | null
  pvout: number | null
  carrier: number
  unresolved: number
  active: number
  /** Its run, while it has no number. */
  run: number | null
  owner: Buffer | null
  /** Whether it has content: 1. */
  content: number
  parent: Buffer | null
  pok: number
  mlen: number | null
  recency: number | null
}

const ROW = `oid, tid, vout, ptid, pvout, carrier, unresolved, active, run, owner, sha is not null as content, parent, pok, mlen, recency,
  ${PLACE}`

/** The contents of an output, as columns. */
export interface Contents {
  sha: Uint8Array | null
  /** In UTF-8: SQLite's driver ends a text at its first NUL, and anybody may inscribe one. */
  ctype: Buffer | null
  clen: number | null
  coff: number | null
  owner: Buffer | null
  parent: Buffer | null
  mlen: number | null
  map: Uint8Array | null
}

export function outputAt(sql: Sql, tid: number, vout: number): OutputRow | undefined {
  return sql.get(`select ${ROW} from out where tid = ? and vout = ?`, tid, vout) as OutputRow | undefined
}

export function outputWith(sql: Sql, oid: number): OutputRow | undefined {
  return sql.get(`select ${ROW} from out where oid = ?`, oid) as OutputRow | undefined
}

export function outputsOf(sql: Sql, tid: number): OutputRow[] {
  return sql.all(`select ${ROW} from out where tid = ?`, tid) as OutputRow[]
}

export function receiversOf(sql: Sql, { tid, vout }: Pick<OutputRow, 'tid' | 'vout'>): OutputRow[] {
  return sql.all(`select ${ROW} from out where ptid = ? and pvout = ?`, tid, vout) as OutputRow[]
}

/** The outputs that claim a parent, of transactions that spend this output. */
export function claimsBehind(sql: Sql, { tid, vout }: Pick<OutputRow, 'tid' | 'vout'>): OutputRow[] {
  return sql.all(
    `select ${ROW} from out where parent is not null and tid in (select sid from spend where pid = ? and vout = ?)`,
    tid,
    vout,
  ) as OutputRow[]
}

export function outputsInRun(sql: Sql, run: number): OutputRow[] {
  return sql.all(`select ${ROW} from out where run = ?`, run) as OutputRow[]
}

export function claimsOn(sql: Sql, parent: Uint8Array): OutputRow[] {
  return sql.all(`select ${ROW} from out where parent = ?`, parent) as OutputRow[]
}

const INSERTED = [
  ...['oid', 'tid', 'vout', 'ptid', 'pvout', 'sats', 'carrier', 'unresolved', 'active', 'run', ...PLACE],
  ...['sha', 'ctype', 'clen', 'coff', 'owner', 'parent', 'pok', 'mlen', 'map', 'recency', 'tkey'],
] as const
const INSERT = `insert into out (${INSERTED}) values (${INSERTED.map(() => '?')})`

/** All columns of an output's row. */
export type NewOutput = OutputRow & Contents & { sats: number; tkey: number }

export function insertOutput(sql: Sql, row: NewOutput): void {
  sql.run(INSERT, ...INSERTED.map((column) => row[column]))
}

/** An outpoint as stored in `parent`: the txid as displayed, the index as 32 bits, big-endian. */
export function outpointKey(txid: Uint8Array, vout: number): Buffer {
  const key = Buffer.alloc(36)
  key.set(txid)
  key.writeUInt32BE(vout, 32)
  return key
}

export function outpointIn(key: Buffer): Outpoint {
  return { txid: key.toString('hex', 0, 32), vout: key.readUInt32BE(32) }
}

/** The first 6 bytes of a txid as displayed: the sort key of rows in one block. */
export function txidKey(txid: Uint8Array): number {
  return Buffer.from(txid.buffer, txid.byteOffset, txid.length).readUIntBE(0, 6)
}

/** The contents of an output. `coff` is null if its body is not contiguous in the transaction: then the log has it by its hash. */
export function contentsOf(output: TransactionOutput, { raw }: TransactionView): Contents {
  const { content, map, parent, owner } = inscriptionOf(output)
  const encoded = map.length === 0 ? null : encodeMap(map)
  const isView = content !== undefined && content.body.buffer === raw.buffer
  return {
    sha: content ? sha256(content.body) : null,
    ctype: content ? Buffer.from(content.contentType, 'utf8') : null,
    clen: content?.body.length ?? null,
    coff: isView ? content.body.byteOffset - raw.byteOffset : null,
    owner: owner === undefined ? null : Buffer.from(owner, 'hex'),
    parent: parent ? outpointKey(Buffer.from(parent.txid, 'hex'), parent.vout) : null,
    mlen: encoded?.length ?? null,
    map: encoded,
  }
}
