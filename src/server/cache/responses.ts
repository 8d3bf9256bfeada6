import { LRUCache } from 'lru-cache'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import type { AnswerMemory } from '../../../backend/src/read/fact-store.js'
import { changesAfter, type Reader } from '../../../backend/src/read/reader.js'

/** The largest part of the memory that one answer may take. */
const MAX_SHARE = 1 / 32
/** What an answer weighs beside its bytes: its keys, and what it depends on. */
const USUAL_WEIGHT = 1024
/** Of how many things it is known when they changed last. */
const MAX_CHANGES = 10_000

interface Kept {
  value: unknown
  dependsOn: readonly Dependency[]
  weight: number
  /** Up to which commit it is known to be what would be read. */
  trueAt: number
}

/**
 * Whole answers, those least recently used first to go. Before one is used, the table of changes says whether anything was
 * committed that it depends on. One that was not asked for while more than {@link MAX_CHANGES} things changed is read again.
 */
export class Responses implements AnswerMemory {
  private readonly answers: LRUCache<string, Kept>
  /** At which commit something changed last, by the order of these. */
  private readonly changedAt = new Map<Dependency, number>()
  /** Of earlier commits it is not known what they changed. */
  private knownFrom = 0
  /** The last commit whose changes were read, and how many the reader was sure to see then. */
  private cursor = 0
  private seen: number | undefined

  /** @param maxBytes That all answers take together. */
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
      // A store that cannot be asked says so to whoever reads from it.
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
    // Another question may have been asked meanwhile, and have read later changes, which this answer lacks.
    if (commits === undefined || commits !== this.seen) return
    const kept = { value, dependsOn, weight: USUAL_WEIGHT + key.length + weight, trueAt: this.cursor }
    this.answers.set(key, kept)
  }

  /** Reads what was changed since it was last asked. The commits are counted first: one that comes in between is looked for again. */
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
