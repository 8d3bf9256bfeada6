import type { Knex } from 'knex'
import {
  type Filter,
  type FindOptions,
  isComparison,
  KEYS,
  type RowDatabase,
  type RowReader,
  type RowWriter,
  type Table,
} from '../rows/rows.js'
import {
  anyOf,
  insertNew,
  knexReader,
  knexWriter,
  type SqlReader,
  type SqlValue,
  type SqlWriter,
  sqlValue,
} from './database.js'
import { exclusiveWrite } from './exclusive-write.js'

/** See {@link RowReader}. Conditions keep their order, by which engines choose an index. */
export function rowReader(reader: SqlReader): RowReader {
  return {
    async all(tables, filter, options) {
      const { sql, values } = select(typeof tables === 'string' ? [tables] : tables, filter, options)
      return await reader.all(sql, values)
    },
    async first(table, filter, options) {
      const { sql, values } = select([table], filter, options)
      return await reader.first(`${sql} limit 1`, values)
    },
    async count(table, filter, limit) {
      const values: SqlValue[] = []
      const from = `from ${table}${where(filter, values)}`
      const sql =
        limit === undefined
          ? `select count(*) as count ${from}`
          : `select count(*) as count from (select 1 ${from} limit ${limit}) as found`
      return Number((await reader.first(sql, values))?.count)
    },
  }
}

/** See {@link RowWriter}. */
export function rowWriter(writer: SqlWriter): RowWriter {
  return {
    ...rowReader(writer),
    insertNew: (table, rows) => insertNew(writer, table, rows),
    async put(table, row) {
      const columns = Object.keys(row)
      const others = columns.filter((column) => !(KEYS[table] as readonly string[]).includes(column))
      const update = writer.isMysql
        ? `on duplicate key update ${others.map((column) => `${column} = values(${column})`).join(', ')}`
        : `on conflict (${KEYS[table].join(', ')}) do update set ${others.map((column) => `${column} = excluded.${column}`).join(', ')}`
      await writer.run(
        `insert into ${table} (${columns.join(', ')}) values (${anyOf(columns)}) ${update}`,
        Object.values(row).map(sqlValue),
      )
    },
    async update(table, filter, fields) {
      const values = Object.values(fields).map(sqlValue)
      const set = Object.keys(fields).map((column) => `${column} = ?`)
      await writer.run(`update ${table} set ${set.join(', ')}${where(filter, values)}`, values)
    },
    async delete(table, filter) {
      const values: SqlValue[] = []
      await writer.run(`delete from ${table}${where(filter, values)}`, values)
    },
  }
}

/** A database by its connections. @param options.reader By default, the writer's connections take the reads, too. */
export function sqlDatabase({ writer, reader }: { writer: Knex; reader?: SqlReader }): RowDatabase {
  return {
    ...rowReader(reader ?? knexReader(writer)),
    write: (work) => exclusiveWrite(writer, (trx) => work(rowWriter(knexWriter(trx)))),
  }
}

/** Built by loops over keys, without lists in between: this runs for every short read. */
function select(
  tables: readonly Table[],
  filter: Filter,
  { fields, sort, limit }: FindOptions = {},
): { sql: string; values: SqlValue[] } {
  const values: SqlValue[] = []
  const columns = fields?.join(', ') ?? '*'
  let sql = ''
  for (const table of tables)
    sql += `${sql && ' union '}select ${columns} from ${table}${where(filter, values)}`
  let order = ''
  for (const column in sort) order += `${order && ', '}${column}${sort[column] === 1 ? '' : ' desc'}`
  if (order !== '') sql += ` order by ${order}`
  if (limit === 1) sql += ' limit 1'
  else if (limit !== undefined) {
    sql += ' limit ?'
    values.push(limit)
  }
  return { sql, values }
}

/** The condition of a filter, with `where`; adds its values. */
function where(filter: Filter, values: SqlValue[]): string {
  const condition = conditionOf(filter, values)
  return condition === '' ? '' : ` where ${condition}`
}

/** The condition of a filter; adds its values, in order. */
export function conditionOf(filter: Filter, values: SqlValue[]): string {
  let condition = ''
  const add = (each: string): void => {
    condition += condition === '' ? each : ` and ${each}`
  }
  for (const field in filter) {
    const wanted = filter[field]
    if (Array.isArray(wanted)) {
      const branches = wanted.map((branch) => conditionOf(branch, values))
      add(`(${branches.join(field === '$or' ? ' or ' : ' and ')})`)
    } else if (isComparison(wanted)) {
      for (const [operator, value] of Object.entries(wanted))
        add(comparisonOf(field, operator, value, values))
    } else add(comparisonOf(field, '$eq', wanted, values))
  }
  return condition
}

const OPERATORS: Record<string, string> = {
  $eq: '=',
  $ne: '<>',
  $gt: '>',
  $gte: '>=',
  $lt: '<',
  $lte: '<=',
}

function comparisonOf(field: string, operator: string, value: unknown, values: SqlValue[]): string {
  if (value === null) return `${field} is ${operator === '$eq' ? 'null' : 'not null'}`
  if (operator === '$in') {
    const all = value as unknown[]
    for (const each of all) values.push(sqlValue(each))
    return `${field} in (${anyOf(all)})`
  }
  values.push(sqlValue(value))
  return `${field} ${OPERATORS[operator]} ?`
}
