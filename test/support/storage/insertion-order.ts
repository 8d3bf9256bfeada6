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

/** The items in the order that the numbers say: where these run out, first. */
export function shuffled<T>(items: readonly T[], places: Iterable<number>): T[] {
  const numbers = places[Symbol.iterator]()
  return items
    .map((item) => ({ item, place: Number(numbers.next().value ?? 0) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
