import { Sql } from '../../../backend/src/facts/connection.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { MemoryLog, type MemoryRows } from '../../support/facts/memory-log.js'
import { recordOf } from '../../support/protocol/block.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type Gateway, Gateways, submit } from '../../support/writer/gateways.js'

// A gateway ends before any of its statements, and before and behind any of its calls of the log. What it had answered is there,
// what it had not is there as a whole or not at all, and started again it has the index of the others.

/** Before which statements: each of them by `KILL_EVERY=1`; a sample by default. */
const EVERY = Number(process.env.KILL_EVERY ?? 41)
const METHODS = ['run', 'get', 'all', 'insert', 'exec'] as const

const chain = new FakeChain()
const one = { satoshis: 1, lockingScript: p2pkh(1) }
const coin = chain.inscribe({ contentType: 'text/plain', body: utf8('text') })
const money = chain.spend({ inputs: [], outputs: [one] })
const spendBoth = (text: string): FakeTransaction =>
  chain.spend({
    inputs: [
      { transaction: coin, vout: 0 },
      { transaction: money, vout: 0 },
    ],
    outputs: [
      { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(text) }) },
    ],
  })
const [moved, rival] = [spendBoth('a'), spendBoth('b')]

/** What the gateway does, and each time it was answered. */
async function live(gateway: Gateway, other: Gateway, answered: (name: string) => void): Promise<void> {
  const { writer } = gateway
  await submit(gateway, [coin])
  answered('coin')
  await submit(other, [chain.genesis])
  await submit(gateway, [money])
  answered('money')
  await writer.note(
    'hold',
    { txid: 'cd'.repeat(32), lock: { height: 5, time: 6 }, beef: utf8('b') },
    { maxCount: 9 },
  )
  answered('held')
  await submit(gateway, [moved])
  answered('moved')
  await submit(gateway, [rival])
  await submit(other, [rival])
  await writer.note('release', 'cd'.repeat(32))
  answered('released')
  await writer.record([recordOf(rival, 100)])
  answered('rival')
}

/** Ends a gateway before its n-th statement or call: nothing of it happens from then on. Returns how many there were. */
function endAt(n: number, { writer, log }: Gateway & { log: MemoryLog }): () => number {
  const files = ['logFile', 'indexFile'].map(
    (name) => (writer as unknown as Record<string, Sql>)[name] as Sql,
  )
  let count = 0
  const step = (): void => {
    if (count++ === n)
      for (const file of files) {
        // As SQLite does with what a process leaves open.
        if (file.inTransaction) Sql.prototype.exec.call(file, 'rollback')
        file.close()
      }
    if (count > n) throw new Error('the process has ended')
  }
  for (const file of files)
    for (const method of METHODS) {
      const original = Sql.prototype[method] as (...values: unknown[]) => unknown
      Object.assign(file, {
        [method]: (...values: unknown[]) => {
          step()
          return original.apply(file, values)
        },
      })
    }
  log.onTheWay = step
  return () => count
}

async function run(n: number): Promise<number> {
  const rows: MemoryRows = { id: 'ab'.repeat(16), rows: [] }
  const gateways = new Gateways(chain)
  const log = new MemoryLog(rows)
  const [other, ended] = [await gateways.add(new MemoryLog(rows)), { log, ...(await gateways.add(log)) }]
  const count = endAt(n, ended)
  const done: string[] = []
  await live(ended, other, (name) => done.push(name)).catch((error: Error) => {
    if (!/has ended|does not respond/.test(error.message)) throw error
  })
  await ended.writer.close().catch(() => {})
  gateways.all.pop()
  const again = await gateways.add(new MemoryLog(rows), ended.folder)
  await gateways.expectEqual()
  const has = (name: string): boolean => done.includes(name)
  const state = gateways.found(again)
  if (has('coin')) expect(state.facts).toContain(coin.txid)
  if (has('money') && !has('moved')) expect([...state.pending, ...state.facts]).toContain(money.txid)
  if (has('held') && !has('moved')) expect(state.held).toHaveLength(1)
  if (has('released')) expect(state.held).toHaveLength(0)
  if (has('moved')) expect(state.facts).toEqual(expect.arrayContaining([money.txid, moved.txid]))
  if (has('rival')) expect(state.active).toContain(rival.txid)
  // It goes on as if nothing had happened.
  await live(again, other, () => {})
  await gateways.expectEqual()
  expect(gateways.found(again).active).toContain(rival.txid)
  await gateways.close()
  return count()
}

test('a gateway that ends at any time has lost nothing that it answered, and is as the others when it is started again', async () => {
  const all = await run(Number.POSITIVE_INFINITY)
  expect(all).toBeGreaterThan(300)
  for (let n = 0; n < all; n += EVERY) await run(n)
})
