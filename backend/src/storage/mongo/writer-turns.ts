import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Mutex } from 'async-mutex'
import type { Collection } from 'mongodb'
import { openState, STATE_ID, type WriterState } from './writer-state.js'

/** Somebody else took the turn: this writer was not heard of for too long. What it was about to write is not written. */
export class LostTurnError extends Error {
  override readonly name = 'LostTurnError'
  readonly code = 'LOST_TURN'
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
export class WriterTurns {
  private readonly own = new Mutex()
  private readonly holder = randomUUID()

  constructor(
    private readonly state: Collection<WriterState>,
    readonly lease = LEASE,
  ) {}

  /** Does something while it is this writer's turn. @throws LostTurnError where it is not any more. */
  async take<Result>(work: (turn: Turn) => Promise<Result>): Promise<Result> {
    return await this.own.runExclusive(async () => {
      const turn = await this.acquire()
      try {
        return await work(turn)
      } finally {
        await this.release()
      }
    })
  }

  /** How the state is by now; undefined where nobody has written yet. */
  async read(): Promise<WriterState | undefined> {
    return (await this.state.findOne({ _id: STATE_ID })) ?? undefined
  }

  private async acquire(): Promise<Turn> {
    let seen: { beat: number; since: number } | undefined
    for (let wait = SHORTEST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
      const asked = performance.now()
      const isDead = seen !== undefined && asked - seen.since >= this.lease
      const before = await this.state.findOneAndUpdate(
        {
          _id: STATE_ID,
          // What this one held before, it has let go of, whether the database has heard of it or not.
          $or: [
            { holder: null },
            { holder: this.holder },
            ...(isDead && seen !== undefined ? [{ beat: seen.beat }] : []),
          ],
        },
        { $set: { holder: this.holder }, $inc: { beat: 1 } },
        { returnDocument: 'before' },
      )
      if (before !== null)
        return new Turn({ state: this.state, before, holder: this.holder, lease: this.lease, asked })
      const state = await this.read()
      if (state === undefined) {
        await openState(this.state)
        continue
      }
      if (state.beat !== seen?.beat) seen = { beat: state.beat, since: performance.now() }
      await sleep(wait * (0.5 + Math.random()))
    }
  }

  private async release(): Promise<void> {
    try {
      await this.state.updateOne({ _id: STATE_ID, holder: this.holder }, { $set: { holder: null } })
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
  private readonly lease: number
  /** When it was asked for what was granted last. */
  private since: number

  constructor(options: {
    state: Collection<WriterState>
    before: WriterState
    holder: string
    lease: number
    asked: number
  }) {
    this.state = options.state
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
   * @throws LostTurnError where somebody else has the turn.
   */
  async keep(): Promise<void> {
    const asked = performance.now()
    if (asked - this.since < this.lease / 4) return
    await this.change({}, { $inc: { beat: 1 } })
    this.since = asked
  }

  /** Changes the state in one step. @throws LostTurnError where it is not as it is supposed to be, or somebody else's. */
  async change(expected: Partial<WriterState>, update: object): Promise<void> {
    const { matchedCount } = await this.state.updateOne(
      { _id: STATE_ID, holder: this.holder, ...expected },
      update,
    )
    if (matchedCount === 0) throw new LostTurnError('another writer took the turn')
  }
}
