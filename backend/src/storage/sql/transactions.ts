import type { BlocksReader, RawTransaction, TransactionsReader } from '../../graph/graph-store.js'
import type { Block, TransactionRecord } from '../../graph/records.js'
import { joinBytes } from '../../protocol/bytes.js'
import { rawTransactionOf } from '../read/read-blobs.js'
import { bytesOf, hashColumn, hexOf, inParts, outpointPair } from '../rows/columns.js'
import { chunksIn } from './content.js'
import { anyOf, type SqlReader } from './database.js'
import { conflictsOf, heightIn, statuses, winnerIn } from './transaction-status.js'

/** The transactions of a store. @param derives Whether the store derives admissions by itself. */
export function transactionsIn(reader: SqlReader, derives: () => boolean): TransactionsReader {
  return {
    get: (txid) => transactionRecord(reader, txid),
    raw: (txid) => rawTransaction(reader, txid),
    async has(txid) {
      const sql = 'select 1 from graph_transactions where txid = ?'
      return (await reader.first(sql, [hashColumn(txid)])) !== undefined
    },
    heightOf: (txid) => heightIn(reader, txid),
    async spenderOf(outpoint) {
      const row = await reader.first(
        // Only a mint spends a node, and a transaction without a node is no mint.
        `select spender from graph_spends as spends where txid = ? and vout = ? and (
           exists (select 1 from graph_nodes as nodes where nodes.txid = spends.spender)
           or not exists (
             select 1 from graph_nodes as nodes where nodes.txid = spends.txid and nodes.vout = spends.vout
           )
         )`,
        outpointPair(outpoint),
      )
      return row && hexOf(row.spender)
    },
    winnerOver: (txid) => winnerIn(reader, txid, derives()),
  }
}

/** A transaction with all its bytes; undefined if the store does not hold it. */
export async function transactionRecord(
  reader: SqlReader,
  txid: string,
): Promise<TransactionRecord | undefined> {
  const rows = await reader.all(
    `select merkle_path, height, merkle_root, bytes from graph_transactions as transactions
     join graph_pieces as chunks on chunks.owner = transactions.txid
     where transactions.txid = ? order by position`,
    [hashColumn(txid)],
  )
  const [first] = rows
  if (first === undefined) return undefined
  const proof = proofOf(first)
  const raw = rows.length === 1 ? bytesOf(first.bytes) : joinBytes(rows.map(({ bytes }) => bytesOf(bytes)))
  return { txid, raw, ...(proof && { proof }) }
}

/** See `TransactionsReader.raw`. */
export async function rawTransaction(reader: SqlReader, txid: string): Promise<RawTransaction | undefined> {
  const owner = hashColumn(txid)
  const row = await reader.first(
    `select merkle_path, height, merkle_root, bytes from graph_transactions as transactions
     join graph_pieces as chunks on chunks.owner = transactions.txid
     where transactions.txid = ? and position = 0`,
    [owner],
  )
  if (row === undefined) return undefined
  return await rawTransactionOf({
    txid,
    proof: proofOf(row),
    first: bytesOf(row.bytes),
    async last() {
      const last = await reader.first(
        'select position, length(bytes) as length from graph_pieces where owner = ? order by position desc limit 1',
        [owner],
      )
      return last && { position: Number(last.position), length: Number(last.length) }
    },
    blobs: chunksIn(reader),
  })
}

function proofOf(row: {
  merkle_path: unknown
  height: unknown
  merkle_root: unknown
}): TransactionRecord['proof'] {
  if (!row.merkle_path) return undefined
  return { merklePath: bytesOf(row.merkle_path), height: Number(row.height), root: hexOf(row.merkle_root) }
}

/** The blocks of a store. */
export function blocksIn(reader: SqlReader): BlocksReader {
  return {
    async from({ from }) {
      const rows = await reader.all(
        'select distinct height, merkle_root from graph_transactions where height >= ? order by height desc, merkle_root',
        [from],
      )
      return rows.map(blockOf)
    },
    async lastHeight() {
      const row = await reader.first('select max(height) as height from graph_transactions', [])
      return Number(row?.height ?? 0)
    },
    async ofConflicts(spends) {
      const others = await statuses(reader, await conflictsOf(reader, spends))
      const heights = [...new Set(others.flatMap(({ mined }) => mined ?? []))]
      return await inParts(heights, async (part) => {
        const sql = `select distinct height, merkle_root from graph_transactions where height in (${anyOf(part)})`
        return (await reader.all(sql, part)).map(blockOf)
      })
    },
  }
}

function blockOf(row: { height: unknown; merkle_root: unknown }): Block {
  return { height: Number(row.height), root: hexOf(row.merkle_root) }
}
