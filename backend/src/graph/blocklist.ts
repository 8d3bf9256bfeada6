/** By what something can be blocked: where it is, what it shows, or what it is called. In the order of their names. */
export const BLOCKED_KINDS = ['content', 'name', 'outpoint'] as const

export type BlockedKind = (typeof BLOCKED_KINDS)[number]

/** Something that can be blocked, whether this host holds it or not. */
export interface BlockedSubject {
  kind: BlockedKind
  /** The SHA-256 of a body in hex, a name, or `<txid>_<vout>`. */
  value: string
}

/** Something that is blocked. */
export interface BlockedRecord extends BlockedSubject {
  /** For the operator: whoever asks for it is not told. */
  reason: string
  /** Milliseconds since 1970. */
  since: number
}

/** Where a page of what is blocked starts, and how long it is; in order of kinds, and of values in each. */
export interface BlockedQuery {
  /** Only of this kind. */
  kind?: BlockedKind
  /** From behind this on. */
  after?: BlockedSubject
  limit: number
}

/** What is blocked, in memory: every read asks for it. */
export class Blocklist {
  private readonly values: Record<BlockedKind, Set<string>> = {
    content: new Set(),
    name: new Set(),
    outpoint: new Set(),
  }
  /** How often it has changed. */
  version = 0

  constructor(subjects: Iterable<BlockedSubject> = []) {
    for (const { kind, value } of subjects) this.values[kind].add(value)
  }

  get isEmpty(): boolean {
    const { content, name, outpoint } = this.values
    return content.size + name.size + outpoint.size === 0
  }

  has(kind: BlockedKind, value: string): boolean {
    return this.values[kind].has(value)
  }

  /** Whether anything is blocked by this kind. */
  hasAny(kind: BlockedKind): boolean {
    return this.values[kind].size > 0
  }

  set({ kind, value }: BlockedSubject, isBlocked: boolean): void {
    this.version++
    if (isBlocked) this.values[kind].add(value)
    else this.values[kind].delete(value)
  }
}

export interface BlocklistReader {
  /** All that is blocked, as a live list; a promise until it has been read. */
  list(): Blocklist | Promise<Blocklist>
  page(query: BlockedQuery): Promise<BlockedRecord[]>
}

export interface BlocklistStore extends BlocklistReader {
  /**
   * Blocks something for good, whatever is submitted and however often the store is reopened. Blocking it again changes the
   * reason and keeps the time.
   *
   * @returns The entry as stored.
   */
  add(record: BlockedRecord): Promise<BlockedRecord>
  /** Unblocks it. Returns whether it was blocked. */
  remove(subject: BlockedSubject): Promise<boolean>
  /** Reads the list again, after another process wrote. */
  refresh(): Promise<void>
}

/** What was asked for leads to something that the operator of this host has blocked. Why, is not said: that is the operator's. */
export class BlockedError extends Error {
  override readonly name = 'BlockedError'
  readonly code = 'BLOCKED'

  /** @param kind By what it is blocked. */
  constructor(readonly kind: BlockedKind) {
    super(`the operator of this host has blocked this ${kind}`)
  }
}
