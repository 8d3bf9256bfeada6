import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Mutex } from 'async-mutex'
import type { Collection, Db } from 'mongodb'
import { monotonic } from '../../protocol/monotonic.js'
import { DatabaseTimeoutError, withTimeout } from './documents.js'

/** The document that holds the write lease, and by which writes commit: a server changes one document atomically. */
export interface WriterState {
  _id: string
  /** Incremented by every committed write. */
  version: number
  /** Incremented by writes that change or delete documents, not just add them: the reorganisations of readers. */
  turns: number
  /** The committed write that is not applied completely; null if there is none. */
  entry: CommittedEntry | null
  /** The holder of the lease; null if it is free. */
  holder: string | null
  /** Incremented by every heartbeat of the holder. */
  beat: number
  /** The version of the index; absent if an earlier version of this code created it. */
  schema?: number
}

/** Increment it if the index changes: collections have no migrations. */
export const SCHEMA = 5

/** A committed journal entry. */
export interface CommittedEntry {
  id: string
  /** How many documents it consists of. */
  parts: number
  /** Whether it changes or deletes documents, so that readers have to wait for it. */
  turns: boolean
}

/** The key of the state by which the graph is written. */
export const STATE_ID = 'graph'
const DUPLICATE_KEY = 11_000

/** Acknowledged once the write is durable on a majority of the replica set. */
export const DURABLE = { writeConcern: { w: 'majority', journal: true } } as const

export function stateIn(db: Db): Collection<WriterState> {
  return db.collection<WriterState>('graph_state', { ...DURABLE, readPreference: 'primary' })
}

/** Creates the document if it does not exist. */
export async function openState(state: Collection<WriterState>, id = STATE_ID): Promise<void> {
  const first: Omit<WriterState, '_id'> = {
    version: 0,
    turns: 0,
    entry: null,
    holder: null,
    beat: 0,
    schema: SCHEMA,
  }
  try {
    await withTimeout((options) =>
      state.updateOne({ _id: id }, { $setOnInsert: first }, { upsert: true, ...options }),
    )
  } catch (error) {
    // Another process created it first. A host's driver is not ours, and neither are its classes.
    if ((error as { code?: unknown } | null)?.code !== DUPLICATE_KEY) throw error
  }
}

/** Another writer took the lease, as there was no heartbeat for too long. The write has not happened. */
export class LostLeaseError extends Error {
  override readonly name = 'LostLeaseError'
  readonly code = 'LOST_LEASE'
}

/** Another process holds the lease and sends heartbeats. */
export class LeaseTakenError extends Error {
  override readonly name = 'LeaseTakenError'
  readonly code = 'LEASE_TAKEN'
}

/**
 * How long a lease lasts without a heartbeat, in milliseconds: long enough that a call sent to the database has taken effect
 * by then, or never will.
 */
const LEASE = 10_000
/** How often a taken lease is tried again, in milliseconds: at first, and at least. */
const SHORTEST_WAIT = 1
const LONGEST_WAIT = 50

/**
 * A lease that one writer at a time holds, in any process: a conditional update of a document takes it. Its holder sends
 * heartbeats. A waiter that sees none for the length of a lease, by its own clock, takes it over: clocks need not agree.
 */
export class WriteLeases {
  /** How long a lease lasts without a heartbeat, in milliseconds. */
  readonly duration: number
  private readonly state: Collection<WriterState>
  private readonly id: string
  private readonly ownWrites = new Mutex()
  private holder = randomUUID()

  /** @param options.id The key of the document; by default, that of the graph's writers. */
  constructor(options: { state: Collection<WriterState>; id?: string; lease?: number }) {
    this.state = options.state
    this.id = options.id ?? STATE_ID
    this.duration = options.lease ?? LEASE
  }

  /**
   * Does work while holding the lease.
   *
   * @param options.patience How long to wait for a living holder, in milliseconds; without it, forever.
   * @throws LostLeaseError if another writer took it meanwhile; LeaseTakenError if the patience is exceeded.
   */
  async hold<Result>(
    work: (lease: WriteLease) => Promise<Result>,
    { patience = Number.POSITIVE_INFINITY }: { patience?: number } = {},
  ): Promise<Result> {
    return await this.ownWrites.runExclusive(async () => {
      const lease = await this.acquire(patience)
      let isOver = true
      try {
        return await work(lease)
      } catch (error) {
        isOver = !(error instanceof DatabaseTimeoutError)
        throw error
      } finally {
        if (isOver) await this.release()
        // A call may still take effect: let the lease expire, and wait for that like everyone else.
        else this.holder = randomUUID()
      }
    })
  }

