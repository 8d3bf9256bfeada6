import type { Knex } from 'knex'
import type {
  ComparedPart,
  IndexComparison,
  IndexRebuild,
  LoggedTransaction,
  RebuildCheckpoint,
} from '../../graph/index-maintenance.js'
import { loggedAfter } from '../rebuild/transaction-log.js'
import { hashColumn } from '../rows/columns.js'
import { comparePart } from './compare-index.js'
import { isMysql } from './dialect.js'
import { exclusiveWrite } from './exclusive-write.js'
import { holdingLock } from './named-lock.js'
import { knexReader, type SqlReader } from './reader.js'
import {
  emptyIndex,
  rebuildCheckpoint,
  transactionLogIn,
  transactionsLeft,
  writeRebuildCheckpoint,
} from './rebuild-index.js'

/** For how long another process may be at it, in seconds. */
const PATIENCE = 10

/** Compares the index of a database with what topics hold, and empties it for a rebuild. */
export class SqlIndexMaintenance implements IndexComparison, IndexRebuild {
  private readonly writer: Knex
  private readonly reader: SqlReader

  constructor({ writer, reader }: { writer: Knex; reader: SqlReader }) {
    this.writer = writer
    this.reader = reader
  }

  async compare(after: string | undefined): Promise<ComparedPart> {
    if (!isMysql(this.writer)) return await comparePart(this.reader, after)
    // Others may write between two reads: all are of one moment.
    return await this.writer.transaction((trx) => comparePart(knexReader(trx), after), {
      isolationLevel: 'repeatable read',
    })
  }

  async alone(work: () => Promise<void>): Promise<void> {
    await holdingLock(this.writer, { name: 'upkeep', patience: PATIENCE }, work)
  }

  async unadmit(txid: string): Promise<void> {
    await exclusiveWrite(this.writer, async (trx) => {
      for (const table of ['graph_admissions', 'graph_applied'])
        await trx(table)
          .where({ txid: hashColumn(txid) })
          .delete()
    })
  }

  async rebuild(): Promise<RebuildCheckpoint | undefined> {
    return await rebuildCheckpoint(this.reader)
  }

  async setRebuildCheckpoint(mark: RebuildCheckpoint | undefined): Promise<void> {
    await exclusiveWrite(this.writer, (trx) => writeRebuildCheckpoint(trx, mark))
  }

  async empty(): Promise<void> {
    await emptyIndex(this.writer)
  }

  transactionLog(after: string): AsyncIterable<LoggedTransaction> {
    return loggedAfter(transactionLogIn(this.reader), after)
  }

  async transactionsLeft(after: string): Promise<number> {
    return await transactionsLeft(this.reader, after)
  }
}
