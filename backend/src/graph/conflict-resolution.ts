/**
 * Which transactions count (`spec/overlay.md`, One spender, one name; `docs/conflicts.md`).
 *
 * Of all that spend one outpoint one counts at every moment: the one of the best rank among those whose parents all count.
 * The others, and all that is built on them, are silent. Ranks order all transactions, and whatever one spends has a
 * better rank than itself; so there is one answer, whatever the order in which things came, and one that conflicts with its
 * own ancestors never counts.
 */

/** Where a transaction stands. */
export interface Standing {
  txid: string
  /** The least height of a block that proves it, or something that is built on it; undefined where none does. */
  mined: number | undefined
  /** Its place in the order in which transactions came; before whatever is built on it, even where that came first. */
  arrival: number
  silent: boolean
}

/** What deciding asks of a store. Txids alone: whatever is not known there counts. */
export interface ConflictView {
  /** Of those that are known. */
  statuses(txids: string[]): Promise<Standing[]>
  /** What a transaction spends of. */
  parents(txid: string): Promise<string[]>
  /** What spends of a transaction. */
  children(txid: string): Promise<string[]>
  /**
   * What else spends an outpoint that a transaction spends. Of a node, what a topic has looked at and found no mint is no
   * spender (`spec/overlay.md`, gap 11), and neither has rivals over it nor is one.
   */
  rivals(txid: string): Promise<string[]>
  /** How many outputs it has of which something is said. */
  outputs(txid: string): Promise<number>
}

/** A transaction with so many inputs and outputs takes about twice as long to look at as the smallest. */
export const PARTS_OF_ONE = 20

/** What keeping ranks asks beside. */
export interface RankedView extends ConflictView {
  /** The height that a proof of its own gives a transaction. */
  heightOf(txid: string): Promise<number | undefined>
  setRank(standing: Standing): Promise<void>
}

/** The height by which it is mined; what is not proven comes behind all heights. */
function minedBy({ mined }: Standing): number {
  return mined ?? Number.POSITIVE_INFINITY
}

/** Below 0 where the first has the better rank: mined before unproven, in the order of blocks; then as they came. */
export function compareRanks(one: Standing, other: Standing): number {
  const [mined, otherMined] = [minedBy(one), minedBy(other)]
  if (mined !== otherMined) return mined - otherMined
  return one.arrival - other.arrival || (one.txid < other.txid ? -1 : one.txid === other.txid ? 0 : 1)
}

/**
 * Makes the ranks of transactions, and of what they are built on, follow what is known of them by now: a proof that came
 * or went, or something built on them that was here first.
 *
 * @param rest Called between steps, as of {@link decide}.
 * @returns Those whose rank is another one.
 */
export async function keepRanks(
  txids: string[],
  view: RankedView,
  rest: () => Promise<void> = async () => {},
): Promise<string[]> {
  const changed = new Set<string>()
  const waiting: { txid: string; child?: Standing }[] = txids.map((txid) => ({ txid }))
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    await rest()
    const { txid, child } = next
    const [standing] = await view.statuses([txid])
    if (standing === undefined) continue
    const ranked = child === undefined ? await rankOf(standing, view) : builtOnBy(standing, child)
    if (ranked.mined === standing.mined && ranked.arrival === standing.arrival) continue
    await view.setRank(ranked)
    changed.add(txid)
    // Where it has become better, its parents need not look at all that is built on them.
    const isBetter = minedBy(ranked) <= minedBy(standing)
    for (const parent of await view.parents(txid))
      waiting.push({ txid: parent, ...(isBetter && { child: ranked }) })
  }
  return [...changed]
}

/** A transaction with the rank that its own proof and all that is built on it give it. */
async function rankOf(standing: Standing, view: RankedView): Promise<Standing> {
  const children = await view.statuses(await view.children(standing.txid))
  const own = await view.heightOf(standing.txid)
  return children.reduce(builtOnBy, { ...standing, mined: own })
}

/** A transaction with the rank that it has by one that is built on it, where its own is no better. */
function builtOnBy(standing: Standing, child: Standing): Standing {
  const heights = [standing.mined, child.mined].filter((height) => height !== undefined)
  return { ...standing, mined: least(heights), arrival: Math.min(standing.arrival, child.arrival - 1) }
}

function least(heights: number[]): number | undefined {
  return heights.length === 0 ? undefined : Math.min(...heights)
}

/** What a decision changes. Txids. */
export interface Decision {
  deactivated: string[]
  restored: string[]
}

/**
 * Decides anew what may count otherwise since something is known of transactions that was not: their rank, or that they
 * exist. Walks no further than something changes.
 *
 * @param options.rest Called between steps, so that a long branch keeps nobody waiting.
 * @returns That, and what is left to be decided on: the first of `txids` in a later call.
 */
export async function decide({
  txids,
  ranked,
  fresh = new Set(),
  view,
  rest,
  limit = Number.POSITIVE_INFINITY,
}: {
  /** Transactions that are new, or of which something else is known than their rank. */
  txids: string[]
  /** Those whose rank is another one. */
  ranked: string[]
  /** Those that are new: where they are left, they do not count until they are decided on. */
  fresh?: ReadonlySet<string>
  view: ConflictView
  rest: () => Promise<void>
  /** How many are looked at beside these. */
  limit?: number
}): Promise<Decision & { left: string[] }> {
  const decided = new Decided(view)
  for (const txid of txids) await decided.reconsider([txid])
  // One that is not as good as it was may have kept others from counting that are better now.
  for (const txid of ranked) await decided.reconsider([txid, ...(await view.rivals(txid))])
  const most = decided.waiting + limit
  while (decided.effort < most) {
    const next = decided.take()
    if (next === undefined) break
    await rest()
    const silent = (await decided.beating(next)) !== undefined
    // One that spends what thousands spent before does not count until all of these are overruled.
    if (!silent && !(await decided.overrule(next, most))) return await decided.leaving(fresh, next)
    if (silent !== next.silent) await decided.turn(next)
  }
  return await decided.leaving(fresh)
}

