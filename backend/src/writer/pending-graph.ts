import { LRUCache } from 'lru-cache'
import type { Sql } from '../facts/connection.js'
import type { Pending, PendingOutline } from '../facts/state.js'
import type { PendingLimits } from '../graph/admission-rules.js'
import { parentsFirst } from '../graph/ancestry.js'
import type { Sighting } from '../graph/conflict-resolution.js'
import type { Proof, TransactionRecord } from '../graph/records.js'
import { viewOf } from '../graph/stored-transaction.js'
import { spendsBy } from '../graph/transaction-records.js'
import { fromHex, toHex } from '../protocol/bytes.js'
import { GeneralError } from '../protocol/coded-error.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'

/** A transaction that may enter the log, with what it spends. */
export interface Candidate {
  txid: string
  raw: Uint8Array
  /** The latest last. */
  proofs: readonly Proof[]
  spends: readonly Outpoint[]
  pending?: PendingOutline
}

export function candidateOf({ txid, raw, proof }: TransactionRecord): Candidate {
  const spends = spendsBy(viewOf({ txid, raw })).map(({ outpoint }) => outpoint)
  return { txid, raw, proofs: proof === undefined ? [] : [proof], spends }
}

/** A pending transaction as a candidate; undefined if it is not pending. */
export function pendingCandidate(txid: string, pending: Pending): Candidate | undefined {
  const stored = pending.get(txid)
  if (stored === undefined) return undefined
  const { raw, proofs, ...outline } = stored
  return { ...candidateOf({ txid, raw }), proofs, pending: outline }
}

/** Answers from an index about the transactions around a candidate. */
export class IndexedSpends {
  constructor(private readonly index: Sql) {}

  spendersOf({ txid, vout }: Outpoint): string[] {
    return this.txids(
      `select spender.txid from tx join spend on spend.pid = tx.id and spend.vout = ? join tx spender on spender.id = spend.sid
        where tx.txid = ?`,
      ...[vout, fromHex(txid)],
    )
  }

  /**
   * Whether an active stored transaction spends an outpoint. Only mints conflict over a node. @param isMint Whether the other is a
   * mint.
   */
  hasActiveOpponent({ txid, vout }: Outpoint, isMint: boolean): boolean {
    const row = this.index.get(
      `select 1 as one from tx join spend on spend.pid = tx.id and spend.vout = ?2 join tx spender on spender.id = spend.sid
        where tx.txid = ?1 and spender.active = 1
          and ((?3 and spender.mint) or not exists (select 1 from node where node.tid = tx.id and node.vout = ?2)) limit 1`,
      ...[fromHex(txid), vout, Number(isMint)],
    )
    return row !== undefined
  }

  isInactive(txid: string): boolean {
    return this.index.get('select active from tx where txid = ?', fromHex(txid))?.active === 0
  }

  isMint(txid: string): boolean {
    return this.index.get('select mint from tx where txid = ?', fromHex(txid))?.mint === 1
  }

  /** The height of a stored transaction by its own proofs: infinite if it has none; undefined if it is not stored. */
  ownHeight(txid: string): number | undefined {
    const row = this.index.get('select own from tx where txid = ? and seq is not null', fromHex(txid))
    return row && (row.own ?? Number.POSITIVE_INFINITY)
  }

  /** Whether a stored transaction spends an output of this one, other than these. */
  hasChildBeside(txid: string, others: ReadonlySet<string> = new Set()): boolean {
    return this.txids(
      'select spender.txid from tx join spend on spend.pid = tx.id join tx spender on spender.id = spend.sid where tx.txid = ?',
      fromHex(txid),
    ).some((child) => !others.has(child))
  }

  spendsOf(txid: string): Outpoint[] {
    const rows = this.index.all(
      `select spent.txid, spend.vout from tx join spend on spend.sid = tx.id join tx spent on spent.id = spend.pid
        where tx.txid = ?`,
      fromHex(txid),
    )
    return rows.map(({ txid, vout }) => ({ txid: toHex(txid), vout }))
  }

