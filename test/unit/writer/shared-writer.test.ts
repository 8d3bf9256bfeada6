import { setImmediate as nextTurn } from 'node:timers/promises'
import { FACT } from '../../../backend/src/facts/log.js'
import { appended } from '../../../backend/src/facts/shared-log.js'
import { fromHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { prunedRow } from '../../../backend/src/writer/state-changes.js'
import { MemoryLog, type MemoryRows } from '../../support/facts/memory-log.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { Random } from '../../support/random.js'
import { type Gateway, Gateways, read, submit } from '../../support/writer/gateways.js'
import { raceFor } from '../../support/writer/races.js'

let rows: MemoryRows
let gateways: Gateways
beforeEach(() => {
  rows = { id: 'ab'.repeat(16), rows: [] }
  gateways = new Gateways()
})
afterEach(() => gateways.close())

async function open(): Promise<Gateway & { log: MemoryLog }> {
  const log = new MemoryLog(rows)
  return { log, ...(await gateways.add(log)) }
}

type Coin = [transaction: FakeTransaction, vout?: number]

function spend(coins: Coin[], seed = 1): FakeTransaction {
  return gateways.chain.spend({
    inputs: coins.map(([transaction, vout = 0]) => ({ transaction, vout })),
    outputs: [{ satoshis: 1, lockingScript: p2pkh(seed) }],
  })
}

function inscribe(coins: Coin[], text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return gateways.chain.spend({
    inputs: coins.map(([transaction, vout = 0]) => ({ transaction, vout })),
    outputs: [{ satoshis: 1, lockingScript }],
  })
}

const expectEqual = (): Promise<void> => gateways.expectEqual()

const facts = (): FakeTransaction['txid'][] =>
  rows.rows.filter(({ kind }) => kind === FACT.transaction).map(({ key }) => Buffer.from(key).toString('hex'))

test('what one gateway writes, another one has once it follows', async () => {
  const [one, two] = [await open(), await open()]
  const [ordinal, money] = [inscribe([], 'text'), spend([])]
  await one.writer.record([recordOf(ordinal, 100)])
  await one.writer.record([recordOf(money)])
  const hold = (txid: string) =>
    one.writer.note('hold', { txid, lock: { height: 5, time: 6 }, beef: utf8('beef') }, { maxCount: 9 })
  // The second has come along with another submission since.
  for (const txid of ['cd'.repeat(32), ordinal.txid]) await hold(txid)
  await expectEqual()
  const built = inscribe([[ordinal], [money]], 'more')
  expect((await two.writer.record([recordOf(built)])).admitted).toHaveLength(1)
  expect(facts()).toEqual([ordinal, money, built].map(({ txid }) => txid))
  for (const txid of ['cd'.repeat(32), ordinal.txid]) await two.writer.note('release', txid)
  await expectEqual()
  expect(read(one.folder, 'select txid from pending')).toEqual([])
  expect(read(one.folder, 'select txid from held')).toEqual([])
})

test('what somebody has removed stays until nothing is read of the index, and that is derived without it', async () => {
  const [one, two] = [await open(), await open()]
  const [gone, kept] = [inscribe([], 'gone'), inscribe([], 'kept')]
  for (const each of [gone, kept]) await one.writer.record([recordOf(each)])
  await two.writer.follow()
  const stored = (): number => read(two.folder, 'select 1 from log where kind = 1').length
  const emptied: number[] = []
  const derived = new Promise<void>((resolve) => {
    two.writer.onStatus(({ state, isEmptied = false }) => {
      if (isEmptied) emptied.push(stored())
      else if (state === 'equal' && emptied.length > 0) resolve()
    })
  })
  const fact = rows.rows.find(({ kind }) => kind === FACT.transaction)
  const row = prunedRow({ kind: FACT.transaction, key: fromHex(gone.txid), seq: fact?.seq ?? 0 })
  await one.log.insert(appended(await one.log.last(), [row]))
  // What reads of it first has to be tried again.
  for (const { writer } of [one, two]) await expect(writer.follow()).rejects.toThrow('try again')
  await derived
  expect([emptied[0], stored()]).toEqual([2, 1])
  await expectEqual()
})

test('what was refused at one gateway counts there once another one has recorded why', async () => {
  const [one, two] = [await open(), await open()]
  const coin = inscribe([], 'text')
  const [winner, loser] = [spend([[coin]]), inscribe([[coin]], 'b')]
  await submit(one, [coin])
  expect(await submit(two, [winner])).toBe(true)
  expect(await submit(one, [loser])).toBe(false)
  expect(facts()).not.toContain(loser.txid)
  await two.writer.change('sightings', [{ txid: winner.txid, status: 'rejected' }])
  await one.writer.follow()
  await one.writer.follow()
  expect(facts()).toContain(loser.txid)
  await expectEqual()
})

test('gateways forget each proof of something pending whose block is disproved, the last one or not', async () => {
  const [one, two] = [await open(), await open()]
  const money = spend([])
  for (const height of [100, 101, 102]) await one.writer.record([recordOf(money, height)])
  await expectEqual()
  for (const height of [101, 102]) {
    const { proof } = recordOf(money, height)
    if (proof === undefined) throw new Error('it has a proof')
    expect(await one.writer.change('disprove', proof)).toMatchObject({ result: 1 })
    await expectEqual()
  }
  expect(read(two.folder, 'select height from pending_proof')).toEqual([{ height: 100 }])
})

test('a gateway that cannot reach the log answers so, and goes on', async () => {
  const [one, two] = [await open(), await open()]
  const [a, b, c] = ['a', 'b', 'c'].map((text) => inscribe([], text)) as [
    FakeTransaction,
    FakeTransaction,
    FakeTransaction,
  ]
  one.log.onTheWay = () => {
    throw new Error('the network is down')
  }
  await expect(submit(one, [a])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await submit(two, [b])).toBe(true)
  await one.writer.follow().catch(() => {})
  one.log.onTheWay = () => {}
  await one.writer.follow()
  // Its answer is lost: it is there.
  one.log.onTheWay = (call, when) => {
    if (call === 'insert' && when === 'behind') throw new Error('the network is down')
  }
  await expect(submit(one, [c])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  one.log.onTheWay = () => {}
  expect(await submit(one, [a])).toBe(true)
  expect(facts()).toEqual([b, c, a].map(({ txid }) => txid))
  await expectEqual()
})

test('a gateway that comes later, or again, derives the same', async () => {
  const first = await open()
  const [ordinal, money, gone] = [inscribe([], 'text'), spend([]), spend([])]
  for (const each of [ordinal, money, gone]) await submit(first, [each])
  await submit(first, [inscribe([[gone]], 'later')])
  await open()
  await expectEqual()
  await first.writer.close()
  gateways.all.shift()
  const moved = spend([[ordinal]])
  await submit(gateways.all[0] as Gateway, [moved])
  await gateways.add(new MemoryLog(rows), first.folder)
  await expectEqual()
})

test('gateways derive everything again where an earlier backup of the log was restored', async () => {
  const [one, two] = [await open(), await open()]
  const [kept, lost] = [inscribe([], 'kept'), inscribe([], 'lost')]
  await submit(one, [kept])
  await two.writer.follow()
  const backup = [...rows.rows]
  const { admitted: scores } = await one.writer.record([recordOf(lost)])
  const money = spend([])
  for (const height of [100, 101]) await one.writer.record([recordOf(money, height)])
  rows.rows = backup
  const other = inscribe([], 'other')
  expect(await submit(two, [other])).toBe(true)
  await expect(submit(one, [inscribe([], 'x')])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await submit(one, [inscribe([], 'y')])).toBe(true)
  expect(facts()).not.toContain(lost.txid)
  await expectEqual()
  expect(read(one.folder, 'select txid from pending union select txid from pending_proof')).toEqual([])
  // What is admitted from now on is offered to peers behind what they may have heard of.
  const { admitted } = await one.writer.record([recordOf(inscribe([], 'z'))])
  expect(admitted[0]?.score).toBeGreaterThan(scores[0]?.score ?? 0)
  expect(read(one.folder, 'select seq from log where kind = 5')).toHaveLength(2)
})

/** How many random histories, and the number of the first. */
const [RUNS, SEED] = [Number(process.env.RUNS ?? 3), Number(process.env.SEED ?? 1)]

describe.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
  'random histories of three gateways at once, %d',
  (seed) => {
    test('give one index, and exactly one of those that spend a coin is answered 200', async () => {
      const random = new Random(seed)
      const all = [await open(), await open(), await open()]
      for (const { log } of all)
        log.onTheWay = async () => {
          for (let turns = random.below(4); turns > 0; turns--) await nextTurn()
        }
      await raceFor(25, { gateways, random })
      await expectEqual()
    })
  },
)
