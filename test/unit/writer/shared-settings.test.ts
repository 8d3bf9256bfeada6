import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { vi } from 'vitest'
import type { Sql } from '../../../backend/src/facts/connection.js'
import { FACT } from '../../../backend/src/facts/log.js'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { pinTree, treeDifference } from '../../../backend/src/graph/pinned-tree.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { SharedWriter } from '../../../backend/src/writer/shared-writer.js'
import { MemoryLog, type MemoryRows } from '../../support/facts/memory-log.js'
import { IS_NIGHTLY, rounds } from '../../support/nightly.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript } from '../../support/protocol/fake-chain.js'
import { Random } from '../../support/random.js'
import { until } from '../../support/server/waiting.js'
import { type Gateway, Gateways, indexIn, submit } from '../../support/writer/gateways.js'
import { raceFor } from '../../support/writer/races.js'

// Gateways over one log that differ, or that are stopped: their clocks, their policies and limits, and how fast they are.

let rows: MemoryRows
let gateways: Gateways
beforeEach(() => {
  rows = { id: 'ab'.repeat(16), rows: [] }
  gateways = new Gateways()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await gateways.close()
})

async function open(own?: Partial<AdmissionOptions>): Promise<Gateway & { log: MemoryLog }> {
  const log = new MemoryLog(rows)
  return { log, ...(await gateways.add(log, undefined, own)) }
}

const SEED = Number(process.env.SEED ?? 1)
const seeds = Array.from({ length: rounds(1, 10) }, (_, run) => SEED + run)

/** Calls of the log that take a random time. */
function delay(all: readonly { log: MemoryLog }[], random: Random): void {
  for (const { log } of all)
    log.onTheWay = async () => {
      for (let turns = random.below(4); turns > 0; turns--) await nextTurn()
    }
}

test.each(seeds)(
  'of gateways whose clocks are seconds apart, each has the index of the others, %d',
  async (seed) => {
    const random = new Random(seed)
    const { now } = Date
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 1000 * (random.below(7) - 3))
    const all = [await open(), await open(), await open()]
    delay(all, random)
    await raceFor(25, { gateways, random })
    await gateways.expectEqual()
  },
)

test.each(seeds)(
  'of gateways with other policies and limits, each has the index of the others, %d',
  async (seed) => {
    const random = new Random(seed)
    const { deployment } = gateways.chain
    const strict: Partial<AdmissionOptions> = {
      rules: admissionRules({ deployment, policy: { maxContentBytes: 8 } }),
      pending: { maxTransactions: 25, maxBytes: 20_000 },
      waiting: { maxTransactions: 3, maxBytes: 10_000 },
    }
    const all = [
      await open(),
      await open(strict),
      await open({ pending: { maxTransactions: 40, maxBytes: 1e6 } }),
    ]
    delay(all, random)
    await raceFor(25, { gateways, random })
    await gateways.expectEqual()
  },
)

test('of gateways that pin trees at once, those that pin another one than the first learn of it', async () => {
  const all = [await open(), await open(), await open()]
  delay(all, new Random(SEED))
  const { deployment } = gateways.chain
  const { genesis, difficulty } = deployment
  const trees = [
    deployment,
    { ...deployment, difficulty: difficulty + 1 },
    { ...deployment, genesis: { ...genesis, vout: 1 } },
  ]
  const differences = await Promise.all(
    all.map(async ({ folder, writer }, at) => {
      const reader = new Reader(storeFiles(folder))
      const { settings } = new FactStore({ reader, writer })
      const tree = trees[at] as (typeof trees)[number]
      await pinTree(settings, tree)
      const difference = await treeDifference(settings, { ...tree, place: 'this log' })
      reader.close()
      return difference
    }),
  )
  expect(differences.filter((difference) => difference === undefined)).toHaveLength(1)
  // Nothing that was pinned was replaced: each register of the log has one value.
  const pinned = rows.rows.filter(({ kind, key }) => kind === FACT.register && !/base/.test(String(key)))
  expect(pinned.map(({ key }) => key.at(-1))).toEqual(pinned.map(() => 1))
})

/** Stops what a gateway inserts next on its way. Resolves once it is there, with what lets it go on. */
function stopped({ log }: { log: MemoryLog }): Promise<() => void> {
  return new Promise((arrive) => {
    log.onTheWay = (call, when) => {
      if (call !== 'insert' || when !== 'before') return
      return new Promise((resume) =>
        arrive(() => {
          log.onTheWay = () => {}
          resume()
        }),
      )
    }
  })
}