  /** What the network last said about this transaction, stored or not. */
  sighting(txid: string): Sighting | undefined {
    const said = this.index.get('select said from tx where txid = ?', fromHex(txid))?.said ?? undefined
    return said === undefined ? undefined : said === 1 ? 'seen' : 'rejected'
  }

  private txids(sql: string, ...values: (number | Uint8Array)[]): string[] {
    return this.index.all(sql, ...values).map(({ txid }) => toHex(txid))
  }
}

/**
 * The pending transactions needed to decide whether these count: counting ones that spend the same coins, and waiting ancestors,
 * which they may raise. Ancestors that count are left out, however many there are. For transactions in a conflict, or rejected,
 * the descendants that raise their rank are included.
 */
export function relatedTo(
  candidates: readonly Candidate[],
  { pending, indexed }: { pending: Pending; indexed: IndexedSpends },
): Candidate[] {
  if (!candidates.some((each) => hasPendingAround(each, pending))) return []
  const found = new Map(candidates.map((each) => [each.txid, each]))
  const queue = [...candidates]
  const add = (txid: string): void => {
    const candidate = found.has(txid) ? undefined : pendingCandidate(txid, pending)
    if (candidate === undefined) return
    found.set(txid, candidate)
    queue.push(candidate)
  }
  const ranked = new Set<string>()
  const addRaising = (txid: string): void => {
    const candidate = found.get(txid)
    if (candidate === undefined || ranked.has(txid)) return
    ranked.add(txid)
    const { isRaised, arrived } = candidate.pending ?? { isRaised: true, arrived: Number.POSITIVE_INFINITY }
    if (isRaised) for (const each of raising(txid, arrived, pending)) add(each)
    // New ones may raise any of them, through earlier transactions built on the new ones.
    if (ranked.size === 1)
      for (const each of candidates) if (each.pending === undefined) addRaising(each.txid)
  }
  const spenders = new Map<string, Set<string>>()
  for (const { txid, spends } of queue) {
    for (const parent of new Set(spends.map((spent) => spent.txid)))
      if (pending.outline(parent)?.isWaiting ?? indexed.isInactive(parent)) {
        add(parent)
        addRaising(txid)
      }
    for (const spent of spends) {
      const key = `${spent.txid} ${spent.vout}`
      const all = (spenders.get(key) ?? new Set(indexed.spendersOf(spent))).add(txid)
      spenders.set(key, all)
      for (const other of pending.spendersOf(spent, { isWaiting: false })) {
        add(other)
        all.add(other)
      }
      if (all.size > 1) for (const each of all) addRaising(each)
    }
    if (indexed.sighting(txid) === 'rejected') addRaising(txid)
  }
  return [...found.values()].slice(candidates.length)
}

/** Whether anything pending is a parent of a candidate, spends from one of its parents, or is built on it. */
function hasPendingAround({ txid, spends, pending: own }: Candidate, pending: Pending): boolean {
  return own !== undefined || pending.hasAround([...new Set(spends.map((spent) => spent.txid)).add(txid)])
}

/** The pending descendants of a transaction that raise its rank, with those between. @param arrived Its place. */
function raising(txid: string, arrived: number, pending: Pending): Set<string> {
  const found = new Set([txid])
  for (const each of found)
    for (const child of pending.childrenOf(each)) {
      const outline = pending.outline(child)
      if (outline?.isRaised || (outline?.arrived ?? arrived) < arrived) found.add(child)
    }
  found.delete(txid)
  return found
}

/** The pending descendants of a fact that give it the rank of a proven or seen one. */
export function raisersOf(
  txid: string,
  { pending, indexed }: { pending: Pending; indexed: IndexedSpends },
): string[] {
  return [...raising(txid, 0, pending)].filter(
    (each) => pending.outline(each)?.isProven || indexed.sighting(each) === 'seen',
  )
}

/** Whether two of the transactions spend one coin. */
export function isSpentTwice(candidates: readonly Candidate[]): boolean {
  const spent = new Set<string>()
  for (const { spends } of candidates)
    for (const { txid, vout } of spends) {
      const key = `${txid} ${vout}`
      if (spent.has(key)) return true
      spent.add(key)
    }
  return false
}

