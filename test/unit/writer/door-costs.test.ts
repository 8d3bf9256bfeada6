import { vi } from 'vitest'
import { Sql } from '../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../backend/src/facts/local-log.js'
import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

const WAITING = 100
let store: OpenedWriter
beforeEach(() => {
  store = new OpenedWriter({ waiting: { maxTransactions: WAITING, maxBytes: 1024 * 1024 } })
})
afterEach(() => store.close())

let paid = 0
const money = { satoshis: 1000, lockingScript: p2pkh(1) }

/** A payment of many outputs. */
function payOut(outputs: number): FakeTransaction {
  return store.chain.spend({ inputs: [], outputs: Array.from({ length: outputs }, () => money) })
}

/** Spends some outputs of a payment. */
function payFrom(transaction: FakeTransaction, ...outputs: number[]): FakeTransaction {
  return store.chain.spend({
    inputs: outputs.map((vout) => ({ transaction, vout })),
    outputs: [{ satoshis: ++paid, lockingScript: p2pkh(2) }],
  })
}

/** Payments of which each spends a coin of the one before: every other one counts. */
function zigzag(
  purse: FakeTransaction,
  { from, length }: { from: number; length: number },
): FakeTransaction[] {
  return Array.from({ length }, (_, at) => payFrom(purse, from + at, from + at + 1))
}

/** Spends first outputs, or makes money from nothing that anybody knows. */
function pay(...coins: FakeTransaction[]): FakeTransaction {
  return store.chain.spend({
    inputs: coins.map((transaction) => ({ transaction, vout: 0 })),
    outputs: [money, { satoshis: ++paid, lockingScript: p2pkh(2) }],
  })
}

function inscribe(coin: FakeTransaction, text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return store.chain.spend({
    inputs: [{ transaction: coin, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript }],
  })
}

/** Transactions of which each spends the one before, and another coin. */
function chainFrom(coin: FakeTransaction, length: number): FakeTransaction[] {
  const made: FakeTransaction[] = []
  while (made.length < length) made.push(pay(made.at(-1) ?? coin, pay()))
  return made
}

/** How many statements a write takes. */
async function statements(write: () => Promise<unknown>): Promise<number> {
  const files = Object.values(store.writer).filter((each) => each instanceof Sql)
  let count = 0
  for (const file of files)
    for (const method of ['run', 'get', 'all', 'insert'] as const) {
      const original = Sql.prototype[method] as (...values: unknown[]) => unknown
      Object.assign(file, { [method]: (...values: unknown[]) => ++count && original.apply(file, values) })
    }
  await write()
  for (const file of files)
    for (const method of ['run', 'get', 'all', 'insert']) Reflect.deleteProperty(file, method)
  return count
}

/** What each costs when it is submitted after the others. */
async function costsOf(submitted: readonly FakeTransaction[]): Promise<number[]> {
  const costs: number[] = []
  for (const each of submitted) costs.push(await statements(() => store.submit([each])))
  return costs
}

function expectNoGrowth(costs: readonly number[]): void {
  expect(Math.max(...costs.slice(5))).toBeLessThan(2 * Math.min(...costs))
}

/** Those that are pending and do not count. */
function waiting(): number {
  return Number(store.log('select count(*) as count from pending where waiting = 1')[0]?.count)
}

/** Whether each of some pending transactions counts. */
function countingOf(transactions: readonly FakeTransaction[]): boolean[] {
  const counting = store.log('select hex(txid) as txid from pending where waiting = 0')
  const txids = new Set(counting.map(({ txid }) => txid.toLowerCase()))
  return transactions.map(({ txid }) => txids.has(txid))
}

async function say(status: 'seen' | 'rejected', { txid }: FakeTransaction): Promise<number> {
  return await statements(() => store.writer.change('sightings', [{ txid, status }]))
}

