import { readTransaction } from '../protocol/transaction.js'
import type { TransactionRecord } from './records.js'

/** The parents of an unproven transaction, which prove it; none if it is proven itself. */
export function unprovenParents({ txid, raw, proof }: TransactionRecord): string[] {
  return proof === undefined ? parentsOf(readTransaction(raw, { txid })) : []
}

/** The transactions that one spends from, each once. */
export function parentsOf({ inputs }: { inputs: { txid: string }[] }): string[] {
  const parents = new Set<string>()
  for (const { txid } of inputs) parents.add(txid)
  return [...parents]
}

/**
 * Orders transactions parents before children, otherwise as given; so one that descends from all others is last. Without
 * recursion, as chains may be of any depth.
 *
 * @param items By txid.
 * @param parentsOf The txids that an item spends from, among the items or not.
 */
export function parentsFirst<Item>(
  items: ReadonlyMap<string, Item>,
  parentsOf: (item: Item) => readonly string[],
): Item[] {
  return [...inParentsFirst(items, parentsOf)]
}

/** As {@link parentsFirst}, one at a time, so that a caller with many can yield to the event loop. */
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