/**
 * The candidates that must become facts, in order: those needed themselves, those that spend a coin that a fact or one of these
 * spends, those that raise the rank of a fact, and the ancestors of all of them, also pending ones that are no candidates.
 *
 * @param options.isEligible Whether a candidate may become a fact. One that raises a fact's rank, or that a fact is built on,
 * always may.
 */
export function neededOf(
  candidates: readonly Candidate[],
  options: {
    isNeeded: (txid: string) => boolean
    isEligible: (candidate: Candidate) => boolean
    indexed: IndexedSpends
    pending: Pending
  },
): Candidate[] {
  const { isNeeded, isEligible, indexed, pending } = options
  const byTxid = new Map(candidates.map((each) => [each.txid, each]))
  const own = new Set(byTxid.keys())
  const spenders = new Map<string, string[]>()
  for (const { txid, spends } of candidates)
    for (const spent of spends) {
      const key = `${spent.txid} ${spent.vout}`
      spenders.set(key, [...(spenders.get(key) ?? []), txid])
    }
  const needing = new Set<string>()
  // Ancestors of a fact become facts even if they lost: the fact loses with them.
  const beneath = new Set<string>()
  // If nothing is barred, ancestors of what is needed become facts, so the index need not be asked about them.
  const carried = new Set<string>()
  const eligible = new Set(candidates.filter(isEligible))
  for (const each of candidates.toReversed()) {
    const { txid, spends } = each
    if (carried.has(txid) || isNeeded(txid)) needing.add(txid)
    if (needing.has(txid) && eligible.has(each)) {
      if (eligible.size === candidates.length) for (const spent of spends) carried.add(spent.txid)
    } else if (indexed.hasChildBeside(txid, own)) beneath.add(txid)
  }
  for (const txid of beneath) for (const spent of byTxid.get(txid)?.spends ?? []) beneath.add(spent.txid)
  const mayEnter = (each: Candidate): boolean => eligible.has(each) || beneath.has(each.txid)
  const barred = new Set<string>()
  // Parents come first, except among pending ones: so the walk is repeated.
  for (let before = -1; before < barred.size; ) {
    before = barred.size
    for (const each of candidates)
      if (!mayEnter(each) || each.spends.some(({ txid }) => barred.has(txid))) barred.add(each.txid)
  }
  const isOpposed = ({ spends }: Candidate): boolean =>
    spends.some((spent) => indexed.spendersOf(spent).some((other) => !own.has(other)))
  const isFact = (each: Candidate): boolean =>
    needing.has(each.txid) || beneath.has(each.txid) || isOpposed(each)
  const needed = new Map<string, Candidate>()
  const add = (txid: string, candidate = byTxid.get(txid)): void => {
    if (candidate !== undefined && !barred.has(txid)) needed.set(txid, candidate)
  }
  const addAround = (): void => {
    for (const { spends } of needed.values())
      for (const spent of spends) {
        if (byTxid.has(spent.txid)) add(spent.txid)
        else if (!pending.isEmpty && !needed.has(spent.txid))
          add(spent.txid, pendingCandidate(spent.txid, pending))
        for (const other of spenders.get(`${spent.txid} ${spent.vout}`) ?? []) add(other)
      }
  }
  /** Whether a candidate outranks a fact that it is built on, by its proofs or a sighting. */
  const isRaising = (each: Candidate): boolean => {
    const height = heightOf(each)
    if (height === Number.POSITIVE_INFINITY && indexed.sighting(each.txid) !== 'seen') return false
    const line = new Set(each.spends.map(({ txid }) => txid))
    for (const txid of line) {
      const fact = needed.get(txid)
      const other = fact ? heightOf(fact) : own.has(txid) ? undefined : indexed.ownHeight(txid)
      if (other === Number.POSITIVE_INFINITY || (other ?? 0) > height) return true
      for (const spent of byTxid.get(txid)?.spends ?? pending.spendsOf(txid)) line.add(spent.txid)
    }
    return false
  }
  for (const each of candidates) if (!barred.has(each.txid) && isFact(each)) add(each.txid)
  addAround()
  for (let before = -1; before < needed.size; ) {
    before = needed.size
    // These and their ancestors enter whether they count or not.
    const line = new Set<string>()
    for (const each of candidates) if (!needed.has(each.txid) && isRaising(each)) line.add(each.txid)
    for (const txid of line) {
      barred.delete(txid)
      add(txid)
      for (const spent of byTxid.get(txid)?.spends ?? []) line.add(spent.txid)
    }
    addAround()
  }
  if (pending.isEmpty) return candidates.filter(({ txid }) => needed.has(txid))
  return inOrder([...needed.values()], candidates)
}