test('one more that loses a coin costs as much as the first, also where one of them wins', async () => {
  const coin = pay()
  const losers = Array.from({ length: WAITING + 20 }, (_, n) => inscribe(coin, `loser ${n}`))
  const [winner, ...others] = losers as [FakeTransaction, ...FakeTransaction[]]
  await store.submit([winner])
  expectNoGrowth(await costsOf(others))
  const last = others.at(-1) as FakeTransaction
  // What lost to the winner before loses to this one.
  expect(await say('seen', last)).toBeLessThan(WAITING * 10)
  expect(store.facts({ winner, last })).toEqual(['winner', 'last'])
  // The oldest that waits counts when nothing else does, and the others are not tried.
  await say('rejected', winner)
  expect(await say('rejected', last)).toBeLessThan(WAITING * 12)
  expect(waiting()).toBe(WAITING - 2)
  expect(store.index('select count(*) as n from tx where active = 1 and seq is not null')).toEqual([{ n: 1 }])
})

test('mints that lost a node are not tried while another mint of it counts', async () => {
  await store.know(store.chain.genesis, 100)
  const root = store.chain.node('')
  const mints = Array.from({ length: 40 }, (_, n) =>
    store.chain.mint('abcdefghijklmnopqrst'.slice(n % 20, (n % 20) + 1 + n / 20), { from: root }),
  )
  // The first takes the node from nobody.
  const [, ...losing] = await costsOf(mints)
  expectNoGrowth(losing)
  const [first, second] = mints as [FakeTransaction, FakeTransaction]
  expect([store.names(), waiting()]).toEqual([['a'], mints.length - 1])
  expect(await say('rejected', first)).toBeLessThan(100 + mints.length * 12)
  expect([store.names(), waiting()]).toEqual([['b'], mints.length - 2])
  expect(store.facts({ first, second })).toEqual(['first', 'second'])
})

test('a payment costs as much behind many that are pending as behind one', async () => {
  const chain = chainFrom(pay(), 60)
  expectNoGrowth(await costsOf(chain))
  const note = inscribe(chain.at(-1) as FakeTransaction, 'paid by all of them')
  await store.submit([note])
  expect(store.facts(Object.fromEntries(chain.entries()))).toHaveLength(chain.length)
  expect(store.pending(Object.fromEntries(chain.entries()))).toEqual([])
})

test('a loser costs as much behind many losers as behind one, and names what all of them lost to', async () => {
  const coin = pay()
  const winner = inscribe(coin, 'winner')
  await store.submit([winner])
  const chain = chainFrom(coin, 60)
  expectNoGrowth(await costsOf(chain))
  const last = chain.at(-1) as FakeTransaction
  expect(await store.submit([pay(last)])).toEqual({ txid: winner.txid, tier: 'unseen' })
  const rejected = pay(last)
  await say('rejected', rejected)
  expect(await store.submit([rejected])).toEqual({ txid: rejected.txid, tier: 'rejected' })
})

test('a chain of losers that counts at last costs in proportion to its length', async () => {
  const costs: number[] = []
  for (const length of [30, 60]) {
    const coin = pay()
    await store.submit([inscribe(coin, `winner of ${length}`)])
    const chain = chainFrom(coin, length)
    for (const each of chain) await store.submit([each])
    expect(waiting()).toBe(length)
    costs.push(await say('seen', chain[0] as FakeTransaction))
    expect(waiting()).toBe(0)
  }
  const [short = 0, long = 0] = costs
  expect(long).toBeLessThan(2.5 * short)
})

