import {
  HEADER_BYTES,
  headerAt,
  headerCount,
  previousOf,
  rootOf,
  timeOf,
} from '../../backend/src/protocol/block-header.js'
import { concatBytes, equalBytes, fromHex, joinBytes, reversed } from '../../backend/src/protocol/bytes.js'
import { CodedError, messageOf } from '../../backend/src/protocol/coded-error.js'
import { HEADER_CHECKPOINTS, type HeaderCheckpoint } from '../../backend/src/protocol/header-checkpoints.js'
import {
  CONTEXT,
  HeaderRules,
  InvalidHeadersError,
  targetRuleOf,
  totalWork,
} from '../../backend/src/protocol/header-rules.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import {
  DEFAULT_TIMEOUT,
  type FetchOptions,
  fetchBounded,
  LONGEST_TIMER,
  unlessAborted,
} from './bounded-fetch.js'
import { hostHash256 } from './bundle.js'
import { Resting } from './resting.js'
import { askStore, type SegmentStore } from './segment-store.js'
import { ThreadShare } from './thread-share.js'

/** Where headers come from. Nothing of it is believed. */
export interface HeaderSource {
  /** What errors call it. */
  name: string
  /** Consecutive headers from a height on, as many as it gives at once: none above its tip. */
  headers(query: { from: number; count: number }): Promise<Uint8Array>
}

/** Keeps texts as segments are kept, under the same kind of keys. What it has is verified again when it is read. */
export type HeaderStore = SegmentStore

export interface OwnHeadersOptions {
  /** Asked one after another; URLs are those of Chaintracks servers (`/v2/headers`). */
  sources: readonly (HeaderSource | string | URL)[]
  /** A block that the chain must have; that of the network by default. */
  checkpoint?: Pick<HeaderCheckpoint, 'height' | 'hash'> & Partial<HeaderCheckpoint>
  /** By whose rules the difficulty changes; `main` by default. */
  network?: 'main' | 'test'
  /** Where headers are kept from one run to the next; by default, nowhere. */
  store?: HeaderStore
  /** How soon sources are asked again for new blocks, in milliseconds; 10,000 by default. */
  recheckAfter?: number
  /** Limits for each request; `fetch` for those to URLs. */
  fetch?: Pick<FetchOptions, 'timeout' | 'fetch'>
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}

/** The headers cannot be had, or are not yet known. */
export class OwnHeadersError extends CodedError {
  override readonly name = 'OwnHeadersError'
  readonly code = 'NO_HEADERS'
}

/** How many headers are asked for at once, and are kept under one key. */
const PAGE = 2000
/** How far below the tip a branch is looked for, and so the deepest reorganisation that is followed. */
const DEPTHS = [1, 10, 100, 1000]
/** A root near the tip may have been replaced. */
const NEAR_TIP = 100
/** Blocks come every 600 seconds: over a day, never twice as often. */
const SHORTEST_SPACING = 300
/** How many pages below the chain are fetched before they are joined to it, which copies all of it. */
const PAGES_AT_ONCE = 25
/** A source that brings less than a page in this time is not waited for, in milliseconds. */
const PATIENCE = 5000
/** The most headers that one source may add at a time: more than there are. */
const MAX_ADDED = 2_000_000
/** A height above which no store has headers: what says so is damaged. */
const MAX_KEPT = 4_000_000

/**
 * A chain tracker with block headers of its own. They come from sources that are not trusted, and are verified: linked to a
 * checkpoint, and above it with the work, the targets and the times that the rules of consensus ask for. A source can withhold
 * blocks, but cannot move the chain to one with less work.
 */
