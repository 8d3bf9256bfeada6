import type { Db } from 'mongodb'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { MongoIndexMaintenance } from '../../../backend/src/storage/mongo/index-maintenance.js'
import { LeaseTakenError, LostLeaseError } from '../../../backend/src/storage/mongo/write-lease.js'
import { MongoWriter } from '../../../backend/src/storage/mongo/writer.js'
import { describeWithMongo } from '../../support/storage/databases.js'
import { watchedDb } from '../../support/storage/mongo-documents.js'

/** In milliseconds: how long one is waited for that is gone; long enough for a machine that has much to do. */
const LEASE = 2000

describeWithMongo('the processes of one MongoDB that would rebuild its index', (mongo) => {
  let db: Db

  beforeEach(() => {
    db = mongo.db()
  })

  const maintenanceOf = (own: Db): MongoIndexMaintenance =>
    new MongoIndexMaintenance({ db: own, writer: new MongoWriter({ db: own, lease: LEASE }), lease: LEASE })

  test('are at it one at a time, and none waits for good for one that lives', async () => {
    const [one, other] = [maintenanceOf(db), maintenanceOf(db)]
    let isAtIt = false
    await one.alone(async () => {
      await expect(
        other.alone(async () => {
          isAtIt = true
        }),
      ).rejects.toThrow(LeaseTakenError)
    })
    expect(isAtIt).toBe(false)
    await other.alone(async () => {
      isAtIt = true
    })
    expect(isAtIt).toBe(true)
  })

  test('go on for one that is gone, which does nothing more when it comes back', async () => {
    let isGone = false
    const away = watchedDb(db, () => {
      if (isGone) throw new Error('the plug is pulled')
    })
    const [one, other] = [maintenanceOf(away), maintenanceOf(db)]
    const names = [{ name: 'a', outpoint: { txid: 'a'.repeat(64), vout: 2 } }]
    await new MongoGraphStore({ db }).record(graphRecords({ names }))
    await one.alone(async () => {
      await one.setRebuildCheckpoint({ state: 'needed' })
      isGone = true
      await other.alone(async () => {
        await other.setRebuildCheckpoint({ state: 'under way', place: '7 ab' })
      })
      isGone = false
      await expect(one.empty()).rejects.toThrow(LostLeaseError)
      await expect(one.setRebuildCheckpoint(undefined)).rejects.toThrow(LostLeaseError)
    })
    expect(await one.rebuild()).toEqual({ state: 'under way', place: '7 ab' })
    expect(await db.collection('graph_names').countDocuments()).toBe(1)
  })
})