/**
 * What a transaction loses to: the counting rival of its own or, where a parent is silent, what that lost to.
 *
 * @returns Its txid; undefined where the transaction counts.
 */
export async function winnerOver(txid: string, view: ConflictView): Promise<string | undefined> {
  const decided = new Decided(view)
  const seen = new Set<string>()
  for (let [loser] = await view.statuses([txid]); loser?.silent; ) {
    const reason = await decided.beating(loser)
    if (reason === undefined || seen.has(loser.txid)) return undefined
    if (!reason.silent) return reason.txid
    seen.add(loser.txid)
    loser = reason
  }
  return undefined
}

/** The standings as they are decided so far, and what is still to be looked at, best rank first. */
class Decided {
  private readonly known = new Map<string, Standing>()
  private readonly before = new Map<string, boolean>()
  private readonly queue: Standing[] = []
  private readonly queued = new Set<string>()
  private readonly overruled = new Set<string>()
  /** How much was looked at so far, in transactions. */
  effort = 0

  constructor(private readonly view: ConflictView) {}

  /** How many are still to be looked at. */
  get waiting(): number {
    return this.queue.length
  }

  get changes(): Decision {
    const changed = [...this.before]
      .map(([txid, was]) => ({ standing: this.known.get(txid), was }))
      .flatMap(({ standing, was }) => (standing && standing.silent !== was ? [standing] : []))
    return {
      deactivated: changed.filter(({ silent }) => silent).map(({ txid }) => txid),
      restored: changed.filter(({ silent }) => !silent).map(({ txid }) => txid),
    }
  }

  /** @param than Leaves out those of a better rank than this one. */
  async reconsider(txids: string[], than?: Standing): Promise<void> {
    for (const standing of await this.statuses(txids)) {
      if (this.queued.has(standing.txid)) continue
      if (than !== undefined && compareRanks(standing, than) < 0) continue
      this.queued.add(standing.txid)
      this.queue.splice(this.placeOf(standing), 0, standing)
    }
  }

  take(): Standing | undefined {
    for (;;) {
      // The best stands last, where taking it moves nothing.
      const next = this.queue.pop()
      if (next === undefined) return undefined
      this.queued.delete(next.txid)
      this.effort++
      if (!this.overruled.has(next.txid)) return next
    }
  }

  /**
   * Leaves what is still to be looked at.
   *
   * @param fresh Those that do not count until they are decided on.
   * @param first One that does not either, though it is not among these.
   */
  async leaving(fresh: ReadonlySet<string>, first?: Standing): Promise<Decision & { left: string[] }> {
    const left: string[] = []
    for (let next = first ?? this.take(); next !== undefined; next = this.take()) {
      left.push(next.txid)
      if (next.silent || (next !== first && !fresh.has(next.txid))) continue
      if (!this.before.has(next.txid)) this.before.set(next.txid, false)
      next.silent = true
      await this.reconsider(await this.view.children(next.txid), next)
    }
    return { ...this.changes, left }
  }

  /**
   * Makes a transaction count, or not any more, and has others looked at by that. Only what is of a worse rank, as all
   * children are: so whatever was looked at stays decided, and this ends.
   */
  async turn(standing: Standing): Promise<void> {
    const { txid, silent } = standing
    if (!this.before.has(txid)) this.before.set(txid, silent)
    standing.silent = !silent
    this.effort += (await this.view.outputs(txid)) / PARTS_OF_ONE
    await this.reconsider(await this.view.children(txid), standing)
    if (standing.silent) await this.reconsider(await this.view.rivals(txid), standing)
  }

  /**
   * One that counts is what its rivals of a worse rank lose to: they need not be looked at one by one.
   *
   * @param most As soon as so much was looked at, the others are left as they are, but for one.
   * @returns Whether none is left.
   */
  async overrule(standing: Standing, most: number): Promise<boolean> {
    let any = false
    for (const rival of await this.statuses(await this.view.rivals(standing.txid))) {
      if (compareRanks(rival, standing) < 0 || this.overruled.has(rival.txid)) continue
      if (!rival.silent && any && this.effort >= most) return false
      this.overruled.add(rival.txid)
      if (rival.silent) continue
      any = true
      this.effort++
      await this.turn(rival)
    }
    return true
  }

  /** A silent parent, or the best rival that counts and has the better rank: what keeps a transaction from counting. */
  async beating(standing: Standing): Promise<Standing | undefined> {
    const spent = await this.view.parents(standing.txid)
    this.effort += spent.length / PARTS_OF_ONE
    const parents = await this.statuses(spent)
    const lost = parents.find(({ silent }) => silent)
    if (lost !== undefined) return lost
    const rivals = await this.statuses(await this.view.rivals(standing.txid))
    return rivals.filter((rival) => !rival.silent && compareRanks(rival, standing) < 0).sort(compareRanks)[0]
  }

  private async statuses(txids: string[]): Promise<Standing[]> {
    const missing = [...new Set(txids)].filter((txid) => !this.known.has(txid))
    if (missing.length > 0)
      for (const standing of await this.view.statuses(missing)) this.known.set(standing.txid, standing)
    return [...new Set(txids)].flatMap((txid) => this.known.get(txid) ?? [])
  }

  private placeOf(standing: Standing): number {
    let low = 0
    let high = this.queue.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.queue[middle]
      if (other !== undefined && compareRanks(other, standing) > 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
