import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import type { Outpoint } from '../../protocol/outpoint.js'

/** Values as columns hold them: txids and hashes are their 32 bytes in display order, so that they sort as displayed. */

export function hashColumn(hex: string): Buffer {
  if (hex !== last.hex) last = { hex, column: Buffer.from(hex, 'hex') }
  return last.column
}

/** The rows of one transaction repeat its txid. */
let last = { hex: '', column: Buffer.alloc(0) }

/** Readers differ in how they return a binary column: as a Buffer, as an ArrayBuffer (libsql) or in hex (rows that come as JSON). */
export function bytesOf(column: unknown): Uint8Array {
  if (column instanceof Uint8Array) return column
  if (typeof column === 'string') return Buffer.from(column, 'hex')
  return new Uint8Array(column as ArrayBuffer)
}

export function hexOf(column: unknown): string {
  if (typeof column === 'string') return column.toLowerCase()
  return Buffer.from(bytesOf(column)).toString('hex')
}

/** Drivers also differ in how they return an integer: as a number, a BigInt or text. */
export function numberIn(column: unknown): number | undefined {
  return column === null || column === undefined ? undefined : Number(column)
}

export interface OutpointRow {
  txid: unknown
  vout: unknown
}

export function outpointOf({ txid, vout }: OutpointRow): Outpoint {
  return { txid: hexOf(txid), vout: Number(vout) }
}

export function outpointColumns({ txid, vout }: Outpoint): { txid: Buffer; vout: number } {
  return { txid: hashColumn(txid), vout }
}

export function outpointPair({ txid, vout }: Outpoint): [txid: Buffer, vout: number] {
  return [hashColumn(txid), vout]
}

/**
 * The key of a lineage. A complete one, whose start is known, is identified by its first output, which has step 0. An
 * incomplete one is identified by some output and a number that no output index reaches ({@link incompleteKey}), and only the
 * differences between its steps mean anything: so coins that arrive in front of it leave it as it is. No answer contains keys
 * or steps of incomplete lineages, which depend on the order in which their outputs arrived.
 */
export type Lineage = [txid: Buffer, vout: number]

/** Output indexes have 32 bits. */
const INDEXES = 2 ** 32

/** Whether nothing is missing before the first output of a lineage: it received no 1-sat coin, or it is a name's origin. */
export function isComplete([, vout]: Lineage): boolean {
  return vout < INDEXES
}

export function lineageOf(row: { lineage_txid: unknown; lineage_vout: unknown }): Lineage {
  return [hashColumn(hexOf(row.lineage_txid)), Number(row.lineage_vout)]
}

export function formatLineage([txid, vout]: Lineage): string {
  return `${hexOf(txid)} ${vout}`
}

export function isSameLineage(one: Lineage, other: Lineage): boolean {
  return one[1] === other[1] && one[0].equals(other[0])
}

/** A key for an incomplete lineage. @param attempt From 1: another key for the same output, if the first ones are taken. */
export function incompleteKey({ txid, vout }: Outpoint, attempt = 1): Lineage {
  return [hashColumn(txid), vout + attempt * INDEXES]
}

/** How many rows one statement carries at most: the embedded store blocks the thread until it ends. */
export const ROWS_A_STATEMENT = 50

export function* parts<Item>(items: Item[], length: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += length) yield items.slice(at, at + length)
}

/** Runs a lookup for any number of items, {@link ROWS_A_STATEMENT} per statement, and yields in between. */
export async function inParts<Item, Found>(
  items: Item[],
  find: (part: Item[]) => Promise<Found[]>,
): Promise<Found[]> {
  const found: Found[] = []
  for (const part of parts(items, ROWS_A_STATEMENT)) {
    for (const each of await find(part)) found.push(each)
    if (part.length === ROWS_A_STATEMENT) await yieldBetweenStatements()
  }
  return found
}

/** Sums counts over any number of items, {@link ROWS_A_STATEMENT} per statement, until the limit is reached. */
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

/** Groups items by a key, keeping their order. */
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
