/**
 * Transactions in an order in which parents stand before children, else in that in which they were given; so one of which
 * all others are ancestors stands last. Without recursion: how deep a chain is, is for strangers to say.
 *
 * @param items By txid.
 * @param parentsOf The txids that one spends of, whether they are among the items or not.
 */
export function parentsFirst<Item>(
  items: ReadonlyMap<string, Item>,
  parentsOf: (item: Item) => readonly string[],
): Item[] {
  return [...inParentsFirst(items, parentsOf)]
}

/** As {@link parentsFirst}, one at a time: whoever has many of them lets others come between. */
export function* inParentsFirst<Item>(
  items: ReadonlyMap<string, Item>,
  parentsOf: (item: Item) => readonly string[],
): Generator<Item> {
  const seen = new Set<string>()
  const path: { item: Item; parents: readonly string[]; next: number }[] = []
  const enter = (txid: string): void => {
    const item = seen.has(txid) ? undefined : items.get(txid)
    if (item === undefined) return
    seen.add(txid)
    path.push({ item, parents: parentsOf(item), next: 0 })
  }
  for (const start of items.keys()) {
    enter(start)
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const parent = step.parents[step.next++]
      if (parent !== undefined) {
        enter(parent)
        continue
      }
      path.pop()
      yield step.item
    }
  }
}
