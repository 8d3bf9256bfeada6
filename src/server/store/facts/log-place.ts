import { CopyError, type SharedLog, type SharedLogOptions } from '../../../../backend/src/facts/shared-log.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { type Config, ConfigError, readConfig } from '../../config/config.js'
import { reasonWithAdvice, StartError } from '../../config/errors.js'
import { isEmbedded, placeOf } from '../../config/place.js'
import type { SharedLogPlace } from '../open-shared-log.js'
import { changeFolder, readFolder } from './folder.js'
import type { CommandLog } from './folder-log.js'

export interface DatabasePlace {
  database: SharedLogPlace
}

export type LogPlace = { folder: string } | DatabasePlace

/** The log that a text names: a folder, or the URL of a database. @throws ConfigError */
export function logPlaceOf(text: string): LogPlace {
  if (text.trim() === '')
    throw new ConfigError('a log is in a folder, or at mysql:// or mongodb://: name one')
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (scheme === undefined) return { folder: text }
  if (scheme !== 'mysql' && scheme !== 'mongodb' && scheme !== 'mongodb+srv')
    throw new ConfigError(`a log is in a folder, or at mysql:// or mongodb://, not at ${scheme}://`)
  const { knexUrl, mongoUrl } = readConfig(scheme === 'mysql' ? { KNEX_URL: text } : { MONGO_URL: text })
  return { database: { knexUrl, mongoUrl } }
}

export function logPlaceIn(config: Pick<Config, 'dataDir' | 'knexUrl' | 'mongoUrl'>): LogPlace {
  return isEmbedded(config) ? { folder: config.dataDir } : { database: config }
}

export function shownPlace(place: LogPlace): string {
  return 'folder' in place ? place.folder : placeOf({ dataDir: '', ...place.database })
}

/**
 * Reads a log while services run.
 *
 * @throws GeneralError if there is none, or an incomplete copy, or its file is damaged; StartError if it cannot be opened.
 */
export async function readLog<Result>(
  place: LogPlace,
  read: (log: CommandLog) => Promise<Result>,
): Promise<Result> {
  if ('folder' in place) return await readFolder(place.folder, read)
  return await withSharedLog(place, { exists: true, isRead: true }, read)
}

/** Changes a log; if it is in a folder, no service must run. @throws as {@link readLog}; StartError if a service has it open. */
export async function changeLog<Result>(
  place: LogPlace,
  change: (log: CommandLog) => Promise<Result>,
): Promise<Result> {
  if ('folder' in place) return await changeFolder(place.folder, change)
  return await withSharedLog(place, { exists: true }, change)
}

/**
 * Opens the log in a database for some work.
 *
 * @throws GeneralError if it holds no log, or an incomplete copy; StartError if it cannot be reached; errors of the work.
 */
export async function withSharedLog<Result>(
  place: DatabasePlace,
  options: SharedLogOptions,
  work: (shared: SharedLog) => Promise<Result>,
): Promise<Result> {
  const { openSharedLog } = await import('../open-shared-log.js')
  const shared = await openSharedLog(place.database, options).catch((cause: unknown) => {
    if (cause instanceof CopyError)
      throw new GeneralError(cause.code, `${shownPlace(place)} ${cause.message}`, { cause })
    throw new StartError(`cannot open the log in ${shownPlace(place)}: ${reasonWithAdvice(cause)}`, { cause })
  })
  try {
    return await work(shared)
  } finally {
    await shared.close()
  }
}
