import { HEADER_BYTES, headerAt, headerCount } from '../../../backend/src/protocol/block-header.js'
import { equalBytes, joinBytes } from '../../../backend/src/protocol/bytes.js'
import {
  CONTEXT,
  InvalidHeadersError,
  targetRuleOf,
  totalWork,
} from '../../../backend/src/protocol/header-rules.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { firstUnlinked, HeaderVerifier, hashOf, shownHash } from '../headers/header-rules.js'
import { ChainSourceError } from '../sources/errors.js'
import { type HeaderFetcher, lastHash, type SourceTip } from '../sources/header-fetcher.js'
import type { StoredHeaders } from './stored-headers.js'

/** How many headers are fetched at once, where the service gives as many. */
const PAGE = 10_000
/** Below the lowest header fewer, so that JungleBus returns them with the one before, and whole rows of the store. */
const PAGE_BELOW = 9900
/** How far below the tip a branch is looked for, step by step, and so the deepest reorganisation that is followed. */
const DEPTHS = [0, 10, 100, 1000, 10_000]
/** How long one source is asked before it is the turn of the next, in milliseconds. Its last answer may take longer. */
const TURN = 60_000
/** The most headers of a branch that are held in memory until it has more work. */
const MAX_BRANCH = 2 * PAGE

/**
 * Fetches headers from sources and extends the stored chain by what they have, as far as it is valid. A branch is taken only if
 * it has more work: no source can move the chain to less.
 */
export class HeaderSync {
  constructor(
    private readonly options: {
      stored: StoredHeaders
      network: 'main' | 'test'
      /** The time of day, and a clock for durations. */
      now: () => number
      clock?: () => number
    },
  ) {}

  /**
   * Begins with the checkpoint, and the headers before it that the rules of the next one look at.
   *
   * @throws ChainSourceError, InvalidHeadersError
   */
  async begin(fetcher: HeaderFetcher, tip: SourceTip): Promise<void> {
    const { stored, network } = this.options
    const { height, hash } = stored.checkpoint
    if (tip.height < height)
      throw new ChainSourceError('BAD_ANSWER', `it is at ${tip.height}, below the checkpoint at ${height}`)
    const from = Math.max(0, height - CONTEXT + 1)
    // The chain of a test network may begin at its checkpoint.
    const wanted = await this.span(fetcher, { from, to: height, tip: tip.height })
    const headers = wanted ?? (await this.span(fetcher, { from: height, to: height, tip: tip.height }))
    const last = headers && headerAt(headers, headerCount(headers) - 1)
    if (headers === undefined || last === undefined || shownHash(last) !== hash)
      throw new InvalidHeadersError(`it does not have the block of the checkpoint at ${height}`)
    if (wanted === undefined && height > 0 && targetRuleOf(last, network) !== 'fixed')
      throw new ChainSourceError(
        'BAD_ANSWER',
        `it does not have the ${CONTEXT} headers up to the checkpoint at ${height}`,
      )
    if ((await firstUnlinked(headers, {})) !== undefined)
      throw new InvalidHeadersError(`its headers below the checkpoint at ${height} are not linked`)
    await stored.begin(headers)
  }

  /**
   * Follows a source to its tip, as far as it comes in its turn. Of a branch that turns out to be invalid, the headers before
   * that are kept if they have more work.
   *
   * @param options.onFork Called with the lowest height whose header was replaced, if the chain did not only grow.
   * @returns Whether it got to the tip.
   * @throws ChainSourceError, InvalidHeadersError; ChangedHeadersError if another process changed the chain.
   */
  async follow(options: {
    fetcher: HeaderFetcher
    tip: SourceTip
    onFork: (height: number) => void
  }): Promise<boolean> {
    const { fetcher, tip, onFork } = options
    const { stored, now, clock = monotonic } = this.options
    const end = clock() + TURN
    if (await this.includes(tip)) return true
    const { from, page } = await this.meetingPage(fetcher, { tip, end })
    const same = await this.sameAs(from, page)
    const ours = this.tipHeight()
    const first = from + same
    const isFork = first <= ours
    const verifier = new HeaderVerifier({
      ...{ before: await stored.context(first - 1), height: first - 1, rule: stored.rule, now },
    })
    /** The work that the branch has to exceed, and its headers that are not stored yet. */
    let least = isFork ? totalWork(await stored.read(first, ours - first + 1)) : 0n
    let pending: Uint8Array[] = []
    let height = first
    let hasGrown = false
    const take = async (): Promise<void> => {
      if (verifier.work <= least) return
      await stored.replaceFrom(height, joinBytes(pending))
      if (isFork && height === first) onFork(first)
      hasGrown = true
      pending = []
      height = verifier.height + 1
      least = verifier.work
    }
    for (let next = page.subarray(same * HEADER_BYTES); ; ) {
      const done = verifier.height
      try {
        await verifier.verify(next)
      } finally {
        pending.push(next.subarray(0, (verifier.height - done) * HEADER_BYTES))
        await take()
      }
      if (verifier.height >= tip.height) return true
      if (clock() > end) {
        if (hasGrown) return false
        throw tooSlow(`its branch from ${first} on`)
      }
      if (verifier.height - height > MAX_BRANCH)
        throw new ChainSourceError('BAD_ANSWER', `its branch from ${first} on has too little work`)
      const query = { from: verifier.height + 1, count: PAGE, previous: verifier.previous, tip: tip.height }
      const more = await fetcher.headers(query)
      if (more === 'unlinked' || more.length === 0)
        throw new ChainSourceError(
          'BAD_ANSWER',
          `its tip is at ${tip.height}, and its chain ends at ${verifier.height}`,
        )
      next = more
    }
  }

