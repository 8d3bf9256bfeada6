import type { BlocksReader, RawTransaction, TransactionsReader } from '../../graph/graph-store.js'
import type { Block, TransactionRecord } from '../../graph/records.js'
import { rawTransactionOf } from '../read/read-blobs.js'
import { hashColumn, hexOf } from '../rows/columns.js'
import { chunksOf, type Doc, outpointId } from './collections.js'
import { chunksIn, readChunks } from './content.js'
import { anyOutpoint, type Documents, type Filter, type FindOptions } from './documents.js'
import { withNodes } from './names.js'
import { conflictsOf, heightIn, statuses, winnerIn } from './transaction-status.js'

/** The transactions of a store. @param derives Whether the store derives admissions by itself. */
export function transactionsIn(documents: Documents, derives: () => boolean): TransactionsReader {
  return {
    get: (txid) => transactionRecord(documents, txid),
    raw: (txid) => rawTransaction(documents, txid),
    async has(txid) {
      const stored = { _id: hashColumn(txid) }
      return (await documents.first('graph_transactions', stored, { fields: ['_id'] })) !== undefined
    },
    heightOf: (txid) => heightIn(documents, txid),
    async spenderOf(outpoint) {
      const found = await documents.all('graph_spends', anyOutpoint([outpoint]), { fields: ['spender'] })
      const spenders: Buffer[] = found.map(({ spender }) => spender)
      if (spenders.length === 0) return undefined
      const node = await documents.first('graph_nodes', { _id: outpointId(outpoint) }, { fields: ['txid'] })
      if (node === undefined) return spenders.map(hexOf)[0]
      // Only a mint spends a node, and a transaction without a node is no mint.
      const mints = await withNodes(documents, spenders)
      return spenders.map(hexOf).find((spender) => mints.has(spender))
    },
    winnerOver: (txid) => winnerIn(documents, txid, derives()),
  }
}

/** A transaction with all its bytes; undefined if the store does not hold it. */
export async function transactionRecord(
  documents: Documents,
  txid: string,
): Promise<TransactionRecord | undefined> {
  const id = hashColumn(txid)
  const [doc, raw] = await Promise.all([
    documents.first('graph_transactions', { _id: id }, { fields: ['merkle_path', 'height', 'merkle_root'] }),
    readChunks(documents, id),
  ])
  if (doc === undefined || raw === undefined) return undefined
  const proof = proofOf(doc)
  return { txid, raw, ...(proof && { proof }) }
}

/** See `TransactionsReader.raw`. */
export async function rawTransaction(
  documents: Documents,
  txid: string,
): Promise<RawTransaction | undefined> {
  const id = hashColumn(txid)
  const blobs = chunksIn(documents)
  const [doc, first] = await Promise.all([
    documents.first('graph_transactions', { _id: id }, { fields: ['merkle_path', 'height', 'merkle_root'] }),
    blobs.chunk(id, 0),
  ])
  if (doc === undefined || first === undefined) return undefined
  return await rawTransactionOf({
    txid,
    proof: proofOf(doc),
    first,
    async last() {
      const last = await documents.first('graph_pieces', chunksOf(id), {
        sort: { _id: -1 },
        fields: ['position', 'bytes'],
      })
      return last && { position: last.position, length: last.bytes.length }
    },
    blobs,
  })
}

function proofOf({ merkle_path, height, merkle_root }: Doc): TransactionRecord['proof'] {
  if (!merkle_path) return undefined
  return { merklePath: merkle_path, height, root: hexOf(merkle_root) }
}

/** How many transactions are read at once: a block may hold any number. */
const PAGE = 500

/** The blocks of a store. */
export function blocksIn(documents: Documents): BlocksReader {
  return {
    from: (query) => readBlocks(documents, query),
    async lastHeight() {
      const highest: FindOptions = { sort: { height: -1 }, fields: ['height'] }
      const last = await documents.first('graph_transactions', { height: { $gte: 0 } }, highest)
      return last?.height ?? 0
    },
    async ofConflicts(spends) {
      const others = await statuses(documents, await conflictsOf(documents, spends))
      const heights = new Set(others.flatMap(({ mined }) => mined ?? []))
      const found: Block[] = []
      for (const height of heights) found.push(...(await readBlocks(documents, { from: height, to: height })))
      return found
    },
  }
}

/** The blocks that stored proofs lead to, between two heights inclusive: highest first, then by root. */
async function readBlocks(
  documents: Documents,
  { from, to }: { from: number; to?: number },
): Promise<Block[]> {
  const found = new Map<string, Block>()
  const above = { $gte: from, ...(to !== undefined && { $lte: to }) }
  for (let filter: Filter = { height: above }; ; ) {
    const docs = await documents.all('graph_transactions', filter, {
      sort: { height: -1, merkle_root: -1 },
      limit: PAGE,
      fields: ['height', 'merkle_root'],
    })
    for (const { height, merkle_root } of docs) {
      const root = hexOf(merkle_root)
      found.set(`${height} ${root}`, { height, root })
    }
    const last = docs.at(-1)
    if (last === undefined || docs.length < PAGE) break
    filter = below(last, from)
  }
  return [...found.values()].sort((a, b) => b.height - a.height || (a.root < b.root ? -1 : 1))
}

/** The transactions of all blocks that come after one in that order. */
function below({ height, merkle_root }: Doc, from: number): Filter {
  return {
    height: { $gte: from, $lte: height },
    $or: [{ height: { $lt: height } }, { merkle_root: { $lt: merkle_root } }],
  }
}