test('a gateway that is stopped before its batch arrives, for as long as one likes, decides again by what others wrote', async () => {
  const [one, two] = [await open(), await open()]
  const coin = inscribe([], 'coin')
  await submit(one, [coin])
  const arrived = stopped(one)
  const late = submit(one, [inscribe([coin], 'late')])
  const resume = await arrived
  expect(await submit(two, [inscribe([coin], 'first')])).toBe(true)
  for (let count = 0; count < 20; count++) await submit(two, [inscribe([], `other ${count}`)])
  resume()
  expect(await late).toBe(false)
  expect(rows.rows.filter(({ kind }) => kind === FACT.transaction)).toHaveLength(22)
  await gateways.expectEqual()
})

test('what the policy of a gateway said of a transaction is forgotten where another one was first to store it', async () => {
  const { deployment } = gateways.chain
  const strict = await open({
    rules: admissionRules({ deployment, policy: { maxContentBytes: 8 } }),
  })
  const other = await open()
  const parent = inscribe([], 'longer than eight bytes')
  // Its parent has a row in each index before it is stored.
  await submit(other, [inscribe([parent], 'child')])
  const arrived = stopped(strict)
  const late = submit(strict, [parent])
  const resume = await arrived
  expect(await submit(other, [parent])).toBe(true)
  resume()
  expect(await late).toBe(true)
  await gateways.expectEqual()
})

const REFUSED = IS_NIGHTLY ? 10_000 : 100

test('refused submissions leave the log as it was, however many they are', async () => {
  const waiting = { maxTransactions: 20, maxBytes: 1e6 }
  const all = [await open({ waiting }), await open({ waiting })] as const
  const coin = inscribe([], 'coin')
  await submit(all[0], [coin])
  await submit(all[0], [inscribe([coin], 'spent')])
  const [count, notes] = [rows.rows.length, rows.notes?.size]
  for (let index = 0; index < REFUSED; index++)
    expect(await submit(all[index % 2] as Gateway, [inscribe([coin], String(index))])).toBe(false)
  expect([rows.rows.length, rows.notes?.size]).toEqual([count, notes])
  for (const { writer } of all) {
    const { logFile } = writer as unknown as { logFile: Sql }
    expect(logFile.all('select * from captured')).toEqual([])
  }
  await gateways.expectEqual()
})

function inscribe(coins: FakeTransaction[], text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return gateways.chain.spend({
    inputs: coins.map((transaction) => ({ transaction, vout: 0 })),
    outputs: [{ satoshis: 1, lockingScript }],
  })
}

test('a gateway that was open before another one said by what the index is derived derives it by that', async () => {
  const first = await open()
  const note = gateways.chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
  await first.writer.record([recordOf(note, 100)])
  const second = new SharedWriter({
    folder: mkdtempSync(join(tmpdir(), 'gateway-')),
    shared: new MemoryLog(rows),
  })
  await second.logRead
  await second.setting('tracker', 'headers')
  await second.close()
  await first.writer.follow().catch(() => {})
  // No header says that the chain has its block.
  await until(async () => indexIn(first.folder).proof?.[0]?.endsWith('"ok":0}') === true, 'it counts no more')
  await gateways.expectEqual()
})

test('a gateway without a tree stores and derives nothing, and does no jobs, once another one has pinned a tree', async () => {
  const bare: Partial<AdmissionOptions> = { rules: admissionRules({ deployment: undefined }) }
  const one = await open(bare)
  expect(await submit(one, [inscribe([], 'note')])).toBe(true)
  await one.writer.seekJobs(['follow'])
  await one.writer.beat()
  const two = await open()
  await two.writer.setting('genesis', formatOutpoint(gateways.chain.deployment.genesis))
  const refusal = { cause: { message: expect.stringContaining('pinned a tree') } }
  await expect(submit(one, [inscribe([], 'late')])).rejects.toMatchObject(refusal)
  await expect(open(bare)).rejects.toMatchObject(refusal)
  expect(await submit(two, [inscribe([], 'other')])).toBe(true)
  // Nor does it keep others from doing its jobs.
  expect(one.writer.status.jobs).toContain('follow')
  await one.writer.beat()
  await two.writer.seekJobs(['follow'])
  await two.writer.beat()
  expect([one, two].map(({ writer }) => writer.status.jobs?.includes('follow'))).toEqual([false, true])
})
