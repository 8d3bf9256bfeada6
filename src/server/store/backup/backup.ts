import { StoreUnavailableError } from '../../../../backend/src/graph/errors.js'
import { SCORES } from '../../../../backend/src/storage/read/admissions.js'
import type { Config } from '../../config/config.js'
import { reasonOf, StartError } from '../../config/errors.js'
import { placeOf } from '../../config/place.js'
import { type CheckOptions, checkStore } from '../check.js'
import {
  type BackupHeader,
  BackupReader,
  type BackupSummary,
  bytesOfRow,
  checkBackup,
  type ReadHeader,
  writeBackup,
} from './backup-file.js'
import { BackupError, type BackupRow, type LoadedTables, type SavedTables } from './backup-tables.js'

export interface BackupOptions {
  config: Config
  file: string
  signal: AbortSignal
}

/**
 * Writes a consistent snapshot of a store to a file, while servers read and write it. `docs/operating.md` says who waits
 * meanwhile on each engine.
 *
 * @throws BackupError if there is no store, or the file cannot be written; StartError if the store cannot be reached; the
 * reason of the signal.
 */
export async function backUp(
  options: BackupOptions & { onProgress: (done: { rows: number; share?: number }) => void },
): Promise<BackupSummary> {
  const { config, file, signal, onProgress } = options
  return await reaching({ config, signal }, () =>
    save(config, async (tables) => {
      const genesis = await tables.setting('genesis')
      const header: BackupHeader = {
        engine: config.mongoUrl === undefined ? 'mysql' : 'mongodb',
        profile: config.profile.name,
        schema: tables.schema,
        ...(genesis !== undefined && { genesis }),
      }
      const expectedBytes = await tables.size()
      return await writeBackup({ file, header, rows: tables.rows(), expectedBytes, onProgress, signal })
    }),
  )
}

/**
 * Verifies all bytes of a store, while servers read it: {@link checkStore} on a snapshot.
 *
 * @throws as {@link backUp}.
 */
export async function check({
  config,
  ...options
}: { config: Config } & CheckOptions): ReturnType<typeof checkStore> {
  return await reaching({ config, signal: options.signal }, () =>
    save(config, (tables) => checkStore(tables, options)),
  )
}

/** Rows that are loaded at once: many small ones, or few large ones. */
const BATCH_ROWS = 500
const BATCH_BYTES = 4 * 1024 ** 2

/**
 * Loads a backup into the empty store in the settings. The whole file is checked first: nothing is loaded of one that is
 * truncated or was changed.
 *
 * @throws as {@link backUp}, and BackupError if there is a store already.
 */
export async function restore(
  options: BackupOptions & { onProgress: (step: 'checking' | 'loading', share: number) => void },
): Promise<BackupSummary & { header: ReadHeader }> {
  const { config, file, signal, onProgress } = options
  const checked = await checkBackup(file, (share) => {
    signal.throwIfAborted()
    onProgress('checking', share)
  })
  const { header } = checked
  if (header.profile !== config.profile.name)
    throw new BackupError(`the backup is of PROFILE=${header.profile}, but PROFILE is ${config.profile.name}`)
  await reaching({ config, signal }, () =>
    load(config, header.schema, async (tables) => {
      const reader = new BackupReader(file, (share) => onProgress('loading', share))
      for await (const { table, rows } of batches(reader.rows())) {
        signal.throwIfAborted()
        await tables.load(table, table === 'graph_settings' ? rows.map(withNewScores) : rows)
      }
      if (reader.summary().sha256 !== checked.sha256)
        throw new BackupError(`${file} changed while it was read`)
    }),
  )
  return checked
}

/**
 * The store goes on with scores that peers have not passed: they may have followed it after the backup was made. By now more
 * milliseconds have gone by than scores were given since (`docs/sync.md`).
 */
function withNewScores(row: BackupRow): BackupRow {
  if (row.name !== SCORES.name) return row
  return { ...row, value: String(Math.max(Number(row.value), Date.now())) }
}

async function* batches(
  rows: AsyncIterable<{ table: string; row: BackupRow }>,
): AsyncGenerator<{ table: string; rows: BackupRow[] }, void> {
  let batch = { table: '', rows: [] as BackupRow[], bytes: 0 }
  for await (const { table, row } of rows) {
    const isFull = batch.rows.length >= BATCH_ROWS || batch.bytes > BATCH_BYTES
    if (batch.table !== table || isFull) {
      if (batch.rows.length > 0) yield batch
      batch = { table, rows: [], bytes: 0 }
    }
    batch.rows.push(row)
    batch.bytes += bytesOfRow(row)
  }
  if (batch.rows.length > 0) yield batch
}

async function save<Result>(
  { knexUrl, mongoUrl }: Config,
  work: (tables: SavedTables) => Promise<Result>,
): Promise<Result> {
  if (mongoUrl !== undefined) {
    const { saveMongo } = await import('./mongo-tables.js')
    return await saveMongo(mongoUrl, work)
  }
  const { saveMysql } = await import('./sql-tables.js')
  return await saveMysql(urlOf(knexUrl), work)
}

async function load(
  { knexUrl, mongoUrl }: Config,
  schema: readonly string[],
  work: (tables: LoadedTables) => Promise<void>,
): Promise<void> {
  if (mongoUrl !== undefined) {
    const { loadMongo } = await import('./mongo-tables.js')
    return await loadMongo(mongoUrl, schema, work)
  }
  const { loadSql } = await import('./sql-tables.js')
  await loadSql(urlOf(knexUrl), schema, work)
}

function urlOf(knexUrl: string | undefined): string {
  if (knexUrl === undefined) throw new BackupError('there is no database in the settings')
  return knexUrl
}

/** Turns errors of the drivers into one that names the store without credentials. */
async function reaching<Result>(
  { config, signal }: Pick<BackupOptions, 'config' | 'signal'>,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof BackupError)
      throw new BackupError(`${placeOf(config)}: ${error.message}`, { cause: error })
    if (signal.aborted) throw error
    // Of a driver, which was given values that the tables do not take.
    if (error instanceof TypeError || error instanceof RangeError)
      throw new BackupError(`${placeOf(config)}: the backup does not fit its tables: ${error.message}`, {
        cause: error,
      })
    const reason = reasonOf(error instanceof StoreUnavailableError ? error.cause : error)
    throw new StartError(`cannot use the store in ${placeOf(config)}: ${reason}`, { cause: error })
  }
}
