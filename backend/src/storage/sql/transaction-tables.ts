import type { Knex } from 'knex'
import { hashColumn, hexOf, inParts, outpointOf, parts, ROWS_A_STATEMENT } from '../columns.js'
import type { TransactionTables } from '../graph-tables.js'
import { OUTPUT, type OutputRow, outputOf } from '../output-rows.js'
import { rest } from '../rest.js'
import { proofColumns } from '../rows.js'
import { blockText } from '../telling.js'
import { deleteBlocked, setBlocked } from './blocked-rows.js'
import { insertNew } from './insert-new.js'
import { anyOf, knexWriter } from './sql-reader.js'
import { childrenOf, rankedView, rivalsOf, standings, winnerIn } from './standing-rows.js'
import { transactionRecord } from './transaction-reads.js'
import { countTurn } from './turns.js'

/** See {@link TransactionTables}. */
export function transactionTablesIn(trx: Knex.Transaction, writer = knexWriter(trx)): TransactionTables {
  return {
    insertNew: (table, rows) => insertNew(writer, table, rows),
    async held(owners) {
      const rows = await inParts(owners, (part) =>
        writer.all(
          `select owner from graph_pieces where owner in (${anyOf(part)}) and position = 0`,
          part.map(hashColumn),
        ),
      )
      return new Set(rows.map(({ owner }) => hexOf(owner)))
    },
    async deletePieces(owners) {
      // Of none, SQLite would look through all of them.
      if (owners.length > 0) await trx('graph_pieces').whereIn('owner', owners).delete()
    },
    transaction: (txid) => transactionRecord(writer, txid),
    async blocks(txids) {
      const rows = await inParts(txids, (part) =>
        writer.all(
          `select txid, height, merkle_root from graph_transactions
           where txid in (${anyOf(part)}) and height is not null`,
          part.map(hashColumn),
        ),
      )
      return new Map(
        rows.map(({ txid, height, merkle_root }) => [
          hexOf(txid),
          blockText({ height: Number(height), root: hexOf(merkle_root) }),
        ]),
      )
    },
    standings: (txids) => standings(writer, txids),
    childrenOf: (txids) => childrenOf(writer, txids),
    rivalsOf: (spends) => rivalsOf(writer, spends),
    winnerOver: (txid) => winnerIn(writer, txid),
    rankedView: (told) => rankedView(trx, told),
    async lastArrival() {
      const last = await writer.first('select max(arrival) as arrival from graph_transactions', [])
      return Number(last?.arrival ?? 0)
    },
    async silentAmong(txids) {
      const rows = await inParts([...new Set(txids)], (part) =>
        writer.all(
          `select txid from graph_transactions where txid in (${anyOf(part)}) and silent = 1`,
          part.map(hashColumn),
        ),
      )
      return new Set(rows.map(({ txid }) => hexOf(txid)))
    },
    async setSilent(txids, silent) {
      for (const part of parts(txids, ROWS_A_STATEMENT))
        await trx('graph_transactions').whereIn('txid', part.map(hashColumn)).update({ silent })
    },
    async setProof(txid, proof) {
      await trx('graph_transactions')
        .where({ txid: hashColumn(txid) })
        .update(proofColumns(proof))
    },
    async takeProofs({ height, root }) {
      const inBlock = () => trx('graph_transactions').where({ height, merkle_root: hashColumn(root) })
      const rows = await inBlock().select('txid')
      await inBlock().update(proofColumns(undefined))
      return rows.map(({ txid }) => hexOf(txid))
    },
    async takeSpends(table, spenders) {
      const spends = () => trx(table).whereIn('spender', spenders.map(hashColumn))
      const rows = await spends().select('txid', 'vout', 'spender')
      await spends().delete()
      return rows.map((row) => ({ outpoint: outpointOf(row), spender: hexOf(row.spender) }))
    },
    async factsOf(txids) {
      const of = (table: string) => trx(table).whereIn('txid', txids.map(hashColumn))
      const outputs: (OutputRow & { merged_length: unknown })[] = await of('graph_outputs').select([
        ...OUTPUT,
        'merged_length',
      ])
      const nodes = await of('graph_nodes').select('txid', 'vout', 'domain')
      const names = await of('graph_names').select('txid', 'vout', 'name')
      return {
        outputs: outputs.map(outputOf),
        nodes: nodes.map((row) => ({ outpoint: outpointOf(row), domain: row.domain })),
        names: names.map((row) => ({ outpoint: outpointOf(row), name: row.name })),
        merged: outputs.filter(({ merged_length }) => merged_length !== null).map(outpointOf),
      }
    },
    async deleteFacts(txids) {
      for (const table of ['graph_outputs', 'graph_nodes', 'graph_names']) {
        await trx(table).whereIn('txid', txids.map(hashColumn)).delete()
        await rest()
      }
    },
    async takeSilentFacts(txids) {
      const said = () => trx('graph_silent_facts').whereIn('txid', txids.map(hashColumn))
      const rows = await said().select('kind', 'body')
      await said().delete()
      return rows
    },
    countTurn: () => countTurn(trx),
    setBlocked: (record) => setBlocked(trx, record),
    deleteBlocked: (subject) => deleteBlocked(trx, subject),
  }
}
