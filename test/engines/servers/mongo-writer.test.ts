import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { graphRecords } from '../../../backend/src/graph/records.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import type { PendingDocuments } from '../../../backend/src/storage/mongo/pending-documents.js'
import { MongoWriter } from '../../../backend/src/storage/mongo/writer.js'
import { until } from '../../support/server/waiting.js'
import { describeWithMongo } from '../../support/storage/databases.js'
import { watchedDb } from '../../support/storage/mongo-documents.js'

/** In milliseconds: how long a writer is waited for that is gone. */
const LEASE = 40

const at = (number: number): Outpoint => ({ txid: number.toString(16).padStart(64, 'a'), vout: 0 })
const named = (name: string, number: number) => graphRecords({ names: [{ name, outpoint: at(number) }] })

/** A write that is decided by what was written before. */
async function countUp(pending: PendingDocuments): Promise<number> {
  const before = await pending.first('graph_settings', { _id: 'count' })
  const count = Number(before?.value ?? 0) + 1
  await pending.put('graph_settings', { name: 'count', value: String(count) })
  return count
}

describeWithMongo('the writers of one MongoDB', (mongo) => {
  let db: Db

  beforeEach(() => {
    db = mongo.db()
  })

  /** A database whose first call of a kind waits until it may go on: the one that puts documents where they are read. */
  function stalling(call = 'bulkWrite'): { db: Db; reached: Promise<void>; goOn: () => void } {
    let goOn = (): void => {}
    let reach = (): void => {}
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const waiting = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let isFirst = true
    const stalled = watchedDb(db, ({ method }) => {
      if (method !== call || !isFirst) return undefined
      isFirst = false
      reach()
      return waiting
    })
    return { db: stalled, reached, goOn }
  }

  test('take turns, so that each decides by what the others have written', async () => {
    const writers = Array.from({ length: 4 }, () => new MongoWriter({ db }))
    const counts = await Promise.all(
      [...writers, ...writers, ...writers].map((writer) => writer.write(countUp)),
    )
    expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
  })

  test('keep the turn for as long as they work', async () => {
    // Long enough for a machine that has much to do.
    const lease = 3000
    const [one, other] = [new MongoWriter({ db, lease }), new MongoWriter({ db, lease })]
    let begin = (): void => {}
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    const long = one.write(async (pending) => {
      begin()
      for (const until = performance.now() + 1.2 * lease; performance.now() < until; ) {
        await sleep(lease / 20)
        await pending.first('graph_names', { name: 'a' })
      }
      return await countUp(pending)
    })
    await begun
    expect(await other.write(countUp)).toBe(2)
    expect(await long).toBe(1)
  })

  test('that are not heard of lose it, write nothing by it, and do their work again', async () => {
    const [one, other] = [new MongoWriter({ db, lease: LEASE }), new MongoWriter({ db, lease: LEASE })]
    let tries = 0
    let paused = (): void => {}
    const pause = new Promise<void>((resolve) => {
      paused = resolve
    })
    const first = one.write(async (pending) => {
      const count = await countUp(pending)
      if (++tries === 1) {
        paused()
        await otherIsDone
      }
      return count
    })
    const otherIsDone = pause.then(() => other.write(countUp))
    expect(await otherIsDone).toBe(1)
    expect(await first).toBe(2)
    expect(tries).toBe(2)
    expect(await db.collection('graph_journal').countDocuments()).toBe(0)
  })

  test('that lose it before a commit leave nothing of it in the journal', async () => {
    const { db: stalled, reached, goOn } = stalling('insertOne')
    const one = new MongoWriter({ db: stalled, lease: LEASE })
    const first = one.write(countUp)
    await reached
    expect(await new MongoWriter({ db, lease: LEASE }).write(countUp)).toBe(1)
    goOn()
    expect(await first).toBe(2)
    expect(await db.collection('graph_journal').countDocuments()).toBe(0)
  })

  test('that lose it after a commit have written all the same, once', async () => {
    const { db: stalled, reached, goOn } = stalling()
    const one = new MongoWriter({ db: stalled, lease: LEASE })
    const first = one.write(countUp)
    await reached
    expect(await new MongoWriter({ db, lease: LEASE }).write(countUp)).toBe(2)
    goOn()
    expect(await first).toBe(1)
  })

  test('leave a reader waiting who reads together what they are about to change', async () => {
    const store = new MongoGraphStore({ db })
    await store.record(named('a', 1))
    const { db: stalled, reached, goOn } = stalling()
    const changed = new MongoGraphStore({ db: stalled }).blocklist.add({
      kind: 'name',
      value: 'a',
      reason: 'first',
      since: 5,
    })
    await reached
    goOn()
    await changed
    const again = stalling()
    const changing = new MongoGraphStore({ db: again.db }).blocklist.add({
      kind: 'name',
      value: 'a',
      reason: 'second',
      since: 5,
    })
    await again.reached
    let isAnswered = false
    const reason = store.consistent(async () => {
      const [blocked] = await store.blocklist.page({ limit: 1 })
      return blocked?.reason
    })
    void reason.then(() => {
      isAnswered = true
    })
    await sleep(50)
    expect(isAnswered).toBe(false)
    again.goOn()
    expect(await reason).toBe('second')
    await changing
  })

  test('see before long what others have blocked', async () => {
    const [one, other] = [new MongoGraphStore({ db }), new MongoGraphStore({ db })]
    await other.open()
    const name = { kind: 'name', value: 'a' } as const
    expect((await other.blocklist.list()).has('name', 'a')).toBe(false)
    await one.blocklist.add({ ...name, reason: 'a test', since: 5 })
    await until(async () => (await other.blocklist.list()).has('name', 'a'))
    await one.blocklist.remove(name)
    await until(async () => !(await other.blocklist.list()).has('name', 'a'))
  })

  test('that are gone leave what they have committed to the next reader', async () => {
    const store = new MongoGraphStore({ db, lease: LEASE })
    const blocked = { kind: 'name', value: 'a', since: 5 } as const
    await store.blocklist.add({ ...blocked, reason: 'first' })
    const gone = watchedDb(db, ({ method }) => {
      if (method === 'bulkWrite') isGone = true
      if (isGone) throw new Error('the plug is pulled')
    })
    let isGone = false
    const dying = new MongoGraphStore({ db: gone, lease: LEASE })
    await expect(dying.blocklist.add({ ...blocked, reason: 'second' })).rejects.toThrow('the plug is pulled')
    expect(await store.blocklist.page({ limit: 1 })).toMatchObject([{ reason: 'first' }])
    const read = (): Promise<unknown[]> => store.blocklist.page({ limit: 1 })
    expect(await store.consistent(read)).toMatchObject([{ reason: 'second' }])
  })
})
