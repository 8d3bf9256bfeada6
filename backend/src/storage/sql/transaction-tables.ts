import type { Knex } from 'knex'
import { blockText } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { groupBy, hashColumn, hexOf, inParts, outpointOf, parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { OUTPUT, type OutputRow, outputOf, pendingOf, proofColumns } from '../rows/record-rows.js'
import type { TransactionTables } from '../write/graph-tables.js'
import { admissionOf, admissionsAmong } from './admissions.js'
import { deleteBlocked, setBlocked } from './blocklist.js'
import { anyOf, anyOutpoint, insertNew, knexWriter, outpointValues, type SqlWriter } from './database.js'
import { countReorg } from './settings.js'
import {
  both,
  childrenOf,
  conflictsOf,
  rankedView,
  SPENDS,
  spendOf,
  spendsOf,
  statuses,
  winnerIn,
} from './transaction-status.js'
import { rawTransaction, transactionRecord } from './transactions.js'

/** How often the txids occur in {@link questionable}. */
const QUESTIONS = 1 + SPENDS.length + SPENDS.length ** 2

/** @param wanted The placeholders of the txids. */
function questionable(wanted: string): string {
  const onInactive = SPENDS.map(
    (spends) => `select spends.spender as found from ${spends} as spends
      join graph_transactions as parents on parents.txid = spends.txid and parents.silent = 1
      where spends.spender in (${wanted})`,
  )
  const shared = SPENDS.flatMap((own) =>
    SPENDS.map(
      (other) => `select own.spender as found from ${own} as own join ${other} as other
        on other.txid = own.txid and other.vout = own.vout and other.spender <> own.spender
        where own.spender in (${wanted})`,
    ),
  )
  const inactive = `select txid as found from graph_transactions where txid in (${wanted}) and silent = 1`
  return [inactive, ...onInactive, ...shared].join(' union ')
}

/**
 * See {@link TransactionTables}.
 *
 * @param options.derives Whether the store derives the admissions of all stored transactions.
 */
export function transactionTablesIn(
  trx: Knex.Transaction,
  { writer = knexWriter(trx), derives = false }: { writer?: SqlWriter; derives?: boolean } = {},
): TransactionTables {
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
    async deleteChunks(owners) {
      // With an empty list, SQLite would scan the table.
      if (owners.length > 0) await trx('graph_pieces').whereIn('owner', owners).delete()
    },
    get: (txid) => transactionRecord(writer, txid),
    raw: (txid) => rawTransaction(writer, txid),
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
    statuses: (txids) => statuses(writer, txids),
    childrenOf: (txids) => childrenOf(writer, txids),
    conflictsOf: (spends) => conflictsOf(writer, spends),
    spendsOf: (outpoints) => spendsOf(writer, outpoints),
    async spendsBy(spender) {
      const rows = await writer.all(
        both((spends) => `select txid, vout, satoshis from ${spends} where spender = ?`),
        Array(2).fill(hashColumn(spender)),
      )
      // For a large transaction, reading the rows and using them each take long.
      await yieldBetweenStatements()
      return rows.map((row) => spendOf({ ...row, spender: hashColumn(spender) }))
    },
    unvaluedOutputs: (txids) =>
      inParts(txids, async (part) => {
        const hashes = part.map(hashColumn)
        const rows = await writer.all(
          both(
            (spends) =>
              `select txid, vout from ${spends} where txid in (${anyOf(part)}) and satoshis is null`,
          ),
          [...hashes, ...hashes],
        )
        return rows.map(outpointOf)
      }),
    async setSpentValue({ txid, vouts, satoshis }) {
      for (const part of parts(vouts, ROWS_A_STATEMENT)) {
        for (const spends of SPENDS)
          await writer.run(`update ${spends} set satoshis = ? where txid = ? and vout in (${anyOf(part)})`, [
            satoshis,
            hashColumn(txid),
            ...part,
          ])
        await yieldBetweenStatements()
      }
    },
    admissionsAmong: (outpoints) => admissionsAmong(writer, outpoints),
    admissionsOf: (txids) =>
      inParts(txids, async (part) => {
        const rows = await writer.all(
          `select * from graph_admissions where txid in (${anyOf(part)})`,
          part.map(hashColumn),
        )
        // A large transaction may have thousands of outputs.
        await yieldBetweenStatements()
        return rows.map(admissionOf)
      }),
    spendingAdmitted: (txids) =>
      inParts(txids, async (part) => {
        const hashes = part.map(hashColumn)
        const rows = await writer.all(
          both(
            (spends) => `select distinct spends.spender as found from ${spends} as spends
              join graph_admissions as spent on spent.txid = spends.txid and spent.vout = spends.vout
              where spends.spender in (${anyOf(part)})`,
          ),
          [...hashes, ...hashes],
        )
        return rows.map(({ found }) => hexOf(found))
      }),
    winnerOver: (txid) => winnerIn(writer, txid, derives),
    rankedView: (judged) => rankedView(trx, judged, derives),
    questionable: (txids) =>
      inParts([...new Set(txids)], async (part) => {
        const rows = await writer.all(
          questionable(anyOf(part)),
          Array(QUESTIONS).fill(part.map(hashColumn)).flat(),
        )
        return rows.map(({ found }) => hexOf(found))
      }),
    async lastInsertionOrder() {
      const last = await writer.first('select max(arrival) as arrival from graph_transactions', [])
      return Number(last?.arrival ?? 0)
    },
    async inactiveAmong(txids) {
      const rows = await inParts([...new Set(txids)], (part) =>
        writer.all(
          `select txid from graph_transactions where txid in (${anyOf(part)}) and silent = 1`,
          part.map(hashColumn),
        ),
      )
      return new Set(rows.map(({ txid }) => hexOf(txid)))
    },
    async setInactive(txids, isInactive) {
      for (const part of parts(txids, ROWS_A_STATEMENT))
        await trx('graph_transactions').whereIn('txid', part.map(hashColumn)).update({ silent: isInactive })
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
    async takeSpends({ from, spenders, limit }) {
      const rows = await writer.all(
        `select txid, vout, spender, satoshis from ${from} where spender in (${anyOf(spenders)}) limit ?`,
        [...spenders.map(hashColumn), limit],
      )
      const taken = rows.map(spendOf)
      for (const [spender, spends] of groupBy(taken, (spend) => spend.spender))
        for (const part of parts(spends, ROWS_A_STATEMENT)) {
          const outpoints = part.map(({ outpoint }) => outpoint)
          await writer.run(`delete from ${from} where spender = ? and ${anyOutpoint(outpoints)}`, [
            hashColumn(spender),
            ...outpointValues(outpoints),
          ])
        }
      return taken
    },
    async factsOf(txids, limit) {
      const of = (table: string) => trx(table).whereIn('txid', txids.map(hashColumn))
      const columns = [...OUTPUT, 'merged_length']
      const outputs: (OutputRow & { merged_length: unknown })[] = await of('graph_outputs')
        .select(columns)
        .limit(limit)
      const nodes = await of('graph_nodes').select('txid', 'vout', 'domain')
      const names = await of('graph_names').select('txid', 'vout', 'name')
      return {
        outputs: outputs.map(outputOf),
        nodes: nodes.map((row) => ({ outpoint: outpointOf(row), domain: row.domain })),
        names: names.map((row) => ({ outpoint: outpointOf(row), name: row.name })),
        merged: outputs.filter(({ merged_length }) => merged_length !== null).map(outpointOf),
      }
    },
    async deleteFacts(outpoints) {
      for (const part of parts(outpoints, ROWS_A_STATEMENT)) {
        for (const table of ['graph_outputs', 'graph_nodes', 'graph_names'])
          await writer.run(`delete from ${table} where ${anyOutpoint(part)}`, outpointValues(part))
        await yieldBetweenStatements()
      }
    },
    async takeInactiveFacts(txids, limit) {
      const rows = await writer.all(
        `select txid, vout, kind, body from graph_silent_facts where txid in (${anyOf(txids)}) limit ?`,
        [...txids.map(hashColumn), limit],
      )
      for (const [kind, facts] of groupBy(rows, (row) => String(row.kind)))
        for (const part of parts(facts.map(outpointOf), ROWS_A_STATEMENT))
          await writer.run(`delete from graph_silent_facts where kind = ? and ${anyOutpoint(part)}`, [
            kind,
            ...outpointValues(part),
          ])
      return rows.map(({ kind, body }) => ({ kind, body }))
    },
    pendingAmong: (txids) =>
      inParts(txids, async (part) => {
        const rows = await writer.all(
          `select * from graph_pending where txid in (${anyOf(part)})`,
          part.map(hashColumn),
        )
        return rows.map(pendingOf)
      }),
    async firstPending(limit) {
      const rows = await writer.all(`select * from graph_pending order by proven, arrival, txid limit ?`, [
        limit,
      ])
      return rows.map(pendingOf)
    },
    async setPendingProven(txid) {
      await writer.run('update graph_pending set proven = 1 where txid = ?', [hashColumn(txid)])
    },
    async deletePending(txids) {
      for (const part of parts(txids, ROWS_A_STATEMENT))
        await writer.run(`delete from graph_pending where txid in (${anyOf(part)})`, part.map(hashColumn))
    },
    async pendingTotal() {
      const row = await writer.first("select value from graph_settings where name = 'pending'", [])
      return row === undefined ? { transactions: 0, bytes: 0 } : JSON.parse(String(row.value))
    },
    async setPendingTotal(total) {
      const settings = trx('graph_settings')
      const setting = { name: 'pending', value: JSON.stringify(total) }
      if (total.transactions === 0) await settings.where({ name: setting.name }).delete()
      else await settings.insert(setting).onConflict(['name']).merge(['value'])
    },
    async deleteTransaction(txid) {
      const hash = hashColumn(txid)
      for (const [table, column] of [
        ['graph_pieces', 'owner'],
        ['graph_spends', 'spender'],
        ['graph_silent_spends', 'spender'],
        ['graph_transactions', 'txid'],
      ])
        await writer.run(`delete from ${table} where ${column} = ?`, [hash])
    },
    async takeBacklog(kind, limit) {
      const rows = await writer.all('select txid, vout from graph_backlog where kind = ? limit ?', [
        kind,
        limit,
      ])
      const outpoints = rows.map(outpointOf)
      for (const part of parts(outpoints, ROWS_A_STATEMENT)) {
        await writer.run(`delete from graph_backlog where kind = ? and ${anyOutpoint(part)}`, [
          kind,
          ...outpointValues(part),
        ])
        await yieldBetweenStatements()
      }
      return outpoints
    },
    async hasBacklog(kind) {
      const sql = 'select 1 from graph_backlog where kind = ? limit 1'
      return (await writer.first(sql, [kind])) !== undefined
    },
    countReorg: () => countReorg(trx),
    setBlocked: (record) => setBlocked(trx, record),
    deleteBlocked: (subject) => deleteBlocked(trx, subject),
  }
}
