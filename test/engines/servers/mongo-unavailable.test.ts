import { setTimeout as sleep } from 'node:timers/promises'
import { type BulkWriteResult, MongoBulkWriteError, MongoClient, MongoNetworkError } from 'mongodb'
import pRetry from 'p-retry'
import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { whileAvailable } from '../../../backend/src/storage/mongo/documents.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { answerFor } from '../../../src/gateway/http/errors.js'
import { describeWithMongo } from '../../support/storage/databases.js'
import { asText, rawDocuments, watchedDb } from '../../support/storage/mongo-documents.js'
import { startTcpProxy, type TcpProxy } from '../../support/storage/tcp-proxy.js'

const OUTPUTS = 30
const CUTS = 5
const txid = (number: number): string => number.toString(16).padStart(64, 'a')
const at = (number: number) => ({ txid: txid(number), vout: 0 })

/** An ordinal that has gone on a few times, and the name that it is. */
const records = graphRecords({
  outputs: Array.from({ length: OUTPUTS }, (_, step) => ({
    outpoint: at(step),
    satoshis: 1,
    ...(step === 0 && { content: { sha256: txid(0), contentType: 'text/plain', length: 1 } }),
    ...(step > 0 && { previous: at(step - 1) }),
  })),
  contents: [{ sha256: txid(0), bytes: Uint8Array.of(7) }],
  names: [{ name: 'a', outpoint: at(0) }],
})

describeWithMongo('a MongoDB that is away', (mongo) => {
  let proxy: TcpProxy
  /** By the way that is cut; that of the group goes past it. */
  let client: MongoClient

  beforeAll(async () => {
    proxy = await startTcpProxy(mongo.port())
    const url = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`
    client = new MongoClient(url, { serverSelectionTimeoutMS: 300, heartbeatFrequencyMS: 500 })
    // On a busy machine, the first connection may take longer than one that is lost is to be waited for.
    await pRetry(() => client.connect(), { retries: 50, minTimeout: 100, maxTimeout: 1000 })
  })
  afterEach(() => proxy.mend())
  afterAll(async () => {
    await client.close()
    await proxy.stop()
  })

  async function openStore() {
    const direct = mongo.db()
    const store = new MongoGraphStore({ db: client.db(direct.databaseName) })
    await store.open()
    return { store, held: async () => asText(await rawDocuments(direct), ['arrival']) }
  }

  /** Asks until it is answered: the driver looks for the server now and then. */
  async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error
      }
      await sleep(20)
    }
  }

  test('is reported to readers and writers, and answers as before once it is back', async () => {
    const { store, held } = await openStore()
    await store.record(records)
    const before = await held()
    proxy.cut()
    const error: unknown = await store.names.originOf('a').catch((error: unknown) => error)
    expect(answerFor(error)).toMatchObject({ code: 'NOT_READY' })
    await expect(store.consistent(() => store.names.originOf('a'))).rejects.toThrow(StoreUnavailableError)
    await expect(store.record(records)).rejects.toThrow(StoreUnavailableError)
    proxy.mend()
    expect(await answered(() => store.ordinals.currentOutput(at(0)))).toEqual(at(OUTPUTS - 1))
    await answered(() => store.record(records))
    expect(await held()).toEqual(before)
  })

  test('is given up where it does not answer, and what a call may change yet is waited for', async () => {
    const { store: undisturbed, held: whole } = await openStore()
    await undisturbed.record(records)
    const direct = mongo.db()
    let isFirst = true
    const stalling = watchedDb(client.db(direct.databaseName), ({ method }) => {
      // In the middle of a write: committed, and not yet where it is read.
      if (method !== 'bulkWrite' || !isFirst) return
      isFirst = false
      proxy.stall()
    })
    const store = new MongoGraphStore({ db: stalling, lease: 1000 })
    await expect(store.record(records)).rejects.toThrow(StoreUnavailableError)
    const holder = async () => (await direct.collection('graph_state').findOne({}))?.holder
    // Nobody says that the turn is over: it may go on.
    const left = await holder()
    expect(left).not.toBeNull()
    proxy.mend()
    await answered(() => store.record(records))
    expect(asText(await rawDocuments(direct), ['arrival'])).toEqual(await whole())
    expect(await holder()).toBeNull()
  })

  test('loses nothing of a write that it goes away from, at whatever moment', async () => {
    const { store: undisturbed, held: whole } = await openStore()
    const since = performance.now()
    await undisturbed.record(records)
    const took = performance.now() - since
    const ends = { away: 0, done: 0 }
    for (let cut = 0; cut < CUTS; cut++) {
      const { store, held } = await openStore()
      const writing = store.record(records).then(
        () => 'done' as const,
        (error: unknown) => {
          if (!(error instanceof StoreUnavailableError)) throw error
          return 'away' as const
        },
      )
      await sleep((took * cut) / CUTS)
      proxy.cut()
      ends[await writing]++
      proxy.mend()
      await answered(() => store.record(records))
      expect(await held()).toEqual(await whole())
    }
    expect(ends.away).toBeGreaterThan(0)
  })
})

test('a call that changes many documents says otherwise that nobody answers, and that somebody refuses', async () => {
  const bulk = (error: ConstructorParameters<typeof MongoBulkWriteError>[0]) =>
    whileAvailable(() => Promise.reject(new MongoBulkWriteError(error, {} as BulkWriteResult)))
  await expect(bulk(new MongoNetworkError('read ECONNRESET'))).rejects.toThrow(StoreUnavailableError)
  await expect(bulk({ message: 'not primary', code: 10107 })).rejects.toThrow(StoreUnavailableError)
  await expect(bulk({ message: 'duplicate key', code: 11000 })).rejects.toThrow(MongoBulkWriteError)
})
