import type { Knex } from 'knex'
import type { Arrival, ComparedPart, IndexComparison, IndexRebuild, RebuildMark } from '../../graph/upkeep.js'
import { arrivalsBehind } from '../arrivals.js'
import { hashColumn } from '../columns.js'
import { comparePart } from './compare.js'
import { isMysql } from './dialect.js'
import { exclusiveWrite } from './exclusive-write.js'
import { holdingLock } from './named-lock.js'
import { arrivalsIn, arrivalsLeft, emptyIndex, rebuildMark, writeRebuildMark } from './rebuild.js'
import { knexReader, type SqlReader } from './sql-reader.js'

/** For how long another process may be at it, in seconds. */
const PATIENCE = 10

/** Compares the index of a database with what topics hold, and empties it for a rebuild. */
export class SqlUpkeep implements IndexComparison, IndexRebuild {
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

  async rebuild(): Promise<RebuildMark | undefined> {
    return await rebuildMark(this.reader)
  }

  async markRebuild(mark: RebuildMark | undefined): Promise<void> {
    await exclusiveWrite(this.writer, (trx) => writeRebuildMark(trx, mark))
  }

  async empty(): Promise<void> {
    await emptyIndex(this.writer)
  }

  arrivals(after: string): AsyncIterable<Arrival> {
    return arrivalsBehind(arrivalsIn(this.reader), after)
  }

  async arrivalsLeft(after: string): Promise<number> {
    return await arrivalsLeft(this.reader, after)
  }
}
