/** The items in the order that the numbers say: where these run out, first. */
export function shuffled<T>(items: readonly T[], places: Iterable<number>): T[] {
  const numbers = places[Symbol.iterator]()
  return items
    .map((item) => ({ item, place: Number(numbers.next().value ?? 0) }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
