import { type BlockedSubject, Blocklist } from '../../graph/blocklist.js'

/**
 * What is blocked, kept in memory. Every write of this store is set in it once it is committed, so that the next read
 * sees it; after one of somebody else it has to be read anew.
 */
export class BlocklistCopy {
  private list: Blocklist | undefined
  private writes = 0
  /** How many reads were begun, and which of them the list is of. */
  private begun = 0
  private readBy = 0

  /** @param readAll Reads all that is blocked. */
  constructor(private readonly readAll: () => Promise<BlockedSubject[]>) {}

  /** See `BlocklistReader.blocklist`. */
  get(): Blocklist | Promise<Blocklist> {
    return this.list ?? this.read()
  }

  /** Reads it anew; until that is done, what was known counts. */
  async read(): Promise<Blocklist> {
    for (;;) {
      const { writes } = this
      const read = ++this.begun
      const list = new Blocklist(await this.readAll())
      // A write that was committed meanwhile may or may not be in it.
      if (writes !== this.writes) continue
      // A read that began later knows more, even if it ended first.
      if (this.list !== undefined && read < this.readBy) return this.list
      this.list = list
      this.readBy = read
      return list
    }
  }

  /** Notes a committed change: something is blocked, or no longer. */
  set(subject: BlockedSubject, isBlocked: boolean): void {
    this.writes++
    this.list?.set(subject, isBlocked)
  }
}

/** For how long what is blocked is taken for what was read last, in milliseconds: others are to see a block within a second. */
const FRESH = 500

/** What is blocked, in memory, whoever blocks it: read anew where somebody has written since. */
export class BlocklistFollower {
  private readonly copy: BlocklistCopy
  private readonly writeCount: () => Promise<number>
  private readonly isWatched: boolean
  private writes: number | undefined
  private since = Number.NEGATIVE_INFINITY
  private following: Promise<Blocklist> | undefined

  /**
   * @param options.readAll Reads all that is blocked.
   * @param options.writeCount How often was written by now.
   * @param options.isWatched Whether somebody else looks for that, and calls {@link read}.
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

  /** See `BlocklistReader.blocklist`. */
  get(): Blocklist | Promise<Blocklist> {
    if (this.isWatched || performance.now() - this.since < FRESH) return this.copy.get()
    this.following ??= this.follow()
    return this.following
  }

  /** Reads it anew; until that is done, what was known counts. */
  async read(): Promise<Blocklist> {
    return await this.copy.read()
  }

  /** Notes a committed change: something is blocked, or no longer. */
  set(subject: BlockedSubject, isBlocked: boolean): void {
    this.copy.set(subject, isBlocked)
  }

  private async follow(): Promise<Blocklist> {
    try {
      const asked = performance.now()
      const writes = await this.writeCount()
      const list = writes === this.writes ? await this.copy.get() : await this.copy.read()
      this.writes = writes
      this.since = asked
      return list
    } finally {
      this.following = undefined
    }
  }
}
