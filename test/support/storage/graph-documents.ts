import type { Db } from 'mongodb'
import { COLLECTIONS } from '../../../backend/src/storage/mongo/collections.js'

/** The documents of every collection of the admitted graph, as they are. */
export async function rawDocuments(db: Db): Promise<Record<string, object[]>> {
  const documents: Record<string, object[]> = {}
  for (const name of Object.keys(COLLECTIONS))
    documents[name] = await db.collection(name, { promoteBuffers: true }).find().toArray()
  return documents
}

/**
 * The rows of tables, or the documents of collections, as text in an order of its own, so that the one may be held against
 * the other.
 *
 * @param leftOut Fields that are not compared.
 */
export function asText(rows: Record<string, object[]>, leftOut: string[] = []): Record<string, string[]> {
  const without = new Set(['_id', ...leftOut])
  const textOf = (row: object): string =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(row)
          .filter(([field]) => !without.has(field))
          .sort(([one], [other]) => (one < other ? -1 : 1))
          .map(([field, value]) => [field, plain(value)]),
      ),
    )
  return Object.fromEntries(Object.entries(rows).map(([name, all]) => [name, all.map(textOf).sort()]))
}

/** SQLite has numbers for what is true or not, and other bytes than MongoDB. */
function plain(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value)
  // Not by `instanceof`: each test file has globals of its own.
  const isBytes = Buffer.isBuffer(value) || Object.prototype.toString.call(value) === '[object ArrayBuffer]'
  return isBytes ? Buffer.from(value as ArrayBuffer).toString('hex') : value
}
