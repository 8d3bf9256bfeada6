import type { Knex } from 'knex'
import type { Lineages } from '../lineages.js'
import type { Maps } from '../merged-map.js'
import type { Streams } from '../stream-reads.js'
import { isMysql } from './dialect.js'
import { lineagesIn } from './lineage-rows.js'
import { mapsIn } from './map-rows.js'
import { mysqlLineagesIn } from './mysql-lineages.js'
import type { SqlReader } from './sql-reader.js'
import { streamsIn } from './stream-rows.js'

/** What those reads ask that are the same on every kind of database. */
export type Rows = Lineages & Maps & Streams

/** The rows of a database, read as its engine does it best. */
export function rowsIn(knex: Knex, reader: SqlReader): Rows {
  const lineages = isMysql(knex) ? mysqlLineagesIn(reader) : lineagesIn(reader)
  return { ...lineages, ...mapsIn(reader), ...streamsIn(reader) }
}
