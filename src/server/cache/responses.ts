import { LRUCache } from 'lru-cache'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import type { AnswerMemory } from '../../../backend/src/read/fact-store.js'
import { changesAfter, type Reader } from '../../../backend/src/read/reader.js'

/** The largest share of the memory for one answer. */
const MAX_SHARE = 1 / 32
/** The weight of an answer besides its bytes: its keys and dependencies. */
const USUAL_WEIGHT = 1024
/** How many keys are remembered with the commit that last changed them. */
const MAX_CHANGES = 10_000

interface Kept {
  value: unknown
  dependsOn: readonly Dependency[]
  weight: number
  /** The commit up to which the value is known to be current. */
  trueAt: number
}

/**
 * An LRU cache of whole answers. Before one is used, the table of changes says whether a commit changed anything that it depends on.
 * An answer that was not used while more than {@link MAX_CHANGES} keys changed is read again.
 */
export class Responses implements AnswerMemory {
  private readonly answers: LRUCache<string, Kept>
  /** The commit at which each key last changed, in the order of commits. */
  private readonly changedAt = new Map<Dependency, number>()
  /** Changes of earlier commits are unknown. */
  private knownFrom = 0
  /** The last commit whose changes were read, and the reader's number of commits at that time. */
  private cursor = 0
  private seen: number | undefined

  constructor(
    private readonly reader: Reader,
    maxBytes: number,
  ) {
    this.answers = new LRUCache({
      maxSize: Math.max(Math.floor(maxBytes), 1),
      maxEntrySize: Math.max(Math.floor(maxBytes * MAX_SHARE), 1),
      sizeCalculation: ({ weight }) => weight,
    })
  }

  get(key: string): unknown {
    try {
      this.look()
    } catch {
      // If the store fails, the caller's own read reports it.
      return undefined
    }
    const kept = this.answers.get(key)
    if (kept === undefined) return undefined
    if (kept.trueAt !== this.cursor) {
      if (!this.isUnchanged(kept)) {
        this.answers.delete(key)
        return undefined
      }
      kept.trueAt = this.cursor
    }
    return kept.value
  }

  keep(key: string, { value, commits, dependsOn, weight }: Parameters<AnswerMemory['keep']>[1]): void {
    // Another query may have read later changes meanwhile, which this answer lacks.
    if (commits === undefined || commits !== this.seen) return
    const kept = { value, dependsOn, weight: USUAL_WEIGHT + key.length + weight, trueAt: this.cursor }
    this.answers.set(key, kept)
  }

  /** Reads the changes since the last call. Commits are counted first, so that one that comes in between is looked at again. */
  private look(): void {
    const { reader } = this
    const { commits } = reader
    if (commits === this.seen) return
    const { cursor, keys } = reader.answer((sql) => changesAfter(sql, this.cursor))
    if (keys === undefined) {
      this.answers.clear()
      this.changedAt.clear()
      this.knownFrom = cursor
    } else if (cursor !== this.cursor) for (const key of [...keys, dependency.all]) this.note(key, cursor)
    this.cursor = cursor
    this.seen = commits
  }

  private note(key: Dependency, commit: number): void {
    this.changedAt.delete(key)
    this.changedAt.set(key, commit)
    if (this.changedAt.size <= MAX_CHANGES) return
    for (const [oldest, at] of this.changedAt) {
      this.changedAt.delete(oldest)
      this.knownFrom = at
      return
    }
  }

  private isUnchanged({ trueAt, dependsOn }: Kept): boolean {
    if (trueAt < this.knownFrom) return false
    return dependsOn.every((each) => (this.changedAt.get(each) ?? 0) <= trueAt)
  }
}