test('a proof into a chain of payments that conflict costs in proportion to its length, whatever they are paid from', async () => {
  const costs: number[] = []
  for (const length of [30, 60]) {
    const purse = payOut(length + 1)
    await store.know(purse, 100)
    const payments = zigzag(purse, { from: 0, length })
    for (const each of payments) await store.submit([each])
    expect(countingOf(payments)).toEqual(payments.map((_, at) => at % 2 === 0))
    const tried = vi.spyOn(LocalLog.prototype, 'insert')
    costs.push(await statements(() => store.know(payments[1] as FakeTransaction, 101)))
    expect(tried.mock.calls.filter(([{ key }]) => toHex(key) === purse.txid)).toEqual([])
    tried.mockRestore()
    expect(countingOf(payments)).toEqual(payments.map((_, at) => at % 2 === 1))
  }
  const [short = 0, long = 0] = costs
  expect(long).toBeLessThan(2.2 * short)
})

test('what waits is tried again in the order in which it came: nothing counts for a moment only', async () => {
  const costs: number[] = []
  for (const length of [10, 40]) {
    const purse = payOut(length + 12)
    await store.know(purse, 100)
    const firsts = [payFrom(purse, 0, 2), payFrom(purse, 1, 10)]
    const head = zigzag(purse, { from: 2, length: 7 })
    const joined = payFrom(purse, 9, 10, 11)
    const tail = zigzag(purse, { from: 11, length })
    for (const each of [...firsts, ...head, joined, ...tail]) await store.submit([each])
    expect(countingOf(head)).toEqual(head.map((_, at) => at % 2 === 1))
    expect(countingOf(tail)).toEqual(tail.map((_, at) => at % 2 === 0))
    // What the first two spent becomes free at both ends of the head: its last one came before what spends the other coin.
    costs.push(await statements(() => store.know(payFrom(purse, 0, 1), 101)))
    expect(countingOf([...firsts, joined])).toEqual([false, false, false])
    expect(countingOf(head)).toEqual(head.map((_, at) => at % 2 === 0))
    expect(countingOf(tail)).toEqual(tail.map((_, at) => at % 2 === 0))
  }
  expect(costs[1]).toBe(costs[0])
})

test('one more of many mined payments that spend one coin costs as much as the first', async () => {
  const coin = payOut(1)
  const payments = Array.from({ length: 40 }, () => payFrom(coin, 0))
  const costs: number[] = []
  for (const [at, each] of payments.entries()) costs.push(await statements(() => store.know(each, 200 - at)))
  // The first one conflicts with nothing.
  expectNoGrowth(costs.slice(1))
  const { txid } = payments.at(-1) as FakeTransaction
  expect(store.index('select hex(txid) as txid from tx where active = 1 and seq is not null')).toEqual([
    { txid: txid.toUpperCase() },
  ])
})

test('one of many mined double spends that turns out to be first costs no more statements than one of a few', async () => {
  const costs: number[] = []
  for (const count of [10, 40]) {
    const coin = pay()
    const all = Array.from({ length: count }, (_, n) => inscribe(coin, `mined ${count} ${n}`))
    for (const [n, each] of all.entries()) await store.know(each, 200 + n)
    const last = inscribe(coin, `the first block of ${count}`)
    costs.push(await statements(() => store.know(last, 100)))
    expect(store.index('select hex(txid) as txid from tx where active = 1 and mined = 100')).toEqual(
      expect.arrayContaining([{ txid: last.txid.toUpperCase() }]),
    )
  }
  // All of them are read once, and what lost to any of them is left alone.
  expect(costs[1]).toBe(costs[0])
})

test('what counts by the word of the network alone gives way when that is taken back', async () => {
  const coin = pay()
  const [first, second] = [pay(coin), pay(coin)]
  const child = pay(second)
  const counting = () =>
    ['first', 'second', 'child'].filter(
      (_, at) =>
        store.log(
          'select 1 as one from pending where waiting = 0 and hex(txid) = ?',
          [first, second, child][at]?.txid.toUpperCase() ?? '',
        ).length > 0,
    )
  for (const each of [first, second, child]) await store.submit([each])
  expect(counting()).toEqual(['first'])
  await say('seen', child)
  expect(counting()).toEqual(['second', 'child'])
  await say('rejected', child)
  expect(counting()).toEqual(['first'])
  const { proof } = recordOf(second, 101)
  await store.know(second, 101)
  expect(counting()).toEqual(['second'])
  if (proof !== undefined) await store.writer.change('disprove', proof)
  expect(counting()).toEqual(['first'])
})

