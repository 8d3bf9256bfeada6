import type { LookupService, OutputAdmittedByTopic } from '@bsv/overlay'
import { NamesLookupService } from '../../backend/src/lookup-services/NamesLookupService.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'
import NamesTopicManager from '../../backend/src/topic-managers/NamesTopicManager.js'
import { openSqlite } from '../../src/server/open-database.js'
import { engineBeef, OverlayEngine } from '../../src/server/overlay-engine.js'
import { CurrentSubmission } from '../../src/server/submission.js'
import { beefOf, FakeChain } from '../support/fake-chain.js'
import { SILENT, storedRows, useServers } from '../support/test-server.js'

const servers = useServers()

/** A lookup service that fails when it is told to, as one whose disk is full. */
class FullService extends NamesLookupService {
  full = false

  override async outputAdmittedByTopic(payload: OutputAdmittedByTopic): Promise<void> {
    if (this.full) throw new Error('the disk is full')
    await super.outputAdmittedByTopic(payload)
  }
}

test('what a lookup service could not index is not done, and is taken when it is sent again', async () => {
  const chain = new FakeChain()
  const { deployment } = chain
  const folder = await servers.folder()
  const database = await openSqlite(folder)
  try {
    const graph = new SqlGraphStore(database)
    await graph.open()
    const submission = new CurrentSubmission(graph)
    const service = new FullService({
      reader: graph,
      writer: submission,
      deployment,
      submissions: submission,
    })
    const lookupServices: Record<string, LookupService> = { ls_names: service }
    const engine = new OverlayEngine({
      managers: { tm_names: new NamesTopicManager({ deployment, store: graph }) },
      lookupServices,
      graph,
      submission,
      chainTracker: 'scripts only',
      logger: SILENT,
    })
    const submit = async (beef: Uint8Array): Promise<unknown> =>
      await engine.submit({ beef: engineBeef(beef), topics: ['tm_names'] })
    await submit(beefOf(chain.genesis))
    const mint = chain.mint('a')
    const before = storedRows(folder)

    service.full = true
    await expect(submit(beefOf(mint))).rejects.toThrow('the disk is full')
    expect(storedRows(folder)).toEqual(before)

    service.full = false
    expect(await submit(beefOf(mint))).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
    expect(await graph.nameOrigin('a')).toEqual({ txid: mint.txid, vout: 2 })
    expect(await engine.lookup({ service: 'ls_names', query: { origin: 'a' } })).toMatchObject({
      type: 'output-list',
      outputs: [{ outputIndex: 2 }],
    })
  } finally {
    await database.close()
  }
})
