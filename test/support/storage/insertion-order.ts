import { heightIn } from '../../../backend/src/graph/listings.js'

/**
 * A value of a row without what depends on the insertion order, which no fact does: undefined for the order itself, and null for
 * the place of an unproven row in a list.
 */
export function withoutOrder(column: string, value: unknown): unknown {
  if (column === 'arrival') return undefined
  if (column !== 'recency' || value === null) return value
  return heightIn(Number(value)) ?? null
}

/** Settings that follow from what a host lived through, and not from what it holds. */
const OF_ITS_LIFE: unknown[] = ['writes', 'scores', 'tree_followed']

/** The rows of a table without what depends on when they were written. */
export function withoutLife<Row extends object>(table: string, rows: readonly Row[]): Row[] {
  if (table !== 'graph_settings') return [...rows]
  return rows.filter((row) => !OF_ITS_LIFE.includes((row as { name?: unknown }).name))
}

/** The items in the order that the numbers say: where these run out, first. */
export function shuffled<T>(items: readonly T[], places: Iterable<number>): T[] {
  const numbers = places[Symbol.iterator]()
  return items
    .map((item) => ({ item, place: Number(numbers.next().value ?? 0) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
