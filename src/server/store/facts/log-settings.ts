import { existsSync } from 'node:fs'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT } from '../../../../backend/src/facts/log.js'
import {
  isRegisteredSetting,
  nextOf,
  readRegisterFact,
  register,
} from '../../../../backend/src/facts/registers.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { BackupError } from '../backup/backup-tables.js'
import { lockFolder } from '../open-database.js'
import { raiseScores } from './copy-log.js'
import { readLog, removeIndex } from './folder.js'

/** What an index is derived by, as the log keeps it, and which is set. @throws BackupError if there is no log. */
export async function readSettings(folder: string): Promise<Map<string, string>> {
  const reading = readLog(folder, async (_log, sql) => {
    const [from, to] = ['', '\x7f'].map((end) => utf8(register.setting(end))) as [Uint8Array, Uint8Array]
    const rows = sql.all(
      'select key, body from log where kind = ? and key between ? and ? order by key',
      ...[FACT.register, from, to],
    )
    // The last of each is the one that counts.
    return new Map(
      rows.map(({ key, body }) => {
        const { subject, value } = readRegisterFact({ key, body })
        return [subject.slice(register.setting('').length), String(value)]
      }),
    )
  })
  if (reading === undefined) throw new BackupError(`there is no log of facts in ${folder}`)
  return await reading
}

/**
 * Replaces a setting in a log, or raises its scores after it was restored by other means than `minetree copy`. The index is removed:
 * the next start derives it again.
 *
 * @throws BackupError if there is no log, or no such setting; Error if a service has the store open.
 */
export async function writeSetting(
  folder: string,
  change: { name: string; value: string } | 'restored',
): Promise<void> {
  const { log: filename } = storeFiles(folder)
  if (!existsSync(filename)) throw new BackupError(`there is no log of facts in ${folder}`)
  if (change !== 'restored' && !isRegisteredSetting(change.name))
    throw new BackupError(`a log has no setting ${change.name}: see minetree setting`)
  const unlock = await lockFolder(folder, 'facts')
  const sql = new Sql(filename)
  try {
    sql.exec('pragma synchronous = full; begin immediate;')
    const log = new LocalLog(sql)
    if (change === 'restored') raiseScores(log)
    else {
      const fact = nextOf(log, register.setting(change.name), change.value)
      if (fact !== undefined) log.insert(fact)
    }
    sql.exec('commit')
    await removeIndex(folder)
  } finally {
    sql.close()
    unlock()
  }
}
