import {
  type BlockedQuery,
  type BlockedRecord,
  type BlockedSubject,
  Blocklist,
} from '../../graph/blocklist.js'
import { monotonic } from '../../protocol/monotonic.js'
import type { Filter, Row, RowReader } from '../rows/rows.js'

/** See `BlocklistStore.page`. */
export async function blockedPage(
  rows: RowReader,
  { kind, after, limit }: BlockedQuery,
): Promise<BlockedRecord[]> {
  const page = async (filter: Filter, size: number): Promise<BlockedRecord[]> => {
    const fields = ['kind', 'value', 'reason', 'since']
    const sort = { kind: 1, value: 1 } as const
    return (await rows.all('graph_blocked', filter, { sort, limit: size, fields })).map(blockedOf)
  }
  if (after === undefined || (kind !== undefined && kind > after.kind))
    return await page(kind === undefined ? {} : { kind }, limit)
  if (kind !== undefined && kind < after.kind) return []
  // The remaining subjects of the same kind, then the kinds after it: each is one range of the key.
  const same = await page({ kind: after.kind, value: { $gt: after.value } }, limit)
  if (same.length === limit || kind !== undefined) return same
  return [...same, ...(await page({ kind: { $gt: after.kind } }, limit - same.length))]
}

/** The whole blocklist. */
export async function allBlocked(rows: RowReader): Promise<BlockedSubject[]> {
  return await rows.all('graph_blocked', {}, { fields: ['kind', 'value'] })
}

export function blockedOf({ kind, value, reason, since }: Row): BlockedRecord {
  return { kind, value, reason, since: Number(since) }
}

/**
 * The blocklist in memory. Every write of this store is applied to it when it commits, so that the next read sees it; after
 * a write by another process it has to be read again.
 */
export class BlocklistCopy {
  private list: Blocklist | undefined
  private writes = 0
  /** How many reads have begun, and which of them the list is from. */
  private begun = 0
  private readBy = 0

  /** @param readAll Reads the whole blocklist. */
  constructor(private readonly readAll: () => Promise<BlockedSubject[]>) {}

  /** See `BlocklistStore.list`. */
  get(): Blocklist | Promise<Blocklist> {
    return this.list ?? this.read()
  }

  /** Reads it again; until that is done, the old list applies. */
  async read(): Promise<Blocklist> {
    for (;;) {
      const { writes } = this
      const read = ++this.begun
      const list = new Blocklist(await this.readAll())
      // A write that committed meanwhile may or may not be in it.
      if (writes !== this.writes) continue
      // A read that began later is newer, even if it ended first.
      if (this.list !== undefined && read < this.readBy) return this.list
      this.list = list
      this.readBy = read
      return list
    }
  }

  /** Applies a committed change. */
  set(subject: BlockedSubject, isBlocked: boolean): void {
    this.writes++
    this.list?.set(subject, isBlocked)
  }
}

/** How long a list counts as current, in milliseconds: other processes must see a block within a second. */
const CURRENT_FOR = 500

/** A {@link BlocklistCopy} that also follows the writes of other processes. */
export class BlocklistFollower {
  private readonly copy: BlocklistCopy
  private readonly writeCount: () => Promise<number>
  private readonly isWatched: boolean
  private writes: number | undefined
  private checkedAt = Number.NEGATIVE_INFINITY
  private following: Promise<Blocklist> | undefined

  /**
   * @param options.readAll Reads the whole blocklist.
   * @param options.writeCount How many writes there have been, by any process.
   * @param options.isWatched Whether the host polls for writes and calls {@link read}.
   */
  constructor(options: {
    readAll: () => Promise<BlockedSubject[]>
    writeCount: () => Promise<number>
    isWatched: boolean
  }) {
    this.copy = new BlocklistCopy(options.readAll)
    this.writeCount = options.writeCount
    this.isWatched = options.isWatched
  }

  /** See `BlocklistStore.list`. */
  get(): Blocklist | Promise<Blocklist> {
    if (this.isWatched || monotonic() - this.checkedAt < CURRENT_FOR) return this.copy.get()
    this.following ??= this.follow()
    return this.following
  }

  read(): Promise<Blocklist> {
    return this.copy.read()
  }

  set(subject: BlockedSubject, isBlocked: boolean): void {
    this.copy.set(subject, isBlocked)
  }

  private async follow(): Promise<Blocklist> {
    try {
      const checkedAt = monotonic()
      const writes = await this.writeCount()
      const list = writes === this.writes ? await this.copy.get() : await this.copy.read()
      this.writes = writes
      this.checkedAt = checkedAt
      return list
    } finally {
      this.following = undefined
    }
  }
}
