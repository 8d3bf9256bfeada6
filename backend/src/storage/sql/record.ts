import type { Knex } from 'knex'
import type { ContentRecord, GraphRecords, TransactionRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  outpointColumns,
  outpointOf,
  outpointPair,
  PIECE_BYTES,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from './columns.js'
import { keepLineages } from './lineage.js'
import { settleOutputs } from './settle.js'

/** So that one statement stays far below what a server takes in one packet. */
const BYTES_A_STATEMENT = 4 * 1024 * 1024

/** Writes the facts inside a database transaction; what is there already stays as it is. */
export async function writeRecords(trx: Knex.Transaction, records: GraphRecords): Promise<void> {
  const evicted = await evictedAmong(trx, [
    ...records.outputs.map((record) => record.outpoint),
    ...records.nodes.map((record) => record.outpoint),
    ...records.names.map((record) => record.outpoint),
    ...records.admissions.map((record) => record.outpoint),
  ])
  const kept = <Fact extends { outpoint: Outpoint }>(facts: Fact[]): Fact[] =>
    facts.filter(({ outpoint }) => !evicted.has(formatOutpoint(outpoint)))

  const outputs = kept(records.outputs)
  const shown = new Set(outputs.map((output) => output.content?.sha256))
  await writePieces(trx, [
    ...records.transactions.map(({ txid, raw }) => ({ owner: txid, bytes: raw })),
    ...records.contents
      .filter(({ sha256 }) => shown.has(sha256))
      .map(({ sha256, bytes }: ContentRecord) => ({ owner: sha256, bytes })),
  ])
  await writeTransactions(trx, records.transactions)
  await insertNew(
    trx,
    'graph_spends',
    records.spends.map(({ outpoint, spender }) => ({
      ...outpointColumns(outpoint),
      spender: hashColumn(spender),
    })),
  )
  await insertNew(
    trx,
    'graph_outputs',
    outputs.map(({ outpoint, satoshis, content, previous, unsettled }) => ({
      ...outpointColumns(outpoint),
      satoshis,
      content_sha256: content ? hashColumn(content.sha256) : null,
      content_type: content ? Buffer.from(content.contentType, 'utf8') : null,
      content_length: content ? content.length : null,
      previous_txid: previous ? hashColumn(previous.txid) : null,
      previous_vout: previous ? previous.vout : null,
      unsettled: unsettled === true,
      lineage_txid: hashColumn(outpoint.txid),
      lineage_vout: outpoint.vout,
      step: 0,
      content_step: content ? 0 : null,
    })),
  )
  await insertNew(
    trx,
    'graph_nodes',
    kept(records.nodes).map(({ outpoint, domain }) => ({ ...outpointColumns(outpoint), domain })),
  )
  await insertNew(
    trx,
    'graph_names',
    kept(records.names).map(({ outpoint, name }) => ({ name, ...outpointColumns(outpoint) })),
  )
  await insertNew(
    trx,
    'graph_admissions',
    kept(records.admissions).map(({ outpoint, topic, score }) => ({
      ...outpointColumns(outpoint),
      topic,
      score,
    })),
  )
  await insertNew(
    trx,
    'graph_applied',
    records.applied.map(({ txid, topic }) => ({ txid: hashColumn(txid), topic })),
  )
  const settled = await settleOutputs(trx, { outputs, transactions: records.transactions })
  const told = outputs.map(({ outpoint }) => outpoint)
  await keepLineages(trx, { outputs: [...told, ...settled], names: kept(records.names) })
}

/** Forgets what is known of an output, and its content where no other output shows it. */
export async function writeEviction(trx: Knex.Transaction, outpoint: Outpoint): Promise<void> {
  const where = outpointColumns(outpoint)
  await insertNew(trx, 'graph_evictions', [where])
  const output = await trx('graph_outputs').where(where).first('content_sha256')
  for (const table of ['graph_outputs', 'graph_nodes', 'graph_names', 'graph_admissions'])
    await trx(table).where(where).delete()
  const sha256 = output?.content_sha256
  if (!sha256) return
  const owner = hashColumn(hexOf(sha256))
  const other = await trx('graph_outputs').where({ content_sha256: owner }).first('vout')
  if (other === undefined) await trx('graph_pieces').where({ owner }).delete()
}

async function evictedAmong(trx: Knex.Transaction, outpoints: Outpoint[]): Promise<Set<string>> {
  const evicted = new Set<string>()
  for (const part of parts(unique(outpoints, formatOutpoint), ROWS_A_STATEMENT)) {
    const rows = await trx('graph_evictions').whereIn(['txid', 'vout'], part.map(outpointPair)).select()
    for (const row of rows) evicted.add(formatOutpoint(outpointOf(row)))
  }
  return evicted
}

async function writeTransactions(trx: Knex.Transaction, transactions: TransactionRecord[]): Promise<void> {
  await insertNew(
    trx,
    'graph_transactions',
    transactions.map(({ txid }) => ({ txid: hashColumn(txid) })),
  )
  const proven = transactions.filter(({ proof }) => proof !== undefined)
  for (const { txid, proof } of unique(proven, ({ txid }) => txid)) {
    if (proof === undefined) continue
    // A proof that comes later is the newer word of the chain.
    await trx('graph_transactions')
      .where({ txid: hashColumn(txid) })
      .update({ merkle_path: Buffer.from(proof.merklePath), height: proof.height })
  }
}

async function writePieces(
  trx: Knex.Transaction,
  bodies: { owner: string; bytes: Uint8Array }[],
): Promise<void> {
  const wanted = unique(bodies, ({ owner }) => owner)
  const held = new Set<string>()
  for (const part of parts(wanted, ROWS_A_STATEMENT)) {
    const rows = await trx('graph_pieces')
      .whereIn(
        'owner',
        part.map(({ owner }) => hashColumn(owner)),
      )
      .where({ position: 0 })
      .select('owner')
    for (const { owner } of rows) held.add(hexOf(owner))
  }
  let rows: { owner: Buffer; position: number; bytes: Uint8Array }[] = []
  let size = 0
  const flush = async (): Promise<void> => {
    await insertNew(trx, 'graph_pieces', rows)
    rows = []
    size = 0
  }
  for (const { owner, bytes } of wanted) {
    if (held.has(owner)) continue
    // An empty body has one empty piece, so that it is told from a body that is not there.
    for (let at = 0; at === 0 || at < bytes.length; at += PIECE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      rows.push({ owner: hashColumn(owner), position: at / PIECE_BYTES, bytes: Buffer.from(piece) })
      size += piece.length
      if (size >= BYTES_A_STATEMENT || rows.length >= ROWS_A_STATEMENT) await flush()
    }
  }
  await flush()
}

async function insertNew(trx: Knex.Transaction, table: string, rows: object[]): Promise<void> {
  for (const part of parts(rows, ROWS_A_STATEMENT)) await trx(table).insert(part).onConflict().ignore()
}
