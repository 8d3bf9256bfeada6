import type { AdmissionRecord } from '../../../../backend/src/graph/records.js'
import { SqlGraphStore } from '../../../../backend/src/storage/sql/graph-store.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { openSqlite } from '../../../../src/server/store/open-database.js'
import { createOverlay } from '../../../../src/server/submission/overlay.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { SILENT, storedRows, treeOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()

/** A store that takes no records while it is `full`. */
class FullStore extends SqlGraphStore {
  full = false

  override async record(...args: Parameters<SqlGraphStore['record']>): Promise<AdmissionRecord[]> {
    if (this.full) throw new Error('the disk is full')
    return await super.record(...args)
  }
}

test('what the store could not take is not done, and is taken when it is sent again', async () => {
  const chain = new FakeChain()
  const folder = await servers.folder()
  const database = await openSqlite(folder)
  const graph = new FullStore(database)
  await graph.open()
  const config = readConfig({ DATA_DIR: folder, ...treeOf(chain.deployment) })
  const { engine, close } = createOverlay({ config, graph, logger: SILENT })
  try {
    const submit = async (beef: Uint8Array): Promise<unknown> =>
      await engine.submit({ beef, topics: ['tm_names'] })
    await submit(beefOf(chain.genesis))
    const mint = chain.mint('a')
    const before = storedRows(folder)
    graph.full = true
    await expect(submit(beefOf(mint))).rejects.toThrow('the disk is full')
    expect(storedRows(folder)).toEqual(before)
    graph.full = false
    expect(await submit(beefOf(mint))).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
    expect(await graph.names.originOf('a')).toEqual({ txid: mint.txid, vout: 2 })
  } finally {
    await close()
    await database.close()
  }
})
