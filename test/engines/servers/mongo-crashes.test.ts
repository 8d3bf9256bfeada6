import { isDeepStrictEqual } from 'node:util'
import type { Db } from 'mongodb'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { MongoIndexMaintenance } from '../../../backend/src/storage/mongo/index-maintenance.js'
import { IndexMaintenance } from '../../../src/server/store/index-maintenance.js'
import { does, everyDeed } from '../../support/graph/deeds.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { SILENT, treeOf, useServers } from '../../support/server/test-server.js'
import { describeWithMongo } from '../../support/storage/databases.js'
import { asText, type DbCall, rawDocuments, watchedDb } from '../../support/storage/mongo-documents.js'
import { doAgain, type RecordedWrite, recordWrites } from '../../support/storage/recorded-writes.js'

// A writer is cut off from the database before each call that changes something, in a scenario that has every kind of
// write. The next writer has to find all of the write or none of it.

/** Before which calls: each of them by `KILL_EVERY=1`, which takes a minute or two; a fixed sample of them by default. */
const EVERY = Number(process.env.KILL_EVERY ?? 17)
/** The same of a rebuild, which takes longer. */
const EVERY_OF_REBUILD = Number(process.env.KILL_EVERY ?? 83)

/** In milliseconds: how long the next writer waits for the one that is gone. */
const LEASE = 30

const servers = useServers()
const chain = new FakeChain()

class CutOffError extends Error {}

/** A store that is cut off before the n-th call that changes something, counted from `cutAt`. */
interface CutOffStore {
  store: MongoGraphStore
  maintenance: IndexMaintenance
  cutAt(n: number): void
  calls(): number
}

async function cutOffStore(db: Db): Promise<CutOffStore> {
  let calls = 0
  let last = Number.POSITIVE_INFINITY
  const onCall = ({ method }: DbCall): void => {
    if (calls >= last) throw new CutOffError()
    if (method !== 'find' && method !== 'findOne' && ++calls === last) throw new CutOffError()
  }
  const watched = watchedDb(db, onCall)
  const store = new MongoGraphStore({ db: watched, lease: LEASE })
  await store.open()
  return {
    store,
    maintenance: maintenanceOf(watched, store),
    calls: () => calls,
    cutAt(n) {
      calls = 0
      last = n
    },
  }
}

function maintenanceOf(db: Db, graph: MongoGraphStore): IndexMaintenance {
  return new IndexMaintenance({
    store: new MongoIndexMaintenance({ db, writer: graph.writer, lease: LEASE }),
    graph,
    runLocked: (work) => work(),
    logger: SILENT,
  })
}

describeWithMongo('what is done to MongoDB and is cut off', (mongo) => {
  let writes: RecordedWrite[]
  let admission: AdmissionOptions

  beforeAll(async () => {
    const { node } = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
    admission = node.overlay.admission
    writes = recordWrites(node.graph, node.overlay.admission)
    for (const deed of everyDeed(chain)) await does(node, deed)
  })

  /** All that a database holds, but for when it came. */
  const held = async (db: Db): Promise<Record<string, string[]>> =>
    asText(await rawDocuments(db), ['since', 'score'])

  /** A database of its own, with what another holds. */
  async function copyOf(documents: Record<string, object[]>): Promise<Db> {
    const db = mongo.db()
    for (const [name, all] of Object.entries(documents))
      if (all.length > 0) await db.collection(name).insertMany(all)
    return db
  }

  test('is, of a write, there as a whole or not at all, and is done by doing it again', async () => {
    const undisturbed = mongo.db()
    let points = 0
    const found = { before: 0, after: 0 }
    for (const write of writes) {
      const documents = await rawDocuments(undisturbed)
      const before = await held(undisturbed)
      const whole = await cutOffStore(undisturbed)
      whole.cutAt(Number.POSITIVE_INFINITY)
      await doAgain(write, whole.store)
      const after = await held(undisturbed)
      for (let at = 1; at <= whole.calls(); at++) {
        if (points++ % EVERY !== 0) continue
        const db = await copyOf(documents)
        const cut = await cutOffStore(db)
        cut.cutAt(at)
        await untilCutOff(doAgain(write, cut.store))
        const next = new MongoGraphStore({ db, lease: LEASE })
        await next.open()
        const left = await held(db)
        const isDone = isDeepStrictEqual(left, after)
        expect({ at, left }).toEqual({ at, left: isDone ? after : before })
        found[isDone ? 'after' : 'before']++
        await doAgain(write, next)
        expect({ at, now: await held(db) }).toEqual({ at, now: after })
        expect(await db.collection('graph_journal').countDocuments()).toBe(0)
        await db.dropDatabase()
      }
    }
    expect(found.before).toBeGreaterThan(5)
    expect(found.after).toBeGreaterThan(5)
  }, 600_000)

  test('is, of a rebuild of the index, continued by the next writer', async () => {
    const whole = mongo.db()
    const { store, maintenance, cutAt, calls } = await cutOffStore(whole)
    for (const write of writes) await doAgain(write, store)
    const documents = await rawDocuments(whole)
    const before = await held(whole)
    cutAt(Number.POSITIVE_INFINITY)
    await maintenance.rebuild()
    expect(await held(whole)).toEqual(before)
    const found = { empty: 0, full: 0 }
    for (let at = 1; at <= calls(); at++) {
      if (at % EVERY_OF_REBUILD !== 1 % EVERY_OF_REBUILD) continue
      const db = await copyOf(documents)
      const cut = await cutOffStore(db)
      cut.store.deriveBy(admission)
      cut.cutAt(at)
      await untilCutOff(cut.maintenance.rebuild())
      found[(await db.collection('graph_names').countDocuments()) === 0 ? 'empty' : 'full']++
      const next = new MongoGraphStore({ db, lease: LEASE })
      next.deriveBy(admission)
      await next.open()
      const again = maintenanceOf(db, next)
      await again.run()
      expect({ at, status: again.status }).toEqual({ at, status: { state: 'equal', done: 1 } })
      expect({ at, now: await held(db) }).toEqual({ at, now: before })
      await db.dropDatabase()
    }
    expect(found.empty).toBeGreaterThan(0)
  }, 600_000)
})

async function untilCutOff(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof CutOffError)) throw error
  }
}
