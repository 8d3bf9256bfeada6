import { readFile } from 'node:fs/promises'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'
import { pino } from 'pino'
import { readConfig } from '../../../src/server/config/config.js'
import { openNode } from '../../../src/server/node.js'
import { type Deed, does } from '../graph/deeds.js'

/**
 * A node that does what a file says and kills itself, by SIGKILL, right before the n-th statement that writes. Before a
 * statement that only reads, the file is as it is before the next one that writes. How many there are comes out where it
 * lives to its end. Arguments: the file, n.
 */
const [file = '', at = ''] = process.argv.slice(2)

let statements = 0
const client = BetterSqlite3Client.prototype as unknown as {
  _query(connection: unknown, query: { sql: string }): unknown
}
const query = client._query
client._query = function (connection, statement) {
  const writes = !/^\s*(select|pragma)\b/i.test(statement.sql)
  if (writes && ++statements === Number(at)) {
    process.kill(process.pid, 'SIGKILL')
    for (;;) {
      // Nothing after this is to happen, however late the signal comes.
    }
  }
  return query.call(this, connection, statement)
}

const { env, deeds } = JSON.parse(await readFile(file, 'utf8')) as {
  env: Record<string, string>
  deeds: Deed[]
}
const node = await openNode({
  config: readConfig({ ...process.env, ...env }),
  logger: pino({ level: 'silent' }),
})
for (const deed of deeds) await does(node, deed)
await node.close()
process.stdout.write(String(statements))
