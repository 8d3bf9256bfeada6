import type { HeaderChain, HeaderRange } from '../../graph/header-chain.js'
import { HEADER_BYTES } from '../../protocol/block-header.js'
import { concatBytes, equalBytes, joinBytes } from '../../protocol/bytes.js'
import {
  type HeaderRow,
  headerRow,
  positionOf,
  ROW_HEADERS,
  HEADERS_TABLE as TABLE,
} from '../read/header-rows.js'
import type { RowDatabase, RowReader } from '../rows/rows.js'

/** See {@link HeaderChain}: rows of consecutive headers, on any engine. */
export function headerChainIn(database: RowDatabase): HeaderChain {
  return {
    range: () => rangeOf(database),
    async read({ from, count }) {
      if (count < 1) return new Uint8Array(0)
      const rows = await rowsBetween(database, positionOf(from), positionOf(from + count - 1))
      const [first] = rows
      if (first === undefined || first.height > from) return new Uint8Array(0)
      const at = (from - first.height) * HEADER_BYTES
      return joinBytes(rows.map(({ headers }) => headers)).subarray(at, at + count * HEADER_BYTES)
    },
    async replaceFrom({ height, headers, tip }) {
      return await database.write(async (rows) => {
        const last = await end(rows, -1)
        const stored = last?.headers.subarray(-HEADER_BYTES)
        if (stored === undefined || tip === undefined ? stored !== tip : !equalBytes(stored, tip))
          return false
        const position = positionOf(height)
        const kept = await rowAt(rows, position)
        const before = kept?.headers.subarray(0, Math.max(0, height - kept.height) * HEADER_BYTES)
        await rows.delete(TABLE, { position: { $gte: position } })
        const joined = before === undefined ? headers : concatBytes(before, headers)
        await rows.insertNew(TABLE, rowsOf(Math.min(height, kept?.height ?? height), joined))
        return true
      })
    },
    async addBelow({ to, headers }) {
      return await database.write(async (rows) => {
        const first = await end(rows, 1)
        if (first?.height !== to + 1) return false
        const from = to + 1 - headers.length / HEADER_BYTES
        const isShared = positionOf(to) === first.position
        if (isShared) await rows.delete(TABLE, { position: first.position })
        await rows.insertNew(TABLE, rowsOf(from, isShared ? concatBytes(headers, first.headers) : headers))
        return true
      })
    },
    async clear() {
      await database.write((rows) => rows.delete(TABLE, { position: { $gte: 0 } }))
    },
  }
}

async function rangeOf(rows: RowReader): Promise<HeaderRange | undefined> {
  const [first, last] = await Promise.all([end(rows, 1), end(rows, -1)])
  if (first === undefined || last === undefined) return undefined
  return { from: first.height, to: last.height + last.headers.length / HEADER_BYTES - 1 }
}

/** The first row, or the last. */
async function end(rows: RowReader, direction: 1 | -1): Promise<HeaderRow | undefined> {
  const row = await rows.first(TABLE, { position: { $gte: 0 } }, { sort: { position: direction } })
  return row && headerRow(row)
}

async function rowAt(rows: RowReader, position: number): Promise<HeaderRow | undefined> {
  const row = await rows.first(TABLE, { position }, { fields: ['position', 'height', 'headers'] })
  return row && headerRow(row)
}

async function rowsBetween(rows: RowReader, first: number, last: number): Promise<HeaderRow[]> {
  if (first === last) return [(await rowAt(rows, first)) ?? []].flat()
  const position = { $gte: first, $lte: last }
  return (await rows.all(TABLE, { position }, { sort: { position: 1 } })).map(headerRow)
}

function rowsOf(from: number, headers: Uint8Array): HeaderRow[] {
  const rows: HeaderRow[] = []
  const to = from + headers.length / HEADER_BYTES
  for (let height = from; height < to; ) {
    const position = positionOf(height)
    const next = Math.min(to, (position + 1) * ROW_HEADERS)
    const bytes = headers.subarray((height - from) * HEADER_BYTES, (next - from) * HEADER_BYTES)
    // The driver of MongoDB stores a view of a Buffer, and other drivers a Buffer alone.
    rows.push({ position, height, headers: Buffer.from(bytes) })
    height = next
  }
  return rows
}
