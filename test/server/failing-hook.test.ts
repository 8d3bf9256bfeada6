import { setTimeout as sleep } from 'node:timers/promises'
import type { LookupService, OutputAdmittedByTopic } from '@bsv/overlay'
import type { HookFailure } from '../../backend/src/lookup-services/failed-hooks.js'
import { NamesLookupService } from '../../backend/src/lookup-services/NamesLookupService.js'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'
import { SqlHookNotes } from '../../backend/src/storage/sql/sql-hook-notes.js'
import NamesTopicManager from '../../backend/src/topic-managers/NamesTopicManager.js'
import { readConfig } from '../../src/server/config.js'
import { openSqlite } from '../../src/server/open-database.js'
import { createOverlay } from '../../src/server/overlay.js'
import { engineBeef, OverlayEngine } from '../../src/server/overlay-engine.js'
import { ProofCheck } from '../../src/server/proof-check.js'
import { CurrentSubmission } from '../../src/server/submission.js'
import { beefOf, FakeChain } from '../support/fake-chain.js'
import { SILENT, storedRows, useServers } from '../support/test-server.js'

const servers = useServers()

/** A store that takes no record while it is told so. */
class FullStore extends SqlGraphStore {
  full = false

  override async record(...told: Parameters<SqlGraphStore['record']>): Promise<void> {
    if (this.full) throw new Error('the disk is full')
    await super.record(...told)
  }
}

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
      proofs: new ProofCheck({ headers: undefined, graph, logger: SILENT }),
      limits: readConfig({}).limits,
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

test('what a hook could not record after its submission was written is noted, and recorded later', async () => {
  const chain = new FakeChain()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('spent late') })
  const folder = await servers.folder()
  const database = await openSqlite(folder)
  const graph = new FullStore(database)
  await graph.open()
  const notes = new SqlHookNotes(database.writer)
  const overlay = createOverlay({ config: readConfig({ DATA_DIR: folder }), graph, notes, logger: SILENT })
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
    expect(failures).toMatchObject([{ service: 'ls_ordinals', kept: 'noted', note: { hook: 'spent' } }])
    expect(storedRows(folder).graph_hook_notes).toHaveLength(1)
    graph.full = false
    while (storedRows(folder).graph_hook_notes?.length !== 0) await sleep(50)
    expect(await graph.currentOutput({ txid, vout: 0 })).toBeUndefined()
  } finally {
    await overlay.close()
    await database.close()
  }
})
