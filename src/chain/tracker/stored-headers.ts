import { LRUCache } from 'lru-cache'
import type { HeaderChain, HeaderRange } from '../../../backend/src/graph/header-chain.js'
import type { Block } from '../../../backend/src/graph/records.js'
import {
  HEADER_BYTES,
  headerAt,
  headerCount,
  previousOf,
  rootOf,
} from '../../../backend/src/protocol/block-header.js'
import { equalBytes } from '../../../backend/src/protocol/bytes.js'
import { CodedError } from '../../../backend/src/protocol/coded-error.js'
import type { HeaderCheckpoint } from '../../../backend/src/protocol/header-checkpoints.js'
import {
  CONTEXT,
  type TargetRule,
  targetRuleOf,
  totalWork,
} from '../../../backend/src/protocol/header-rules.js'
import { firstUnlinked, hashOf, hasProofOfWork, shownHash } from '../headers/header-rules.js'
import type { Verdict } from './chain-tracker.js'

/** How many headers are read at once where all are. */
const PAGE = 10_000
/** How many headers below the checkpoint are checked at the start. The rest of them were, when they were stored. */
const CHECKED_BELOW = 1000
/** Headers are cached in groups of as many as a row of the store has: some 8 MB in all. */
const GROUP = 100
const MAX_GROUPS = 1024

/** Another process has changed the stored chain; this one reads it again in its next round. */
export class ChangedHeadersError extends CodedError {
  override readonly name = 'ChangedHeadersError'
  readonly code = 'CHANGED_HEADERS'
}

interface Tip {
  height: number
  header: Uint8Array
}

/**
 * The stored chain of headers with what is known of it in memory: both ends, its work, and the headers that were looked up.
 * It always contains the checkpoint.
 */
export class StoredHeaders {
  readonly checkpoint: HeaderCheckpoint
  tip: Tip | undefined
  /** The lowest height. */
  from = 0
  /** The work of the chain up to its tip. */
  work = 0n
  rule: TargetRule = 'main'
  private readonly store: HeaderChain
  private readonly groups = new LRUCache<number, { from: number; headers: Uint8Array }>({ max: MAX_GROUPS })
  /** Counts changes: what was read before one is not cached after it. */
  private changes = 0
  private loading: Promise<void> | undefined

  constructor(
    private readonly options: {
      store: HeaderChain
      checkpoint: HeaderCheckpoint
      network: 'main' | 'test'
    },
  ) {
    this.store = options.store
    this.checkpoint = options.checkpoint
  }

  /** Whether the chain has so much work that it is believed above the checkpoint. */
  get hasEnoughWork(): boolean {
    return this.tip !== undefined && this.work >= this.checkpoint.minimumWork
  }

  /**
   * Reads what the store has. The first time, and after another process reorganised the chain, all headers from the
   * checkpoint on are checked to be linked: from the first that is not, they are deleted. A chain that lacks the checkpoint, or
   * is not linked up to it, is deleted.
   */
  async load(): Promise<void> {
    this.loading ??= this.update().finally(() => {
      this.loading = undefined
    })
    await this.loading
  }

  private async update(): Promise<void> {
    const range = await this.store.range()
    if (range === undefined) {
      this.forget()
      return
    }
    const { tip } = this
    const same = tip && (await this.store.read({ from: tip.height, count: 1 }))
    if (tip === undefined || same === undefined || !equalBytes(same, tip.header))
      return await this.check(range)
    if (range.from !== this.from) this.changedBelow(range.from)
    // Another process has verified what it added.
    for await (const headers of this.pages(tip.height + 1, range.to)) this.extended(headers)
  }

  /** Consecutive headers; fewer if the chain ends before. */
  async read(from: number, count: number): Promise<Uint8Array> {
    return await this.store.read({ from, count })
  }

  /** @throws ChangedHeadersError if the store does not have it. */
  async header(height: number): Promise<Uint8Array> {
    const header = await this.store.read({ from: height, count: 1 })
    if (header.length === 0) throw new ChangedHeadersError(`the header at ${height} is no longer stored`)
    return header
  }

  /** The headers that the rules look at to judge the one after `height`, which is the last of them. */
  async context(height: number): Promise<Uint8Array> {
    const from = Math.max(this.from, height - CONTEXT + 1)
    return await this.store.read({ from, count: height - from + 1 })
  }

  /** The merkle root of a block as hex; undefined if its header is not stored. */
  async rootAt(height: number): Promise<string | undefined> {
    const { tip } = this
    if (tip === undefined || height < this.from || height > tip.height) return undefined
    const key = Math.floor(height / GROUP)
    let group = this.groups.get(key)
    if (group === undefined) {
      const { changes } = this
      const from = Math.max(this.from, key * GROUP)
      group = { from, headers: await this.store.read({ from, count: (key + 1) * GROUP - from }) }
      if (changes === this.changes) this.groups.set(key, group)
    }
    const index = height - group.from
    return index < headerCount(group.headers) ? rootOf(group.headers, index) : undefined
  }

