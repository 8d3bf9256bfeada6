import pRetry from 'p-retry'
import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { openMysql } from '../../../src/server/store/open-mysql.js'
import { mariadbUrl } from '../../support/services/mariadb.js'
import { describeWithMariadb } from '../../support/storage/databases.js'
import { startTcpProxy } from '../../support/storage/tcp-proxy.js'

const TXID = 'a'.repeat(64)
const NAME = { name: 'a', outpoint: { txid: TXID, vout: 0 } }
const records = graphRecords({ outputs: [{ outpoint: NAME.outpoint, satoshis: 1 }], names: [NAME] })

describeWithMariadb('a MariaDB that accepts everything and answers nothing', (mariadb) => {
  test('is reported to readers and writers in time, and answers as before once it does', async () => {
    const url = await mariadb.database()
    const proxy = await startTcpProxy(mariadb.port())
    const database = new URL(url).pathname.slice(1)
    const { writer, reader, close } = openMysql(mariadbUrl(proxy.port, database), {
      reads: 200,
      writes: 400,
    })
    const store = new SqlGraphStore({ writer, reader })
    try {
      // On a busy machine, the first connection may take longer.
      await pRetry(() => store.open(), { retries: 50, minTimeout: 50, maxTimeout: 500 })
      await pRetry(() => store.record(records), { retries: 10 })
      proxy.stall({ newOnes: true })
      const reads = Array.from({ length: 40 }, () => store.names.originOf('a'))
      for (const read of reads) await expect(read).rejects.toThrow(StoreUnavailableError)
      await expect(store.ping()).rejects.toThrow(StoreUnavailableError)
      await expect(store.record(records)).rejects.toThrow(StoreUnavailableError)
      proxy.mend()
      await pRetry(() => store.record(records), { retries: 50, minTimeout: 50, maxTimeout: 500 })
      const origin = await pRetry(() => store.names.originOf('a'), { retries: 50, minTimeout: 50 })
      expect(origin).toEqual(NAME.outpoint)
    } finally {
      await close()
      await proxy.stop()
    }
  })
})
