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
  /** Absent if it is still to be derived. */
  indexBytes?: number
  freeBytes: number
  /** What the index is derived by, as the log keeps it. */
  settings: Record<string, string>
}

/** Of a file of SQLite, with what was committed and is not yet in it. */
function bytesOf(file: string): number {
  return [file, `${file}-wal`].reduce(
    (sum, each) => sum + (statSync(each, { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}

/** What is in the folder of the settings; undefined if there is no store. It may be in use. @throws what reading a log throws. */
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
