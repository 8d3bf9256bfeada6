import { join } from 'node:path'
import type { Config } from './config.js'
import { mongoPlace } from './mongo-url.js'

type Place = Pick<Config, 'dataDir' | 'knexUrl' | 'mongoUrl'>

/** Whether the store is in a local folder, rather than in a database that other hosts may share. */
export function isEmbedded({ knexUrl, mongoUrl }: Omit<Place, 'dataDir'>): boolean {
  return knexUrl === undefined && mongoUrl === undefined
}

/** The folder in `DATA_DIR` for a gateway's copy of a shared log, and its index. */
const GATEWAY = 'gateway'

export function storeFolder({ dataDir, ...database }: Place): string {
  return isEmbedded(database) ? dataDir : join(dataDir, GATEWAY)
}

/** The place of the store, for logs and errors, without credentials. */
export function placeOf({ dataDir, knexUrl, mongoUrl }: Place): string {
  if (mongoUrl !== undefined) return mongoPlace(mongoUrl)
  if (knexUrl === undefined) return dataDir
  const { host, pathname } = new URL(knexUrl)
  return `mysql://${host}${pathname}`
}