/** The lowest block by the proofs of a transaction; infinite if it has none. */
function heightOf({ proofs }: Candidate): number {
  return Math.min(...proofs.map(({ height }) => height))
}

/** Orders some candidates as they stand among all: pending ones as they came, then the others as listed, but parents always first. */
export function inOrder(some: readonly Candidate[], among: readonly Candidate[] = some): Candidate[] {
  const placeOf = ({ pending }: Candidate): number => pending?.arrived ?? Number.MAX_SAFE_INTEGER
  const placed = [...new Set([...among, ...some])].sort((one, other) => placeOf(one) - placeOf(other))
  const wanted = new Set(some.map(({ txid }) => txid))
  const all = parentsFirst(new Map(placed.map((each) => [each.txid, each])), parentsOf)
  return all.filter(({ txid }) => wanted.has(txid))
}

/** The transactions that one spends from. */
export function parentsOf({ spends }: Candidate): string[] {
  return spends.map(({ txid }) => txid)
}

/** Whether these alone are within the limits of what may wait. */
export function isWithin(
  candidates: readonly Candidate[],
  { maxTransactions, maxBytes }: PendingLimits,
): boolean {
  const bytes = candidates.reduce((sum, { raw }) => sum + raw.length, 0)
  return candidates.length <= maxTransactions && bytes <= maxBytes
}

/** Deletes pending transactions until there is room: unproven ones before proven ones, the oldest first. */
export function makeRoom(pending: Pending, limits: PendingLimits, remove: (txid: string) => void): void {
  while (isOver(pending.total('pending'), limits)) {
    const first = pending.first()
    if (first === undefined) break
    remove(first)
  }
}

/**
 * Deletes waiting transactions until there is room: the oldest of the client that has the most, with its descendants. New ones
 * and their ancestors stay, unless that client has nothing else: others make no room for it.
 */
export function makeRoomToWait(
  pending: Pending,
  limits: PendingLimits,
  { fresh, remove }: { fresh: readonly Candidate[]; remove: (txid: string) => void },
): void {
  if (!isOver(pending.total('waiting'), limits)) return
  const staying = new Set(fresh.flatMap(({ txid }) => pending.lineOf(txid, 'waiting')))
  // Parents come first, so descendants are popped before them.
  const own = [...fresh]
  while (isOver(pending.total('waiting'), limits)) {
    const isByCount = pending.total('waiting').transactions > limits.maxTransactions
    const leaving = pending.oldestWaiting(isByCount ? 'transactions' : 'bytes', staying) ?? own.pop()?.txid
    if (leaving === undefined) break
    const line = new Set([leaving])
    for (const txid of line) {
      if (pending.outline(txid)?.isWaiting !== true) continue
      for (const child of pending.childrenOf(txid)) line.add(child)
      remove(txid)
    }
  }
}

function isOver(
  { transactions, bytes }: { transactions: number; bytes: number },
  limits: PendingLimits,
): boolean {
  return transactions > limits.maxTransactions || bytes > limits.maxBytes
}

/** The most transactions built on the unproven coins behind a submission: one proof, sighting or late value may affect all of them. */
const MAX_UNPROVEN_DESCENDANTS = 5000
/** How many coins have a cached count of what is built on them. Others are counted again. */
const REMEMBERED = 1000

/**
 * Bounds what is built on unproven transactions, for each coin of the topmost one: so a recipient of one of many outputs can
 * exhaust only their own limit. Spends of nodes are not counted: a tree of names has one root, and each mint costs work.
 */
export class UnprovenLines {
  /** The most that may be built on a coin, by outpoint: includes transactions deleted since, until a recount is needed. */
  private readonly counts = new LRUCache<string, number>({ max: REMEMBERED })
  private readonly indexed: IndexedSpends