  /** The current state; undefined if nothing was written yet. */
  async read(): Promise<WriterState | undefined> {
    const { id } = this
    return (await withTimeout((options) => this.state.findOne({ _id: id }, options))) ?? undefined
  }

  private async acquire(patience: number): Promise<WriteLease> {
    const began = monotonic()
    let seen: { beat: number; since: number } | undefined
    let isAlive = false
    for (let wait = SHORTEST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      const asked = monotonic()
      const isExpired = seen !== undefined && asked - seen.since >= this.duration
      const free = {
        _id: this.id,
        // Its own earlier lease is over, even if the release did not arrive.
        $or: [
          { holder: null },
          { holder: this.holder },
          ...(isExpired && seen !== undefined ? [{ beat: seen.beat }] : []),
        ],
      }
      const taken = { $set: { holder: this.holder }, $inc: { beat: 1 } }
      const before = await withTimeout((options) =>
        this.state.findOneAndUpdate(free, taken, { returnDocument: 'before', ...options }),
      )
      if (before !== null) {
        const { state, id, holder, duration } = this
        return new WriteLease({ state, id, before, holder, duration, renewedAt: asked })
      }
      const state = await this.read()
      if (state === undefined) {
        await openState(this.state, this.id)
        continue
      }
      if (state.beat !== seen?.beat) {
        isAlive = seen !== undefined
        seen = { beat: state.beat, since: monotonic() }
      }
      if (isAlive && monotonic() - began > patience)
        throw new LeaseTakenError('another process holds the write lease')
      await sleep(wait * (0.5 + Math.random()))
    }
  }

  private async release(): Promise<void> {
    try {
      const own = { _id: this.id, holder: this.holder }
      await withTimeout((options) =>
        this.state.updateOne(own, { $set: { holder: null } }, { ...DURABLE, ...options }),
      )
    } catch {
      // The work is done, or has thrown its own error. This writer can take the lease again; for others it expires.
    }
  }
}

interface WriteLeaseOptions {
  state: Collection<WriterState>
  id: string
  /** The state before the lease was taken. */
  before: WriterState
  holder: string
  duration: number
  /** When the lease was asked for. */
  renewedAt: number
}

/** A lease that one writer holds. */
export class WriteLease {
  /** The state before the lease was taken. */
  readonly before: WriterState
  private renewedAt: number

  constructor(private readonly options: WriteLeaseOptions) {
    this.before = options.before
    this.renewedAt = options.renewedAt
  }

  /** Whether the previous holder released it, as it does at the end of its work. */
  get wasReleased(): boolean {
    return this.before.holder === null
  }

  /**
   * Sends a heartbeat if it is time to. Call it before every step, so that the lease lasts as long as the work.
   *
   * @throws LostLeaseError if another writer has taken it.
   */
  async renew(): Promise<void> {
    const asked = monotonic()
    if (asked - this.renewedAt < this.options.duration / 4) return
    await this.update({}, { $inc: { beat: 1 } })
    this.renewedAt = asked
  }

  /** Sends heartbeats while work is done, which checks by {@link renew} before each step that it still has the lease. */
  async renewDuring<Result>(work: () => Promise<Result>): Promise<Result> {
    const timer = setInterval(() => {
      // The next step of the work reports it.
      this.renew().catch(() => {})
    }, this.options.duration / 8)
    try {
      return await work()
    } finally {
      clearInterval(timer)
    }
  }

  /** Updates the state atomically. @throws LostLeaseError if it is not as expected, or the lease is lost. */
  async update(expected: Partial<WriterState>, update: object): Promise<void> {
    const { state, id, holder } = this.options
    const own = { _id: id, holder, ...expected }
    const { matchedCount } = await withTimeout((options) =>
      state.updateOne(own, update, { ...DURABLE, ...options }),
    )
    if (matchedCount === 0) throw new LostLeaseError('another process took the write lease')
  }
}
