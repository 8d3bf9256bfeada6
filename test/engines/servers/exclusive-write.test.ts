import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { knexWriter, type SqlWriter } from '../../../backend/src/storage/sql/database.js'
import { exclusiveWrite } from '../../../backend/src/storage/sql/exclusive-write.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import type { Database } from '../../../src/server/store/open-mysql.js'
import { openMysql } from '../../../src/server/store/open-mysql.js'
import { describeWithMariadb } from '../../support/storage/databases.js'
import { onEachSqlEngine } from '../../support/storage/stores.js'

const outpoint = { txid: 'ab'.repeat(32), vout: 0 }
const name = graphRecords({ names: [{ outpoint, name: 'a' }] })

describeWithMariadb('a write on MariaDB', (mariadb) => {
  const databases: Database[] = []
  afterAll(async () => {
    for (const database of databases) await database.close()
  })

  /** A store, of whose writes the first so many are undone, as in a deadlock. */
  async function undoing(times: number) {
    const database = openMysql(await mariadb.database())
    databases.push(database)
    const store = new SqlGraphStore(database)
    await store.open()
    // This engine undoes nothing, so that it counts what is undone.
    await database.writer.raw('create table tries (at int) engine = Aria transactional = 0')
    await database.writer.raw(
      `create trigger undone before insert on graph_names for each row begin
         insert into tries values (1);
         if (select count(*) from tries) <= ${times} then
           signal sqlstate '40001' set mysql_errno = 1213, message_text = 'Deadlock found';
         end if;
       end`,
    )
    const tries = async () =>
      Number((await database.reader.first('select count(*) as count from tries', [])).count)
    return { store, tries }
  }

  test('that a deadlock undoes is tried again', async () => {
    const { store, tries } = await undoing(2)
    await store.record(name)
    expect(await store.names.originOf('a')).toEqual(outpoint)
    expect(await tries()).toBe(3)
  })

  test('that is undone again and again is given up, with a word that it may be sent again', async () => {
    const { store, tries } = await undoing(1000)
    await expect(store.record(name)).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await store.names.originOf('a')).toBeUndefined()
    expect(await tries()).toBe(6)
  })
})

onEachSqlEngine(({ openStore, closeStores }) => {
  afterAll(closeStores)

  test('what goes on after its write has failed writes nothing, not even with the next one', async () => {
    const { database, rows } = await openStore()
    const before = await rows()
    let late: SqlWriter | undefined
    const failing = exclusiveWrite(database.writer, async (trx) => {
      late = knexWriter(trx)
      throw new Error('a conflicting transaction has won')
    })
    await expect(failing).rejects.toThrow('a conflicting transaction has won')
    const insert = () => late?.run("insert into graph_settings (name, value) values ('late', 'yes')", [])
    await expect(insert()).rejects.toThrow()
    await exclusiveWrite(database.writer, async () => await expect(insert()).rejects.toThrow())
    expect(await rows()).toEqual(before)
  })
})
