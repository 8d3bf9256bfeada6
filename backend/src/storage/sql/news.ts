import type { Knex } from 'knex'
import { hashColumn, hexOf, parts, ROWS_A_STATEMENT } from '../columns.js'
import { blockText, type NewsView } from '../telling.js'
import { heldPieces } from './pieces.js'

/** What sorting out news asks of the database. */
export function newsView(trx: Knex.Transaction): NewsView {
  return {
    held: (txids) => heldPieces(trx, txids.map(hashColumn)),
    async blocks(txids) {
      const kept = new Map<string, string>()
      for (const part of parts(txids, ROWS_A_STATEMENT)) {
        const rows = await trx('graph_transactions')
          .whereIn('txid', part.map(hashColumn))
          .whereNotNull('height')
          .select('txid', 'height', 'merkle_root')
        for (const { txid, height, merkle_root } of rows)
          kept.set(hexOf(txid), blockText({ height: Number(height), root: hexOf(merkle_root) }))
      }
      return kept
    },
  }
}
