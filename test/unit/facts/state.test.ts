import { Sql } from '../../../backend/src/facts/connection.js'
import { makeLog } from '../../../backend/src/facts/log-file.js'
import { Pending, State } from '../../../backend/src/facts/state.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'

const txidOf = (n: number): string => n.toString(16).padStart(64, '0')
const coin = (n: number, vout = 0): Outpoint => ({ txid: txidOf(n), vout })
const raw = (length: number): Uint8Array => new Uint8Array(length)

let sql: Sql
beforeEach(() => {
  sql = new Sql(':memory:')
  makeLog(sql)
})
afterEach(() => sql.close())

describe('pending transactions', () => {
  const open = (): Pending => new Pending(sql)

  test('are counted, those that wait apart, also by another object', () => {
    const pending = open()
    pending.add({ txid: txidOf(1), raw: raw(10) }, [], { isWaiting: false })
    expect(pending.total('pending')).toEqual({ transactions: 1, bytes: 10 })
    pending.add({ txid: txidOf(2), raw: raw(20) }, [], { isWaiting: true })
    pending.add({ txid: txidOf(3), raw: raw(40) }, [], { isWaiting: true })
    pending.setWaiting(txidOf(2), false)
    pending.setWaiting(txidOf(2), false)
    pending.delete(txidOf(1))
    pending.delete(txidOf(1))
    for (const each of [pending, open()]) {
      expect(each.total('pending')).toEqual({ transactions: 1, bytes: 20 })
      expect(each.total('waiting')).toEqual({ transactions: 1, bytes: 40 })
    }
    const mark = pending.mark()
    sql.exec('begin')
    pending.delete(txidOf(3))
    sql.exec('rollback')
    pending.restore(mark)
    expect(pending.total('waiting')).toEqual({ transactions: 1, bytes: 40 })
  })
})

describe('state', () => {
  const open = (): State => new State(sql)

  test('a text and an attempt replace earlier ones', () => {
    const state = open()
    for (const value of ['one', 'two']) state.set('name', value)
    const attempt = { hole: false, tries: 1, due: 5, place: 6, transactions: 2, bytes: 30 }
    state.postpone([coin(1), coin(1, 0xffffffff)], attempt)
    state.postpone([coin(1)], { ...attempt, hole: true, tries: 2 })
    expect(sql.all('select * from state')).toEqual([{ name: 'name', value: 'two' }])
    expect(
      sql.all('select vout, hole, tries, due, place, transactions, bytes from ancestor order by vout'),
    ).toEqual([
      { vout: 0, hole: 1, tries: 2, due: 5, place: 6, transactions: 2, bytes: 30 },
      { vout: 0xffffffff, hole: 0, tries: 1, due: 5, place: 6, transactions: 2, bytes: 30 },
    ])
  })

  test('over the limit, the submissions go that would be held longest', () => {
    const state = open()
    const hold = (n: number, height: number, time: number): void =>
      state.hold({ txid: txidOf(n), lock: { height, time }, beef: Uint8Array.of(n) }, { maxCount: 2 })
    hold(1, 100, 0)
    hold(2, 0, 1_700_000_000)
    hold(3, 50, 0)
    expect(sql.all('select txid from held order by txid')).toEqual(
      [1, 3].map((n) => ({ txid: Buffer.from(txidOf(n), 'hex') })),
    )
    hold(4, 200, 0)
    hold(3, 50, 0)
    state.release(txidOf(1))
    expect(sql.all('select txid, beef from held')).toEqual([
      { txid: Buffer.from(txidOf(3), 'hex'), beef: Buffer.of(3) },
    ])
  })
})
