import { CodedError } from '../protocol/coded-error.js'
import type { Awaitable } from './yield-to-event-loop.js'

/** Kinds of blocks: by the hash of content, by name, or by outpoint. In alphabetical order. */
export const BLOCKED_KINDS = ['content', 'name', 'outpoint'] as const

export type BlockedKind = (typeof BLOCKED_KINDS)[number]

/** Something that can be blocked, whether this host has it or not. */
export interface BlockedSubject {
  kind: BlockedKind
  /** The SHA-256 of a body in hex, a name, or `<txid>_<vout>`. */
  value: string
}

export interface BlockedRecord extends BlockedSubject {
  /** For the operator: readers do not see it. */
  reason: string
  /** Milliseconds since 1970. */
  since: number
}

/** A page of the blocklist, in order of kinds, and of values within each. */
export interface BlockedQuery {
  kind?: BlockedKind
  after?: BlockedSubject
  limit: number
}

/** The blocklist in memory: every read checks it. */
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

  hasOutputOf(txid: string): boolean {
    for (const outpoint of this.values.outpoint) if (outpoint.startsWith(txid)) return true
    return false
  }

  equals(other: Blocklist): boolean {
    return BLOCKED_KINDS.every((kind) => {
      const [values, others] = [this.values[kind], other.values[kind]]
      if (values.size !== others.size) return false
      for (const value of values) if (!others.has(value)) return false
      return true
    })
  }

  hasAny(kind: BlockedKind): boolean {
    return this.values[kind].size > 0
  }

  set({ kind, value }: BlockedSubject, isBlocked: boolean): void {
    this.version++
    if (isBlocked) this.values[kind].add(value)
    else this.values[kind].delete(value)
  }
}

/** A read led to something that the operator of this host has blocked. The operator's reason is not disclosed. */
export class BlockedError extends CodedError {
  override readonly name = 'BlockedError'
  readonly code = 'BLOCKED'

  constructor(readonly kind: BlockedKind) {
    super(`the operator of this host has blocked this ${kind}`)
  }
}

/** The result of a read; undefined if it leads to something blocked. */
export function unlessBlocked<Found>(read: () => Promise<Found>): Promise<Found | undefined>
export function unlessBlocked<Found>(read: () => Found): Found | undefined
export function unlessBlocked<Found>(read: () => Awaitable<Found>): Awaitable<Found | undefined> {
  try {
    const found = read()
    return found instanceof Promise ? found.catch(notIfBlocked) : found
  } catch (error) {
    return notIfBlocked(error)
  }
}

function notIfBlocked(error: unknown): undefined {
  if (!(error instanceof BlockedError)) throw error
}
