import { graphRecords } from '../../../backend/src/graph/records.js'
import { IndexMaintenance } from '../../../src/server/store/index-maintenance.js'
import { does, everyDeed } from '../../support/graph/deeds.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { SILENT, treeOf, useServers } from '../../support/server/test-server.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { doAgain, type RecordedWrite, recordWrites } from '../../support/storage/recorded-writes.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

// A store with rows of every kind is damaged, or emptied, and made what it was.

const servers = useServers()
const chain = new FakeChain()
let writes: RecordedWrite[]

beforeAll(async () => {
  const { node } = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
  writes = recordWrites(node.graph, node.overlay.admission)
  for (const deed of everyDeed(chain)) await does(node, deed)
})

function maintenanceOf({ store: graph, maintenance: store }: OpenedStore): IndexMaintenance {
  return new IndexMaintenance({ store, graph, runLocked: (work) => work(), logger: SILENT })
}

/** The rows, except for how often a branch was reorganised: a rebuild repeats the reorganisations. */
async function rowsOf(opened: OpenedStore): Promise<Record<string, string[]>> {
  const { graph_settings = [], ...rows } = await opened.rows()
  return { ...rows, graph_settings: graph_settings.filter((row) => !row.includes('"turns"')) }
}

onEachTableEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  async function filled(): Promise<{ opened: OpenedStore; rows: Record<string, string[]> }> {
    const opened = await openStore()
    for (const write of writes) await doAgain(write, opened.store)
    return { opened, rows: await rowsOf(opened) }
  }

  async function expectEqual(maintenance: IndexMaintenance): Promise<void> {
    await maintenance.run()
    expect(maintenance.status).toEqual({ state: 'equal', done: 1 })
  }

  test('an index that is whole is left as it is', async () => {
    const { opened, rows } = await filled()
    expect(await opened.maintenance.compare(undefined)).toEqual({
      upTo: undefined,
      missing: [],
      extra: 0,
      lost: [],
    })
    await expectEqual(maintenanceOf(opened))
    expect(await rowsOf(opened)).toEqual(rows)
  })

  test('an output missing from it is recorded again', async () => {
    const { opened, rows } = await filled()
    const [outpoint] = (await opened.store.admissions.unspentOfTopic({ topic: 'tm_ordinals', since: 0 })).map(
      (admission) => admission.outpoint,
    )
    if (outpoint === undefined) throw new Error('nothing was admitted')
    await opened.removeOutput(outpoint)
    expect((await opened.maintenance.compare(undefined)).missing).toEqual([
      { topic: 'tm_ordinals', outpoint },
    ])
    await expectEqual(maintenanceOf(opened))
    expect((await rowsOf(opened)).graph_outputs).toEqual(rows.graph_outputs)
  })

  test('an extra row causes a rebuild', async () => {
    const { opened, rows } = await filled()
    const names = [{ name: 'zzz', outpoint: { txid: '0'.repeat(64), vout: 7 } }]
    await opened.store.record(graphRecords({ names }))
    expect(await rowsOf(opened)).not.toEqual(rows)
    expect((await opened.maintenance.compare(undefined)).extra).toBe(1)
    await expectEqual(maintenanceOf(opened))
    expect(await rowsOf(opened)).toEqual(rows)
  })

  test('a transaction whose bytes are gone is forgotten', async () => {
    const { opened } = await filled()
    const txid = (await opened.store.names.originOf('a'))?.txid ?? ''
    await opened.removeBytes(txid)
    expect((await opened.maintenance.compare(undefined)).lost).toEqual([txid])
    await expectEqual(maintenanceOf(opened))
    expect(await opened.store.names.originOf('a')).toBeUndefined()
    expect(await opened.store.admissions.ofTransaction(txid)).toEqual([])
    expect(await opened.store.admissions.isApplied('tm_names', txid)).toBe(false)
  })

  test('a rebuild that was ended when it had emptied it is gone on with', async () => {
    const { opened, rows } = await filled()
    const { maintenance } = opened
    expect(await maintenance.rebuild()).toBeUndefined()
    await maintenance.setRebuildCheckpoint({ state: 'needed' })
    expect(await maintenance.rebuild()).toEqual({ state: 'needed' })
    await maintenance.empty()
    expect(await opened.store.names.originOf('a')).toBeUndefined()
    const places: string[] = []
    for await (const { place } of maintenance.transactionLog('')) places.push(place)
    expect(await maintenance.transactionsLeft('')).toBe(places.length)
    expect(await maintenance.transactionsLeft(places[2] ?? '')).toBe(places.length - 3)
    await expectEqual(maintenanceOf(opened))
    expect(await maintenance.rebuild()).toBeUndefined()
    expect(await rowsOf(opened)).toEqual(rows)
  })

  test('failed hooks keep their BEEF when the index is emptied', async () => {
    const { opened } = await filled()
    const outpoint = { txid: 'ab'.repeat(32), vout: 0 }
    const beef = Uint8Array.of(1, 2, 3)
    const hook = { service: 'ls_names', hook: 'admitted', topic: 'tm_names', outpoint, beef } as const
    await opened.notes.keep(hook)
    await maintenanceOf(opened).rebuild()
    const kept: unknown[] = []
    for await (const each of opened.notes.kept('ls_names')) kept.push(each)
    expect(kept).toMatchObject([{ outpoint }])
  })
})
