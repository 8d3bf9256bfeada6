import type { Sighting } from '../../backend/src/graph/conflict-resolution.js'
import type { History, HistoryTransaction } from './history.js'

/** What a store was told: all that it answers follows from this. */
export interface Facts {
  /** The transactions that are known, and the submission in which each first came. */
  insertionOrder: ReadonlyMap<string, number>
  /** The blocks of those that are proven themselves. */
  proofs: ReadonlyMap<string, Proof>
  /** What the network said last of transactions, known or not. */
  sightings?: ReadonlyMap<string, Sighting>
}

export interface Proof {
  height: number
  root: string
}

export interface Decision {
  counts: ReadonlySet<string>
  /** All that are known, in the order of their ranks: blocks first, then by submission. Parents come first. */
  order: string[]
  /** The transactions that an inactive one may be said to have lost to, or that were rejected. */
  winnersOver(txid: string): Set<string>
}

/** Where a transaction stands among those it conflicts with; the lower wins. */
interface Rank {
  mined: number
  seen: boolean
  inserted: number
  txid: string
}

/** Works something out once for each transaction or output. */
export function once<Value>(work: (of: string) => Value): (of: string) => Value {
  const done = new Map<string, { value: Value }>()
  return (of) => {
    const found = done.get(of) ?? { value: work(of) }
    done.set(of, found)
    return found.value
  }
}

/**
 * Which transactions count: worked out from scratch each time, in the plainest way.
 *
 * @param genuine What `tm_names` admits of what is known, by outpoint.
 */
export function decide(
  { byTxid }: Pick<History, 'byTxid'>,
  {
    insertionOrder,
    proofs,
    sightings = new Map(),
    genuine,
  }: Facts & { genuine: { has(outpoint: string): boolean } },
): Decision {
  const known = [...insertionOrder.keys()]
  const transaction = (txid: string): HistoryTransaction => {
    const found = byTxid.get(txid)
    if (found === undefined) throw new Error(`no such transaction in this history: ${txid}`)
    return found
  }
  const spendsOf = (txid: string): string[] => transaction(txid).spends
  const parentsOf = once((txid) =>
    [...new Set(spendsOf(txid).map((spent) => spent.slice(0, 64)))].filter((each) =>
      insertionOrder.has(each),
    ),
  )
  const childrenOf = once((txid) => known.filter((each) => parentsOf(each).includes(txid)))
  // Only a mint spends a node.
  const isMint = (txid: string): boolean => genuine.has(`${txid}_0`)
  const isNode = (outpoint: string): boolean => genuine.has(outpoint) && !outpoint.endsWith('_2')
  const conflictsOf = once((txid) =>
    known
      .filter((each) => each !== txid)
      .filter((each) =>
        spendsOf(each)
          .filter((spent) => spendsOf(txid).includes(spent))
          .some((spent) => !isNode(spent) || (isMint(each) && isMint(txid))),
      ),
  )
  const all = (start: string, next: (txid: string) => string[]): Set<string> => {
    const found = new Set([start])
    for (const each of found) for (const further of next(each)) found.add(further)
    return found
  }

  const rankOf = (txid: string): Rank => {
    const builtOnIt = [...all(txid, childrenOf)]
    return {
      mined: Math.min(...builtOnIt.map((each) => proofs.get(each)?.height ?? Number.POSITIVE_INFINITY)),
      seen: builtOnIt.some((each) => proofs.has(each) || sightings.get(each) === 'seen'),
      inserted: Math.min(...builtOnIt.map((each) => insertionOrder.get(each) ?? Number.POSITIVE_INFINITY)),
      txid,
    }
  }
  const ranks = new Map(known.map((txid) => [txid, rankOf(txid)]))
  const isBefore = (one: string, other: string): boolean => {
    const [a, b] = [ranks.get(one), ranks.get(other)]
    if (a === undefined || b === undefined) throw new Error('a transaction without a rank')
    if (a.mined !== b.mined) return a.mined < b.mined
    if (a.seen !== b.seen) return a.seen
    return a.inserted === b.inserted ? a.txid < b.txid : a.inserted < b.inserted
  }
  /** What no block can ever hold: two of its ancestors conflict, or it conflicts with one. */
  const isImpossible = (txid: string): boolean => {
    const line = all(txid, parentsOf)
    return [...line].some((each) => conflictsOf(each).some((other) => line.has(other)))
  }
  const impossible = new Set(known.filter(isImpossible))
  const isRejected = (txid: string): boolean =>
    sightings.get(txid) === 'rejected' && ranks.get(txid)?.seen === false

  const decided = new Map<string, boolean | 'open'>()
  const counts = (txid: string): boolean => {
    const known = decided.get(txid)
    if (known === 'open') throw new Error(`what counts depends on itself at ${txid}`)
    if (known !== undefined) return known
    decided.set(txid, 'open')
    const does =
      !impossible.has(txid) &&
      !isRejected(txid) &&
      parentsOf(txid).every(counts) &&
      !conflictsOf(txid).some((other) => !impossible.has(other) && isBefore(other, txid) && counts(other))
    decided.set(txid, does)
    return does
  }
  const counting = new Set(known.filter(counts))
  const places = [...byTxid.keys()]
  const place = (txid: string) => {
    const { mined = 0, inserted = 0 } = ranks.get(txid) ?? {}
    return { mined, inserted, at: places.indexOf(txid) }
  }
  return {
    counts: counting,
    order: known.toSorted((one, other) => {
      const [a, b] = [place(one), place(other)]
      if (a.mined !== b.mined) return a.mined < b.mined ? -1 : 1
      return a.inserted - b.inserted || a.at - b.at
    }),
    winnersOver(txid) {
      const inactive = [...all(txid, parentsOf)].filter((each) => !counting.has(each))
      const winners = inactive.flatMap(conflictsOf).filter((other) => counting.has(other))
      return new Set([...winners, ...inactive.filter(isRejected)])
    },
  }
}
