import { LRUCache } from 'lru-cache'
import type { Dependency } from '../../../backend/src/graph/dependencies.js'

/** The promise is kept too: a repeated read costs no new one. */
export interface CachedAnswer {
  promise: Promise<unknown>
  value: unknown
  dependsOn: readonly Dependency[]
  /** About how many bytes it takes. */
  weight: number
}

/** The largest part of the memory that one answer may take. */
const MAX_SHARE = 1 / 32

/** Answers by their keys, those least recently used first to go, until something that they depend on changes. */
export class AnswerCache {
  private readonly answers: LRUCache<string, CachedAnswer>
  /** The keys of the answers that depend on something. */
  private readonly dependents = new Map<Dependency, Set<string>>()

  /** @param maxWeight Of all answers, in bytes. */
  constructor(maxWeight: number) {
    this.answers = new LRUCache({
      maxSize: maxWeight,
      maxEntrySize: Math.max(Math.floor(maxWeight * MAX_SHARE), 1),
      sizeCalculation: ({ weight }) => weight,
      dispose: (answer, key) => this.unlink(key, answer),
    })
  }

  get(key: string): CachedAnswer | undefined {
    return this.answers.get(key)
  }

  set(key: string, answer: CachedAnswer): void {
    this.answers.set(key, answer)
    // It may be too large.
    if (this.answers.peek(key) !== answer) return
    for (const each of answer.dependsOn) {
      const keys = this.dependents.get(each)
      if (keys === undefined) this.dependents.set(each, new Set([key]))
      else keys.add(key)
    }
  }

  /** Removes every answer that depends on something of this. */
  change(changed: Iterable<Dependency>): void {
    for (const each of changed) for (const key of this.dependents.get(each) ?? []) this.answers.delete(key)
  }

  /** Removes every answer that depends on anything. */
  changeAll(): void {
    this.change([...this.dependents.keys()])
  }

  clear(): void {
    this.answers.clear()
  }

  private unlink(key: string, { dependsOn }: CachedAnswer): void {
    for (const each of dependsOn) {
      const keys = this.dependents.get(each)
      keys?.delete(key)
      if (keys?.size === 0) this.dependents.delete(each)
    }
  }
}
