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
