import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../backend/src/facts/local-log.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { readConfig } from '../../../src/server/config/config.js'
import type { FactDamage } from '../../../src/server/store/facts/check-facts.js'
import { checkFacts } from '../../../src/server/store/facts/check-facts.js'

/** What the commands on a store of facts take, for one whose service was started with these settings. */
export function commandOptions(env: Record<string, string>) {
  const signal = new AbortController().signal
  return { config: readConfig(env), signal, onProgress: () => {} }
}

/** What is wrong with a store: every fact is verified, and the index compared with one that is derived again. */
export async function checkedFacts(env: Record<string, string>) {
  const damaged: FactDamage[] = []
  const checked = await checkFacts({ ...commandOptions(env), onDamage: (damage) => damaged.push(damage) })
  return { ...checked, damaged }
}

/** Does something to a log that no process has open. */
export function inLog<Result>(dataDir: string, work: (sql: Sql, log: LocalLog) => Result): Result {
  const sql = new Sql(storeFiles(dataDir).log)
  try {
    return work(sql, new LocalLog(sql))
  } finally {
    sql.close()
  }
}

/** The files of a store in which some bytes stand. */
export function filesWith(dataDir: string, bytes: Uint8Array): string[] {
  const names = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dataDir, join(entry.parentPath, entry.name)))
  return names.filter((name) => readFileSync(join(dataDir, name)).includes(Buffer.from(bytes)))
}
