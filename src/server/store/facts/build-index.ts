import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { FolderInUseError, lockFile, removeDatabase } from '../../../../backend/src/facts/folder.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { latestOf, register } from '../../../../backend/src/facts/registers.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { catchUp, type Derivation, isIndexOf, openIndex } from '../../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import type { Config } from '../../config/config.js'
import { StartError } from '../../config/errors.js'
import { storeFolder } from '../../config/place.js'
import { admissionOptions } from '../admission-options.js'
import { withTree } from '../pinned-genesis.js'
import { damageOf, lockStore, notOpened, readFolder, requireLog } from './folder.js'

export interface DeriveOptions {
  config: Config
  signal: AbortSignal
  onProgress?: (share: number) => void
}

export interface BuildOptions extends DeriveOptions {
  /** Derives this version's index again even if there is one: the service must not run. */
  again: boolean
}

/**
 * Builds the index of this version from the log. A service of another version may run meanwhile, with its own index. The next start
 * of this version then applies only the facts that came since. An interrupted build is continued.
 *
 * @returns Whether an index had to be built: there was none, or it was damaged, or derived from another log or by other rules.
 * @throws GeneralError if there is no log, or another process builds, or has made an index meanwhile; StartError if a service uses
 * the index that is to be replaced; the reason of the signal.
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
    // Including what a killed service left beside it.
    removeDatabase(index)
    renameSync(part, index)
    return true
  } finally {
    unlock?.()
    unlockBuild()
  }
}

/** Keeps other processes from building an index of a log. @throws StartError that names a process that is building. */
export function lockBuild(folder: string): () => void {
  const holder = join(folder, 'build-index.pid')
  let unlock: () => void
  try {
    unlock = lockFile(folder, 'build-index.lock')
  } catch (error) {
    if (!(error instanceof FolderInUseError)) throw notOpened(folder, error)
    const pid = existsSync(holder) ? `, with process id ${readFileSync(holder, 'utf8')},` : ''
    throw new StartError(`another minetree build-index or prune${pid} is running in ${folder}`, {
      cause: error,
    })
  }
  writeFileSync(holder, String(process.pid))
  return () => {
    rmSync(holder, { force: true })
    unlock()
  }
}

/** Completes an index up to the last fact of the log; starts at the first fact if it belongs to another log. */
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

/** @param options.to The place of the last fact to apply; by default, the last of the log. */
export async function deriveIndex(
  files: Derivation,
  { config, signal, onProgress = () => {}, ...options }: DeriveOptions & { to?: number },
): Promise<void> {
  const { rules } = admissionOptions(await treeIn(files.log, config))
  const index = openIndex(files, { rules })
  await catchUp(files, { index, onProgress, isAborted: () => signal.aborted, ...options })
  signal.throwIfAborted()
}

/** Whether a file seems to be an index of the log in a folder. */
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

/** Adds the tree of a log to the settings. @throws as {@link withTree}. */
export async function treeIn(log: LocalLog, config: Config): Promise<Config> {
  const get = async (name: string): Promise<string | undefined> => {
    const value = latestOf(log, register.setting(name))?.value
    return value === undefined ? undefined : String(value)
  }
  if ((await get('genesis')) === undefined) return { ...config, deployment: undefined }
  return await withTree({ get }, config)
}