describe('what is built on an unproven transaction', () => {
  const MOST = 5
  let bounded: OpenedWriter
  beforeEach(() => {
    bounded = new OpenedWriter({ unprovenDescendants: MOST })
    store.chain = bounded.chain
  })
  afterEach(() => bounded.close())

  /** Submits the last one with all that it is built on. */
  const take = (...line: FakeTransaction[]): Promise<unknown> => bounded.submit([...line].reverse())
  const refused = { code: 'TOO_MANY_DESCENDANTS' }

  /** A payment to three, none of whom knows the others. */
  const payout = (): FakeTransaction =>
    store.chain.spend({
      inputs: [{ transaction: pay(), vout: 0 }],
      outputs: [1, 2, 3].map((key) => ({ satoshis: 1000 + ++paid, lockingScript: p2pkh(key) })),
    })
  const spending = (transaction: FakeTransaction, vout: number): FakeTransaction =>
    store.chain.spend({
      inputs: [{ transaction, vout }],
      outputs: [money, { satoshis: ++paid, lockingScript: p2pkh(3) }],
    })

  test('is bounded by the coin that it comes from, and not once that is mined', async () => {
    const root = payout()
    const line = chainFrom(root, MOST)
    await take(root, ...line)
    await expect(take(root, ...line)).resolves.toBeUndefined()
    const further = pay(line.at(-1) as FakeTransaction)
    const message = expect.stringContaining(root.outpoint(0))
    await expect(take(root, ...line, further)).rejects.toMatchObject({ ...refused, message })
    // Another process counts the same.
    await bounded.reopen()
    await expect(take(root, ...line, further)).rejects.toMatchObject(refused)
    expect(bounded.pending({ further })).toEqual([])
    // Whoever got another output is not concerned, and neither is another line.
    const other = spending(root, 1)
    await take(root, other)
    await take(...chainFrom(pay(), 1))
    expect(bounded.pending({ other })).toEqual(['other'])
    await bounded.know(root, 100)
    await bounded.submit([further, ...[...line].reverse(), root])
    expect(bounded.pending({ further })).toEqual(['further'])
  })

  test('is bounded for all coins together that one comes from, and counted anew where that would refuse it', async () => {
    const roots = [payout(), payout()] as const
    const lines = roots.map((root) => chainFrom(root, 3))
    for (const [at, root] of roots.entries()) await take(root, ...(lines[at] as FakeTransaction[]))
    const joined = pay(...lines.map((line) => line.at(-1) as FakeTransaction))
    const all = [...roots, ...lines.flat()]
    await expect(take(...all, joined)).rejects.toMatchObject(refused)
    // What lost and was deleted is not counted.
    const root = payout()
    await take(root)
    const last = spending(root, 0)
    const losers = [...Array(MOST)].map(() => spending(root, 0))
    for (const each of losers) await take(root, each)
    await expect(take(root, last)).rejects.toMatchObject(refused)
    for (const { txid } of losers)
      for (const [table, column] of [
        ['pending', 'txid'],
        ['pending_spend', 'spender'],
      ])
        bounded.log(`delete from ${table} where hex(${column}) = '${txid.toUpperCase()}'`)
    await take(root, last)
    expect(bounded.pending({ last })).toEqual(['last'])
  })

  test('counts no mints behind a node that others mint, too', async () => {
    await bounded.know(bounded.chain.genesis, 100)
    const root = bounded.chain.mint('a')
    const names = ['ab', 'ac', 'ad', 'abc', 'abd', 'abe', 'acd', 'ace']
    await take(root)
    for (const name of names) await take(root, bounded.chain.mint(name))
    expect(bounded.names().length).toBeGreaterThan(MOST + 1)
  })
})
