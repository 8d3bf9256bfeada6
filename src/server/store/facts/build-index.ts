import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { FolderInUseError, lockFile, removeDatabase } from '../../../../backend/src/facts/folder.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { latestOf, register } from '../../../../backend/src/facts/registers.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { treeDifference } from '../../../../backend/src/graph/pinned-tree.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { catchUp, type Derivation, isIndexOf, openIndex } from '../../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { type Config, ConfigError } from '../../config/config.js'
import { StartError } from '../../config/errors.js'
import { placeOf, storeFolder } from '../../config/place.js'
import { admissionOptions } from '../admission-options.js'
import { damageOf, lockStore, notOpened, readFolder, requireLog } from './folder.js'

export interface DeriveOptions {
  config: Config
  signal: AbortSignal
  onProgress?: (share: number) => void
}

export interface BuildOptions extends DeriveOptions {
  /** Derives an index of this version again that is there already: the service must not run. */
  again: boolean
}

/**
 * Builds the index of this version from the log, beside a service of another version, which goes on with its own: the next start
 * of this version then has to apply no more than the facts that came since. An interrupted build is continued.
 *
 * @returns Whether there was one to build: none, one that is damaged, or one that was derived from another log or by other rules.
 * @throws GeneralError if there is no log, or another process builds, or has made an index meanwhile; StartError if the service has the
 * one open that is to be replaced; the reason of the signal.
 */
export async function buildIndex({ again, ...options }: BuildOptions): Promise<boolean> {
  const folder = storeFolder(options.config)
  const { index } = storeFiles(folder)
  requireLog(folder)
  const unlockBuild = lockBuild(folder)
  let unlock: (() => void) | undefined
  try {
    if (existsSync(index)) {
      if (!again && (await isIndex(index, folder))) return false
      unlock = await lockStore(folder)
    }
    const part = `${index}.part`
    if (damageOf(part) !== undefined) removeDatabase(part)
    await completeIndex(part, options)
    if (unlock === undefined && existsSync(index))
      throw new GeneralError('FAILED', 'a service of this version was started, and derives its index itself')
    // Also what a service that was killed has left beside it.
    removeDatabase(index)
    renameSync(part, index)
    return true
  } finally {
    unlock?.()
    unlockBuild()
  }
}

/** Keeps other processes from building an index of a log. @throws StartError, which names the process, if one does. */
export function lockBuild(folder: string): () => void {
  const holder = join(folder, 'build-index.pid')
  let unlock: () => void
  try {
    unlock = lockFile(folder, 'build-index.lock')
  } catch (error) {
    if (!(error instanceof FolderInUseError)) throw notOpened(folder, error)
    const pid = existsSync(holder) ? `, with process id ${readFileSync(holder, 'utf8')},` : ''
    throw new StartError(`another minetree build-index or prune${pid} is at work in ${folder}`, {
      cause: error,
    })
  }
  writeFileSync(holder, String(process.pid))
  return () => {
    rmSync(holder, { force: true })
    unlock()
  }
}

/** Derives an index up to the last fact of the log, from where it is; from the first if the file is none of that log. */
export async function completeIndex(file: string, options: DeriveOptions): Promise<void> {
  await readFolder(storeFolder(options.config), async ({ log }) => {
    const indexFile = new Sql(file)
    try {
      indexFile.exec('pragma synchronous = normal')
      await deriveIndex({ log, indexFile }, options)
    } finally {
      indexFile.close()
    }
  })
}

/** @param options.to The place of the last fact; by default, the last of the log. */
export async function deriveIndex(
  files: Derivation,
  { config, signal, onProgress = () => {}, ...options }: DeriveOptions & { to?: number },
): Promise<void> {
  const { rules } = admissionOptions(await treeIn(files.log, config))
  const index = openIndex(files, { rules })
  await catchUp(files, { index, onProgress, isAborted: () => signal.aborted, ...options })
  signal.throwIfAborted()
}

/** Whether a file is an index of the log in a folder, as far as a look at it says. */
export async function isIndex(file: string, folder: string): Promise<boolean> {
  if (damageOf(file) !== undefined) return false
  return await readFolder(folder, async ({ log }) => {
    const indexFile = new Sql(file)
    try {
      return isIndexOf({ log, indexFile })
    } catch (error) {
      if (isDamage(error)) return false
      throw error
    } finally {
      indexFile.close()
    }
  })
}

/**
 * The settings with the tree of a log.
 *
 * @throws ConfigError if the log holds another tree than the settings name, or with other rules.
 */
export async function treeIn(log: LocalLog, config: Config): Promise<Config> {
  const get = async (name: string): Promise<string | undefined> => {
    const value = latestOf(log, register.setting(name))?.value
    return value === undefined ? undefined : String(value)
  }
  const genesis = await get('genesis')
  if (genesis === undefined) return config
  const place = `the store in ${placeOf(config)}`
  const difference = await treeDifference(
    { get },
    { ...config.terms, genesis: config.deployment?.genesis, place },
  )
  if (difference !== undefined) throw new ConfigError(difference)
  return { ...config, deployment: { ...config.terms, genesis: parseOutpoint(genesis) } }
}
