import type { Logger } from 'pino'
import { z } from 'zod'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { IsMine } from '../chain/sources/background.js'
import type { AsOf, CatchUpProgress, TreeProgress } from '../gateway/http/as-of.js'
import { asOf, catchUpProgress } from '../gateway/http/schemas.js'

const FOLLOWED = 'tree_followed'
/** If no source has answered for this long, in milliseconds, answers are given as if nothing were followed. */
const UNANSWERED = 600_000
/** How often changed state is stored, or read if another process follows, in milliseconds. */
const EVERY = 5_000

const stored = z.object({
  complete: z.boolean(),
  asOf: asOf.optional(),
  /** For how many milliseconds no source had answered. */
  unanswered: z.number().nonnegative().optional(),
  progress: catchUpProgress.optional(),
})

type Stored = z.output<typeof stored>
type Settings = FactStore['settings']

export interface TreeFollower {
  progress(): CatchUpProgress
  /** When a chain source last gave a usable answer, by `monotonic()`; undefined if none ever did. */
  answeredAt(): number | undefined
}

export interface FollowedTreeOptions {
  settings: Settings
  /** Missing if this process follows nothing. */
  follower?: TreeFollower | undefined
  /** Whether other processes share the database: one of them may be following. */
  isShared: boolean
  /** Whether this process is the one that follows; by default, it always is. */
  isMine?: IsMine | undefined
  logger: Logger
  /** The clock: milliseconds that never go back. */
  now?: () => number
}

/**
 * How far the tree of a store was followed (`docs/follow.md`, Absence). The store says whether it was once followed to its end,
 * and how long no source has answered, so that a host that restarts often continues to count.
 */
export class FollowedTree implements TreeProgress {
  private state: Stored = { complete: false }
  private text: string | undefined
  private readonly now: () => number
  private startedAt: number | undefined
  /** When the state of another process that follows last changed. */
  private changedAt: number
  /** When a peer that has caught up last answered. */
  private heardAt: number | undefined
  private timer: NodeJS.Timeout | undefined
  private working: Promise<void> = Promise.resolve()
  private hasFailed = false

  constructor(private readonly options: FollowedTreeOptions) {
    const { now = monotonic } = options
    this.now = now
    this.changedAt = now()
  }

  get asOf(): AsOf | undefined {
    return this.state.asOf
  }

  get isIncomplete(): boolean {
    if (this.state.complete) return false
    const { follower, isShared } = this.options
    return follower !== undefined || (isShared && this.text !== undefined)
  }

  get isCatchingUp(): boolean {
    return this.isIncomplete && this.unanswered < UNANSWERED
  }

  progress(): CatchUpProgress {
    return this.follower?.progress() ?? this.state.progress ?? {}
  }

  /** Reads the state. @param isOwn Whether the tree was deployed into this store, so that nobody else had any of it. */
  async open({ isOwn = false }: { isOwn?: boolean } = {}): Promise<void> {
    await this.read()
    if (isOwn) this.state = { ...this.state, complete: true }
    const { follower, isShared } = this.options
    if (follower === undefined && !isShared) return
    await this.work()
    this.timer = setInterval(() => {
      this.working = this.working.then(() => this.work())
    }, EVERY).unref()
  }

  heard(): void {
    this.heardAt = this.now()
  }

  /** Call when the tree was followed to its end, up to a block if it is known. */
  completed(tip: AsOf | undefined): void {
    const block = tip && { height: tip.height, ...(tip.hash !== undefined && { hash: tip.hash }) }
    const before = this.state.asOf
    const isNew = block !== undefined && (block.height !== before?.height || block.hash !== before.hash)
    const asOf = isNew ? block : before
    this.state = { complete: true, ...(asOf && { asOf }) }
    this.working = this.working.then(() => this.attempt(() => this.write()))
  }

  /**
   * Call when a peer has followed the tree to its end, up to a block if it says so. A block above the chain is not believed.
   *
   * @param chainHeight Undefined if it is not known.
   */
  completedBy(block: AsOf | undefined, chainHeight: number | undefined): void {
    const isLater = block !== undefined && block.height > (this.asOf?.height ?? -1)
    this.completed(isLater && block.height <= (chainHeight ?? block.height) ? block : undefined)
  }

  /** Resolves when the store is no longer in use. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    this.working = this.working.then(() => this.work())
    await this.working
  }

  /** How long nobody who may know more has answered, in milliseconds. */
  private get unanswered(): number {
    const { follower } = this
    if (follower === undefined) return Math.max(this.state.unanswered ?? 0, this.now() - this.changedAt)
    this.startedAt ??= this.now()
    const answeredAt = Math.max(follower.answeredAt() ?? -Infinity, this.heardAt ?? -Infinity)
    if (answeredAt !== -Infinity) return this.now() - answeredAt
    return (this.state.unanswered ?? 0) + this.now() - this.startedAt
  }

  /** The follower, if this process is the one that follows. */
  private get follower(): TreeFollower | undefined {
    const { follower, isMine } = this.options
    return isMine?.() === false ? undefined : follower
  }

  private async work(): Promise<void> {
    await this.attempt(() => (this.follower === undefined ? this.read() : this.write()))
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.hasFailed = false
    } catch (error) {
      // An outage of the store is reported once.
      const level = this.hasFailed ? 'debug' : 'warn'
      this.options.logger[level]({ err: error }, 'could not store how far the tree was followed; will retry')
      this.hasFailed = true
    }
  }

  private async read(): Promise<void> {
    this.startedAt = undefined
    const text = await this.options.settings.get(FOLLOWED)
    if (text === this.text) return
    this.text = text
    this.changedAt = this.now()
    this.state = parsed(text) ?? { complete: false }
  }

  private async write(): Promise<void> {
    const { settings, isShared } = this.options
    const { complete, asOf } = this.state
    const unanswered = Math.min(Math.floor(this.unanswered / EVERY) * EVERY, UNANSWERED)
    const text = JSON.stringify({
      ...{ complete, asOf },
      ...(!complete && unanswered > 0 && { unanswered }),
      // Read by processes that do not follow.
      ...(!complete && isShared && { progress: this.progress() }),
    })
    if (text === this.text) return
    // Another process may have completed the tree.
    const before = complete ? undefined : parsed(await settings.get(FOLLOWED))
    if (before?.complete) {
      this.state = before
      return
    }
    await settings.set(FOLLOWED, text)
    this.text = text
  }
}

function parsed(text: string | undefined): Stored | undefined {
  try {
    return text === undefined ? undefined : stored.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** Records that a command has followed the tree of a store to its end, up to the tip of the chain if that is known. */
export async function recordFollowed(settings: Settings, tip: Partial<AsOf> | undefined): Promise<void> {
  const { height, hash } = tip ?? {}
  const asOf = height === undefined ? parsed(await settings.get(FOLLOWED))?.asOf : { height, hash }
  await settings.set(FOLLOWED, JSON.stringify({ complete: true, asOf }))
}
