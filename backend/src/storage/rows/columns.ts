import type { Outpoint } from '../../protocol/outpoint.js'
import { rest } from '../write/rest.js'

/** How values stand in columns: txids and hashes as their 32 bytes in shown order, so that they sort as shown. */

/** How much of a body or a raw transaction stands in one row. */
export const CHUNK_BYTES = 256 * 1024

export function hashColumn(hex: string): Buffer {
  if (hex !== last.hex) last = { hex, column: Buffer.from(hex, 'hex') }
  return last.column
}

/** The rows of one transaction have its txid over and over. */
let last = { hex: '', column: Buffer.alloc(0) }

/** Drivers differ in what they give for a binary column: a Buffer, or an ArrayBuffer (libsql). */
export function bytesOf(column: unknown): Uint8Array {
  if (column instanceof Uint8Array) return column
  return new Uint8Array(column as ArrayBuffer)
}

export function hexOf(column: unknown): string {
  return Buffer.from(bytesOf(column)).toString('hex')
}

export function outpointColumns({ txid, vout }: Outpoint): { txid: Buffer; vout: number } {
  return { txid: hashColumn(txid), vout }
}

export function outpointPair({ txid, vout }: Outpoint): [txid: Buffer, vout: number] {
  return [hashColumn(txid), vout]
}

/** How many rows one statement carries at the most: the embedded store serves nobody else before one ends. */
export const ROWS_A_STATEMENT = 50

export function* parts<Item>(items: Item[], length: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += length) yield items.slice(at, at + length)
}

/** Finds for any number of items what one statement after the other finds for some of them, and rests between them. */
export async function inParts<Item, Found>(
  items: Item[],
  find: (part: Item[]) => Promise<Found[]>,
): Promise<Found[]> {
  const found: Found[] = []
  for (const part of parts(items, ROWS_A_STATEMENT)) {
    for (const each of await find(part)) found.push(each)
    if (part.length === ROWS_A_STATEMENT) await rest()
  }
  return found
}

/** Counts for any number of items what one statement after the other counts for some of them, until there are enough. */
export async function countInParts<Item>(
  items: Item[],
  limit: number,
  count: (part: Item[]) => Promise<number>,
): Promise<number> {
  let counted = 0
  for (const part of parts(items, ROWS_A_STATEMENT)) {
    if (counted >= limit) break
    counted += await count(part)
  }
  return counted
}

export function unique<Item>(items: Item[], keyOf: (item: Item) => string): Item[] {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()]
}

/** Items by what they have in common, in their order. */
export function groupBy<Key, Item>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

export interface OutpointRow {
  txid: unknown
  vout: unknown
}

export function outpointOf({ txid, vout }: OutpointRow): Outpoint {
  return { txid: hexOf(txid), vout: Number(vout) }
}

/** Drivers differ in what they give for a whole number, too: a number, a BigInt or text. */
export function numberIn(column: unknown): number | undefined {
  return column === null || column === undefined ? undefined : Number(column)
}
