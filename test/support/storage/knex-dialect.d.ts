declare module 'knex/lib/dialects/better-sqlite3/index.js' {
  export default class BetterSqlite3Client {
    _driver(): unknown
  }
}
