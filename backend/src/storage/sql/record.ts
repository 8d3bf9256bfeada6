import type { Knex } from 'knex'
import type { GraphRecords, OutputRecord, TransactionRecord } from '../../graph/records.js'
import { hashColumn, outpointColumns, unique } from './columns.js'
import { insertNew } from './insert-new.js'
import { keepLineages, stepsOf } from './lineage.js'
import { keepMapStates } from './map-states.js'
import { mapOwner } from './merged-map.js'
import { writePieces } from './pieces.js'
import { settleOutputs } from './settle.js'
import { keepTraits } from './traits.js'

/** Writes the facts inside a database transaction; what is there already stays as it is. */
export async function writeRecords(trx: Knex.Transaction, records: GraphRecords): Promise<void> {
  const { outputs } = records
  const shown = new Set(outputs.map((output) => output.content?.sha256))
  await writePieces(trx, [
    ...records.transactions.map(({ txid, raw }) => ({ owner: hashColumn(txid), bytes: raw })),
    ...records.contents
      .filter(({ sha256 }) => shown.has(sha256))
      .map(({ sha256, bytes }) => ({ owner: hashColumn(sha256), bytes })),
    ...records.maps.map(({ outpoint, bytes }) => ({
      owner: mapOwner({ outpoint, merged: false }),
      bytes,
    })),
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
  await insertNew(trx, 'graph_outputs', outputs.map(outputRow))
  await insertNew(
    trx,
    'graph_nodes',
    records.nodes.map(({ outpoint, domain }) => ({ ...outpointColumns(outpoint), domain })),
  )
  await insertNew(
    trx,
    'graph_names',
    records.names.map(({ outpoint, name }) => ({ name, ...outpointColumns(outpoint) })),
  )
  await insertNew(
    trx,
    'graph_admissions',
    records.admissions.map(({ outpoint, topic, score }) => ({
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
  const changes = await keepLineages(trx, { outputs: [...told, ...settled], names: records.names })
  await keepMapStates(trx, changes)
  const spent = await stepsOf(
    trx,
    records.spends.map(({ outpoint }) => outpoint),
  )
  await keepTraits(trx, { changes, spent: spent.map(({ lineage }) => lineage) })
}

/** An output as it stands alone; what leads to it is found later. */
function outputRow(output: OutputRecord): Record<string, unknown> {
  const { outpoint, satoshis, content, owner, parent, mapLength, previous, unsettled } = output
  return {
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
    owner: owner === undefined ? null : hashColumn(owner),
    parent_txid: parent ? hashColumn(parent.txid) : null,
    parent_vout: parent ? parent.vout : null,
    parent_step: parent ? 0 : null,
    map_length: mapLength ?? null,
    map_step: mapLength === undefined ? null : 0,
  }
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
