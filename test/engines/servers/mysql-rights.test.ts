import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Connection, createConnection } from 'mysql2/promise'
import { copyLog } from '../../../src/server/store/facts/copy-log.js'
import { openSharedLog } from '../../../src/server/store/open-shared-log.js'
import { describeWithMariadb } from '../../support/storage/databases.js'

// What the user of a database may do, and how the server is set.

describeWithMariadb('a log in MariaDB', (mariadb) => {
  let root: Connection
  let name: string
  const user = 'minetree_tester'
  beforeEach(async () => {
    const url = await mariadb.database()
    name = new URL(url).pathname.slice(1)
    root = await createConnection(url)
    await root.query(`create or replace user ${user}`)
  })
  afterEach(async () => {
    await root.query(`drop user ${user}`)
    await root.end()
  })

  async function open(by = user): Promise<Awaited<ReturnType<typeof openSharedLog>>> {
    const url = new URL(mariadb.url(name))
    url.username = by
    return await openSharedLog({ knexUrl: url.href, mongoUrl: undefined })
  }
  const grant = (rights: string): Promise<unknown> => root.query(`grant ${rights} on ${name}.* to ${user}`)

  test('is made by a user who may create tables, and opened by one who may not', async () => {
    await grant('select, insert, update, delete')
    await expect(open()).rejects.toMatchObject({
      code: 'MISSING_GRANT',
      message: expect.stringMatching(
        /^the database user may not CREATE: grant it .+ on that database \(.+\)$/,
      ),
    })
    const made = await open('root')
    const opened = await open()
    expect(opened.id).toBe(made.id)
    for (const log of [made, opened]) await log.close()
  })

  test.each(['SELECT', 'INSERT', 'UPDATE', 'DELETE'])(
    'is not opened by a user who may not %s',
    async (right) => {
      await (await open('root')).close()
      await grant('select, insert, update, delete')
      await root.query(`revoke ${right} on ${name}.* from ${user}`)
      await expect(open()).rejects.toThrow(new RegExp(`^the database user may not [A-Z, ]*${right}`))
    },
  )

  test('is copied by a user who may only read it', async () => {
    await (await open('root')).close()
    await grant('select')
    const from = new URL(mariadb.url(name))
    from.username = user
    const to = mkdtempSync(join(tmpdir(), 'minetree-copy-'))
    const copy = () =>
      copyLog({ from: from.href, to, signal: new AbortController().signal, onProgress: () => {} })
    expect(await copy()).toMatchObject({ facts: 1 })
    // As one whose command was ended in its last moment.
    await expect(copy()).rejects.toThrow('holds a complete copy of that log already')
  })

  test('says where what is committed may be lost', async () => {
    const [rows] = await root.query('select @@innodb_flush_log_at_trx_commit as value')
    const before = (rows as { value: number }[])[0]?.value
    for (const [value, warning] of [
      [1, undefined],
      [2, expect.stringContaining('innodb_flush_log_at_trx_commit of the database is 2: set it to 1')],
    ] as const) {
      await root.query(`set global innodb_flush_log_at_trx_commit = ${value}`)
      const log = await open('root')
      expect(log.warning).toEqual(warning)
      await log.close()
    }
    await root.query(`set global innodb_flush_log_at_trx_commit = ${before}`)
  })
})
