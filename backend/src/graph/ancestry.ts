import { readTransaction } from '../protocol/transaction.js'
import type { TransactionRecord } from './records.js'
import type { Awaitable } from './yield-to-event-loop.js'

export interface Visit<Item> {
  /** The item to add for the transaction. */
  item: Item
  /** The transactions to visit before it, if the store has them; the last of these first. */
  before: string[]
}

/**
 * Visits a stored transaction and those that come before it, each once, parents before children, the transaction itself last. Depth
 * first without recursion, as chains may be of any depth. Only promises are awaited, so a walk over synchronous reads makes none.
 *
 * @param options.read Reads a transaction, or the part of it that is needed; undefined if the store does not have it.
 * @param options.seen Transactions to skip; visited ones are added. Several complete walks that share a set visit each transaction
 * once.
 * @param options.visit Called as soon as a record is read; the record is not kept after that.
 * @param options.add Called with the items, in order.
 */
export async function walkAncestry<Record, Item>(options: {
  txid: string
  read: (txid: string) => Awaitable<Record | undefined>
  seen: Set<string>
  visit: (record: Record) => Awaitable<Visit<Item>>
  add: (item: Item) => void
}): Promise<void> {
  const { read, seen, visit, add } = options
  const path: { txid: string; found?: Visit<Item | undefined> }[] = [{ txid: options.txid }]
  for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
    if (step.found === undefined) {
      if (seen.has(step.txid)) {
        path.pop()
        continue
      }
      seen.add(step.txid)
      try {
        const reading = read(step.txid)
        const record = reading instanceof Promise ? await reading : reading
        const visited = record === undefined ? { item: undefined, before: [] } : visit(record)
        step.found = visited instanceof Promise ? await visited : visited
      } catch (error) {
        // They were not added, so another walk has to visit them again.
        for (const { txid } of path) seen.delete(txid)
        throw error
      }
    }
    const parent = step.found.before.pop()
    if (parent !== undefined) {
      path.push({ txid: parent })
    } else {
      path.pop()
      if (step.found.item !== undefined) add(step.found.item)
    }
  }
}

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
