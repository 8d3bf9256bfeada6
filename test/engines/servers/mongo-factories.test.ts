import { Engine, type LookupService } from '@bsv/overlay'
import type { Db } from 'mongodb'
import type { HookFailure } from '../../../backend/src/lookup-services/hook-retries.js'
import createNamesLookupService from '../../../backend/src/lookup-services/NamesLookupServiceFactory.js'
import createNamesLookupServiceOnMongo from '../../../backend/src/lookup-services/NamesLookupServiceMongoFactory.js'
import createOrdinalsLookupService from '../../../backend/src/lookup-services/OrdinalsLookupServiceFactory.js'
import createOrdinalsLookupServiceOnMongo from '../../../backend/src/lookup-services/OrdinalsLookupServiceMongoFactory.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { storesOf } from '../../../src/plugin/index.js'
import { beefOf, FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { eventually } from '../../support/server/waiting.js'
import { describeWithMongo } from '../../support/storage/databases.js'
import { MemoryStorage } from '../../support/storage/memory-storage.js'
import { asText, rawDocuments, watchedDb } from '../../support/storage/mongo-documents.js'
import { closeStores, openStore } from '../../support/storage/stores.js'

// As a plugin: the engine and its storage are a host's, which gives the factories its database and opens nothing.

const chain = new FakeChain()
const { deployment } = chain
const note = chain.inscribe({ contentType: 'text/plain', body: utf8('moves') })
const output = { satoshis: 1, lockingScript: p2pkh(7) }
const moved = chain.spend({ inputs: [{ transaction: note, vout: 0 }], outputs: [output] })
const mints = chain.mintAll('ab')
const beefs = [
  beefOf(chain.genesis),
  ...mints.map((mint) => beefOf(mint)),
  beefOf(note),
  beefOf(moved, { with: [note] }),
]

const closing: LookupService[] = []

/** Submits everything to an engine as a host runs it. */
async function submitTo(services: { names: LookupService; ordinals: LookupService }): Promise<void> {
  closing.push(services.names, services.ordinals)
  const engine = new Engine(
    { tm_names: new NamesTopicManager({ deployment }), tm_ordinals: new OrdinalsTopicManager() },
    { ls_names: services.names, ls_ordinals: services.ordinals },
    new MemoryStorage(),
    'scripts only',
  )
  engine.logger = Object.assign(Object.create(console), { error: () => {}, warn: () => {} })
  for (const beef of beefs)
    await engine.submit({ beef: Array.from(beef), topics: ['tm_names', 'tm_ordinals'] })
}

describeWithMongo('the factories on MongoDB', (mongo) => {
  let expected: Record<string, string[]>

  beforeAll(async () => {
    const { database } = await openStore()
    await submitTo({
      names: createNamesLookupService(database.writer, { deployment }).service,
      ordinals: createOrdinalsLookupService(database.writer).service,
    })
    await eventually(async () => {
      const rows: Record<string, object[]> = {}
      for (const name of COMPARED) rows[name] = await database.reader.all(`select * from ${name}`, [])
      // The engine does not wait for the notice of a spend.
      expect(rows.graph_spends).toHaveLength(SPENDS)
      expected = asText(rows, ['arrival'])
    })
  })
  afterAll(async () => {
    for (const service of closing as (LookupService & { close(): Promise<void> })[]) await service.close()
    await closeStores()
  })

  const COMPARED = [
    'graph_outputs',
    'graph_nodes',
    'graph_names',
    'graph_spends',
    'graph_traits',
    'graph_pieces',
  ]
  const SPENDS = 7

  async function held(db: Db): Promise<Record<string, string[]>> {
    const documents = asText(await rawDocuments(db), ['arrival'])
    return Object.fromEntries(COMPARED.map((name) => [name, documents[name] ?? []]))
  }

  test('fill a database that nobody has opened, and the gateway reads it', async () => {
    const db = mongo.db()
    await submitTo({
      names: createNamesLookupServiceOnMongo(db, { deployment }),
      ordinals: createOrdinalsLookupServiceOnMongo(db),
    })
    await eventually(async () => expect(await held(db)).toEqual(expected))
    const { graph } = storesOf(db)
    expect(await graph.names.originOf('ab')).toEqual({ txid: mints[1]?.txid, vout: 2 })
    expect(await graph.ordinals.currentOutput({ txid: note.txid, vout: 0 })).toEqual({
      txid: moved.txid,
      vout: 0,
    })
  })

  test('note and repeat what the database did not take', async () => {
    const db = mongo.db()
    let commits = 0
    const failing = watchedDb(db, ({ collection, method }) => {
      if (collection === 'graph_journal' && method === 'insertOne' && [2, 6].includes(++commits))
        throw new Error('the database is away')
    })
    const failures: HookFailure[] = []
    const onHookFailure = (failure: HookFailure): void => {
      failures.push(failure)
    }
    await submitTo({
      names: createNamesLookupServiceOnMongo(failing, { deployment, onHookFailure }),
      ordinals: createOrdinalsLookupServiceOnMongo(failing, { onHookFailure }),
    })
    await eventually(async () => expect(await held(db)).toEqual(expected))
    expect(failures.length).toBeGreaterThan(0)
  })
})
