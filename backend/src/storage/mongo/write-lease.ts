import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Mutex } from 'async-mutex'
import { type Collection, type Db, MongoServerError } from 'mongodb'
import { answered, UnansweredError } from './documents.js'

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
        throw new LeaseTakenError('another process is at it, and goes on')
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
    if (matchedCount === 0) throw new LostLeaseError('another writer took the turn')
  }
}

/**
 * The one document by which writers take turns, and by which what they write is committed. A server changes one document
 * in one step, and no server needs more than that for it.
 */
export interface WriterState {
  _id: string
  /** Moves on with every entry of the journal that is committed. */
  version: number
  /** Moves on with those that change or take away what readers may have seen together. */
  turns: number
  /** What is committed and not applied to its end; null where all is. */
  entry: CommittedEntry | null
  /** Whose turn it is to write; null where it is nobody's. */
  holder: string | null
  /** Moves on while the holder lives. */
  beat: number
  /** Which version of the index the collections hold; absent where an earlier version of this code made them. */
  schema?: number
}

/** Changes where what is indexed does: collections have no migrations. */
export const SCHEMA = 2

/** An entry of the journal that counts. */
export interface CommittedEntry {
  id: string
  /** In how many documents it stands. */
  parts: number
  /** Set where readers see what is changed or taken away, and are to wait. */
  turns: boolean
}

/** The key of the one by which all that is written is committed. */
export const STATE_ID = 'graph'
const DUPLICATE_KEY = 11_000

/** Answered where all is on the disks that the server counts on. */
export const DURABLE = { writeConcern: { w: 'majority', journal: true } } as const

export function stateIn(db: Db): Collection<WriterState> {
  return db.collection<WriterState>('graph_state', { ...DURABLE, readPreference: 'primary' })
}

/** Makes the document where it is not there. */
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
    await answered((within) =>
      state.updateOne({ _id: id }, { $setOnInsert: first }, { upsert: true, ...within }),
    )
  } catch (error) {
    // Somebody else was first.
    if (!(error instanceof MongoServerError) || error.code !== DUPLICATE_KEY) throw error
  }
}
