import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { ArcSource, sightingOfStatus } from '../../../../src/chain/sources/arc.js'
import type { SingleSource } from '../../../../src/chain/sources/chain-source.js'
import { JungleBusSource } from '../../../../src/chain/sources/junglebus.js'
import { WhatsOnChainSource } from '../../../../src/chain/sources/whatsonchain.js'
import { type ChainService, paidChain, type ServiceKind } from '../../../support/follow/chain-services.js'
import type { Fault } from '../../../support/follow/fake-service.js'
import { serving } from '../../../support/server/connections.js'

const LIMIT = { maxBytes: 100_000 }
const CLIENTS = { junglebus: JungleBusSource, whatsonchain: WhatsOnChainSource, arc: ArcSource }

/** A source of a kind over a chain that holds `coin` in a block. */
async function setUp(
  kind: ServiceKind,
): Promise<ReturnType<typeof paidChain> & { service: ChainService; source: SingleSource }> {
  const world = paidChain()
  const { services } = world
  const { url } = await serving(services.listener(kind))
  const source = new CLIENTS[kind]({ url })
  return { ...world, service: services[kind], source }
}

describe.each<ServiceKind>(['junglebus', 'whatsonchain'])('a %s over a chain', (kind) => {
  test('has a transaction with the proof of its block, and without in the mempool', async () => {
    const { chain, services, source, coin, pay } = await setUp(kind)
    const proof = { height: chain.bestTip.height, root: chain.bestTip.root }
    expect(await source.transaction(coin.txid, LIMIT)).toMatchObject({
      txid: coin.txid,
      raw: coin.raw,
      proof,
    })
    const payment = pay({ transaction: coin, vout: 0 })
    expect(await source.transaction(payment.txid, LIMIT)).toBeUndefined()
    services.know(payment)
    expect(await source.transaction(payment.txid, LIMIT)).toEqual({ txid: payment.txid, raw: payment.raw })
  })

  test('names the spender of an output once there is one', async () => {
    const { chain, services, source, coin, pay } = await setUp(kind)
    const outpoint = parseOutpoint(coin.outpoint(0))
    expect(await source.spenderOf(outpoint)).toBeUndefined()
    const payment = pay({ transaction: coin, vout: 0 })
    services.know(payment)
    expect(await source.spenderOf(outpoint)).toBe(payment.txid)
    expect(await source.spenderOf(parseOutpoint(payment.outpoint(0)))).toBeUndefined()
    chain.mine([payment])
    expect(await source.spenderOf(outpoint)).toBe(payment.txid)
  })

  test('does not take an output that it does not know for unspent', async () => {
    const { source } = await setUp(kind)
    await expect(source.spenderOf({ txid: '12'.repeat(32), vout: 0 })).rejects.toMatchObject({
      code: 'NOT_KNOWN',
      message: expect.stringContaining('does not know'),
    })
  })

  test('follows a reorganisation to the other spender, and to the other block', async () => {
    const { chain, services, source, coin, pay } = await setUp(kind)
    const outpoint = parseOutpoint(coin.outpoint(0))
    const fork = chain.fork(chain.bestTip.height)
    const [first, second] = [pay(outpoint, 1), pay(outpoint, 2)]
    services.know(first, second)
    chain.mine([first])
    expect(await source.spenderOf(outpoint)).toBe(first.txid)
    fork.mine([])
    fork.mine([second])
    chain.reorg(fork)
    expect(await source.spenderOf(outpoint)).toBe(second.txid)
    const { proof } = (await source.transaction(second.txid, LIMIT)) ?? {}
    expect(proof).toMatchObject({ height: chain.bestTip.height, root: chain.bestTip.root })
    expect((await source.transaction(first.txid, LIMIT))?.proof).toBeUndefined()
  })
})

describe('a WhatsOnChain', () => {
  const asked = (path: string, { service }: { service: ChainService }): number =>
    service.asked.filter((each) => each.endsWith(path)).length

  test('is asked about 20 outputs at once', async () => {
    const all = await setUp('whatsonchain')
    const { services, source, coin, pay } = all
    const payments = Array.from({ length: 30 }, (_, vout) => pay({ transaction: coin, vout }))
    services.know(...payments.slice(0, 25))
    const spenders = await Promise.all(payments.map((_, vout) => source.spenderOf({ txid: coin.txid, vout })))
    expect(spenders).toEqual([...payments.slice(0, 25).map(({ txid }) => txid), ...Array(5).fill(undefined)])
    expect(all.service.asked).toEqual(Array(2).fill('/v1/bsv/main/utxos/spent'))
  })

  test.each<[string, Fault, number]>([
    ['has no such route', { kind: 'status', status: 404 }, 1],
    ['does not take the question', { kind: 'status', status: 400 }, 2],
    ['answers something else', { kind: 'body', body: utf8('[{"error":"no"},null,7]') }, 2],
    ['answers no list', { kind: 'body', body: utf8('{}') }, 2],
  ])('that %s is asked about each alone', async (_, fault, times) => {
    const all = await setUp('whatsonchain')
    const { services, service, source, coin, pay } = all
    const payment = pay({ transaction: coin, vout: 0 })
    services.know(payment)
    service.fault = (path) => (path.endsWith('/utxos/spent') ? fault : undefined)
    const outpoint = parseOutpoint(coin.outpoint(0))
    for (let time = 0; time < 2; time++) {
      expect(await source.spenderOf(outpoint)).toBe(payment.txid)
      expect(await source.spenderOf({ ...outpoint, vout: 1 })).toBeUndefined()
    }
    expect(asked('/utxos/spent', all)).toBe(times === 1 ? 1 : 4)
  })
})

