import type { Knex } from 'knex'
import type { Arrival, ComparedPart, IndexComparison, IndexRebuild, RebuildMark } from '../../graph/upkeep.js'
import { hashColumn } from './columns.js'
import { comparePart } from './compare.js'
import { exclusiveWrite } from './exclusive-write.js'
import { arrivalsBehind, arrivalsLeft, emptyIndex, rebuildMark, writeRebuildMark } from './rebuild.js'
import type { SqlReader } from './sql-reader.js'

/** Compares the index of a database with what topics hold, and empties it for a rebuild. */
export class SqlUpkeep implements IndexComparison, IndexRebuild {
  private readonly writer: Knex
  private readonly reader: SqlReader

  constructor({ writer, reader }: { writer: Knex; reader: SqlReader }) {
    this.writer = writer
    this.reader = reader
  }

  async compare(after: string | undefined): Promise<ComparedPart> {
    return await comparePart(this.reader, after)
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
    await writeRebuildMark(this.writer, mark)
  }

  async empty(): Promise<void> {
    await emptyIndex(this.writer)
  }

  arrivals(after: string): AsyncIterable<Arrival> {
    return arrivalsBehind(this.reader, after)
  }

  async arrivalsLeft(after: string): Promise<number> {
    return await arrivalsLeft(this.reader, after)
  }
}
