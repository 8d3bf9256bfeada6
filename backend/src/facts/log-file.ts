import { randomBytes } from 'node:crypto'
import type { Sql } from './connection.js'
import { LocalLog } from './local-log.js'
import { register, registerFact } from './registers.js'
import { COPY_OF } from './shared-log.js'
import { STATE_SCHEMA } from './state.js'

/** A body of several chunks has rows of its own, so that a range can be read without the rest. */
const SCHEMA = `
create table if not exists log (seq integer primary key autoincrement, kind integer not null, key blob not null,
  at integer not null, length integer not null, body blob);
create unique index if not exists log_key on log (kind, key);
create table if not exists chunk (kind integer not null, key blob not null, position integer not null,
  bytes blob not null, checksum blob not null);
create unique index if not exists chunk_key on chunk (kind, key, position);
create table if not exists log_meta (name text primary key, value) without rowid;
`

/** Version of these tables and those of `state`. No release has another one: logs of other versions are refused. */
const VERSION = 3

/** @throws Error if the tables of a file have another version. */
export function assertVersion(sql: Sql): void {
  if (sql.get("select 1 as one from sqlite_master where name = 'log_meta'") === undefined) return
  const version = sql.get("select value from log_meta where name = 'version'")?.value
  const hasLog = sql.get("select 1 as one from log_meta where name = 'id'") !== undefined
  if (hasLog && version !== VERSION)
    throw new Error(
      `${sql.filename} was written by another version of minetree: choose another DATA_DIR, and import or follow again`,
    )
}

/** Creates the tables of a copy of another log, with that log's id. Places are assigned without gaps. */
export function makeMirror(sql: Sql, id: string): void {
  sql.exec('begin')
  makeTables(sql, id, SCHEMA.replace(' autoincrement', ''))
  sql.exec('commit')
}

/**
 * Creates the tables of a log to copy into.
 *
 * @returns The source noted in it: that of an earlier, incomplete copy may be there.
 * @throws Error if an incomplete copy has tables of another version.
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
 * Creates the tables of a log and of `state`, and the log's id, unless the file has them.
 *
 * @param options.base The base of scores, in milliseconds since 1970.
 */
export function makeLog(sql: Sql, { base = Date.now() }: { base?: number } = {}): void {
  assertVersion(sql)
  // One transaction: each is synced.
  sql.exec(`begin; ${SCHEMA} ${STATE_SCHEMA}`)
  if (sql.get("select value from log_meta where name = 'id'") === undefined) {
    sql.run("insert into log_meta values ('id', ?), ('version', ?)", randomBytes(16).toString('hex'), VERSION)
    new LocalLog(sql).insert(registerFact(register.setting('base'), 1, String(base)))
  }
  sql.exec('commit')
}
