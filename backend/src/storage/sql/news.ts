import type { Knex } from 'knex'
import type { SpendRecord, TransactionRecord } from '../../graph/records.js'
import { hashColumn, hexOf, parts, ROWS_A_STATEMENT } from '../columns.js'
import { heldPieces } from './pieces.js'

/** What of that is news. */
export interface Told {
  /** Transactions whose bytes are not here. */
  fresh: TransactionRecord[]
  /** What these spend; and spends that come without the bytes of what makes them. */
  spends: SpendRecord[]
  /** Transactions whose bytes are here, with a proof that is not. */
  proven: TransactionRecord[]
}

/** Sorts out what is news of what is told. */
export async function newsOf(
  trx: Knex.Transaction,
  told: { transactions: TransactionRecord[]; spends: SpendRecord[]; again: boolean },
): Promise<Told> {
  const { transactions, spends, again } = told
  const byTxid = new Map<string, TransactionRecord>()
  for (const transaction of transactions) {
    const { txid, proof } = transaction
    if (proof !== undefined || !byTxid.has(txid)) byTxid.set(txid, transaction)
  }
  const held = await heldPieces(trx, [...byTxid.keys()].map(hashColumn))
  const all = [...byTxid.values()]
  const fresh = all.filter(({ txid }) => !held.has(txid))
  const ofHeld = new Set(all.filter(({ txid }) => held.has(txid)).map(({ txid }) => txid))
  const proofs = all.filter(({ txid, proof }) => proof !== undefined && held.has(txid))
  return {
    fresh,
    spends: again ? spends : spends.filter(({ spender }) => !ofHeld.has(spender)),
    proven: await withNewProofs(trx, proofs),
  }
}

async function withNewProofs(
  trx: Knex.Transaction,
  proofs: TransactionRecord[],
): Promise<TransactionRecord[]> {
  const kept = new Map<string, string>()
  for (const part of parts(proofs, ROWS_A_STATEMENT)) {
    const rows = await trx('graph_transactions')
      .whereIn(
        'txid',
        part.map(({ txid }) => hashColumn(txid)),
      )
      .whereNotNull('height')
      .select('txid', 'height', 'merkle_root')
    for (const { txid, height, merkle_root } of rows)
      kept.set(hexOf(txid), `${Number(height)} ${hexOf(merkle_root)}`)
  }
  return proofs.filter(({ txid, proof }) => proof && kept.get(txid) !== `${proof.height} ${proof.root}`)
}
