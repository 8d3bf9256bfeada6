import { readTransaction } from '../protocol/transaction.js'
import type { TransactionRecord } from './records.js'

/** What becomes of a transaction on the walk. */
export interface Visit<Item> {
  /** What to give of it. */
  item: Item
  /** The transactions to give before it, where the store holds them; the last of these is walked to first. */
  before: string[]
}

/**
 * A stored transaction and what is to be given before it, and so on: each once, parents before children, the
 * transaction itself last. Depth first without recursion: how deep a chain is, is for strangers to say.
 *
 * @param options.read Reads a transaction, as a record or as far as it is looked at; undefined where the store does not hold it.
 * @param options.seen Transactions to pass over; those that come are added. One set for several walks, as long as each
 * is walked to its end, gives what they share once.
 * @param options.visit Called as soon as a record is read, which is held no longer than that.
 */
export async function* ancestry<Record, Item>(options: {
  txid: string
  read: (txid: string) => Promise<Record | undefined>
  seen: Set<string>
  visit: (record: Record) => Visit<Item> | Promise<Visit<Item>>
}): AsyncGenerator<Item> {
  const { read, seen, visit } = options
  const path: { txid: string; found?: Visit<Item | undefined> }[] = [{ txid: options.txid }]
  for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
    if (step.found === undefined) {
      if (seen.has(step.txid)) {
        path.pop()
        continue
      }
      seen.add(step.txid)
      const record = await read(step.txid)
      step.found = record === undefined ? { item: undefined, before: [] } : await visit(record)
    }
    const parent = step.found.before.pop()
    if (parent !== undefined) {
      path.push({ txid: parent })
    } else {
      path.pop()
      if (step.found.item !== undefined) yield step.found.item
    }
  }
}

/** The transactions that an unproven one spends of, which vouch for it; none, where it is proven. */
export function unprovenParents({ txid, raw, proof }: TransactionRecord): string[] {
  return proof === undefined ? parentsOf(readTransaction(raw, { txid })) : []
}

/** The transactions that one spends of, each once. */
export function parentsOf({ inputs }: { inputs: { txid: string }[] }): string[] {
  const parents = new Set<string>()
  for (const { txid } of inputs) parents.add(txid)
  return [...parents]
}

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