  constructor(private readonly options: { indexFile: Sql; pending: Pending; most?: number | undefined }) {
    this.indexed = new IndexedSpends(options.indexFile)
  }

  /**
   * @param records The transactions of a submission, with all unproven ones that it is built on.
   * @param fresh The new ones among them.
   * @returns A function that counts them, to be called once they are stored.
   * @throws GeneralError `TOO_MANY_DESCENDANTS`: once they are mined, more may be built on them
   */
  roomFor(
    records: ReadonlyMap<string, TransactionRecord>,
    fresh: ReadonlyMap<string, Candidate>,
  ): () => void {
    const { most = MAX_UNPROVEN_DESCENDANTS } = this.options
    const coins = this.coinsOf(records, fresh)
    if (coins.length === 0) return () => {}
    const known = coins.map((coin) => this.counts.get(formatOutpoint(coin)) ?? Number.POSITIVE_INFINITY)
    let all = known.reduce((sum, count) => sum + count, fresh.size)
    if (all > most) {
      all = this.countBehind(coins, most) + fresh.size
      if (all > most)
        throw new GeneralError(
          'TOO_MANY_DESCENDANTS',
          `${most} transactions are built on ${formatOutpoint(coins[0] as Outpoint)}, which is unproven; submit it again once that is mined`,
        )
    }
    return () => {
      for (const [at, coin] of coins.entries())
        this.counts.set(formatOutpoint(coin), Math.min((known[at] as number) + fresh.size, all))
    }
  }

  /** The coins of topmost unproven stored transactions from which the new ones descend. */
  private coinsOf(
    records: ReadonlyMap<string, TransactionRecord>,
    fresh: ReadonlyMap<string, Candidate>,
  ): Outpoint[] {
    /** The unproven coins that a transaction on the way spends, by its txid. */
    const spent = new Map<string, Outpoint[]>()
    const line = new Set(fresh.keys())
    for (const txid of line) {
      const record = records.get(txid)
      if (record === undefined) continue
      const { spends } = fresh.get(txid) ?? candidateOf(record)
      const coins = spends.filter((coin) => this.isUnproven(records.get(coin.txid)) && !this.isNode(coin))
      spent.set(txid, coins)
      for (const coin of coins) line.add(coin.txid)
    }
    return [...spent.values()]
      .flat()
      .filter(({ txid }) => !fresh.has(txid) && (spent.get(txid)?.length ?? 0) === 0)
  }

  private isUnproven(record: TransactionRecord | undefined): boolean {
    const { indexFile, pending } = this.options
    if (record === undefined || record.proof !== undefined) return false
    if (pending.outline(record.txid)?.isProven) return false
    return (
      (indexFile.get('select mined from tx where txid = ?', fromHex(record.txid))?.mined ?? null) === null
    )
  }

  private isNode({ txid, vout }: Outpoint): boolean {
    const row = this.options.indexFile.get(
      'select 1 as one from tx join node on node.tid = tx.id where txid = ? and node.vout = ?',
      ...[fromHex(txid), vout],
    )
    return row !== undefined
  }

  /** How many stored transactions are built on these coins in total. Stops counting above `most`. */
  private countBehind(coins: readonly Outpoint[], most: number): number {
    const { indexFile, pending } = this.options
    const found = new Set<string>()
    for (const coin of coins) {
      if (found.size > most) break
      for (const spender of this.indexed.spendersOf(coin)) found.add(spender)
      for (const isWaiting of [false, true])
        for (const spender of pending.spendersOf(coin, { isWaiting })) found.add(spender)
    }
    for (const txid of found) {
      if (found.size > most) break
      for (const child of indexFile.all(CHILDREN, fromHex(txid))) found.add(toHex(child.txid))
      for (const child of pending.childrenOf(txid)) found.add(child)
    }
    return found.size
  }
}

const CHILDREN = `select spender.txid from tx join spend on spend.pid = tx.id join tx spender on spender.id = spend.sid
  where tx.txid = ? and not exists (select 1 from node where node.tid = tx.id and node.vout = spend.vout)`
