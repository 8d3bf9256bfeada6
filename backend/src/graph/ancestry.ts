import { readTransaction } from '../protocol/transaction.js'
import type { TransactionReader } from './graph-store.js'
import type { TransactionRecord } from './records.js'

/**
 * A stored transaction and, where it is not proven, its ancestors down to proven ones as far as the store holds them:
 * each once, parents before children, the transaction itself last. Depth first without recursion: how deep an unproven
 * chain is, is for strangers to say.
 *
 * @param options.seen Transactions to pass over; those that come are added. One set for several walks, as long as each
 * is walked to its end, gives what they share once.
 * @param options.item What to give of each. Called as soon as its record is read, which is held no longer than that.
 */
export async function* ancestry<Item>(options: {
  txid: string
  store: TransactionReader
  seen: Set<string>
  item: (record: TransactionRecord) => Item
}): AsyncGenerator<Item> {
  const { store, seen, item } = options
  const path: { txid: string; found?: { item: Item | undefined; parents: string[] } }[] = [
    { txid: options.txid },
  ]
  for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
    if (step.found === undefined) {
      if (seen.has(step.txid)) {
        path.pop()
        continue
      }
      seen.add(step.txid)
      const record = await store.transaction(step.txid)
      step.found = {
        item: record && item(record),
        parents: record === undefined ? [] : unprovenParents(record),
      }
    }
    const parent = step.found.parents.pop()
    if (parent !== undefined) {
      path.push({ txid: parent })
    } else {
      path.pop()
      if (step.found.item !== undefined) yield step.found.item
    }
  }
}

/** The transactions that an unproven one spends of; none, where it is proven. */
function unprovenParents({ txid, raw, proof }: TransactionRecord): string[] {
  return proof === undefined ? parentsOf(readTransaction(raw, { txid })) : []
}

/** The transactions that one spends of, each once. */
export function parentsOf({ inputs }: { inputs: { txid: string }[] }): string[] {
  return [...new Set(inputs.map((input) => input.txid))]
}