export class OwnHeaders {
  private readonly options: OwnHeadersOptions
  private readonly checkpoint: Pick<HeaderCheckpoint, 'height' | 'hash'> & Partial<HeaderCheckpoint>
  private readonly sources: readonly HeaderSource[]
  private readonly store: HeaderStore | undefined
  /** The time of day, which the times of blocks are compared with, and a clock for durations. */
  private readonly now: () => number
  private readonly clock: () => number
  /** All of them, from `from` on; undefined before the first time. */
  private chain: { from: number; headers: Uint8Array } | undefined
  private synced: { at: number; error?: OwnHeadersError } = { at: Number.NEGATIVE_INFINITY }
  private isLongEnough = false
  /** Those that failed, or were slow: left out while another one answers. */
  private readonly resting = new Resting<HeaderSource>()
  /** One job at a time at the upper end of the chain, and one at the lower. */
  private readonly above = new Queue()
  private readonly below = new Queue()

  constructor(options: OwnHeadersOptions) {
    const { network = 'main', now, store } = options
    this.options = options
    this.checkpoint = options.checkpoint ?? HEADER_CHECKPOINTS[network]
    this.sources = options.sources.map((source) =>
      typeof source === 'object' && 'headers' in source
        ? source
        : chaintracksHeaders(String(source), options.fetch),
    )
    this.store = store
    this.now = now ?? Date.now
    this.clock = now ?? monotonic
  }

