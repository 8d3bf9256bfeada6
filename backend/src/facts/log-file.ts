import { randomBytes } from 'node:crypto'
import type { Sql } from './connection.js'
import { LocalLog } from './local-log.js'
import { register, registerFact } from './registers.js'
import { COPY_OF } from './shared-log.js'
import { STATE_SCHEMA } from './state.js'

/** A body of more than one chunk stands in rows of its own, so that a range of it can be read without the rest. */
const SCHEMA = `
create table if not exists log (seq integer primary key autoincrement, kind integer not null, key blob not null,
  at integer not null, length integer not null, body blob);
create unique index if not exists log_key on log (kind, key);
create table if not exists chunk (kind integer not null, key blob not null, position integer not null,
  bytes blob not null, checksum blob not null);
create unique index if not exists chunk_key on chunk (kind, key, position);
create table if not exists log_meta (name text primary key, value) without rowid;
`

/** Of these tables, with those of `state`. There is no release with another one: a log of another version is refused. */
const VERSION = 3

/** @throws Error if the tables of a file are of another version. */
export function assertVersion(sql: Sql): void {
  if (sql.get("select 1 as one from sqlite_master where name = 'log_meta'") === undefined) return
  const version = sql.get("select value from log_meta where name = 'version'")?.value
  const hasLog = sql.get("select 1 as one from log_meta where name = 'id'") !== undefined
  if (hasLog && version !== VERSION)
    throw new Error(
      `${sql.filename} is of another version of minetree: choose another DATA_DIR, and import or follow again`,
    )
}

/**
 * Makes the tables of a copy of another log, with the id of that, which it must have if it is there. Places are taken one after another:
 * none is skipped.
 */
export function makeMirror(sql: Sql, id: string): void {
  makeTables(sql, id, SCHEMA.replace(' autoincrement', ''))
}

/**
 * Makes the tables of a log that another one is copied to.
 *
 * @returns What is copied into it: an earlier one may have been.
 * @throws Error if the part of a copy that is there has tables of another version.
 */
export function makeCopy(sql: Sql, copyOf: string): string {
  assertVersion(sql)
  if (sql.get("select 1 as one from sqlite_master where name = 'log_meta'") === undefined) {
    sql.exec('begin')
    makeTables(sql, randomBytes(16).toString('hex'), SCHEMA)
    sql.run('insert into log_meta values (?, ?)', COPY_OF, copyOf)
    sql.exec('commit')
  }
  return String(sql.get('select value from log_meta where name = ?', COPY_OF)?.value)
}

function makeTables(sql: Sql, id: string, schema: string): void {
  assertVersion(sql)
  sql.exec(schema)
  sql.exec(STATE_SCHEMA)
  sql.run("insert into log_meta values ('version', ?) on conflict do nothing", VERSION)
  sql.run("insert into log_meta values ('id', ?) on conflict (name) do update set value = excluded.value", id)
}

/**
 * Makes the tables of a log with those of `state`, and its identity, if the file has none yet.
 *
 * @param options.base What scores are counted from: milliseconds since 1970.
 */
export function makeLog(sql: Sql, { base = Date.now() }: { base?: number } = {}): void {
  assertVersion(sql)
  sql.exec(SCHEMA)
  sql.exec(STATE_SCHEMA)
  if (sql.get("select value from log_meta where name = 'id'") !== undefined) return
  sql.exec('begin')
  sql.run("insert into log_meta values ('id', ?), ('version', ?)", randomBytes(16).toString('hex'), VERSION)
  new LocalLog(sql).insert(registerFact(register.setting('base'), 1, String(base)))
  sql.exec('commit')
}
