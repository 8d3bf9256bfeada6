import { Beef } from '@bsv/sdk'
import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import {
  type ProvenanceTrust,
  tampered,
  verifyProvenance,
} from '../../../support/graph/provenance-verifier.js'
import {
  beefOf,
  FakeChain,
  type FakeCoin,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { type Answer, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const chain = new FakeChain()
const server = await start(treeOf(chain.deployment))

/** The blocks of the fake chain: each holds one transaction, whose txid is its merkle root. */
const blocks = new Map<number, string>()
const trust: ProvenanceTrust = { isRoot: (root, height) => blocks.get(height) === root }

const made = (transaction: FakeTransaction): FakeTransaction => {
  blocks.set(transaction.height, transaction.txid)
  return transaction
}
const spend = (inputs: (FakeTransaction | FakeCoin)[], outputs: FakeOutput[]): FakeTransaction =>
  made(chain.spend({ inputs, outputs }))
const output = (satoshis: number, lockingScript = p2pkh(1)): FakeOutput => ({ satoshis, lockingScript })
const purse = (satoshis: number): FakeTransaction => spend([], [output(satoshis, OPEN_LOCK)])
const inscribed = (text: string, lock = p2pkh(1)): FakeOutput =>
  output(1, inscriptionScript({ contentType: 'text/plain', body: utf8(text), lock }))
const mapped = (step: string): FakeOutput => output(1, concatBytes(p2pkh(2), mapTail({ step })))

async function submit(
  transaction: FakeTransaction,
  options: Parameters<typeof beefOf>[1] & { topics?: string[]; to?: TestServer } = {},
): Promise<void> {
  const { topics = ['tm_ordinals'], to = server, ...beef } = options
  await to.take(beefOf(transaction, beef), topics)
}

const provenance = (outpoint: string, question?: Parameters<TestServer['ask']>[1]): Promise<Answer> =>
  server.ask(`/svc/gateway/provenance/${outpoint}`, question)

/** Asks for a provenance and checks it, and that nothing of it can be left out or changed. */
async function expectShown(
  asked: string,
  shown: { tip: string; origin: string; steps: number; with: FakeTransaction[] },
  starts: string[] = [],
): Promise<void> {
  const { status, headers, body } = await provenance(asked)
  expect([status, headers['cache-control']]).toEqual([200, 'no-cache'])
  expect(headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
  })
  const verified = verifyProvenance(body, { ...trust, starts })
  expect(verified).toMatchObject({ tip: shown.tip, origin: shown.origin })
  expect(verified.path).toHaveLength(shown.steps)
  for (const { raw } of shown.with) expect(body.includes(Buffer.from(raw))).toBe(true)
  const others = tampered(body)
  const lacking = others.filter(({ what }) => what.endsWith('left out'))
  expect(lacking).toHaveLength(shown.with.length)
  const undetected = others.filter((other) => {
    try {
      verifyProvenance(other.bytes, { ...trust, starts })
      return true
    } catch {
      return false
    }
  })
  expect(undetected.map(({ what }) => what)).toEqual([])
}

describe('an ordinal with MAP at four steps', () => {
  const funding = purse(5)
  const origin = spend([funding], [inscribed('four steps')])
  const steps = [origin]
  for (const step of ['1', '2', '3', '4']) steps.push(spend([steps.at(-1) ?? origin], [mapped(step)]))
  const tip = steps.at(-1) ?? origin
  beforeAll(async () => {
    for (const [i, step] of steps.entries()) await submit(step, { with: [steps[i - 1] ?? funding] })
  })

  test('is shown from its tip to its origin, and that nothing came before, wherever it is asked', async () => {
    const shown = { tip: tip.outpoint(0), origin: origin.outpoint(0), steps: 5, with: [funding, ...steps] }
    for (const step of steps) await expectShown(step.outpoint(0), shown)
  })

  test.each<[string, () => string[], number]>([
    ['what follows the last step that a caller knows', () => [origin.outpoint(0), stepAt(2).outpoint(0)], 3],
    ['all of it to callers who know other outputs', () => [stepAt(2).outpoint(1), `${'7'.repeat(64)}_0`], -1],
    ['the tip in any case', () => [tip.outpoint(0)], 4],
  ])('is shown with %s', async (_, known, from) => {
    const { status, headers, body } = await provenance(`${origin.outpoint(0)}?known=${known().join(',')}`)
    expect({ status, cache: headers['cache-control'] }).toEqual({ status: 200, cache: 'no-cache' })
    const shown = Beef.fromBinary(Array.from(body.subarray(40))).txs.map(({ txid }) => txid)
    const all = [funding, ...steps].map(({ txid }) => txid)
    expect(shown).toEqual(all.slice(from + 1))
  })
  const stepAt = (at: number): FakeTransaction => steps[at] ?? origin

  test('is no sequence, no transaction and no path', async () => {
    const { txid } = origin
    const none = [
      '',
      'x',
      txid,
      `${txid}_0:1`,
      `${txid}_0/1`,
      `_0`,
      `${txid}_01`,
      `${txid}_0%zz`,
      `${txid}_0?known=x`,
    ]
    for (const asked of none) {
      expectError(await provenance(asked), { status: 400, code: 'BAD_OUTPOINT' })
    }
  })

  test('breaks the connection if a listed transaction is gone, and never looks complete', async () => {
    const { graph } = server.node
    const read = graph.transactions.raw.bind(graph.transactions)
    let listed = 0
    await whileReplaced(graph.transactions, 'raw', {
      by(txid) {
        if (txid === tip.txid) listed++
        return listed > 1 ? undefined : read(txid)
      },
      during: () =>
        expect(provenance(tip.outpoint(0), { agent: false })).rejects.toThrow(/aborted|hang up|ECONNRESET/),
    })
    expect((await provenance(tip.outpoint(0))).status).toBe(200)
  })
})

describe('ordinals that move together among larger coins', () => {
  const [first, second] = [purse(9), purse(9)]
  const one = spend([first], [output(4), inscribed('one')])
  const two = spend([second], [inscribed('two')])
  const [large, small, fee] = [purse(300), purse(70), purse(500)]
  const values = [100, 200, 1, 0, 70].map((satoshis) => output(satoshis))
  const all = spend(
    [large, { transaction: one, vout: 1 }, small, two, fee],
    [...values, mapped('two'), inscribed('three'), output(9)],
  )
  beforeAll(async () => {
    await submit(one, { with: [first] })
    await submit(two, { with: [second] })
    await submit(all, { with: [fee, large, one, small, two] })
  })

  test.each<[string, number, string, number, FakeTransaction[]]>([
    ['the first by what is before it', 2, one.outpoint(1), 2, [first, one, large, all]],
    ['the second by that and more', 5, two.outpoint(0), 2, [one, second, two, large, small, all]],
    ['a new one by the coin that it comes out of', 6, all.outpoint(6), 1, [one, two, large, small, fee, all]],
  ])('show %s', async (_, vout, origin, steps, shown) => {
    // What only places an ordinal comes without what places it in turn.
    await expectShown(all.outpoint(vout), { tip: all.outpoint(vout), origin, steps, with: shown })
  })

  test('come without the known step, but with what places them after it', async () => {
    const { body } = await provenance(`${all.outpoint(5)}?known=${two.outpoint(0)}`)
    const shown = Beef.fromBinary(Array.from(body.subarray(40))).txs.map(({ txid }) => txid)
    expect(new Set(shown)).toEqual(new Set([large, one, small, all].map(({ txid }) => txid)))
  })
})

test('what is not mined is shown with its ancestors, down to what is', async () => {
  const [funding, fee, other] = [purse(5), purse(40), purse(40)]
  const open = inscribed('in the open', OPEN_LOCK)
  const origin = spend([funding], [open])
  const waiting = spend([origin, fee], [output(1, OPEN_LOCK), output(30)])
  const mined = spend([waiting], [output(1, OPEN_LOCK)])
  const tip = spend([mined, other], [output(1), output(30)])
  await submit(origin, { with: [funding] })
  await submit(waiting, { proven: false, with: [origin, fee] })
  await submit(mined, { with: [origin, fee, waiting], unproven: [waiting] })
  await submit(tip, { proven: false, with: [mined, other] })
  await expectShown(origin.outpoint(0), {
    tip: tip.outpoint(0),
    origin: origin.outpoint(0),
    steps: 4,
    with: [funding, origin, fee, waiting, mined, other, tip],
  })
})

test('what places an ordinal has its path once it was submitted by itself', async () => {
  const funding = purse(3)
  const origin = spend([funding], [inscribed('paid for')])
  await submit(origin, { with: [funding], unproven: [funding] })
  const beefOfAnswer = async (): Promise<[Beef, string | undefined]> => {
    const { body, headers } = await provenance(origin.outpoint(0))
    return [Beef.fromBinary(Array.from(body.subarray(40))), headers.etag]
  }
  const [before, tag] = await beefOfAnswer()
  expect(before.txs.map(({ bumpIndex }) => bumpIndex === undefined)).toEqual([true, false])
  expect(before.isValid()).toBe(false)
  await submit(funding)
  const [after, newTag] = await beefOfAnswer()
  expect(after.txs.map(({ bumpIndex }) => bumpIndex === undefined)).toEqual([false, false])
  expect(after.isValid()).toBe(true)
  expect(newTag).not.toBe(tag)
  const shown = { tip: origin.outpoint(0), origin: origin.outpoint(0), steps: 1, with: [funding, origin] }
  await expectShown(origin.outpoint(0), shown)
})
