import { headerAt, timeOf } from '../../protocol/block-header.js'
import { bytesOf } from '../rows/columns.js'
import type { RowReader } from '../rows/rows.js'

/**
 * How many headers a row has: few enough that one of them is read fast, and enough that rows are written by the thousand. The
 * row at a position has the headers of the heights from `position * ROW_HEADERS` on; only the first row may begin later.
 */
export const ROW_HEADERS = 100

export const HEADERS_TABLE = 'graph_headers'

export interface HeaderRow {
  position: number
  /** The height of its first header. */
  height: number
  headers: Uint8Array
}

export function positionOf(height: number): number {
  return Math.floor(height / ROW_HEADERS)
}

export function headerRow({ position, height, headers }: Record<string, unknown>): HeaderRow {
  return { position: Number(position), height: Number(height), headers: bytesOf(headers) }
}

/** See `ListingsReader.blockTimes`. */
export async function blockTimesIn(rows: RowReader, heights: number[]): Promise<Map<number, number>> {
  const times = new Map<number, number>()
  const positions = [...new Set(heights.map(positionOf))]
  if (positions.length === 0) return times
  const found = (await rows.all(HEADERS_TABLE, { position: { $in: positions } })).map(headerRow)
  const byPosition = new Map(found.map((row) => [row.position, row]))
  for (const height of heights) {
    const row = byPosition.get(positionOf(height))
    const header = row && headerAt(row.headers, height - row.height)
    if (row !== undefined && height >= row.height && header?.length) times.set(height, timeOf(header))
  }
  return times
}
