declare module 'knex/lib/dialects/better-sqlite3/index.js' {
  export default class BetterSqlite3Client {
    /** Set on the client of a transaction. */
    readonly transacting?: boolean
    _driver(): unknown
    acquireConnection(): Promise<unknown>
    _query<Query extends { sql: string }>(connection: unknown, query: Query): Promise<Query>
  }
}

declare module 'knex/lib/dialects/mysql2/index.js' {
  export default class Mysql2Client {
    /** Set on the client of a transaction. */
    readonly transacting?: boolean
    _query<Query extends object>(connection: unknown, query: Query): Promise<Query>
  }
}