  /**
   * Whether the block at a height has this merkle root.
   *
   * @throws OwnHeadersError if no source shows its header.
   */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    if (this.chain === undefined) await this.above.run(() => this.open())
    if (height < this.from) {
      if (height < this.from - PAGE && !(await this.isShown(root, height))) return false
      await this.below.run(() => this.extendBelow(height))
    }
    // A question about such a block does not wait for questions about others.
    if (!this.isFinal(height) && !(await this.above.run(() => this.reaches(height)))) return false
    return this.rootAt(height) === root
  }

  /**
   * Whether any source has this root in its header at a height far below. A proof may name any height: the headers down to it
   * are fetched only if there is something to verify.
   *
   * @throws OwnHeadersError if none answers.
   */
  private async isShown(root: string, height: number): Promise<boolean> {
    const failures: string[] = []
    let hasAnswer = false
    for (const { each: source } of this.resting.inTurn(this.sources)) {
      try {
        const header = await this.attempt(source, () => this.fetched(source, height, 1))
        if (headerCount(header) === 1 && rootOf(header, 0) === root) return true
        hasAnswer = true
      } catch (error) {
        failures.push(`${source.name}: ${messageOf(error)}`)
      }
    }
    if (hasAnswer) return false
    throw unanswered(`no block header at ${height}`, failures)
  }

  async currentHeight(): Promise<number> {
    return await this.above.run(async () => {
      await this.open()
      await this.syncIfOld()
      return this.tip
    })
  }

  /** Whether no source has to be asked about the block at a height. */
  private isFinal(height: number): boolean {
    return height <= this.tip - NEAR_TIP && (height <= this.checkpoint.height || this.hasEnoughWork)
  }

  /**
   * Extends the chain to a height, if it has that.
   *
   * @returns False if the height is one that no chain can have by now, according to what sources show.
   * @throws OwnHeadersError if it may have it, and no source shows it.
   */
  private async reaches(height: number): Promise<boolean> {
    // A block near the tip may have been replaced; what is known of it stands as long as no source answers.
    if (height > this.tip - NEAR_TIP)
      await this.syncIfOld().catch((error: unknown) => {
        if (height > this.tip) throw error
      })
    if (height > this.highestPossible && this.hasEnoughWork) return false
    if (height > this.tip)
      throw new OwnHeadersError(`no source shows a block at ${height}; the highest is ${this.tip}`)
    if (height <= this.checkpoint.height || this.hasEnoughWork) return true
    await this.syncIfOld()
    if (this.hasEnoughWork) return true
    throw new OwnHeadersError(`the chain up to ${this.tip} has too little work: sources withhold the rest`)
  }

  /** Above this no block can be: sources may be behind, but not further than the time since their last block allows. */
  private get highestPossible(): number {
    const behind = Math.max(0, this.now() / 1000 - timeOf(this.headerAt(this.tip)))
    return this.tip + NEAR_TIP + Math.floor(behind / SHORTEST_SPACING)
  }

  private get from(): number {
    return this.chain?.from ?? this.checkpoint.height
  }

  private get tip(): number {
    const { from, headers } = this.chain ?? { from: 0, headers: new Uint8Array() }
    return from + headerCount(headers) - 1
  }

  private rootAt(height: number): string {
    return rootOf(this.chain?.headers ?? new Uint8Array(), height - this.from)
  }

  private async open(): Promise<void> {
    this.chain ??= (await this.stored()) ?? (await this.begun())
  }

  /** What the store has, if it holds: something else may have written to it. */
  private async stored(): Promise<{ from: number; headers: Uint8Array } | undefined> {
    const place = /^(\d{1,9}) (\d{1,9})$/.exec((await this.kept('place')) ?? '')
    if (place === null) return undefined
    const [from, count] = [Number(place[1]), Number(place[2])]
    if (from + count > MAX_KEPT) return undefined
    const headers = new Uint8Array(count * HEADER_BYTES)
    for (let page = Math.floor(from / PAGE); page <= Math.floor((from + count - 1) / PAGE); page++) {
      const first = Math.max(from, page * PAGE)
      const bytes = fromBase64((await this.kept(`p${page}`)) ?? '')
      const skipped = (first - page * PAGE) * HEADER_BYTES
      const last = Math.min(from + count, (page + 1) * PAGE)
      const part = bytes?.subarray(skipped, skipped + (last - first) * HEADER_BYTES)
      if (part?.length !== (last - first) * HEADER_BYTES) return undefined
      headers.set(part, (first - from) * HEADER_BYTES)
    }
    return (await this.isValid({ from, headers })) ? { from, headers } : undefined
  }

  /** Whether headers lead to the checkpoint, and on from there by the rules. */
  private async isValid({ from, headers }: { from: number; headers: Uint8Array }): Promise<boolean> {
    const place = this.checkpoint.height - from + 1
    if (place < 1 || place > headerCount(headers)) return false
    const below = headers.subarray(0, place * HEADER_BYTES)
    const isOurs = this.isCheckpoint(headerAt(below, place - 1)) && (await isChain(below))
    if (!isOurs || !this.isEnough(below)) return false
    const rules = this.rulesAfter({ from, headers: below })
    const thread = new ThreadShare()
    try {
      for (let index = place; index < headerCount(headers); index++) {
        rules.next(headerAt(headers, index))
        if (thread.isDue) await thread.yield()
      }
      return true
    } catch (error) {
      if (error instanceof InvalidHeadersError) return false
      throw error
    }
  }

  /** The rules for what follows some headers. */
  private rulesAfter({ from, headers }: { from: number; headers: Uint8Array }): HeaderRules {
    const { network = 'main' } = this.options
    const count = headerCount(headers)
    const before = headers.subarray(Math.max(0, count - CONTEXT) * HEADER_BYTES)
    const rule = targetRuleOf(headerAt(headers, 0), network)
    return new HeaderRules({ before, height: from + count - 1, rule, now: this.now, hash: hostHash256 })
  }

  /** The checkpoint with the headers before it, by which the next target is computed. */
  private async begun(): Promise<{ from: number; headers: Uint8Array }> {
    const { height } = this.checkpoint
    const from = Math.max(0, height - CONTEXT + 1)
    const failures: string[] = []
    for (const { each: source } of this.resting.inTurn(this.sources)) {
      try {
        return await this.attempt(source, async () => {
          const headers = await this.fetchedAll(source, from, height - from + 1)
          // On a network whose target never changes, the chain may begin at the checkpoint.
          const known =
            headers.length === 0 && from < height ? await this.fetched(source, height, 1) : headers
          const start = height - headerCount(known) + 1
          const isOurs =
            known.length > 0 && this.isCheckpoint(headerAt(known, height - start)) && (await isChain(known))
          if (isOurs && this.isEnough(known)) return { from: start, headers: known }
          throw new InvalidHeadersError(`it does not lead to the block of the checkpoint at ${height}`)
        })
      } catch (error) {
        failures.push(`${source.name}: ${messageOf(error)}`)
      }
    }
    throw unanswered('no block headers', failures)
  }

  /** Whether the next target can be computed from headers. */
  private isEnough(headers: Uint8Array): boolean {
    const { network = 'main' } = this.options
    return headerCount(headers) >= CONTEXT || targetRuleOf(headerAt(headers, 0), network) === 'fixed'
  }

  /** Whether the chain above the checkpoint has as much work as the real one had long ago: no forged one has. */
  private get hasEnoughWork(): boolean {
    const { minimumWork = 0n, work = 0n, height } = this.checkpoint
    const { from, headers } = this.chain ?? { from: 0, headers: new Uint8Array() }
    this.isLongEnough ||=
      work + totalWork(headers.subarray((height + 1 - from) * HEADER_BYTES)) >= minimumWork
    return this.isLongEnough
  }

  private isCheckpoint(header: Uint8Array): boolean {
    return equalBytes(hostHash256(header), reversed(fromHex(this.checkpoint.hash)))
  }

  /** Asks for new blocks, unless that was done lately. */
  private async syncIfOld(): Promise<void> {
    const { recheckAfter = 10_000 } = this.options
    if (this.clock() - this.synced.at < recheckAfter) {
      if (this.synced.error !== undefined) throw this.synced.error
      return
    }
    const failures: string[] = []
    let hasAnswer = false
    for (const { each: source, isResting } of this.resting.inTurn(this.sources)) {
      if (isResting && hasAnswer) continue
      try {
        await this.attempt(source, () => this.follow(source))
        hasAnswer = true
      } catch (error) {
        failures.push(`${source.name}: ${messageOf(error)}`)
      }
    }
    const error = hasAnswer ? undefined : unanswered('no block headers', failures)
    this.synced = { at: this.clock(), ...(error && { error }) }
    if (error !== undefined) throw error
  }

  /** Asks a source, and remembers whether it failed. */
  private async attempt<Result>(source: HeaderSource, ask: () => Promise<Result>): Promise<Result> {
    try {
      const result = await ask()
      this.resting.delete(source)
      return result
    } catch (error) {
      this.resting.add(source)
      throw error
    }
  }

  /** Extends the chain by what a source has, from where it parts with ours. @throws InvalidHeadersError. */
  private async follow(source: HeaderSource): Promise<void> {
    const late = monotonic() + PATIENCE
    for (const depth of DEPTHS) {
      // Its block at this height is compared with ours.
      const at = Math.max(this.tip - depth + 1, this.checkpoint.height)
      const headers = await this.fetched(source, at, PAGE)
      const isOurs = headers.length > 0 && equalBytes(headerAt(headers, 0), this.headerAt(at))
      if (isOurs) return await this.adopt(source, { fork: at, first: headers, late })
      if (at === this.checkpoint.height) break
      if (monotonic() > late) throw tooSlow()
    }
    throw new InvalidHeadersError('its chain does not lead from ours, nor from the checkpoint')
  }

  /**
   * Verifies a branch, and takes it if it has more work than ours.
   *
   * @param branch.first Its headers, from a block that is ours on.
   * @param branch.late When it must have brought a page.
   */
  private async adopt(
    source: HeaderSource,
    { fork, first, late }: { fork: number; first: Uint8Array; late: number },
  ): Promise<void> {
    const { from, headers: ours } = this.chain as { from: number; headers: Uint8Array }
    const place = fork - from + 1
    const rules = (): HeaderRules =>
      this.rulesAfter({ from, headers: ours.subarray(0, place * HEADER_BYTES) })
    const theirs = rules()
    const thread = new ThreadShare()
    const added: Uint8Array[] = []
    for (let page = first.subarray(HEADER_BYTES); page.length > 0; ) {
      for (let index = 0; index < headerCount(page); index++) {
        theirs.next(headerAt(page, index))
        if (thread.isDue) await thread.yield()
      }
      added.push(page)
      // What only extends our chain counts at once, so that it is not fetched again if this is interrupted.
      if (place === headerCount(ours)) await this.replaceAfter(theirs.height - headerCount(page), [page])
      if (theirs.height - fork > MAX_ADDED) break
      if (monotonic() > late && theirs.height - fork < PAGE - 1) throw tooSlow()
      page = await this.fetched(source, theirs.height + 1, PAGE)
    }
    if (added.length === 0 || place === headerCount(ours)) return
    const known = rules()
    for (let index = place; index < headerCount(ours); index++) known.next(headerAt(ours, index))
    if (theirs.work > known.work) await this.replaceAfter(fork, added)
  }

  /** Puts headers in the place of all above a height. The chain may have grown at its lower end since they were verified. */
  private async replaceAfter(height: number, added: readonly Uint8Array[]): Promise<void> {
    const { from, headers } = this.chain as { from: number; headers: Uint8Array }
    const kept = headers.subarray(0, (height - from + 1) * HEADER_BYTES)
    this.chain = { from, headers: concatBytes(kept, ...added) }
    await this.save(height + 1)
  }

  /** Adds headers below the lowest one, down to a height: each is the one that the next refers to. */
  private async extendBelow(height: number): Promise<void> {
    while (this.from > height) {
      const { from, headers } = this.chain as { from: number; headers: Uint8Array }
      const pages: Uint8Array[] = []
      let lowest = from
      let failure: unknown
      try {
        for (
          let next = headers;
          lowest > height && pages.length < PAGES_AT_ONCE;
          [next] = pages as [Uint8Array]
        ) {
          const page = await this.pageBelow(lowest, { height, next })
          pages.unshift(page)
          lowest -= headerCount(page)
        }
      } catch (error) {
        failure = error
      }
      if (pages.length > 0) {
        // The chain may have grown at its upper end since.
        const { headers: now } = this.chain as { headers: Uint8Array }
        this.chain = { from: lowest, headers: concatBytes(...pages, now) }
        await this.save(lowest, from)
      }
      if (failure !== undefined) throw failure
    }
  }

  /** The headers below a height, which lead to the one that is there. */
  private async pageBelow(
    from: number,
    { height, next }: { height: number; next: Uint8Array },
  ): Promise<Uint8Array> {
    const start = Math.max(height, from - PAGE)
    const failures: string[] = []
    for (const { each: source } of this.resting.inTurn(this.sources)) {
      try {
        return await this.attempt(source, async () => {
          const page = await this.fetchedAll(source, start, from - start)
          if (headerCount(page) !== from - start || !(await isChain(page, previousOf(next))))
            throw new InvalidHeadersError(`the headers below ${from} do not lead to it`)
          return page
        })
      } catch (error) {
        failures.push(`${source.name}: ${messageOf(error)}`)
      }
    }
    throw unanswered(`no block header at ${height}`, failures)
  }

  private headerAt(height: number): Uint8Array {
    return headerAt(this.chain?.headers ?? new Uint8Array(), height - this.from)
  }

  /** As many headers as are asked for, unless the source has fewer: it may not give all of them at once. */
  private async fetchedAll(source: HeaderSource, from: number, count: number): Promise<Uint8Array> {
    const late = monotonic() + PATIENCE
    const parts: Uint8Array[] = []
    for (let left = count; left > 0; ) {
      const part = await this.fetched(source, from + count - left, left)
      if (part.length === 0) break
      parts.push(part)
      left -= headerCount(part)
      if (left > 0 && monotonic() > late) throw tooSlow()
    }
    return joinBytes(parts)
  }

  private async fetched(source: HeaderSource, from: number, count: number): Promise<Uint8Array> {
    const { timeout = DEFAULT_TIMEOUT / 2 } = this.options.fetch ?? {}
    const headers = await withinTime(source.headers({ from, count }), timeout)
    if (headers.length % HEADER_BYTES !== 0)
      throw new InvalidHeadersError(`${headers.length} bytes are not headers`)
    return headers.slice(0, count * HEADER_BYTES)
  }

  /** Keeps headers from a height to another. What cannot be kept is fetched again next time. */
  private async save(from: number, to: number = this.tip + 1): Promise<void> {
    const { store } = this
    if (store === undefined) return
    const { from: lowest, headers } = this.chain as { from: number; headers: Uint8Array }
    try {
      for (let page = Math.floor(from / PAGE); page <= Math.floor((to - 1) / PAGE); page++) {
        const bytes = new Uint8Array(PAGE * HEADER_BYTES)
        const first = Math.max(lowest, page * PAGE)
        const part = headers.subarray(
          (first - lowest) * HEADER_BYTES,
          ((page + 1) * PAGE - lowest) * HEADER_BYTES,
        )
        bytes.set(part, (first - page * PAGE) * HEADER_BYTES)
        await askStore(store, () => store.put(this.key(`p${page}`), toBase64(bytes)))
      }
      // Last: pages that it does not name are not read.
      await askStore(store, () => store.put(this.key('place'), `${lowest} ${headerCount(headers)}`))
    } catch {
      // The chain in memory is complete.
    }
  }

  /** A text of the store; one that fails has none. */
  private async kept(name: string): Promise<string | undefined> {
    const { store } = this
    return store && (await askStore(store, () => store.get(this.key(name))).catch(() => undefined))
  }

  private key(name: string): string {
    return `headers-${this.checkpoint.hash.toLowerCase()}/${name}`
  }
}

