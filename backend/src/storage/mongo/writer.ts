import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { coalesced } from '../read/request-coalescer.js'
import { openCollections } from './collections.js'
import { type Documents, dbDocuments, whileAvailable } from './documents.js'
import { Journal } from './journal.js'
import { PendingDocuments } from './pending-documents.js'
import {
  LostLeaseError,
  openState,
  stateIn,
  type Turn,
  WriteLeases,
  type WriterState,
} from './write-lease.js'

/** How often a write is done anew whose turn was lost meanwhile. */
const TRIES = 5
/** How long it is waited before it is asked again whether an entry is applied, in milliseconds. */
const APPLYING = 3

/**
 * Writes to a server that changes one document in one step: a write looks at what is there, says what is to become of it,
 * and has that committed by one document (`journal.ts`), while no other write is under way in any process
 * (`writer-turns.ts`). Why, and what each needs of the server: `docs/mongo.md`.
 */
export class MongoWriter {
  private readonly db: Db
  private readonly turns: WriteLeases
  private readonly journal: Journal
  private readonly documents: Documents
  /** How the state is: every answer that takes several reads asks before and after them. */
  private readonly state: () => Promise<WriterState | undefined>
  private opened: Promise<void> | undefined

  constructor({ db, lease }: { db: Db; lease?: number }) {
    this.db = db
    this.turns = new WriteLeases({ state: stateIn(db), ...(lease !== undefined && { lease }) })
    this.journal = new Journal(db)
    this.documents = dbDocuments(db)
    this.state = coalesced(() => whileAvailable(() => this.turns.read()))
  }

  /** Makes the collections and their indexes, and finishes what a writer has left that was committed. */
  async open(): Promise<void> {
    await this.collections()
    await this.recover()
  }

  /**
   * Makes the changes that the work says, all of them or none; where the work throws, none.
   *
   * @param work Decides by what the documents say, which are those of the database with its own changes over them. It is
   * done again where the turn is lost.
   * @throws StoreUnavailableError where the turn is lost again and again; then nothing is written. And where the database
   * cannot be reached: all of it is written then or none, and it may be told again.
   */
  async write<Result>(work: (pending: PendingDocuments) => Promise<Result>): Promise<Result> {
    return await whileAvailable(() => this.tryToWrite(work))
  }

  private async tryToWrite<Result>(work: (pending: PendingDocuments) => Promise<Result>): Promise<Result> {
    await this.collections()
    for (let tried = 1; ; tried++) {
      let done: { result: Result } | undefined
      try {
        return await this.turns.take(async (turn) => {
          await this.journal.recover(turn)
          const pending = new PendingDocuments(this.during(turn))
          const result = await work(pending)
          const changes = pending.changes()
          if (changes.length === 0) return result
          const committed = await this.journal.commit(turn, changes)
          done = { result }
          await this.journal.finish(turn, committed)
          return result
        })
      } catch (error) {
        if (!(error instanceof LostLeaseError)) throw error
        if (done !== undefined) {
          // It is committed: whoever took the turn has put it where it is read before anything else.
          await this.recover()
          return done.result
        }
        if (tried === TRIES) throw error
      }
    }
  }

  /**
   * Changes the database without the journal while it is this writer's turn: what may be done twice, and is found half done
   * by whoever comes next. All that was committed is in its place by then.
   *
   * @throws StoreUnavailableError where the database cannot be reached, or the turn is lost.
   */
  async inTurn(work: (turn: Turn) => Promise<void>): Promise<void> {
    await whileAvailable(async () => {
      await this.collections()
      await this.turns.take(async (turn) => {
        await this.journal.recover(turn)
        await work(turn)
      })
    })
  }

  /**
   * How often something was changed or taken away that readers may have seen together. While that is under way it is
   * waited for, and where its writer is gone, it is finished.
   */
  async reorgCount(): Promise<number> {
    for (const since = performance.now(); ; ) {
      const state = await this.state()
      if (!state?.entry?.turns) return state?.turns ?? 0
      if (performance.now() - since > this.turns.lease) await this.recover()
      else await sleep(APPLYING)
    }
  }

  /** How often was written, by whichever process. While something is put where it is read, it does not count yet. */
  async writeCount(): Promise<number> {
    const state = await this.state()
    return (state?.version ?? 0) - (state?.entry ? 1 : 0)
  }

  private async recover(): Promise<void> {
    await whileAvailable(() => this.turns.take((turn) => this.journal.recover(turn)))
  }

  /** Of a host that does not open the store, the first write does. */
  private async collections(): Promise<void> {
    this.opened ??= this.makeCollections()
    try {
      await this.opened
    } catch (error) {
      this.opened = undefined
      throw error
    }
  }

  private async makeCollections(): Promise<void> {
    await openCollections(this.db)
    await this.journal.open()
    await openState(stateIn(this.db))
  }

  /** What the database answers, while the turn is kept. */
  private during(turn: Turn): Documents {
    const { documents } = this
    return {
      async all(...asked) {
        await turn.keep()
        return await documents.all(...asked)
      },
      async first(...asked) {
        await turn.keep()
        return await documents.first(...asked)
      },
    }
  }
}
