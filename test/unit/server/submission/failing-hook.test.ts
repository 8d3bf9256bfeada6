import type { AdmissionRecord } from '../../../../backend/src/graph/records.js'
import type { HookFailure } from '../../../../backend/src/lookup-services/hook-retries.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { SqlGraphStore } from '../../../../backend/src/storage/sql/graph-store.js'
import { sqlDatabase } from '../../../../backend/src/storage/sql/rows.js'
import { StoredHookOutbox } from '../../../../backend/src/storage/write/hook-outbox.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { openSqlite } from '../../../../src/server/store/open-database.js'
import { createOverlay } from '../../../../src/server/submission/overlay.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { SILENT, storedRows, treeOf, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

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
  const outbox = new StoredHookOutbox(sqlDatabase(database))
  const config = readConfig({ DATA_DIR: folder, ...treeOf(chain.deployment) })
  const { engine, close } = createOverlay({ config, graph, outbox, logger: SILENT })
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

test('what a hook could not record after its submission was written is kept in the outbox, and recorded later', async () => {
  const chain = new FakeChain()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('spent late') })
  const folder = await servers.folder()
  const database = await openSqlite(folder)
  const graph = new FullStore(database)
  await graph.open()
  const outbox = new StoredHookOutbox(sqlDatabase(database))
  const overlay = createOverlay({
    config: readConfig({ DATA_DIR: folder }),
    graph,
    outbox,
    logger: SILENT,
  })
  const failures: HookFailure[] = []
  overlay.onEvent((event) => {
    if (event.kind === 'hook failed') failures.push(event.failure)
  })
  try {
    await overlay.engine.submitTrusted(note.raw, ['tm_ordinals'])
    const { ls_ordinals } = overlay.engine.lookupServices
    graph.full = true
    const [topic, txid, spendingTxid] = ['tm_ordinals', note.txid, 'ab'.repeat(32)]
    await ls_ordinals?.outputSpent?.({ mode: 'txid', topic, txid, outputIndex: 0, spendingTxid })
    expect(failures).toMatchObject([{ service: 'ls_ordinals', kept: 'outbox', failed: { hook: 'spent' } }])
    expect(storedRows(folder).graph_hook_notes).toHaveLength(1)
    graph.full = false
    await until(() => storedRows(folder).graph_hook_notes?.length === 0)
    expect(await graph.ordinals.currentOutput({ txid, vout: 0 })).toBeUndefined()
  } finally {
    await overlay.close()
    await database.close()
  }
})