describe.each<ServiceKind>(['junglebus', 'whatsonchain', 'arc'])(
  'a %s that is asked about the mempool',
  (kind) => {
    test('has seen what is in it or in a block, and says nothing of anything else', async () => {
      const { services, service, source, coin, pay } = await setUp(kind)
      const [payment, unknown] = [1, 2].map((satoshis) => pay({ transaction: coin, vout: 0 }, satoshis))
      if (payment === undefined || unknown === undefined) throw new Error('two payments')
      services.know(payment)
      service.asked.length = 0
      const said = await source.sightings?.([coin.txid, payment.txid, unknown.txid])
      expect(said).toEqual(new Map([coin, payment].map(({ txid }) => [txid, 'seen'])))
      expect(service.asked).toHaveLength(kind === 'whatsonchain' ? 1 : 3)
    })

    test('is asked about many', async () => {
      const { services, source, coin, pay } = await setUp(kind)
      const payments = Array.from({ length: 45 }, (_, satoshis) =>
        pay({ transaction: coin, vout: 0 }, satoshis),
      )
      services.know(...payments)
      expect((await source.sightings?.(payments.map(({ txid }) => txid)))?.size).toBe(45)
    })

    test.each<[string, Fault]>([
      ['fails', { kind: 'status', status: 500 }],
      ['answers something else', { kind: 'body', body: utf8('{"x": 1}') }],
    ])('throws where it %s, and calls nothing rejected', async (_, fault) => {
      const { service, source, coin } = await setUp(kind)
      service.fault = () => fault
      await expect(source.sightings?.([coin.txid])).rejects.toMatchObject({ name: 'ChainSourceError' })
    })
  },
)

test('an ARC has the proof of what is mined, rejections, and nothing else', async () => {
  const { chain, services, service, source, coin, pay } = await setUp('arc')
  const payment = pay({ transaction: coin, vout: 0 })
  services.know(payment)
  expect(await source.proof(payment.txid)).toBeUndefined()
  service.sayStatus(payment.txid, 'REJECTED')
  expect(await source.sightings?.([payment.txid])).toEqual(new Map([[payment.txid, 'rejected']]))
  service.repent()
  chain.mine([payment])
  expect(await source.proof(payment.txid)).toMatchObject({ height: chain.bestTip.height })
  expect(await source.transaction(payment.txid, LIMIT)).toBeUndefined()
  expect(await source.spenderOf(parseOutpoint(coin.outpoint(0)))).toBeUndefined()
})

test('an Arcade is asked in its own place', async () => {
  const { services, service, coin, pay } = await setUp('arc')
  const { url } = await serving(services.listener('arc'))
  const source = new ArcSource({ url: `${url}/arcade` })
  const unknown = pay({ transaction: coin, vout: 0 })
  expect(await source.sightings([unknown.txid, coin.txid])).toEqual(new Map([[coin.txid, 'seen']]))
  service.asked.length = 0
  expect(await source.proof(coin.txid)).toBeDefined()
  expect(service.asked).toEqual([`/arcade/tx/${coin.txid}`])
})

test.each([
  ['SEEN_ON_NETWORK', 'seen'],
  ['SEEN_MULTIPLE_NODES', 'seen'],
  ['ACCEPTED_BY_NETWORK', 'seen'],
  ['MINED', 'seen'],
  ['REJECTED', 'rejected'],
  ...['DOUBLE_SPEND_ATTEMPTED', 'SEEN_IN_ORPHAN_MEMPOOL', 'MINED_IN_STALE_BLOCK', 'STORED', 'UNKNOWN'].map(
    (status) => [status, undefined],
  ),
  ['SENT_TO_NETWORK', undefined],
  ['', undefined],
  [undefined, undefined],
])('the status %p of ARC says %p', (status, said) => {
  expect(sightingOfStatus(status)).toBe(said)
})
