import { createHash } from 'node:crypto'
import { DamagedError } from '../../graph/errors.js'
import {
  type BlocksReader,
  CHUNK_BYTES,
  type RawTransaction,
  type TransactionsReader,
} from '../../graph/graph-store.js'
import { sha256 } from '../../graph/native-hash.js'
import type { TransactionRecord } from '../../graph/records.js'
import { bytesOf, hashColumn, hexOf, inParts, numberIn } from '../rows/columns.js'
import { anyOf, type Row, type RowReader } from '../rows/rows.js'
import type { Lookups } from './lookups.js'
import { chunksIn, identifies, intactBytes, readChunks } from './read-blobs.js'
import { conflictsOf, heightOf, reasonIn, statuses, tiersIn } from './transaction-status.js'

/** The transactions of a store. @param derives Whether the store derives admissions by itself. */
export function transactionsIn(
  rows: RowReader,
  lookups: Lookups,
  derives: () => boolean,
): TransactionsReader {
  return {
    get: (txid) => transactionRecord(rows, lookups, txid),
    raw: (txid) => rawTransaction(rows, lookups, txid),
    async has(txid) {
      const row = await rows.first('graph_transactions', { txid: hashColumn(txid) }, { fields: ['txid'] })
      return row !== undefined
    },
    heightOf: (txid) => heightOf(rows, txid),
    spenderOf: (outpoint) => lookups.spenderOf(outpoint),
    reasonAgainst: (txid) => reasonIn(rows, { lookups, derives: derives() }, txid),
    tiers: (txids) => tiersIn(rows, txids),
  }
}

/** A transaction with all its bytes; undefined if the store does not hold it. */
export async function transactionRecord(
  rows: RowReader,
  lookups: Pick<Lookups, 'transactionHead'>,
  txid: string,
): Promise<TransactionRecord | undefined> {
  const owner = hashColumn(txid)
  const head = await lookups.transactionHead(owner)
  if (head === undefined) return undefined
  const first = intactBytes(head, { owner, position: 0 })
  const raw = await readChunks(chunksIn(rows), owner, first)
  if (raw === undefined) return undefined
  // Each chunk is intact, but the last ones may be missing.
  if (raw !== first && !identifies(owner, sha256(raw))) throw new DamagedError(txid, 'chunks are missing')
  return { txid, raw, ...proofOf(head) }
}

/** See `TransactionsReader.raw`. */
export async function rawTransaction(
  rows: RowReader,
  lookups: Pick<Lookups, 'transactionHead' | 'lastChunk'>,
  txid: string,
): Promise<RawTransaction | undefined> {
  const owner = hashColumn(txid)
  const head = await lookups.transactionHead(owner)
  if (head === undefined) return undefined
  const first = intactBytes(head, { owner, position: 0 })
  // Only the last chunk is shorter than the others.
  const last = first.length < CHUNK_BYTES ? undefined : await lookups.lastChunk(owner)
  const length = last === undefined ? first.length : last.position * CHUNK_BYTES + last.length
  const blobs = chunksIn(rows)
  // A long one that ends with a full chunk has lost its end, or has exactly this length, which few have.
  const mayLackEnd = last?.length === CHUNK_BYTES
  return {
    txid,
    ...proofOf(head),
    length,
    async *chunks(from = 0) {
      const whole = from === 0 && mayLackEnd ? createHash('sha256') : undefined
      for (let position = Math.floor(from / CHUNK_BYTES); position * CHUNK_BYTES < length; position++) {
        const bytes = position === 0 ? first : await blobs.chunk(owner, position)
        if (bytes === undefined) throw new DamagedError(txid, `chunk ${position} is missing`)
        const at = position * CHUNK_BYTES
        // Before the last chunk is given: a reader of all of it would take that for the end.
        if (whole?.update(bytes) && at + bytes.length === length && !identifies(owner, whole.digest()))
          throw new DamagedError(txid, 'chunks are missing')
        yield { at, bytes }
      }
    },
  }
}

/** The columns that {@link proofOf} reads. */
export const PROOF = ['merkle_path', 'height', 'merkle_root']

function proofOf({ merkle_path, height, merkle_root }: Row): Pick<TransactionRecord, 'proof'> {
  if (!merkle_path) return {}
  return { proof: { merklePath: bytesOf(merkle_path), height: Number(height), root: hexOf(merkle_root) } }
}

/** The blocks of a store. */
export function blocksIn(rows: RowReader, lookups: Lookups): BlocksReader {
  return {
    from: (query) => lookups.blocksBetween(query),
    async lastHeight() {
      const known = { height: { $gte: 0 } }
      const last = await rows.first('graph_transactions', known, { sort: { height: -1 }, fields: ['height'] })
      return Number(last?.height ?? 0)
    },
    async ofConflicts(spends) {
      const others = await statuses(rows, await conflictsOf(rows, spends))
      const heights = [...new Set(others.flatMap(({ mined }) => mined ?? []))]
      const found = await Promise.all(
        heights.map((height) => lookups.blocksBetween({ from: height, to: height })),
      )
      return found.flat()
    },
  }
}

/** The heights of the transactions that are proven. */
export async function heightsOf(rows: RowReader, txids: string[]): Promise<Map<string, number>> {
  const found = await inParts([...new Set(txids)], (part) =>
    rows.all('graph_transactions', { txid: anyOf(part) }, { fields: ['txid', 'height'] }),
  )
  return new Map(
    found.flatMap(({ txid, height }): [string, number][] => {
      const known = numberIn(height)
      return known === undefined ? [] : [[hexOf(txid), known]]
    }),
  )
}