  /**
   * Whether the chain has a block. Up to the checkpoint, what is stored is final. Above it, it counts once the chain has
   * enough work.
   */
  async verdict({ root, height }: Block): Promise<Verdict> {
    const known = await this.rootAt(height)
    if (known === undefined || (height > this.checkpoint.height && !this.hasEnoughWork)) return 'unknown'
    return known === root ? 'yes' : 'no'
  }

  /** Begins with headers of which the last is that of the checkpoint. */
  async begin(headers: Uint8Array): Promise<void> {
    const from = this.checkpoint.height - headerCount(headers) + 1
    await this.replace(from, headers)
    await this.check({ from, to: this.checkpoint.height })
  }

  /**
   * Replaces the headers from a height on by a branch with more work.
   *
   * @throws ChangedHeadersError if another process has changed the chain.
   */
  async replaceFrom(height: number, headers: Uint8Array): Promise<void> {
    const { tip } = this
    const lost = tip && height <= tip.height ? await this.read(height, tip.height - height + 1) : undefined
    await this.replace(height, headers)
    this.changed(height)
    if (lost !== undefined) this.work -= totalWork(lost)
    this.tip = tip && { ...tip, height: height - 1 }
    this.extended(headers)
  }

  /** Adds headers below the lowest one. @throws ChangedHeadersError as {@link replaceFrom}. */
  async addBelow(headers: Uint8Array): Promise<void> {
    if (!(await this.store.addBelow({ to: this.from - 1, headers })))
      throw new ChangedHeadersError('another process has added headers below')
    this.changedBelow(this.from - headerCount(headers))
  }

  /** The hash that the header below the lowest one has, in internal order. */
  async hashBelow(): Promise<Uint8Array> {
    return previousOf(await this.header(this.from))
  }

  private async replace(height: number, headers: Uint8Array): Promise<void> {
    if (!(await this.store.replaceFrom({ height, headers, tip: this.tip?.header })))
      throw new ChangedHeadersError('another process has changed the stored headers')
  }

  /** Checks everything from the checkpoint on, and some headers below it. */
  private async check({ from, to }: HeaderRange): Promise<void> {
    const { checkpoint } = this
    const { network } = this.options
    const start = await this.store.read({ from: checkpoint.height, count: 1 })
    this.forget()
    const isValid = start.length > 0 && shownHash(start) === checkpoint.hash
    if (!isValid || !(await this.isLinkedBelow(from, start))) {
      await this.store.clear()
      return
    }
    this.rule = targetRuleOf(start, network)
    this.from = from
    this.work = checkpoint.work
    this.tip = { height: checkpoint.height, header: start }
    for await (const headers of this.pages(checkpoint.height + 1, to)) {
      const bad = await this.firstDamaged(headers, this.tip)
      if (bad === undefined) {
        this.extended(headers)
        continue
      }
      this.extended(headers.subarray(0, bad * HEADER_BYTES))
      const tip = await this.store.read({ from: to, count: 1 })
      await this.store.replaceFrom({ height: this.tip.height + 1, headers: new Uint8Array(0), tip })
      return
    }
  }

  /**
   * The index of the first of the headers after the tip that is damaged. The one before a header that is not linked may be it,
   * and so may the last: nothing refers to that one, but it has no proof of work then.
   */
  private async firstDamaged(headers: Uint8Array, tip: Tip): Promise<number | undefined> {
    const unlinked = await firstUnlinked(headers, { before: hashOf(tip.header) })
    const last = (unlinked ?? headerCount(headers)) - 1
    return last >= 0 && !hasProofOfWork(headerAt(headers, last)) ? last : unlinked
  }

  /** Whether the headers below the checkpoint, as far as they are checked, are linked up to it. */
  private async isLinkedBelow(from: number, checkpoint: Uint8Array): Promise<boolean> {
    const { height } = this.checkpoint
    const first = Math.max(from, height - CHECKED_BELOW)
    if (first === height) return true
    const headers = await this.store.read({ from: first, count: height - first })
    if (headerCount(headers) !== height - first) return false
    return (await firstUnlinked(headers, { last: previousOf(checkpoint) })) === undefined
  }

  private async *pages(from: number, to: number): AsyncGenerator<Uint8Array> {
    for (let next = from; next <= to; ) {
      const headers = await this.store.read({ from: next, count: Math.min(PAGE, to - next + 1) })
      if (headers.length === 0) return
      yield headers
      next += headerCount(headers)
    }
  }

  private extended(headers: Uint8Array): void {
    const count = headerCount(headers)
    if (this.tip === undefined || count === 0) return
    this.changed(this.tip.height + 1)
    this.work += totalWork(headers)
    this.tip = { height: this.tip.height + count, header: headerAt(headers, count - 1).slice() }
  }

  /** Forgets the cached groups from that of a height on; what is below an old group stays as it is. */
  private changed(height: number): void {
    this.changes++
    const first = Math.floor(height / GROUP)
    for (const key of this.groups.keys()) if (key >= first) this.groups.delete(key)
  }

  /** There are headers from a height on now. The lowest group may have been incomplete. */
  private changedBelow(from: number): void {
    this.changes++
    this.groups.delete(Math.floor(this.from / GROUP))
    this.from = from
  }

  private forget(): void {
    this.tip = undefined
    this.work = 0n
    this.from = 0
    this.changed(0)
  }
}
