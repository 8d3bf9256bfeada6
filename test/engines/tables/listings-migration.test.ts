import { graphRecords } from '../../../backend/src/graph/records.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { listings } from '../../../backend/src/storage/sql/migrations/010-listings.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'
import { onEachSqlEngine } from '../../support/storage/stores.js'

const txid = (number: number): string => number.toString(16).padStart(64, '0')
const raw = encodeTransaction({ inputs: [], outputs: [] })

onEachSqlEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('a store of an earlier version has the lists and counts of one that was always new', async () => {
    const opened = await openStore()
    const { store, database } = opened
    const types = ['text/plain', 'gw/stream', 'application/name-claim', 'image/png', '']
    for (const [number, contentType] of types.entries()) {
      const content = { sha256: txid(number), contentType, length: 1 }
      const outpoint = { txid: txid(number), vout: 0 }
      const proof = number % 2 === 0 ? undefined : { merklePath: raw, height: 50 - number, root: txid(9) }
      await store.record(
        graphRecords({
          transactions: [{ txid: txid(number), raw, ...(proof && { proof }) }],
          outputs: [
            { outpoint, satoshis: 1, content },
            { outpoint: { ...outpoint, vout: 1 }, satoshis: 1 },
          ],
          names: [{ outpoint: { ...outpoint, vout: 2 }, name: `name-${number}` }],
        }),
      )
    }
    const listed = async (graph: SqlGraphStore) => ({
      names: await graph.listings.newestNames({ limit: 100 }),
      inscriptions: await graph.listings.newestInscriptions({ limit: 100 }),
      counts: await graph.listings.counts(),
    })
    const before = await listed(store)
    expect(before.counts).toEqual({ names: 5, inscriptions: 3, transactions: 5 })
    const rows = await opened.rows()
    await listings.down(database.writer)
    // As where the other lookup service of a host was first.
    await listings.down(database.writer)
    await listings.up(database.writer)
    await listings.up(database.writer)
    expect(await listed(new SqlGraphStore(database))).toEqual(before)
    expect(await opened.rows()).toEqual(rows)
  })

  test('an empty store of an earlier version has no counts to keep', async () => {
    const { store, database } = await openStore()
    await listings.down(database.writer)
    await listings.up(database.writer)
    expect(await store.listings.counts()).toEqual({ names: 0, inscriptions: 0, transactions: 0 })
  })
})
