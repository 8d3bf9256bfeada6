import {
  HEADER_BYTES,
  headerAt,
  headerCount,
  previousOf,
  rootOf,
  timeOf,
} from '../../../backend/src/protocol/block-header.js'
import { equalBytes, joinBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { CodedError } from '../../../backend/src/protocol/coded-error.js'
import type { HeaderCheckpoint } from '../../../backend/src/protocol/header-checkpoints.js'
import {
  CONTEXT,
  HeaderRules,
  InvalidHeadersError,
  targetRuleOf,
  totalWork,
} from '../../../backend/src/protocol/header-rules.js'
import type { HeaderStore } from '../../../backend/src/protocol/header-store.js'
import type { Hash256 } from '../../../backend/src/protocol/transaction.js'

/** What a chain says about a block: it has it, has another one at that height, or knows of none there yet. */
export type Verdict = 'yes' | 'no' | 'unknown'

/** The tip of a source's chain. `hash` is hex in display order. */
export interface SourceTip {
  height: number
  hash: string
}

export interface HeadersQuery {
  /** The height of the first header. */
  from: number
  /** The most headers to return. */
  count: number
  /** The hash of the header before the first, in internal order, if known. */
  previous?: Uint8Array
  /** The height of the source's tip, if the source said it. */
  tip?: number
}

/** A source of headers. Nothing it returns is trusted. */
export interface HeaderSource {
  /** Its name in errors. */
  name: string
  /** The tip of its chain, if it can say; otherwise it is asked for headers until it has no more. */
  tip?(): Promise<SourceTip | undefined>
  /**
   * Consecutive headers from a height on, as many as the source returns at once: none above its tip. `unlinked` if its header there
   * does not follow `previous`; a source may also return headers without checking that.
   */
  headers(query: HeadersQuery): Promise<Uint8Array | 'unlinked'>
}

/**
 * Whether a source's header at a height has a merkle root. The header is not verified.
 *
 * @throws errors of the source.
 */
export async function showsRoot(
  source: Pick<HeaderSource, 'headers'>,
  { root, height }: { root: string; height: number },
): Promise<boolean> {
  const header = await source.headers({ from: height, count: 1 })
  return typeof header !== 'string' && header.length >= HEADER_BYTES && rootOf(header) === root
}

/** Cuts long work into slices, between which the thread does other work. */
export interface Slice {
  readonly isOver: boolean
  yieldIfOver(): Promise<void>
}

export interface HeaderChainOptions {
  store: HeaderStore
  /** Whether others can write to the store: then its contents are verified when it is opened. */
  isOpenToOthers?: boolean
  checkpoint: HeaderCheckpoint
  /** The network whose difficulty rules apply. */
  network: 'main' | 'test'
  hash: Hash256
  slice: () => Slice
  /** The time of day to compare block times with, in milliseconds since 1970. */
  now: () => number
  /** A clock for durations, in milliseconds. */
  clock: () => number
  /** How many headers are asked for at once. */
  page: number
  /** How long a source is asked before another one has its turn, in milliseconds. Its last answer may take longer. */
  turn: number
}

/** Another process has changed the stored chain; it has to be read again first. */
export class ChangedHeadersError extends CodedError {
  override readonly name = 'ChangedHeadersError'
  readonly code = 'CHANGED_HEADERS'
}

interface Tip {
  height: number
  header: Uint8Array
}

/** The depths below the tip at which a branch point is looked for; the last is the deepest reorganisation that is followed. */
const DEPTHS = [10, 100, 1000, 10_000]
/** The most headers of a branch that are held in memory until it has more work. */
const MAX_BRANCH = 20_000
/** A block this far above the tip cannot exist yet, plus one for each minute that has passed. */
const SOON = 6
const MINUTE = 60_000

/**
 * The block headers of the chain with the most work: from a checkpoint up, verified by the consensus rules that headers show, and
 * below it by their links. Sources are not trusted: one can withhold blocks, but cannot move the chain to less work. Call
 * {@link load} first, and again whenever others may have written to the store.
 */
export class HeaderChain {
  tip: Tip | undefined
  /** The lowest height. */
  from = 0
  /** Whether the chain has enough work to be trusted above the checkpoint. */
  hasEnoughWork = false
  /** The height of the tip that the last source claimed. */
  private best = 0
  private readonly store: HeaderStore
  private isVerified: boolean

  constructor(private readonly options: HeaderChainOptions) {
    this.store = options.store
    this.isVerified = options.isOpenToOthers !== true
  }

  /** Reads the stored headers. They are deleted if they lack the checkpoint or are invalid. */
  async load(): Promise<void> {
    const { checkpoint } = this.options
    const range = await this.store.range()
    if (range === undefined) {
      this.forget()
      return
    }
    const start = await this.store.read({ from: checkpoint.height, count: 1 })
    if (
      start.length === 0 ||
      this.shownHash(start) !== checkpoint.hash ||
      !(await this.isValid(range.from))
    ) {
      this.forget()
      await this.store.clear()
      return
    }
    this.isVerified = true
    this.from = range.from
    await this.movedTo(range.to)
  }

  /**
   * Starts from the checkpoint, and the headers before it that the rules for the next one need.
   *
   * @throws InvalidHeadersError, ChangedHeadersError, errors of the source.
   */
  async begin(source: HeaderSource, tip?: SourceTip): Promise<void> {
    const { height, hash } = this.options.checkpoint
    this.best = tip?.height ?? 0
    if (tip !== undefined && tip.height < height) throw behind(tip, height)
    const from = Math.max(0, height - CONTEXT + 1)
    const upTo = tip && { tip: tip.height }
    // The chain of a test network may start at its checkpoint.
    const wanted = await this.span(source, { from, to: height, ...upTo })
    const headers = wanted ?? (await this.span(source, { from: height, to: height, ...upTo }))
    const last = headers && headerAt(headers, headerCount(headers) - 1)
    if (headers === undefined || last === undefined || this.shownHash(last) !== hash)
      throw new InvalidHeadersError(`it does not have the block of the checkpoint at ${height}`)
    if (!this.isEnough(headers, height))
      throw new InvalidHeadersError(
        `it does not have the ${CONTEXT} headers up to the checkpoint at ${height}`,
      )
    if (!(await this.isLinked(headers)))
      throw new InvalidHeadersError(`its headers below the checkpoint at ${height} are not linked`)
    this.forget()
    await this.replaceFrom(height - headerCount(headers) + 1, headers)
    await this.load()
  }

  /**
   * Follows a source to its tip, as far as its turn allows; from the checkpoint if nothing is stored yet. A branch is taken as soon
   * as it has more work. If it turns out to be invalid, the headers before the invalid one are kept if they have more work.
   *
   * @param options.tip Without it, the source is followed until it has no more.
   * @param options.onFork Called with the lowest height whose header was replaced, if the chain did not only grow.
   * @returns Whether it got to the tip.
   * @throws InvalidHeadersError, ChangedHeadersError, errors of the source.
   */
  async follow(
    source: HeaderSource,
    { tip, onFork }: { tip?: SourceTip; onFork?: (height: number) => void } = {},
  ): Promise<boolean> {
    const { clock, turn, page: count } = this.options
    if (this.tip === undefined) await this.begin(source, tip)
    this.best = tip?.height ?? 0
    const end = clock() + turn
    if (tip !== undefined && (await this.includes(tip))) return true
    const meeting = await this.meetingPage(source, { tip, end })
    if (meeting === undefined) return true
    const { from, page } = meeting
    const same = await this.sameAs(from, page)
    const ours = this.tipHeight
    const first = from + same
    const isFork = first <= ours
    const rules = await this.rulesAfter(first - 1)
    /** The work that the branch has to exceed, and its headers that are not stored yet. */
    let least = isFork ? totalWork(await this.store.read({ from: first, count: ours - first + 1 })) : 0n
    let pending: Uint8Array[] = []
    let height = first
    let hasGrown = false
    const take = async (): Promise<void> => {
      if (rules.work <= least) return
      await this.replaceFrom(height, joinBytes(pending))
      if (isFork && height === first) onFork?.(first)
      hasGrown = true
      pending = []
      height = rules.height + 1
      least = rules.work
    }
    for (let next = page.subarray(same * HEADER_BYTES); ; ) {
      const done = rules.height
      try {
        await this.verify(rules, next)
      } finally {
        pending.push(next.subarray(0, (rules.height - done) * HEADER_BYTES))
        await take()
      }
      if (tip === undefined ? next.length === 0 : rules.height >= tip.height) return true
      if (clock() > end) {
        if (hasGrown) return false
        throw tooSlow(`its branch from ${first} on`)
      }
      if (rules.height - height > MAX_BRANCH)
        throw new InvalidHeadersError(`its branch from ${first} on has too little work`)
      const upTo = tip && { tip: tip.height }
      const more = await this.ask(source, {
        ...{ from: rules.height + 1, count, previous: rules.previous, ...upTo },
      })
      if (more === 'unlinked' || (more.length === 0 && tip !== undefined))
        throw new InvalidHeadersError(`its tip is at ${tip?.height}, and its chain ends at ${rules.height}`)
      next = more
    }
  }

  /**
   * Adds headers below the lowest one, which are valid because they are linked to it.
   *
   * @param least The height below which none is needed.
   * @returns Whether the source had any.
   * @throws InvalidHeadersError, ChangedHeadersError, errors of the source.
   */
  async extendBelow(source: HeaderSource, least = 0): Promise<boolean> {
    const to = this.from - 1
    // One less than a page, as some sources also return the header before the first.
    const from = Math.max(least, this.from - this.options.page + 1)
    const headers = await this.span(source, { from, to, tip: this.tipHeight })
    if (headers === undefined) return false
    const before = from === 0 ? new Uint8Array(32) : undefined
    if (!(await this.isLinked(headers, { last: previousOf(await this.header(this.from)), before })))
      throw new InvalidHeadersError(`its headers from ${from} to ${to} are not linked to the one above them`)
    if (!(await this.store.addBelow({ to, headers })))
      throw new ChangedHeadersError('headers were added below by somebody else')
    this.from = from
    return true
  }

  /** The merkle root of a block as hex; undefined if its header is not known. */
  async rootAt(height: number): Promise<string | undefined> {
    if (height < this.from || height > this.tipHeight) return undefined
    const header = await this.store.read({ from: height, count: 1 })
    return header.length === 0 ? undefined : rootOf(header)
  }

  /** Whether the chain has a block. Headers up to the checkpoint are final; those above it count once there is enough work. */
  async verdict({ root, height }: { root: string; height: number }): Promise<Verdict> {
    const isBelieved = height <= this.options.checkpoint.height || this.hasEnoughWork
    const known = isBelieved ? await this.rootAt(height) : undefined
    if (known === undefined) return 'unknown'
    return known === root ? 'yes' : 'no'
  }

  /**
   * The greatest height that the chain can have reached by now: sources may have withheld newer blocks.
   *
   * @param unasked Milliseconds since they were asked.
   */
  highest(unasked = 0): number {
    const { tip } = this
    const age = tip === undefined ? Number.POSITIVE_INFINITY : this.options.now() - timeOf(tip.header) * 1000
    return this.tipHeight + SOON + Math.max(age, unasked) / MINUTE
  }

  /** The progress of fetching, in words. */
  get progress(): string {
    const { tip, best } = this
    if (tip === undefined) return 'block headers are being fetched; there are none yet'
    const of = best > tip.height ? ` of ${best}` : ''
    return `block headers are being fetched; they are known up to ${tip.height}${of}`
  }

  private get tipHeight(): number {
    return this.tip?.height ?? 0
  }

  /** The hash of a header, as hex in display order. */
  shownHash(header: Uint8Array): string {
    return toHex(reversed(this.options.hash(header)))
  }

  /** Headers of the source, at most as many as were asked for; `unlinked` if the first one does not follow the one before. */
  private async ask(source: HeaderSource, query: HeadersQuery): Promise<Uint8Array | 'unlinked'> {
    const { count, previous } = query
    const found = await source.headers(query)
    if (found === 'unlinked') return found
    if (found.length % HEADER_BYTES !== 0)
      throw new InvalidHeadersError(`${found.length} bytes are not headers`)
    const headers = found.subarray(0, count * HEADER_BYTES)
    const isLinked =
      headers.length === 0 || previous === undefined || equalBytes(previousOf(headers), previous)
    return isLinked ? headers : 'unlinked'
  }

  /** All headers of a range of heights, in several questions if needed; undefined if the source does not have the first. */
  private async span(
    source: HeaderSource,
    { from, to, tip }: { from: number; to: number; tip?: number },
  ): Promise<Uint8Array | undefined> {
    const { clock, turn, hash } = this.options
    const end = clock() + turn
    const parts: Uint8Array[] = []
    for (let next = from; next <= to; ) {
      if (clock() > end) throw tooSlow(`the headers from ${from} to ${to}`)
      const last = parts.at(-1)
      const previous = last && hash(headerAt(last, headerCount(last) - 1))
      const page = await this.ask(source, {
        ...{ from: next, count: to - next + 1 },
        ...(tip !== undefined && { tip }),
        ...(previous && { previous }),
      })
      if (page.length === 0 && next === from) return undefined
      if (page === 'unlinked' || page.length === 0)
        throw new InvalidHeadersError(`it does not have the headers from ${from} to ${to}`)
      parts.push(page)
      next += headerCount(page)
    }
    return joinBytes(parts)
  }

  private async includes(tip: SourceTip): Promise<boolean> {
    if (tip.height > this.tipHeight || tip.height < this.from) return false
    return this.shownHash(await this.header(tip.height)) === tip.hash
  }

  /**
   * A page of the source that follows a header on both chains; undefined if the source has nothing above the checkpoint. Without the
   * source's tip, the page begins with our last header, or further below.
   */
  private async meetingPage(
    source: HeaderSource,
    { tip, end }: { tip: SourceTip | undefined; end: number },
  ): Promise<{ from: number; page: Uint8Array } | undefined> {
    const { checkpoint, hash, clock, page: count } = this.options
    const lowest = checkpoint.height + 1
    if (tip !== undefined && tip.height < lowest) throw behind(tip, checkpoint.height)
    const start = tip === undefined ? this.tipHeight + 1 : Math.min(this.tipHeight + 1, tip.height)
    for (const depth of [tip === undefined ? 1 : 0, ...DEPTHS]) {
      const from = Math.max(lowest, start - depth)
      const previous = hash(await this.header(from - 1))
      const page = await this.ask(source, { from, count, previous, ...(tip && { tip: tip.height }) })
      if (page !== 'unlinked' && page.length > 0) return { from, page }
      if (page !== 'unlinked' && tip !== undefined)
        throw new InvalidHeadersError(`its tip is at ${tip.height}, and it has no header at ${from}`)
      if (from === lowest && page !== 'unlinked') return undefined
      if (from === lowest)
        throw new InvalidHeadersError(`its chain does not contain the checkpoint at ${checkpoint.height}`)
      if (clock() > end) throw tooSlow('the fork from our chain')
    }
    throw new InvalidHeadersError(`its chain forks from ours more than ${DEPTHS.at(-1)} blocks below the tip`)
  }

  /** How many headers at the start of a page are stored. */
  private async sameAs(from: number, page: Uint8Array): Promise<number> {
    const stored = await this.store.read({ from, count: headerCount(page) })
    let count = 0
    while (count < headerCount(stored) && equalBytes(headerAt(stored, count), headerAt(page, count))) count++
    return count
  }

  /** @throws ChangedHeadersError if the header is not stored. */
  private async header(height: number): Promise<Uint8Array> {
    const header = await this.store.read({ from: height, count: 1 })
    if (header.length === 0) throw new ChangedHeadersError(`the header at ${height} is no longer stored`)
    return header
  }

  /** Replaces the headers from a height on. @throws ChangedHeadersError */
  private async replaceFrom(height: number, headers: Uint8Array): Promise<void> {
    if (!(await this.store.replaceFrom({ height, headers, tip: this.tip?.header })))
      throw new ChangedHeadersError('the stored headers were changed by somebody else')
    await this.movedTo(height + headerCount(headers) - 1)
  }

  private forget(): void {
    this.tip = undefined
    this.hasEnoughWork = false
  }

  private async movedTo(height: number): Promise<void> {
    const { checkpoint } = this.options
    this.tip = { height, header: (await this.header(height)).slice() }
    if (this.hasEnoughWork) return
    let { work } = checkpoint
    for await (const headers of this.pages(checkpoint.height + 1, height)) work += totalWork(headers)
    this.hasEnoughWork = work >= checkpoint.minimumWork
  }

  private async *pages(from: number, to: number): AsyncGenerator<Uint8Array> {
    for (let next = from; next <= to; ) {
      const headers = await this.store.read({ from: next, count: Math.min(this.options.page, to - next + 1) })
      if (headers.length === 0) return
      yield headers
      next += headerCount(headers)
    }
  }

  /** Whether the stored headers from a height on lead to the checkpoint and follow the rules above it. */
  private async isValid(from: number): Promise<boolean> {
    if (this.isVerified) return true
    const { height } = this.options.checkpoint
    const below = await this.store.read({ from, count: height - from + 1 })
    if (!this.isEnough(below, height) || !(await this.isLinked(below))) return false
    const rules = await this.rulesAfter(height)
    const { to } = (await this.store.range()) ?? { to: height }
    try {
      for await (const headers of this.pages(height + 1, to)) await this.verify(rules, headers)
      return rules.height === to
    } catch (error) {
      if (error instanceof InvalidHeadersError) return false
      throw error
    }
  }

  /** Whether headers that end at a height suffice to compute the target of the next one. */
  private isEnough(headers: Uint8Array, height: number): boolean {
    const count = headerCount(headers)
    if (count === 0) return false
    return count >= Math.min(CONTEXT, height + 1) || this.ruleOf(headers) === 'fixed'
  }

  private ruleOf(headers: Uint8Array): ReturnType<typeof targetRuleOf> {
    return targetRuleOf(headerAt(headers, headerCount(headers) - 1), this.options.network)
  }

  private async rulesAfter(height: number): Promise<HeaderRules> {
    const { now, hash, checkpoint } = this.options
    const { from } = (await this.store.range()) ?? { from: height }
    const first = Math.max(from, height - CONTEXT + 1)
    const before = await this.store.read({ from: first, count: height - first + 1 })
    const rule = this.ruleOf(await this.header(checkpoint.height))
    return new HeaderRules({ before, height, rule, now, hash })
  }

  /** @throws InvalidHeadersError for the first header that breaks a rule; those before it are verified. */
  private async verify(rules: HeaderRules, headers: Uint8Array): Promise<void> {
    const slice = this.options.slice()
    for (let index = 0; index < headerCount(headers); index++) {
      rules.next(headerAt(headers, index))
      if (slice.isOver) await slice.yieldIfOver()
    }
  }

  /** Whether headers are linked to each other, to the hash before the first (if given), and end with the last hash (if given). */
  private async isLinked(
    headers: Uint8Array,
    { before, last }: { before?: Uint8Array | undefined; last?: Uint8Array } = {},
  ): Promise<boolean> {
    const slice = this.options.slice()
    let previous = before
    for (let index = 0; index < headerCount(headers); index++) {
      if (previous !== undefined && !equalBytes(previousOf(headers, index), previous)) return false
      previous = this.options.hash(headerAt(headers, index))
      if (slice.isOver) await slice.yieldIfOver()
    }
    return last === undefined || (previous !== undefined && equalBytes(previous, last))
  }
}

function behind(tip: SourceTip, checkpoint: number): InvalidHeadersError {
  return new InvalidHeadersError(`it is at ${tip.height}, and the checkpoint is at ${checkpoint}`)
}

/** Says that a source's turn ended without anything that could be stored. */
function tooSlow(what: string): InvalidHeadersError {
  return new InvalidHeadersError(`it took too long to serve ${what}`)
}
