import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { monotonic } from '../../protocol/monotonic.js'
import { coalesced } from '../read/request-coalescer.js'
import type { RowDatabase, RowReader } from '../rows/rows.js'
import { openCollections } from './collections.js'
import { dbDocuments, whileAvailable } from './documents.js'
import { Journal } from './journal.js'
import { PendingDocuments } from './pending-documents.js'
import {
  LostLeaseError,
  openState,
  stateIn,
  type WriteLease,
  WriteLeases,
  type WriterState,
} from './write-lease.js'

/** How often a write is repeated if it loses its lease. */
const TRIES = 5
/** How often readers check whether an entry has been applied, in milliseconds. */
const APPLYING = 3

/**
 * Writes to a server that changes one document atomically: a write reads what is stored, collects its changes in memory, and
 * commits them by one document (`journal.ts`), while it holds the lease of all writers (`write-lease.ts`). `docs/mongo.md`
 * says why, and what each step needs of the server.
 */
export class MongoWriter {
  private readonly db: Db
  private readonly leases: WriteLeases
  private readonly journal: Journal
  /** What it writes, for reading outside of a write, too. */
  readonly database: RowDatabase
  /** Coalesced: every answer that takes several reads checks it before and after. */
  private readonly state: () => Promise<WriterState | undefined>
  private opened: Promise<void> | undefined

  constructor({ db, lease }: { db: Db; lease?: number }) {
    this.db = db
    this.leases = new WriteLeases({ state: stateIn(db), ...(lease !== undefined && { lease }) })
    this.journal = new Journal(db)
    this.database = { ...dbDocuments(db), write: (work) => this.write(work) }
    this.state = coalesced(() => whileAvailable(() => this.leases.read()))
  }

  /** Creates missing collections and indexes, and applies what a crashed writer committed. */
  async open(): Promise<void> {
    await this.collections()
    await this.recover()
  }

  /**
   * Makes all changes of the work or none; none if it throws.
   *
   * @param work Reads and changes documents. Repeated if the lease is lost.
   * @throws StoreUnavailableError if the lease is lost repeatedly; then nothing is written. Also if the database cannot be
   * reached: then all or nothing is written, and the write can be repeated.
   */
  async write<Result>(work: (pending: PendingDocuments) => Promise<Result>): Promise<Result> {
    return await whileAvailable(() => this.tryToWrite(work))
  }

  private async tryToWrite<Result>(work: (pending: PendingDocuments) => Promise<Result>): Promise<Result> {
    await this.collections()
    for (let tried = 1; ; tried++) {
      let done: { result: Result } | undefined
      try {
        return await this.leases.hold(async (lease) => {
          await this.journal.recover(lease)
          const pending = new PendingDocuments(this.documentsOf(lease))
          const result = await work(pending)
          const changes = pending.changes()
          if (changes.length === 0) return result
          const committed = await this.journal.commit(lease, changes)
          done = { result }
          await this.journal.finish(lease, committed)
          return result
        })
      } catch (error) {
        if (!(error instanceof LostLeaseError)) throw error
        if (done !== undefined) {
          // It is committed, and the next holder of the lease applies it before anything else.
          await this.recover()
          return done.result
        }
        if (tried === TRIES) throw error
      }
    }
  }

  /**
   * Changes the database without the journal, while holding the lease: for work that can be repeated, and whose next attempt
   * recognises what is half done. All committed writes are applied by then.
   *
   * @throws StoreUnavailableError if the database cannot be reached or the lease is lost.
   */
  async withLease(work: (lease: WriteLease) => Promise<void>): Promise<void> {
    await whileAvailable(async () => {
      await this.collections()
      await this.leases.hold(async (lease) => {
        await this.journal.recover(lease)
        await work(lease)
      })
    })
  }

  /**
   * How many writes changed or deleted documents. Waits while one is being applied, and applies it if its writer is gone.
   */
  async reorgCount(): Promise<number> {
    for (const since = monotonic(); ; ) {
      const state = await this.state()
      if (!state?.entry?.turns) return state?.turns ?? 0
      if (monotonic() - since > this.leases.duration) await this.recover()
      else await sleep(APPLYING)
    }
  }

  /** How many writes there were, by any process. One that is being applied does not count yet. */
  async writeCount(): Promise<number> {
    const state = await this.state()
    return (state?.version ?? 0) - (state?.entry ? 1 : 0)
  }

  private async recover(): Promise<void> {
    await whileAvailable(() => this.leases.hold((lease) => this.journal.recover(lease)))
  }

  /** If the host does not open the store, the first write does. */
  private async collections(): Promise<void> {
    this.opened ??= this.createCollections()
    try {
      await this.opened
    } catch (error) {
      this.opened = undefined
      throw error
    }
  }

  private async createCollections(): Promise<void> {
    await openCollections(this.db)
    await this.journal.open()
    await openState(stateIn(this.db))
  }

  /** Reads of the database that renew the lease. */
  private documentsOf(lease: WriteLease): RowReader {
    const { all, first, count } = this.database
    const renewing =
      <Query extends unknown[], Found>(read: (...query: Query) => Promise<Found>) =>
      async (...query: Query): Promise<Found> => {
        await lease.renew()
        return await read(...query)
      }
    return {
      all: renewing(all),
      first: renewing(first),
      count: renewing(count),
    }
  }
}
