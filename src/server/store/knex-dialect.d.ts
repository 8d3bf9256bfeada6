declare module 'knex/lib/dialects/mysql2/index.js' {
  export default class Mysql2Client {
    /** Set on the client of a transaction. */
    readonly transacting?: boolean
    _query<Query extends object>(connection: unknown, query: Query): Promise<Query>
  }
}
