import { FACT } from '../../../../backend/src/facts/log.js'
import { nextOf, readRegisterFact, register } from '../../../../backend/src/facts/registers.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { BackupError } from '../backup/backup-tables.js'
import { raiseScores } from './copy-log.js'
import { changeLog, readLog } from './folder.js'

/** What can be set by hand: what its values look like. */
const CHANGEABLE = new Map<string, [pattern: RegExp, says: string]>([
  ['genesis', [/^[0-9a-f]{64}_\d{1,10}$/, 'an outpoint, as <txid>_<index>']],
  ['DIFFICULTY', [/^\d{1,2}$/, 'a number of leading zero bits']],
  ['NAME_MARKER', [/^.{1,255}$/su, 'up to 255 characters']],
  ['NAME_TLD', [/^.{0,255}$/su, 'up to 255 characters']],
  ['PROFILE', [/^\S{1,255}$/u, 'the content type of names']],
  ['tracker', [/^(headers|tracker|scripts-only)$/, 'headers, tracker or scripts-only']],
])

/** @throws BackupError for what no start would take. */
function assertChangeable({ name, value }: { name: string; value: string }): void {
  const known = CHANGEABLE.get(name)
  if (known === undefined)
    throw new BackupError(`${name} cannot be set: these can be: ${[...CHANGEABLE.keys()].join(', ')}`)
  const [pattern, says] = known
  if (!pattern.test(value)) throw new BackupError(`${name} must be ${says}, not ${JSON.stringify(value)}`)
}

/** What an index is derived by, as the log keeps it, and which is set. @throws BackupError if there is no log. */
export async function readSettings(folder: string): Promise<Map<string, string>> {
  return await readLog(folder, async (_log, sql) => {
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
}

/**
 * Replaces a setting in a log: the next start derives the index again. Or raises its scores after it was restored by other means than
 * `minetree copy`.
 *
 * @throws BackupError if there is no such setting; what {@link changeLog} throws.
 */
export async function writeSetting(
  folder: string,
  change: { name: string; value: string } | 'restored',
): Promise<void> {
  if (change !== 'restored') assertChangeable(change)
  await changeLog(folder, (log) => {
    if (change === 'restored') return raiseScores(log)
    const fact = nextOf(log, register.setting(change.name), change.value)
    if (fact !== undefined) log.insert(fact)
  })
}
