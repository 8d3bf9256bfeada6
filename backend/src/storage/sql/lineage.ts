import type { Knex } from 'knex'
import type { NameRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import {
  hashColumn,
  hexOf,
  type OutpointRow,
  outpointColumns,
  outpointOf,
  outpointPair,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from './columns.js'

/**
 * Every output of the graph stands in a lineage: the unbroken run of 1-sat coins that is known to lead to it (BRC-159),
 * called by its first output, and at a step of it. The lineages are kept when facts come, in whatever order, so that
 * no read has to follow an ordinal from coin to coin.
 *
 * An output starts as a lineage of its own. When the coin that it received is known and here, its lineage goes on that
 * coin's; when the origin of a name is, its lineage starts there whatever it received (protocol 5).
 */
export async function keepLineages(
  trx: Knex.Transaction,
  told: { outputs: Outpoint[]; names: NameRecord[] },
): Promise<void> {
  for (const name of told.names) await startAt(trx, name.outpoint)
  const outputs = unique(told.outputs, formatOutpoint)
  for (const part of parts(outputs, ROWS_A_STATEMENT)) {
    const pairs = part.map(outpointPair)
    for (const head of await heads(trx).whereIn(['own.txid', 'own.vout'], pairs)) await goOn(trx, head)
    for (const head of await heads(trx).whereIn(['own.previous_txid', 'own.previous_vout'], pairs)) {
      await goOn(trx, head)
    }
  }
}

interface Head extends OutpointRow {
  previous_txid: unknown
  previous_vout: unknown
}

/** Outputs that a lineage starts with though the coin that they received is here, and that are no name's origin. */
function heads(trx: Knex.Transaction): Knex.QueryBuilder<object, Head[]> {
  return trx('graph_outputs as own')
    .join('graph_outputs as previous', (on) =>
      on.on('previous.txid', 'own.previous_txid').andOn('previous.vout', 'own.previous_vout'),
    )
    .leftJoin('graph_names as names', (on) => on.on('names.txid', 'own.txid').andOn('names.vout', 'own.vout'))
    .whereNull('names.txid')
    .whereRaw('own.lineage_txid = own.txid and own.lineage_vout = own.vout')
    .select('own.txid', 'own.vout', 'own.previous_txid', 'own.previous_vout')
}

/** Lets a lineage go on that of the coin which its first output received. */
async function goOn(trx: Knex.Transaction, head: Head): Promise<void> {
  const previous = outpointOf({ txid: head.previous_txid, vout: head.previous_vout })
  const row = await trx('graph_outputs')
    .where(outpointColumns(previous))
    .first('lineage_txid', 'lineage_vout', 'step')
  const { txid, vout } = outpointOf(head)
  const further = Number(row.step) + 1
  await trx('graph_outputs')
    .where({ lineage_txid: hashColumn(txid), lineage_vout: vout })
    .update({
      lineage_txid: hashColumn(hexOf(row.lineage_txid)),
      lineage_vout: Number(row.lineage_vout),
      step: trx.raw('step + ?', [further]),
      content_step: trx.raw('content_step + ?', [further]),
    })
}

/** Lets a lineage start at an output, from there on. */
async function startAt(trx: Knex.Transaction, outpoint: Outpoint): Promise<void> {
  const own = outpointColumns(outpoint)
  const row = await trx('graph_outputs').where(own).first('lineage_txid', 'lineage_vout', 'step')
  const step = Number(row?.step ?? 0)
  if (row === undefined || step === 0) return
  await trx('graph_outputs')
    .where({ lineage_txid: hashColumn(hexOf(row.lineage_txid)), lineage_vout: Number(row.lineage_vout) })
    .where('step', '>=', step)
    .update({
      lineage_txid: own.txid,
      lineage_vout: own.vout,
      step: trx.raw('step - ?', [step]),
      content_step: trx.raw('content_step - ?', [step]),
    })
}
