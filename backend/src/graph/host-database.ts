/**
 * A host's connection to its database, of any version of `knex` or of the `mongodb` driver: the host's copy may be another
 * than the one that this package is compiled with. Stores use no class of either package, only what the connection offers.
 */
export type HostDatabase = SqlDatabase | MongoDatabase

export interface SqlDatabase {
  readonly client: unknown
  raw(sql: string): PromiseLike<unknown>
}

/** A `Db` of the MongoDB driver. */
export interface MongoDatabase {
  readonly databaseName: string
  collection(name: string): object
}
