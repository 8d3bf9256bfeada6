import type { Knex } from 'knex'
import { afterOpening } from '../../graph/host-index.js'
import { allBlocked, BlocklistCopy } from '../read/blocklist-copy.js'
import { Lineages } from '../read/lineages.js'
import { coalesced } from '../read/request-coalescer.js'
import { GraphStoreBase, type OnReorg } from '../write/graph-store-base.js'
import type { GraphTables } from '../write/graph-tables.js'
import { isMysql, knexReader, knexWriter, type SqlReader } from './database.js'
import { exclusiveWrite, writeCountOf } from './exclusive-write.js'
import { lookupsIn } from './lookups.js'
import { migrate } from './migrations.js'
import { SqlOutputTables } from './output-tables.js'
import { rowWriter, sqlDatabase } from './rows.js'
import { REORG_COUNT, SqlTransactionTables } from './transaction-tables.js'

export interface SqlGraphStoreOptions {
  /** Takes the writes. */
  writer: Knex
  /** Takes the reads, so that none waits for a write; by default, the writer's connections do. */
  reader?: SqlReader
  onReorg?: OnReorg
  /** Opens a store that its host does not open: runs before the first read or write, and again after a failure. */
  opening?: () => Promise<void>
}

/** The admitted graph on SQL: SQLite, MySQL and MariaDB. Writes are transactions of knex. */
export class SqlGraphStore extends GraphStoreBase {
  /** For another store over the same connections. */
  readonly writer: Knex
  readonly reader: SqlReader
  readonly reorgCount: () => Promise<number>
  private readonly opening: (() => Promise<void>) | undefined

  constructor({ writer, reader: unopened = knexReader(writer), onReorg, opening }: SqlGraphStoreOptions) {
    const { all, first } = unopened
    const reader: SqlReader = opening === undefined ? unopened : afterOpening(opening, { all, first })
    const plain = sqlDatabase({ writer, reader: unopened })
    const database = opening === undefined ? plain : afterOpening(opening, plain)
    super({
      database,
      lookups: lookupsIn(reader, isMysql(writer)),
      blocklistCopy: new BlocklistCopy(() => allBlocked(database)),
      onReorg,
    })
    this.writer = writer
    this.reader = reader
    this.opening = opening
    const count = async (): Promise<number> =>
      Number((await database.first('graph_settings', REORG_COUNT, { fields: ['value'] }))?.value ?? 0)
    this.reorgCount = isMysql(writer) ? coalesced(count) : count
  }

  async open(): Promise<void> {
    await (this.opening ?? (() => migrate(this.writer)))()
    await this.blocklist.refresh()
  }

  async ping(): Promise<void> {
    await this.reader.first('select 1 as one', [])
  }

  async writeCount(): Promise<number> {
    if (isMysql(this.writer)) return await writeCountOf(this.reader)
    // Another number after each write of another connection (https://sqlite.org/pragma.html#pragma_data_version).
    return Number((await this.reader.first('pragma data_version', []))?.data_version)
  }

  protected async write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result> {
    await this.opening?.()
    const derives = this.admission !== undefined
    return await exclusiveWrite(this.writer, (trx) => {
      const writer = knexWriter(trx)
      const rows = rowWriter(writer)
      const lookups = lookupsIn(writer, false)
      return write({
        transactions: new SqlTransactionTables({ rows, lookups, derives, writer }),
        outputs: new SqlOutputTables({ rows, lookups, writer }),
        rows: new Lineages(rows, lookups),
      })
    })
  }
}
