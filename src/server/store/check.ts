import { createHash, type Hash } from 'node:crypto'
import { CHUNK_BYTES } from '../../../backend/src/graph/graph-store.js'
import { heldChunks, identifies, isIntact } from '../../../backend/src/storage/read/read-blobs.js'
import { bytesOf, hexOf } from '../../../backend/src/storage/rows/columns.js'
import type { RowReader, Table } from '../../../backend/src/storage/rows/rows.js'
import { schemaNames } from '../../../backend/src/storage/sql/migrations.js'
import { BackupError, type SavedTables } from './backup/backup-tables.js'

/** What is wrong with the bytes of a store. */
export interface Damage {
  /** `other`: MAP, or the BEEF of a failed hook. MAP is rebuilt by `minetree reindex`. */
  kind: 'transaction' | 'content' | 'other'
  /** The txid, the SHA-256 of the content, or the key of the blob. */
  id: string
  problem: 'missing' | 'damaged'
}

export interface CheckOptions {
  signal: AbortSignal
  onDamage: (damage: Damage) => void
  onProgress: (checked: { blobs: number; bytes: number; share?: number }) => void
}

/** Chunks that are read at once: 4 MiB. */
const CHUNKS_A_PAGE = 16
const OWNERS_A_PAGE = 1000

/**
 * Verifies all bytes of a store: those of each transaction and body against the hash by which they are found, and every other
 * blob against its checksums. Holds a page of chunks at a time.
 *
 * @returns How much it checked.
 * @throws BackupError if the store is of another version; the reason of the signal.
 */
export async function checkStore(
  tables: SavedTables,
  { signal, onDamage, onProgress }: CheckOptions,
): Promise<{ blobs: number; bytes: number }> {
  if (tables.schema.join() !== schemaNames().join())
    throw new BackupError('the store is of another version of minetree: start this one on it first')
  const total = await tables.size()
  const checked = { blobs: 0, bytes: 0 }
  let blob: OpenBlob | undefined
  const finish = async (): Promise<void> => {
    if (blob === undefined) return
    const kind = await blob.damagedKind(tables.reader)
    if (kind !== undefined) onDamage({ kind, id: blob.id, problem: 'damaged' })
    checked.blobs++
  }
  for await (const { owner, position, bytes, checksum } of chunks(tables)) {
    signal.throwIfAborted()
    if (blob?.id !== hexOf(owner)) {
      await finish()
      blob = new OpenBlob(owner)
    }
    blob.add(bytes, { position, checksum })
    checked.bytes += bytes.length
    onProgress({ ...checked, ...(total && { share: Math.min(checked.bytes / total, 1) }) })
  }
  await finish()
  for (const [kind, table, column] of OWNERS)
    for await (const id of missing(tables.reader, { table, column })) {
      signal.throwIfAborted()
      onDamage({ kind, id, problem: 'missing' })
    }
  return checked
}

/** Where the blobs are named that have to be there. */
const OWNERS: [kind: Damage['kind'], table: Table, column: string][] = [
  ['transaction', 'graph_transactions', 'txid'],
  ['content', 'graph_outputs', 'content_sha256'],
  ['content', 'graph_silent_facts', 'content_sha256'],
]

interface Chunk {
  owner: Buffer
  position: number
  bytes: Uint8Array
  checksum: unknown
}

async function* chunks(tables: SavedTables): AsyncGenerator<Chunk> {
  let last: Chunk | undefined
  do {
    const page = await tables.chunksAfter(last, CHUNKS_A_PAGE)
    last = undefined
    for (const row of page) {
      const { checksum } = row
      last = {
        owner: Buffer.from(bytesOf(row.owner)),
        position: Number(row.position),
        bytes: bytesOf(row.bytes),
        checksum,
      }
      yield last
    }
  } while (last !== undefined)
}

/** A blob whose chunks are read one after another. */
class OpenBlob {
  readonly id: string
  private readonly hash: Hash = createHash('sha256')
  private isDamaged = false
  private chunks = 0
  private length = 0

  constructor(private readonly owner: Buffer) {
    this.id = hexOf(owner)
  }

  add(bytes: Uint8Array, { position, checksum }: Pick<Chunk, 'position' | 'checksum'>): void {
    this.hash.update(bytes)
    if (position !== this.chunks || !isIntact(bytes, { owner: this.owner, checksum })) this.isDamaged = true
    this.chunks = position + 1
    this.length += bytes.length
  }

  /** What it is, if it is damaged; undefined if not. */
  async damagedKind(rows: RowReader): Promise<Damage['kind'] | undefined> {
    const hash = this.hash.digest()
    if (identifies(this.owner, hash)) return undefined
    // The checksums of its chunks say nothing of chunks that are gone from its end.
    if (!this.isDamaged && this.length < CHUNK_BYTES) return undefined
    for (const [kind, table, column] of OWNERS)
      if ((await rows.first(table, { [column]: this.owner }, { fields: [column] })) !== undefined) return kind
    return this.isDamaged ? 'other' : undefined
  }
}

/** The blobs that a column names and that are not stored. */
async function* missing(
  rows: RowReader,
  { table, column }: { table: Table; column: string },
): AsyncGenerator<string> {
  for (let last = Buffer.alloc(0); ; ) {
    const page = await rows.all(
      table,
      { [column]: { $gt: last } },
      { sort: { [column]: 1 }, limit: OWNERS_A_PAGE, fields: [column] },
    )
    const owners = [...new Set(page.map((row) => hexOf(row[column])))]
    const held = await heldChunks(rows, owners)
    for (const owner of owners) if (!held.has(owner)) yield owner
    if (page.length < OWNERS_A_PAGE) return
    last = Buffer.from(owners.at(-1) ?? '', 'hex')
  }
}
