import { GeneralError, messageOf } from '../protocol/coded-error.js'

/**
 * Opens what is in a database.
 *
 * @param needed What the user has to be granted.
 * @throws GeneralError `MISSING_GRANT` that names the right, if its user lacks one; else what `open` throws.
 */
export async function orMissingGrant<Opened>(needed: string, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (error) {
    const missing = missingGrant(error)
    if (missing === undefined) throw error
    throw new GeneralError(
      'MISSING_GRANT',
      `the database user may not ${missing}: grant it ${needed} on that database (${messageOf(error)})`,
      { cause: error },
    )
  }
}

const MYSQL_CODES = new Set<unknown>([
  // https://mariadb.com/kb/en/mariadb-error-codes/: 1044, 1142 and 1227.
  ...['ER_DBACCESS_DENIED_ERROR', 'ER_TABLEACCESS_DENIED_ERROR', 'ER_SPECIFIC_ACCESS_DENIED_ERROR'],
])
/** https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml: Unauthorized. */
const MONGO_CODE = 13

/** What a database says that its user may not do; undefined for any other error. */
function missingGrant(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  const text = messageOf(error)
  if (MYSQL_CODES.has(code)) return /([A-Z][A-Z ,]+) command denied/.exec(text)?.[1]?.trim() ?? ANY
  if (code === MONGO_CODE) return /execute command \{ (\w+)/.exec(text)?.[1] ?? ANY
  return undefined
}

const ANY = 'use the database'
