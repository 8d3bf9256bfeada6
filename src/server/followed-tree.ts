import type { Logger } from 'pino'
import { z } from 'zod'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { IsMine } from '../chain/ancestors/is-mine.js'
import type { AsOf, CatchUpProgress, TreeProgress } from '../gateway/http/as-of.js'
import { asOf, catchUpProgress } from '../gateway/http/schemas.js'

/** The setting in the store that says how far its tree was followed. */
const FOLLOWED = 'tree_followed'
/** After so long without an answer of any source, in milliseconds, the store is answered from as if nothing were followed. */
const UNANSWERED = 600_000
/** How often the state is stored where it has changed, or read where another process follows, in milliseconds. */
const EVERY = 5_000

const stored = z.object({
  /** Whether a sweep was complete since the store was made. */
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
  /** When a source of the chain last gave a usable answer, as `monotonic()` tells; undefined if none ever did. */
  answeredAt(): number | undefined
}

export interface FollowedTreeOptions {
  settings: Settings
  /** Missing if this process follows nothing. */
  follower?: TreeFollower | undefined
  /** Whether other processes share the database: one of them may follow. */
  isShared: boolean
  /** Whether this process follows now, and not another one; by default, it always does. */
  isMine?: IsMine | undefined
  logger: Logger
  /** The clock: milliseconds that never go back. */
  now?: () => number
}

/**
 * How far the tree of a store was followed (`docs/follow.md`, Absence). That it was followed to its end once is in the store, and
 * so is for how long no source has answered: a host that restarts often counts on.
 */
export class FollowedTree implements TreeProgress {
  private state: Stored = { complete: false }
  /** What was last read or written, as text. */
  private text: string | undefined
  private readonly now: () => number
  private startedAt: number | undefined
  /** Where another process follows: when its state last changed. */
  private changedAt: number
  /** When a peer last had something to tell. */
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

  /** Reads the state. @param isOwn Whether the tree was deployed into this store: then nobody else had any of it. */
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

  /** A peer answers that is no further behind. */
  heard(): void {
    this.heardAt = this.now()
  }

  /** The tree was followed to its end, up to a block if it is known. */
  completed(tip: AsOf | undefined): void {
    const block = tip && { height: tip.height, ...(tip.hash !== undefined && { hash: tip.hash }) }
    const before = this.state.asOf
    const isNew = block !== undefined && (block.height !== before?.height || block.hash !== before.hash)
    const asOf = isNew ? block : before
    this.state = { complete: true, ...(asOf && { asOf }) }
    this.working = this.working.then(() => this.attempt(() => this.write()))
  }

  /**
   * A peer has followed it to its end, up to a block if it says so. That is believed unless it is higher than the chain.
   *
   * @param chainHeight Undefined if it is not known.
   */
  completedBy(block: AsOf | undefined, chainHeight: number | undefined): void {
    const isLater = block !== undefined && block.height > (this.asOf?.height ?? -1)
    this.completed(isLater && block.height <= (chainHeight ?? block.height) ? block : undefined)
  }

  /** Resolves when it no longer uses the store. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    this.working = this.working.then(() => this.work())
    await this.working
  }

  /** For how long nobody has answered who may know more. */
  private get unanswered(): number {
    const { follower } = this
    if (follower === undefined) return Math.max(this.state.unanswered ?? 0, this.now() - this.changedAt)
    this.startedAt ??= this.now()
    const answeredAt = Math.max(follower.answeredAt() ?? -Infinity, this.heardAt ?? -Infinity)
    if (answeredAt !== -Infinity) return this.now() - answeredAt
    return (this.state.unanswered ?? 0) + this.now() - this.startedAt
  }

  /** What follows the tree, if it is this process that does. */
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
      // A store that stays away is reported once.
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
      // For processes that do not follow.
      ...(!complete && isShared && { progress: this.progress() }),
    })
    if (text === this.text) return
    // Another process may have completed it.
    const before = complete ? undefined : parsed(await settings.get(FOLLOWED))
    if (before?.complete) {
      this.state = before
      return
    }
    await settings.set(FOLLOWED, text)
    this.text = text
  }
}

/** Undefined for what is no state. */
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
