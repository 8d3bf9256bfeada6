import { graphRecords } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { spendsBy } from '../../../backend/src/graph/transaction-records.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { outpointColumns } from '../../../backend/src/storage/rows/columns.js'
import { replaceTimes } from '../../../backend/src/storage/write/admission-tables.js'
import type { GraphStoreBase } from '../../../backend/src/storage/write/graph-store-base.js'
import { FakeChain, inscriptionScript } from '../../support/protocol/fake-chain.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const TOPIC = 'tm_ordinals'

onEachTableEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('times that were scores give way to scores of their own, in the same order', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    const rules = () => admissionRules({ deployment: chain.deployment, onRefusal: () => {} })
    store.deriveBy({ rules, pending: { maxTransactions: 1000, maxBytes: 1024 * 1024 } })
    for (const text of ['a', 'b']) {
      const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
      const output = { satoshis: 1, lockingScript }
      const { txid, raw } = chain.spend({ inputs: [], outputs: [output, output, output] })
      await store.record(
        graphRecords({ transactions: [{ txid, raw }], spends: spendsBy(viewOf({ txid, raw })) }),
      )
    }
    const { database } = store as unknown as GraphStoreBase
    const admitted = await store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })
    await database.write(async (rows) => {
      await rows.delete('graph_settings', { name: 'scores' })
      for (const [i, { outpoint, topic }] of admitted.entries())
        await rows.update(
          'graph_admissions',
          { ...outpointColumns(outpoint), topic },
          { score: i < 3 ? 5 : 6 },
        )
      await replaceTimes(rows)
    })
    const after = await store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })
    expect(new Set(after.map(({ score }) => score)).size).toBe(6)
    expect(after.every(({ score }) => score > 6)).toBe(true)
    expect(after.slice(0, 3).map(({ outpoint }) => outpoint.txid)).toEqual(
      admitted.slice(0, 3).map(({ outpoint }) => outpoint.txid),
    )
    await database.write(replaceTimes)
    expect(await store.admissions.unspentOfTopic({ topic: TOPIC, since: 0 })).toEqual(after)
  })
})
