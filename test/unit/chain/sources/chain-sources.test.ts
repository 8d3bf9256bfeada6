import { type Outpoint, parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import type { ChainSources } from '../../../../src/chain/sources/chain-sources.js'
import { type OpenSourcesOptions, openSources } from '../../../../src/chain/sources/open-sources.js'
import { type ChainService, paidChain, type ServiceKind } from '../../../support/follow/chain-services.js'
import type { Fault } from '../../../support/follow/fake-service.js'
import { proofIn } from '../../../support/protocol/block.js'
import type { FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { serving } from '../../../support/server/connections.js'
import type { HeaderChain } from '../../../support/server/header-chain.js'

const LIMIT = { maxBytes: 100_000 }

type World = ReturnType<typeof paidChain> & {
  /** In order of preference. */
  all: ChainService[]
  sources: ChainSources
  warnings: string[]
}

/** Sources of these kinds that agree; only the first unspent answers of each are compared. */
async function setUp(
  kinds: ServiceKind[],
  options: Partial<OpenSourcesOptions> = {},
): Promise<World & { first: ChainService; second: ChainService }> {
  const world = paidChain()
  const { services } = world
  const all = kinds.map((kind) => services.service(kind))
  const addresses = await Promise.all(
    all.map(async ({ listener }, index) => {
      const { url } = await serving(listener)
      return { kind: kinds[index] ?? 'junglebus', url }
    }),
  )
  const warnings: string[] = []
  const logger = { info: () => {}, warn: (message: unknown) => void warnings.push(String(message)) }
  const usual = { rate: 10_000, firstRest: 3_600_000, patience: 0, random: () => 1 }
  const sources = openSources({ ...usual, addresses, logger, ...options })
  onTestFinished(() => sources.close())
  const [first, second = first] = all as [ChainService, ...ChainService[]]
  return { ...world, all, sources, warnings, first, second }
}

const spenderIn = async (sources: ChainSources, outpoint: Outpoint): Promise<string | undefined> =>
  (await sources.spenderOf(outpoint, LIMIT))?.txid

const BROKEN: Fault = { kind: 'status', status: 403 }

describe('a source that fails', () => {
  test('rests while the next one is asked, and says so', async () => {
    const { sources, first, second, coin, warnings } = await setUp(['junglebus', 'whatsonchain'])
    first.fault = () => BROKEN
    expect((await sources.transaction(coin.txid, LIMIT))?.txid).toBe(coin.txid)
    expect(await spenderIn(sources, parseOutpoint(coin.outpoint(0)))).toBeUndefined()
    // The two of the first question only.
    expect(first.asked.length).toBeLessThanOrEqual(2)
    expect(second.asked.length).toBeGreaterThan(0)
    const [resting, other] = sources.status()
    expect(resting).toMatchObject({
      ...{ state: 'resting', name: expect.stringMatching(/^junglebus http:\/\/127\.0\.0\.1:\d+$/) },
      lastError: { message: expect.stringContaining('answered 403') },
    })
    expect(resting?.restingUntil).toBeGreaterThan(Date.now())
    expect(other).toMatchObject({ state: 'ok', failures: 0 })
    expect(warnings.filter((line) => line.includes('rests for'))).toHaveLength(1)
  })

  test('is asked again by itself, and preferred again', async () => {
    const { sources, first, second, coin } = await setUp(['junglebus', 'whatsonchain'], { firstRest: 1 })
    first.fault = () => BROKEN
    await sources.transaction(coin.txid, LIMIT)
    first.fault = () => undefined
    await sources.transaction(coin.txid, LIMIT)
    const before = second.asked.length
    await sources.transaction(coin.txid, LIMIT)
    expect(second.asked).toHaveLength(before)
    expect(sources.status()[0]).toMatchObject({ state: 'ok' })
  })

  test.each<[string, Fault]>([
    ['hangs up', 'cut'],
    ['is busy', { kind: 'busy', until: '3600' }],
    ['returns half', 'half'],
    ['returns another transaction', 'other'],
    ['returns without end', 'long'],
  ])('because it %s is not the last word', async (_, fault) => {
    const { sources, services, first, coin, pay } = await setUp(['junglebus', 'whatsonchain'])
    services.know(pay({ transaction: coin, vout: 0 }))
    first.fault = () => fault
    expect((await sources.transaction(coin.txid, LIMIT))?.txid).toBe(coin.txid)
  })

  test('and is the only one is waited for, but not for ever', async () => {
    const { sources, first, coin } = await setUp(['junglebus'], { firstRest: 1, patience: 30_000 })
    let failures = 0
    first.fault = () => (failures++ < 8 ? BROKEN : undefined)
    expect((await sources.transaction(coin.txid, LIMIT))?.txid).toBe(coin.txid)
    const impatient = await setUp(['junglebus'], { patience: 100 })
    impatient.first.fault = () => BROKEN
    const asking = () => spenderIn(impatient.sources, parseOutpoint(coin.outpoint(0)))
    await expect(asking()).rejects.toMatchObject({ code: 'NO_ANSWER' })
    await expect(asking()).rejects.toMatchObject({
      code: 'NO_ANSWER',
      message: expect.stringMatching(/rests for 600 seconds.*answered 403/),
    })
    expect(impatient.first.asked).toHaveLength(1)
  })

  test.each<[string, Fault[]]>([
    ['at once', ['half']],
    ['after it was waited for', [BROKEN, 'half']],
    ['before it is waited for', ['half', BROKEN]],
  ])('is asked once more for an answer that was cut, %s', async (_, faults) => {
    const { sources, services, first, coin } = await setUp(['junglebus'], { firstRest: 1, patience: 30_000 })
    first.fault = (_path, nth) => faults[nth]
    expect(await sources.proof(coin.txid)).toEqual(services.facts.transaction(coin.txid)?.proof)
    expect(first.asked).toHaveLength(faults.length + 1)
  })

  test('is not asked a third time for an answer that it cuts', async () => {
    const { sources, first, coin } = await setUp(['junglebus'])
    first.fault = () => 'half'
    await expect(sources.proof(coin.txid)).rejects.toMatchObject({ code: 'BAD_ANSWER' })
    expect(first.asked).toHaveLength(2)
  })

  test('leaves unknown what it may know', async () => {
    const { sources, first } = await setUp(['junglebus'])
    first.fault = () => BROKEN
    await expect(sources.transaction('12'.repeat(32), LIMIT)).rejects.toMatchObject({ code: 'NO_ANSWER' })
  })
})

describe('a transaction', () => {
  test('that one source does not know is asked of the next', async () => {
    const { sources, first, coin } = await setUp(['junglebus', 'junglebus'])
    first.forget(coin.txid)
    expect((await sources.transaction(coin.txid, LIMIT))?.txid).toBe(coin.txid)
    expect(await sources.transaction('12'.repeat(32), LIMIT)).toBeUndefined()
  })

  test('gets its proof from another source if the first has none', async () => {
    const { sources, services, first, coin } = await setUp(['junglebus', 'whatsonchain'])
    first.misplace(coin.txid, undefined)
    expect(await sources.transaction(coin.txid, LIMIT)).toEqual(services.facts.transaction(coin.txid))
  })

  test('is not believed to be in a block that is not in the chain, and that is reported once', async () => {
    const chains: HeaderChain[] = []
    const verdict: OpenSourcesOptions['verdict'] = async ({ height, root }) =>
      chains[0]?.rootAt(height) === root ? 'yes' : 'no'
    const { chain, sources, services, first, coin, warnings } = await setUp(['junglebus', 'whatsonchain'], {
      verdict,
    })
    chains.push(chain)
    const fork = chain.fork(chain.bestTip.height - 1)
    fork.mine([])
    const path = fork.mine([coin]).path(coin.txid)
    const elsewhere = proofIn(path, coin)
    first.misplace(coin.txid, elsewhere)
    for (let times = 0; times < 2; times++)
      expect(await sources.transaction(coin.txid, LIMIT)).toEqual(services.facts.transaction(coin.txid))
    expect(sources.contradictions).toBe(1)
    expect(warnings.filter((line) => line.includes('different blocks'))).toHaveLength(1)
    expect(sources.status()[0]?.failures).toBe(2)
  })

  test('of the wrong block from all sources is passed on without a proof', async () => {
    const { sources, coin } = await setUp(['junglebus', 'whatsonchain'], { verdict: async () => 'no' })
    expect(await sources.transaction(coin.txid, LIMIT)).toEqual({ txid: coin.txid, raw: coin.raw })
  })

  test('keeps its proof while the headers do not answer', async () => {
    const { sources, services, coin } = await setUp(['junglebus'], {
      verdict: () => Promise.reject(new Error('no headers')),
    })
    expect(await sources.transaction(coin.txid, LIMIT)).toEqual(services.facts.transaction(coin.txid))
  })
})

describe('the spender of an output', () => {
  test('comes with its bytes and its proof, unless it is longer than it may be', async () => {
    const { sources, services, chain, coin, pay } = await setUp(['junglebus', 'whatsonchain'])
    const payment = pay({ transaction: coin, vout: 0 })
    services.know(payment)
    chain.mine([payment])
    const outpoint = parseOutpoint(coin.outpoint(0))
    expect(await sources.spenderOf(outpoint, LIMIT)).toEqual(services.facts.transaction(payment.txid))
    await expect(sources.spenderOf(outpoint, { maxBytes: 10 })).rejects.toMatchObject({ code: 'TOO_LARGE' })
  })

  test.each([
    ['does not spend it', (world: World) => world.coin.txid],
    ['nobody knows', () => '12'.repeat(32)],
  ])('that %s is not believed, and the next source is asked', async (_, txid) => {
    const world = await setUp(['junglebus', 'whatsonchain'])
    const { chain, sources, services, first, coin, pay } = world
    const outpoint = parseOutpoint(coin.outpoint(0))
    const payment = pay(outpoint)
    services.know(payment)
    chain.mine([payment])
    first.say(outpoint, txid(world))
    expect(await spenderIn(sources, outpoint)).toBe(payment.txid)
    expect(sources.status()[0]).toMatchObject({
      failures: 1,
      lastError: { message: expect.stringContaining(`is spent by ${txid(world)}, which`) },
    })
  })

  test('named falsely by every source is an error, not "unspent"', async () => {
    const { sources, all, coin } = await setUp(['junglebus', 'whatsonchain'])
    const outpoint = parseOutpoint(coin.outpoint(0))
    for (const service of all) service.say(outpoint, coin.txid)
    await expect(spenderIn(sources, outpoint)).rejects.toMatchObject({ code: 'BAD_ANSWER' })
  })

  test('that one source hides is found with another, which is a contradiction', async () => {
    const { sources, services, first, chain, coin, pay, warnings } = await setUp([
      'junglebus',
      'whatsonchain',
    ])
    const outpoint = parseOutpoint(coin.outpoint(0))
    const payment = pay(outpoint)
    services.know(payment)
    first.say(outpoint, undefined)
    // It may not have heard of it.
    expect(await spenderIn(sources, outpoint)).toBe(payment.txid)
    expect(sources.contradictions).toBe(0)
    chain.mine([payment])
    expect(await spenderIn(sources, outpoint)).toBe(payment.txid)
    expect(await spenderIn(sources, outpoint)).toBe(payment.txid)
    expect(sources.contradictions).toBe(1)
    const [line, ...others] = warnings
    expect(line).toContain(`${payment.txid} spends it`)
    expect(others).toEqual([])
  })

  test('is double-checked for the first answers and one in eight after, and for more once a source hid one', async () => {
    let random = 1
    const world = await setUp(['junglebus', 'whatsonchain'], { random: () => random })
    const { sources, services, second, first, chain, coin, pay } = world
    const unspent = parseOutpoint(coin.outpoint(0))
    const checked = async (): Promise<boolean> => {
      const before = second.asked.length
      await spenderIn(sources, unspent)
      return second.asked.length > before
    }
    for (let times = 0; times < 20; times++) expect(await checked()).toBe(true)
    expect(await checked()).toBe(false)
    random = 0.13
    expect(await checked()).toBe(false)
    random = 0.12
    expect(await checked()).toBe(true)
    const other = pay(unspent, 2)
    const hidden = pay({ transaction: other, vout: 0 })
    services.know(other, hidden)
    chain.mine([other, hidden])
    first.say(parseOutpoint(other.outpoint(0)), undefined)
    expect(await spenderIn(sources, parseOutpoint(other.outpoint(0)))).toBe(hidden.txid)
    random = 1
    first.say(unspent, undefined)
    second.say(unspent, undefined)
    for (let times = 0; times < 100; times++) expect(await checked()).toBe(true)
    expect(await checked()).toBe(false)
  })

  test('in a block is preferred to one that is not, and both together are a contradiction', async () => {
    const { sources, services, first, chain, coin, pay } = await setUp(['junglebus', 'whatsonchain'])
    const outpoint = parseOutpoint(coin.outpoint(0))
    const [one, other] = [pay(outpoint, 1), pay(outpoint, 2)]
    services.know(one, other)
    first.say(outpoint, other.txid)
    expect(await spenderIn(sources, outpoint)).toBe(other.txid)
    expect(sources.contradictions).toBe(1)
    chain.mine([one])
    first.misplace(other.txid, undefined)
    expect(await spenderIn(sources, outpoint)).toBe(one.txid)
    expect(sources.contradictions).toBe(1)
  })
})

describe('what the network said', () => {
  test('is what the first source that knows it says, and no source can deny that it was seen', async () => {
    const { sources, services, first, second, coin, pay } = await setUp(['arc', 'junglebus'])
    const [seen, rejected, wronged, unknown] = [1, 2, 3, 4].map((satoshis) =>
      pay({ transaction: coin, vout: 0 }, satoshis),
    ) as [FakeTransaction, FakeTransaction, FakeTransaction, FakeTransaction]
    services.know(seen, wronged)
    for (const { txid } of [rejected, wronged]) first.sayStatus(txid, 'REJECTED')
    first.forget(seen.txid)
    const asked = [seen, rejected, wronged, unknown].map(({ txid }) => txid)
    expect(await sources.sightings(asked)).toEqual(
      new Map([
        [seen.txid, 'seen'],
        [rejected.txid, 'rejected'],
        [wronged.txid, 'seen'],
      ]),
    )
    // The ARC about the one that it forgot in the place of Arcade, too.
    expect([first.asked.length, second.asked.length]).toEqual([5, 4])
  })

  test('is asked of those that answer, and is unknown only if one does', async () => {
    const { sources, services, first, second, coin, pay } = await setUp(['whatsonchain', 'junglebus'])
    const payment = pay({ transaction: coin, vout: 0 })
    first.fault = () => BROKEN
    expect(await sources.sightings([payment.txid])).toEqual(new Map())
    services.know(payment)
    expect(await sources.sightings([payment.txid])).toEqual(new Map([[payment.txid, 'seen']]))
    second.fault = () => BROKEN
    await expect(sources.sightings([payment.txid])).rejects.toMatchObject({ code: 'NO_ANSWER' })
  })

  test('an overlay host cannot say', async () => {
    const { sources } = await setUp(['junglebus'])
    const overlay = openSources({ addresses: [{ kind: 'overlay', url: 'http://127.0.0.1:1' }], rate: 1 })
    onTestFinished(() => overlay.close())
    expect([sources.canSight, overlay.canSight]).toEqual([true, false])
    expect(await overlay.sightings(['ab'.repeat(32)])).toEqual(new Map())
  })
})