  /**
   * Adds headers below the lowest one, which are valid because they are linked to it.
   *
   * @returns Whether the source had any.
   * @throws ChainSourceError, InvalidHeadersError; ChangedHeadersError if another process was first.
   */
  async extendBelow(fetcher: HeaderFetcher): Promise<boolean> {
    const { stored } = this.options
    const to = stored.from - 1
    const from = Math.max(0, Math.ceil((to + 1 - PAGE_BELOW) / 100) * 100)
    const headers = await this.span(fetcher, { from, to, tip: this.tipHeight() })
    if (headers === undefined) return false
    const before = from === 0 ? new Uint8Array(32) : undefined
    const ends = { last: await stored.hashBelow(), ...(before && { before }) }
    if ((await firstUnlinked(headers, ends)) !== undefined)
      throw new InvalidHeadersError(`its headers from ${from} to ${to} are not linked to the one above them`)
    await stored.addBelow(headers)
    return true
  }

  /** All headers of some heights, in as many requests as it takes; undefined if the source does not have the first. */
  private async span(
    fetcher: HeaderFetcher,
    { from, to, tip }: { from: number; to: number; tip: number },
  ): Promise<Uint8Array | undefined> {
    const { clock = monotonic } = this.options
    const end = clock() + TURN
    const parts: Uint8Array[] = []
    for (let next = from; next <= to; ) {
      if (clock() > end) throw tooSlow(`the headers from ${from} to ${to}`)
      const last = parts.at(-1)
      const known = last && { previous: lastHash(last) }
      const page = await fetcher.headers({ from: next, count: to - next + 1, tip, ...known })
      if (page.length === 0 && next === from) return undefined
      if (page === 'unlinked' || page.length === 0 || next + headerCount(page) - 1 > to)
        throw new ChainSourceError('BAD_ANSWER', `it does not have the headers from ${next} to ${to}`)
      parts.push(page)
      next += headerCount(page)
    }
    return joinBytes(parts)
  }

  private tipHeight(): number {
    return this.options.stored.tip?.height ?? 0
  }

  private async includes(tip: SourceTip): Promise<boolean> {
    const { stored } = this.options
    if (tip.height > this.tipHeight() || tip.height < stored.from) return false
    return shownHash(await stored.header(tip.height)) === tip.hash
  }

  /** A page of the source that begins where it has the same chain. */
  private async meetingPage(
    fetcher: HeaderFetcher,
    { tip, end }: { tip: SourceTip; end: number },
  ): Promise<{ from: number; page: Uint8Array }> {
    const { stored, clock = monotonic } = this.options
    const lowest = stored.checkpoint.height + 1
    if (tip.height < lowest)
      throw new ChainSourceError(
        'BAD_ANSWER',
        `it is at ${tip.height}, and the checkpoint is at ${lowest - 1}`,
      )
    for (const depth of DEPTHS) {
      const from = Math.max(lowest, Math.min(this.tipHeight() + 1, tip.height) - depth)
      const previous = hashOf(await stored.header(from - 1))
      const page = await fetcher.headers({ from, count: PAGE, previous, tip: tip.height })
      if (page === 'unlinked' && from > lowest) {
        if (clock() > end) throw tooSlow('where its chain leaves ours')
        continue
      }
      if (page === 'unlinked')
        throw new InvalidHeadersError(`its chain does not contain the checkpoint at ${lowest - 1}`)
      if (page.length === 0)
        throw new ChainSourceError(
          'BAD_ANSWER',
          `its tip is at ${tip.height}, and it has no header at ${from}`,
        )
      return { from, page }
    }
    throw new ChainSourceError(
      'BAD_ANSWER',
      `its chain leaves ours more than ${DEPTHS.at(-1)} blocks below the tip`,
    )
  }

  /** How many headers at the start of a page are stored. */
  private async sameAs(from: number, page: Uint8Array): Promise<number> {
    const stored = await this.options.stored.read(from, headerCount(page))
    let count = 0
    while (count < headerCount(stored) && equalBytes(headerAt(stored, count), headerAt(page, count))) count++
    return count
  }
}

/** The turn of a source ended without anything that could be stored: it rests. */
function tooSlow(what: string): ChainSourceError {
  return new ChainSourceError('NO_ANSWER', `it is too slow with ${what}`)
}
