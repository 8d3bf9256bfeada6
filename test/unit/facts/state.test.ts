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
  const plain = { isRaised: false, isMint: false, isProven: false, proofs: [] }

  test('are found by themselves and by what they spend, in the order in which they came', () => {
    const pending = open()
    expect([pending.isEmpty, pending.has(txidOf(1))]).toEqual([true, false])
    pending.add({ txid: txidOf(2), raw: raw(20) }, [coin(8), coin(9)], { isWaiting: false })
    pending.add({ txid: txidOf(1), raw: raw(10) }, [coin(8)], { isWaiting: true, client: 'aa' })
    // Again: it stays as it is.
    pending.add({ txid: txidOf(1), raw: raw(10) }, [coin(8)], { isWaiting: false })
    expect([false, true].map((isWaiting) => pending.spendersOf(coin(8), { isWaiting }))).toEqual([
      [txidOf(2)],
      [txidOf(1)],
    ])
    expect([pending.conflictsOf(txidOf(2)), pending.conflictsOf(txidOf(1))]).toEqual([[txidOf(1)], []])
    expect(pending.childrenOf(txidOf(9))).toEqual([txidOf(2)])
    expect([pending.get(txidOf(2)), pending.get(txidOf(1))]).toEqual([
      { ...plain, txid: txidOf(2), raw: Buffer.alloc(20), arrived: 1, isWaiting: false },
      { ...plain, txid: txidOf(1), raw: Buffer.alloc(10), arrived: 2, isWaiting: true },
    ])
    expect(pending.spendsOf(txidOf(2))).toEqual([coin(8), coin(9)])
  })

  test('alone have proofs', () => {
    const pending = open()
    const block = { height: 7, root: 'cd'.repeat(32) }
    const proof = { ...block, merklePath: Uint8Array.of(1) }
    pending.prove(txidOf(1), proof)
    pending.replaceProofs(txidOf(1), [proof])
    expect(pending.disprove(block)).toEqual([])
    pending.add({ txid: txidOf(1), raw: raw(10) }, [], { isWaiting: false })
    expect(pending.get(txidOf(1))?.proofs).toEqual([])
  })

  test('that wait: of the client that has the most, the oldest goes first', () => {
    const pending = open()
    const lengths = [10, 10, 50, 10, 10]
    for (const [n, length] of lengths.entries())
      pending.add({ txid: txidOf(n), raw: raw(length) }, [], {
        isWaiting: true,
        client: n < 2 ? 'aa' : n < 4 ? 'bb' : 'cc',
      })
    pending.setWaiting(txidOf(4), false)
    const oldest = (most: 'bytes' | 'transactions', ...staying: number[]) =>
      pending.oldestWaiting(most, new Set(staying.map(txidOf)))
    expect([oldest('transactions'), oldest('bytes')]).toEqual([0, 2].map(txidOf))
    expect([oldest('bytes', 2), oldest('transactions', 0)]).toEqual([3, 1].map(txidOf))
    // No other client has to make room for that one.
    expect(oldest('bytes', 2, 3)).toBeUndefined()
  })

  test('are raised with all that they are built on, by a proof or by what is said of them', () => {
    const pending = open()
    const proof = { height: 7, root: 'cd'.repeat(32), merklePath: Uint8Array.of(1, 2) }
    for (const n of [1, 2, 3, 4, 5])
      pending.add({ txid: txidOf(n), raw: raw(1) }, [coin(n - 1)], { isWaiting: n < 5 })
    const raised = () => [1, 2, 3, 4, 5].filter((n) => pending.outline(txidOf(n))?.isRaised)
    expect(raised()).toEqual([])
    pending.prove(txidOf(2), proof)
    expect(raised()).toEqual([1, 2])
    pending.raise(txidOf(4))
    expect(raised()).toEqual([1, 2, 3, 4])
    pending.add({ txid: txidOf(6), raw: raw(1), proofs: [proof] }, [coin(5)], { isWaiting: false })
    expect([raised(), pending.outline(txidOf(6))?.isRaised]).toEqual([[1, 2, 3, 4, 5], true])
    expect(pending.lineOf(txidOf(6), 'raised')).toEqual([1, 2, 3, 4, 5, 6].map(txidOf))
    // What counts ends a line of what waits.
    expect(pending.lineOf(txidOf(3), 'waiting')).toEqual([1, 2, 3].map(txidOf))
    expect(pending.lineOf(txidOf(6), 'waiting')).toEqual([txidOf(6)])
  })

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

  test('take a proof, and lose it with its block', () => {
    const pending = open()
    pending.add({ txid: txidOf(1), raw: raw(10) }, [], { isWaiting: false })
    const proof = { height: 7, root: 'cd'.repeat(32), merklePath: Uint8Array.of(1, 2) }
    pending.prove(txidOf(1), proof)
    expect(pending.get(txidOf(1))?.proofs).toEqual([{ ...proof, merklePath: Buffer.of(1, 2) }])
    expect(pending.disprove({ height: 7, root: 'ab'.repeat(32) })).toEqual([])
    expect(pending.disprove(proof)).toEqual([txidOf(1)])
    expect(pending.get(txidOf(1))?.proofs).toEqual([])
  })

  test('keep proofs in other blocks, and lose each with its block', () => {
    const pending = open()
    pending.add({ txid: txidOf(1), raw: raw(10) }, [], { isWaiting: false })
    const proofAt = (height: number) => ({
      height,
      root: height.toString(16).padStart(64, '0'),
      merklePath: Buffer.of(height),
    })
    const heights = () => pending.get(txidOf(1))?.proofs.map(({ height }) => height)
    for (const height of [7, 8, 9, 8]) pending.prove(txidOf(1), proofAt(height))
    expect(heights()).toEqual([7, 9, 8])
    expect(pending.get(txidOf(1))?.proofs).toEqual([7, 9, 8].map(proofAt))
    expect(pending.disprove(proofAt(9))).toEqual([txidOf(1)])
    expect(heights()).toEqual([7, 8])
    expect(pending.disprove(proofAt(8))).toEqual([txidOf(1)])
    expect(heights()).toEqual([7])
    pending.replaceProofs(txidOf(1), [proofAt(5), proofAt(6)])
    expect(heights()).toEqual([5, 6])
    pending.delete(txidOf(1))
    expect(sql.all('select * from pending_proof')).toEqual([])
  })

  test('go the oldest first, unproven ones before proven ones', () => {
    const pending = open()
    const proof = { height: 7, root: 'cd'.repeat(32), merklePath: Uint8Array.of(1, 2) }
    pending.add({ txid: txidOf(1), raw: raw(1), proofs: [proof] }, [], { isWaiting: false })
    pending.add({ txid: txidOf(4), raw: raw(1) }, [], { isWaiting: true })
    pending.add({ txid: txidOf(3), raw: raw(1) }, [], { isWaiting: false })
    pending.add({ txid: txidOf(2), raw: raw(1) }, [], { isWaiting: false })
    const gone: string[] = []
    for (let next = pending.first(); next !== undefined; next = pending.first()) {
      gone.push(next)
      pending.delete(next)
    }
    expect(gone).toEqual([3, 2, 1].map(txidOf))
    const plan = sql.all(
      'explain query plan select txid from pending where waiting = 0 order by proven, arrived limit 1',
    )
    expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('USING INDEX pending_first')])
  })
})

describe('state', () => {
  const open = (): State => new State(sql)

  test('a text, the progress with a peer and an attempt replace earlier ones', () => {
    const state = open()
    for (const value of ['one', 'two']) state.set('name', value)
    for (const since of [1, 1.5]) state.interaction('https://host', 'tm_names', since)
    const attempt = { hole: false, tries: 1, due: 5, place: 6, transactions: 2, bytes: 30 }
    state.postpone([coin(1), coin(1, 0xffffffff)], attempt)
    state.postpone([coin(1)], { ...attempt, hole: true, tries: 2 })
    expect(sql.all('select * from state')).toEqual([{ name: 'name', value: 'two' }])
    expect(sql.all('select since from interaction')).toEqual([{ since: 1.5 }])
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
