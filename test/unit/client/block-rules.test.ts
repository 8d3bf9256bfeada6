import type { NameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { verifyNameProof } from '../../../src/client/verify-name.js'
import { verifyNextOutput, verifyOutput } from '../../../src/client/verify-output.js'
import type { Headers } from '../../../src/client/verify-transactions.js'
import { at, outpointBeef, recordsOf } from '../../support/client/name-proofs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'

// What no block holds yet is believed only if the next block could hold it, by the rules of the server's door.

const NOW = Math.floor(Date.now() / 1000)
const DAY = 24 * 60 * 60
const chain = new FakeChain({ covenantVersion: 1 })
const coins = (count: number, satoshis = 1) => new Array(count).fill({ satoshis, lockingScript: OPEN_LOCK })
const purse = chain.spend({ inputs: [], outputs: coins(4, 1000) })
const mint = chain.mint('a', { ownerLock: OPEN_LOCK })
const mined = [chain.genesis, purse, mint]
const TIP = mint.height + 10

function trackerAt(tip: number, transactions: readonly FakeTransaction[] = mined): Exclude<Headers, string> {
  const heights = new Map(transactions.map(({ txid, height }) => [txid, height]))
  return {
    isValidRootForHeight: async (root, height) => heights.get(root) === height,
    currentHeight: async () => tip,
  }
}

const moved = (lock: { lockTime?: number; sequence?: number }, from = at(mint, 2)): FakeTransaction =>
  chain.spend({ inputs: [from, at(purse, 0)], outputs: coins(1), ...lock })

/** An index that shows the name after some steps. */
const index = (name: string, steps: readonly FakeTransaction[], spent = false): NameSource => {
  const tip = steps.length === 0 ? at(mint, 2) : at(steps.at(-1) as FakeTransaction, 0)
  const beef = outpointBeef(tip, recordsOf([...mined, ...steps], steps)).subarray(40)
  return {
    index: name,
    ask: async () => [{ index: name, kind: 'claimed', evidence: { form: 'history', beef, tip }, spent }],
  }
}

const resolve = async (sources: NameSource[], chainTracker: Headers = trackerAt(TIP)) =>
  await resolveName({ name: 'a', deployment: chain.deployment, chainTracker, sources })

const WAITING = 0xfffffffe
const LOCKS: [what: string, lock: { lockTime: number; sequence?: number }, isOver: boolean][] = [
  ['a height years ahead', { lockTime: 2_000_000, sequence: 0 }, false],
  ['the block after the next one', { lockTime: TIP + 1, sequence: WAITING }, false],
  ['the next block', { lockTime: TIP, sequence: WAITING }, true],
  ['a block long ago', { lockTime: 1, sequence: 0 }, true],
  ['a time ahead', { lockTime: NOW + DAY, sequence: WAITING }, false],
  ['a time ago', { lockTime: NOW - DAY, sequence: WAITING }, true],
  ['the last time there is', { lockTime: 0xffffffff, sequence: 0 }, false],
  ['a height years ahead, with final inputs', { lockTime: 2_000_000 }, true],
]

describe.each(LOCKS)('a transfer that is locked until %s', (_, lock, isOver) => {
  const transfer = moved(lock)
  const honest = index('honest', [])
  const locked = index('locked', [transfer])

  test.each([
    ['first', [locked, honest]],
    ['last', [honest, locked]],
  ])(
    'is the tip if it is final, and else no reason to call the honest index stale, asked %s',
    async (_, sources) => {
      const { tip, reports, spendStatus } = await resolve(sources)
      const verdicts = Object.fromEntries(reports.map((report) => [report.index, report.verdict]))
      expect([tip.tip, verdicts, spendStatus]).toEqual([
        isOver ? at(transfer, 0) : at(mint, 2),
        isOver ? { honest: 'stale', locked: 'agrees' } : { honest: 'agrees', locked: 'refuted' },
        'unspent',
      ])
    },
  )

  test('is the same below a transfer that is not locked', async () => {
    const child = chain.spend({ inputs: [at(transfer, 0)], outputs: coins(1) })
    const { tip } = await resolve([index('locked', [transfer, child]), honest])
    expect(tip.tip).toEqual(isOver ? at(child, 0) : at(mint, 2))
  })

  test('is the same for a step of an ordinal, and for an output', async () => {
    const proof = outpointBeef(at(transfer, 0), recordsOf([purse, mint, transfer], [transfer]))
    const trust = { proof, chainTracker: trackerAt(TIP) }
    for (const check of [
      () => verifyNextOutput({ ...trust, from: at(mint, 2) }),
      () => verifyOutput({ ...trust, pointer: { kind: 'outpoint', outpoint: at(transfer, 0) } }),
    ]) {
      const checked = await check().catch((error: unknown) => error)
      expect(checked).toMatchObject(isOver ? { outpoint: at(transfer, 0) } : { code: 'NOT_FINAL' })
    }
  })

  test('is the same for a mint', async () => {
    const locked = chain.mint('b', { from: chain.node(''), funding: [at(purse, 1)], ...lock })
    const proof = outpointBeef(at(locked, 2), recordsOf([...mined, locked], [locked]))
    const check = { proof, name: 'b', deployment: chain.deployment, chainTracker: trackerAt(TIP) }
    const checked = await verifyNameProof(check).catch((error: unknown) => error)
    expect(checked).toMatchObject(isOver ? { proven: false } : { code: 'NOT_FINAL' })
  })
})

const lockedUntil = (lockTime: number) => [index('one', [moved({ lockTime, sequence: 0 })])]

test.each<[what: string, Headers]>([
  ['its chain tracker confirms', { isValidRootForHeight: trackerAt(TIP).isValidRootForHeight }],
  ['are shown, without headers', 'scripts only'],
])('where nobody says how high the chain is, it has the blocks that %s', async (_, tracker) => {
  expect((await resolve(lockedUntil(mint.height), tracker)).tip.sequence).toBe(1)
  await expect(resolve(lockedUntil(mint.height + 1), tracker)).rejects.toMatchObject({
    reports: [{ verdict: 'refuted', error: { code: 'NOT_FINAL' } }],
  })
})

test('a chain tracker that does not answer refutes nothing', async () => {
  const tracker = { ...trackerAt(TIP), currentHeight: () => Promise.reject(new Error('away')) }
  await expect(resolve(lockedUntil(1), tracker)).rejects.toMatchObject({ name: 'HeadersError' })
})

test('a coinbase is spent when it has a hundred confirmations', async () => {
  const nothing = { txid: '0'.repeat(64), vout: 0xffffffff }
  const coinbase = chain.spend({ inputs: [nothing], outputs: coins(1) })
  const spender = chain.spend({ inputs: [at(coinbase, 0)], outputs: coins(1) })
  const proof = outpointBeef(at(spender, 0), recordsOf([coinbase, spender], [spender]))
  const pointer = { kind: 'outpoint', outpoint: at(spender, 0) } as const
  const check = async (tip: number) =>
    await verifyOutput({ proof, pointer, chainTracker: trackerAt(tip, [coinbase]) })
  await expect(check(coinbase.height + 98)).rejects.toMatchObject({ code: 'NOT_FINAL' })
  expect(await check(coinbase.height + 99)).toMatchObject({ outpoint: at(spender, 0) })
})
