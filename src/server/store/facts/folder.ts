import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'

/**
 * Reads a log while its service runs: all reads see one snapshot, and block no writer.
 *
 * @returns Undefined if there is no log in the folder.
 */
export function readLog<Result>(
  folder: string,
  read: (log: LocalLog, sql: Sql) => Promise<Result>,
): Promise<Result> | undefined {
  const { log: filename } = storeFiles(folder)
  if (!existsSync(filename)) return undefined
  const sql = new Sql(filename)
  const reading = async (): Promise<Result> => {
    try {
      sql.exec('pragma query_only = on; pragma busy_timeout = 5000; begin;')
      return await read(new LocalLog(sql), sql)
    } finally {
      sql.close()
    }
  }
  return reading()
}

/** Removes the index of a store that no process has open: the next start derives it again. */
export async function removeIndex(folder: string): Promise<void> {
  const { index } = storeFiles(folder)
  for (const end of ['', '-wal', '-shm']) await rm(index + end, { force: true })
}
