import { existsSync, statfsSync, statSync } from 'node:fs'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import type { Config } from '../config/config.js'
import { storeFolder } from '../config/place.js'
import { hasLog } from './facts/folder.js'
import { logPlaceIn } from './facts/log-place.js'
import { readSettings } from './facts/log-settings.js'

export interface StoreStatus {
  folder: string
  logBytes: number
  /** Absent if the index has not been derived yet. */
  indexBytes?: number
  freeBytes: number
  settings: Record<string, string>
}

/** The size of an SQLite file, with commits that are only in its WAL. */
function bytesOf(file: string): number {
  return [file, `${file}-wal`].reduce(
    (sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}

/** The state of the store in the settings, which may be in use; undefined if there is none. @throws errors of reading a log. */
export async function storeStatus(config: Config): Promise<StoreStatus | undefined> {
  const folder = storeFolder(config)
  const { log, index } = storeFiles(folder)
  if (!hasLog(folder)) return undefined
  const { bavail, bsize } = statfsSync(folder)
  return {
    folder,
    logBytes: bytesOf(log),
    ...(existsSync(index) && { indexBytes: bytesOf(index) }),
    freeBytes: bavail * bsize,
    settings: Object.fromEntries(await readSettings(logPlaceIn(config))),
  }
}
