import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Mutex } from 'async-mutex'
import type { Collection } from 'mongodb'
import { answered, UnansweredError } from './answered.js'
import { DURABLE, openState, STATE_ID, type WriterState } from './writer-state.js'

/** Somebody else took the turn: this writer was not heard of for too long. What it was about to write is not written. */
export class LostLeaseError extends Error {
  override readonly name = 'LostLeaseError'
  readonly code = 'LOST_TURN'
}

/** Another process has the turn, lives, and goes on with what it does. */
export class LeaseTakenError extends Error {
  override readonly name = 'LeaseTakenError'
  readonly code = 'TAKEN_TURN'
}

/**
 * How long a writer is waited for that is not heard of, in milliseconds: long enough that a call to the database, once it
 * is sent, has taken effect by then or never will.
 */
const LEASE = 10_000
/** How often it is asked whether it is one's turn, in milliseconds: at first, and at the least. */
const SHORTEST_WAIT = 1
const LONGEST_WAIT = 50

/**
 * Turns of the writers of one database, in whatever processes they are. Whose turn it is says a document, which is taken by
 * a conditional update. The holder says again and again that it lives. Whoever sees for the length of a lease, by a clock
 * of its own, that it does not, takes the turn: no two clocks have to agree.
 */
export class WriteLeases {
  readonly lease: number
  private readonly state: Collection<WriterState>
  private readonly id: string
  private readonly own = new Mutex()
  private holder = randomUUID()

  /** @param options.id The key of the document that says whose turn it is; by default, the one of writers. */
  constructor(options: { state: Collection<WriterState>; id?: string; lease?: number }) {
    this.state = options.state
    this.id = options.id ?? STATE_ID
    this.lease = options.lease ?? LEASE
  }

  /**
   * Does something while it is this writer's turn.
   *
   * @param options.patience For how long somebody else is waited for who lives, in milliseconds; without it, always.
   * @throws LostLeaseError where it is not any more; LeaseTakenError where the patience is at an end.
   */
  async take<Result>(
    work: (turn: Turn) => Promise<Result>,
    { patience = Number.POSITIVE_INFINITY }: { patience?: number } = {},
  ): Promise<Result> {
    return await this.own.runExclusive(async () => {
      const turn = await this.acquire(patience)
      let isOver = true
      try {
        return await work(turn)
      } catch (error) {
        isOver = !(error instanceof UnansweredError)
        throw error
      } finally {
        if (isOver) await this.release()
        // What was to be changed may be changed yet: whoever is next, this writer too, waits for one that is not heard of.
        else this.holder = randomUUID()
      }
    })
  }

  /** How the state is by now; undefined where nobody has written yet. */
  async read(): Promise<WriterState | undefined> {
    const { id } = this
    return (await answered((within) => this.state.findOne({ _id: id }, within))) ?? undefined
  }

  private async acquire(patience: number): Promise<Turn> {
    const began = performance.now()
    let seen: { beat: number; since: number } | undefined
    let hasMoved = false
    for (let wait = SHORTEST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      const asked = performance.now()
      const isDead = seen !== undefined && asked - seen.since >= this.lease
      const free = {
        _id: this.id,
        // What this one held before, it has let go of, whether the database has heard of it or not.
        $or: [
          { holder: null },
          { holder: this.holder },
          ...(isDead && seen !== undefined ? [{ beat: seen.beat }] : []),
        ],
      }
      const taken = { $set: { holder: this.holder }, $inc: { beat: 1 } }
      const before = await answered((within) =>
        this.state.findOneAndUpdate(free, taken, { returnDocument: 'before', ...within }),
      )
      if (before !== null)
        return new Turn({
          state: this.state,
          id: this.id,
          before,
          holder: this.holder,
          lease: this.lease,
          asked,
        })
      const state = await this.read()
      if (state === undefined) {
        await openState(this.state, this.id)
        continue
      }
      if (state.beat !== seen?.beat) {
        hasMoved = seen !== undefined
        seen = { beat: state.beat, since: performance.now() }
      }
      if (hasMoved && performance.now() - began > patience)
        throw new LeaseTakenError('another process holds the write lease')
      await sleep(wait * (0.5 + Math.random()))
    }
  }

  private async release(): Promise<void> {
    try {
      const own = { _id: this.id, holder: this.holder }
      await answered((within) =>
        this.state.updateOne(own, { $set: { holder: null } }, { ...DURABLE, ...within }),
      )
    } catch {
      // What was done is done, or has told why it failed. The next turn of this writer needs no release, and others take
      // theirs when nothing is heard of it for a lease.
    }
  }
}

/** The turn of one writer. */
export class Turn {
  /** As it was when the turn was taken. */
  readonly before: WriterState
  readonly holder: string
  private readonly state: Collection<WriterState>
  private readonly id: string
  private readonly lease: number
  /** When it was asked for what was granted last. */
  private since: number

  constructor(options: {
    state: Collection<WriterState>
    id: string
    before: WriterState
    holder: string
    lease: number
    asked: number
  }) {
    this.state = options.state
    this.id = options.id
    this.before = options.before
    this.holder = options.holder
    this.lease = options.lease
    this.since = options.asked
  }

  /** Whether the one before has let go of its turn, as it does at the end of its work. */
  get isClean(): boolean {
    return this.before.holder === null
  }

  /**
   * Says that this writer lives, where it is time to: called before every step, so that a turn lasts as long as its work.
   *
   * @throws LostLeaseError where somebody else has the turn.
   */
  async keep(): Promise<void> {
    const asked = performance.now()
    if (asked - this.since < this.lease / 4) return
    await this.change({}, { $inc: { beat: 1 } })
    this.since = asked
  }

  /** Keeps it for as long as something takes. Whoever takes a step of it makes sure by {@link keep} that it is still there. */
  async keepDuring<Result>(work: () => Promise<Result>): Promise<Result> {
    const timer = setInterval(() => {
      // Before the next step it is asked once more, and whoever takes that is told.
      this.keep().catch(() => {})
    }, this.lease / 8)
    try {
      return await work()
    } finally {
      clearInterval(timer)
    }
  }

  /** Changes the state in one step. @throws LostLeaseError where it is not as it is supposed to be, or somebody else's. */
  async change(expected: Partial<WriterState>, update: object): Promise<void> {
    const own = { _id: this.id, holder: this.holder, ...expected }
    const { matchedCount } = await answered((within) =>
      this.state.updateOne(own, update, { ...DURABLE, ...within }),
    )
    if (matchedCount === 0) throw new LostLeaseError('another process took the write lease')
  }
}
