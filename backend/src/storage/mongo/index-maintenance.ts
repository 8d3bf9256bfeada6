import type { Db } from 'mongodb'
import type {
  ComparedPart,
  IndexComparison,
  IndexRebuild,
  LoggedTransaction,
  RebuildCheckpoint,
} from '../../graph/index-maintenance.js'
import { markOf, markText, REBUILD_CHECKPOINT } from '../rebuild/checkpoint.js'
import { loggedAfter } from '../rebuild/transaction-log.js'
import { hashColumn } from '../rows/columns.js'
import { comparePart } from './compare-index.js'
import { type Documents, dbDocuments } from './documents.js'
import { emptyIndex } from './rebuild-index.js'
import { transactionLogIn, transactionsLeft } from './transaction-log.js'
import { whileAvailable } from './unavailable.js'
import { type Turn, WriteLeases } from './write-lease.js'
import type { MongoWriter } from './writer.js'
import { stateIn } from './writer-state.js'

/** Compares the index of a database with what topics hold, and empties it for a rebuild. */
export class MongoIndexMaintenance implements IndexComparison, IndexRebuild {
  private readonly db: Db
  private readonly writer: MongoWriter
  private readonly documents: Documents
  /** Beside those of writers: a rebuild is many writes, and others have turns between them. */
  private readonly turns: WriteLeases
  /** While this process is at it. */
  private turn: Turn | undefined

  /** @param options.lease For how long another process is waited for that is at it and is not heard of, in milliseconds. */
  constructor({ db, writer, lease }: { db: Db; writer: MongoWriter; lease?: number }) {
    this.db = db
    this.writer = writer
    this.documents = dbDocuments(db)
    this.turns = new WriteLeases({ state: stateIn(db), id: 'upkeep', ...(lease !== undefined && { lease }) })
  }

  /**
   * As a turn that lasts as long as the work, and is lost when the process ends: every step that follows makes sure of it.
   *
   * @throws LeaseTakenError where another process is at it.
   */
  async alone(work: () => Promise<void>): Promise<void> {
    const atIt = (turn: Turn) =>
      turn.keepDuring(async () => {
        this.turn = turn
        try {
          await work()
        } finally {
          this.turn = undefined
        }
      })
    await whileAvailable(() => this.turns.take(atIt, { patience: this.turns.lease }))
  }

  /** While it is this writer's turn to write, so that all reads are of one moment. */
  async compare(after: string | undefined): Promise<ComparedPart> {
    return await this.writer.write((pending) => comparePart(pending, after))
  }

  async unadmit(txid: string): Promise<void> {
    await this.turn?.keep()
    await this.writer.write(async (pending) => {
      for (const name of ['graph_admissions', 'graph_applied'] as const)
        await pending.delete(name, { txid: hashColumn(txid) })
    })
  }

  async rebuild(): Promise<RebuildCheckpoint | undefined> {
    const setting = await this.documents.first('graph_settings', { _id: REBUILD_CHECKPOINT })
    return setting && markOf(setting.value)
  }

  async setRebuildCheckpoint(mark: RebuildCheckpoint | undefined): Promise<void> {
    await this.turn?.keep()
    await this.writer.write(async (pending) => {
      if (mark === undefined) await pending.delete('graph_settings', { _id: REBUILD_CHECKPOINT })
      else await pending.put('graph_settings', { name: REBUILD_CHECKPOINT, value: markText(mark) })
    })
  }

  async empty(): Promise<void> {
    const { db, documents } = this
    await this.writer.inTurn(async (turn) => {
      const keep = async (): Promise<void> => {
        await turn.keep()
        await this.turn?.keep()
      }
      await emptyIndex({ db, documents, keep })
    })
  }

  transactionLog(after: string): AsyncIterable<LoggedTransaction> {
    return loggedAfter(transactionLogIn(this.documents), after)
  }

  async transactionsLeft(after: string): Promise<number> {
    return await transactionsLeft(this.db, after)
  }
}