/** Jobs of which one runs at a time. */
class Queue {
  private last: Promise<unknown> = Promise.resolve()

  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    const running = this.last.catch(() => undefined).then(job)
    this.last = running
    return await running
  }
}

function unanswered(what: string, failures: readonly string[]): OwnHeadersError {
  return new OwnHeadersError(`${what}: ${failures.join('; ') || 'there is no source'}`)
}

function tooSlow(): OwnHeadersError {
  return new OwnHeadersError('it is too slow')
}

/** What a source answers, unless it takes too long. */
async function withinTime<Answer>(answer: Promise<Answer>, milliseconds: number): Promise<Answer> {
  const stop = new AbortController()
  const late = (): void => stop.abort(new OwnHeadersError(`it took longer than ${milliseconds} ms`))
  const timer = setTimeout(late, Math.min(milliseconds, LONGEST_TIMER))
  try {
    return await unlessAborted(answer, stop.signal)
  } finally {
    clearTimeout(timer)
  }
}

/** A Chaintracks server: `GET /v2/headers?height=&count=` answers with bytes. */
function chaintracksHeaders(url: string, options: OwnHeadersOptions['fetch'] = {}): HeaderSource {
  const name = url.replace(/\/+$/, '')
  const { timeout = DEFAULT_TIMEOUT / 2 } = options
  return {
    name,
    async headers({ from, count }) {
      const path = `${name}/v2/headers?height=${from}&count=${count}`
      const init = { headers: { Accept: 'application/octet-stream' } }
      const answer = await fetchBounded(path, init, { ...options, timeout, maxBytes: count * HEADER_BYTES })
      if (answer.status === 404) return new Uint8Array()
      if (answer.status !== 200) throw new OwnHeadersError(`${path} answers ${answer.status}`)
      return answer.body
    },
  }
}

/** Whether headers are linked, and the last one has a hash, if one is given. */
async function isChain(headers: Uint8Array, last?: Uint8Array): Promise<boolean> {
  const thread = new ThreadShare()
  let previous: Uint8Array | undefined
  for (let index = 0; index < headerCount(headers); index++) {
    if (previous !== undefined && !equalBytes(previousOf(headers, index), previous)) return false
    previous = hostHash256(headerAt(headers, index))
    if (thread.isDue) await thread.yield()
  }
  return last === undefined || (previous !== undefined && equalBytes(previous, last))
}

/** How many bytes become characters at once. */
const SLICE = 8192

function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += SLICE)
    text += String.fromCharCode(...bytes.subarray(at, at + SLICE))
  return btoa(text)
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
