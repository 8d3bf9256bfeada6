import type { Knex } from 'knex'
import type { Lineages } from '../read/lineages.js'
import type { Maps } from '../read/read-map.js'
import type { Streams } from '../read/read-streams.js'
import { isMysql } from './dialect.js'
import { lineagesIn } from './lineages.js'
import { mapsIn } from './maps.js'
import { mysqlLineagesIn } from './mysql-lineages.js'
import type { SqlReader } from './reader.js'
import { streamRowsIn } from './streams.js'

/** What those reads ask that are the same on every kind of database. */
export type Rows = Lineages & Maps & Streams

/** The rows of a database, read as its engine does it best. */
export function rowsIn(knex: Knex, reader: SqlReader): Rows {
  const lineages = isMysql(knex) ? mysqlLineagesIn(reader) : lineagesIn(reader)
  return { ...lineages, ...mapsIn(reader), ...streamRowsIn(reader) }
}
