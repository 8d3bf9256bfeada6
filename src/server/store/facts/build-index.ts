import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { latestOf, register } from '../../../../backend/src/facts/registers.js'
import type { AdmissionOptions } from '../../../../backend/src/graph/admission-rules.js'
import { INDEX_VERSION } from '../../../../backend/src/index/schema.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { catchUp, openIndex } from '../../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import type { Config } from '../../config/config.js'
import { BackupError } from '../backup/backup-tables.js'
import { lockFile } from '../open-database.js'
import { readLog, removeIndex } from './folder.js'

export interface BuildOptions {
  config: Config
  /** By which rules it is derived, with the tree of the log in the settings. */
  admission: (config: Config) => AdmissionOptions
  /** Derives an index of this version again that is there already: the service must not run. */
  again: boolean
  signal: AbortSignal
  onProgress: (share: number) => void
}

/**
 * Builds the index of this version from the log, beside a service of another version, which goes on with its own: the next start
 * of this version then has to apply no more than the facts that came since. An interrupted build is continued.
 *
 * @returns Whether there was one to build.
 * @throws BackupError if there is no log, or another process builds it, or `again` and a service has the store open; the reason of
 * the signal.
 */
export async function buildIndex({
  config,
  admission,
  again,
  signal,
  onProgress,
}: BuildOptions): Promise<boolean> {
  const { dataDir } = config
  const { index } = storeFiles(dataDir)
  if (existsSync(index) && !again) return false
  const unlock = again ? lockFile(dataDir) : lockFile(dataDir, `index-${INDEX_VERSION}.lock`)
  try {
    const part = `${index}.part`
    const building = readLog(dataDir, async (log) => {
      const sql = new Sql(part)
      try {
        sql.exec('pragma journal_mode = delete; pragma synchronous = normal;')
        const files = { log, indexFile: sql }
        const { rules } = admission(treeIn(log, config))
        await catchUp(files, {
          index: openIndex(files, { rules }),
          onProgress,
          isAborted: () => signal.aborted,
        })
        signal.throwIfAborted()
      } finally {
        sql.close()
      }
      // Also what a service that was killed has left beside it.
      await removeIndex(dataDir)
      await rename(part, index)
    })
    if (building === undefined) throw new BackupError(`there is no log of facts in ${dataDir}`)
    await building
    return true
  } finally {
    unlock()
  }
}

/** The settings with the tree of a log. */
export function treeIn(log: LocalLog, config: Config): Config {
  const genesis = latestOf(log, register.setting('genesis'))?.value
  return typeof genesis === 'string'
    ? { ...config, deployment: { ...config.terms, genesis: parseOutpoint(genesis) } }
    : config
}
