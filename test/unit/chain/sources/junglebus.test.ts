import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { JungleBusSource } from '../../../../src/chain/sources/junglebus.js'
import { type Fault, type JungleBusService, useJungleBuses } from '../../../support/follow/junglebus.js'
import { recordOf } from '../../../support/protocol/block.js'
import { FakeChain, p2pkh } from '../../../support/protocol/fake-chain.js'

const junglebuses = useJungleBuses()
const chain = new FakeChain()
const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
const spent = chain.spend({
  inputs: [{ transaction: coin, vout: 0 }],
  outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }],
})
const LIMIT = { maxBytes: 10_000 }
const UNKNOWN = '12'.repeat(32)

async function setUp(
  options: Partial<ConstructorParameters<typeof JungleBusSource>[0]> = {},
): Promise<{ service: JungleBusService; source: JungleBusSource }> {
  const { url, service } = await junglebuses.start()
  service.know(recordOf(coin, 800_001), recordOf(spent), recordOf(chain.genesis, 800_000))
  const usual = { url: `${url}/`, parallel: 2, firstPause: 1, tries: 3 }
  return { service, source: new JungleBusSource({ ...usual, ...options }) }
}

/** Faults for the first questions, in order. */
function atFirst(service: JungleBusService, ...faults: Fault[]): void {
  service.fault = (_, nth) => faults[nth]
}

test('a transaction comes with its proof, without where it is in no block, and not at all where it is not known', async () => {
  const { source } = await setUp()
  expect(await source.transaction(coin.txid, LIMIT)).toEqual(recordOf(coin, 800_001))
  expect(await source.transaction(spent.txid, LIMIT)).toEqual(recordOf(spent))
  expect(await source.transaction(UNKNOWN, LIMIT)).toBeUndefined()
})

test('the spender of an output is named, or that there is none', async () => {
  const { source } = await setUp()
  expect(await source.spenderOf(parseOutpoint(coin.outpoint(0)))).toBe(spent.txid)
  expect(await source.spenderOf(parseOutpoint(spent.outpoint(0)))).toBeUndefined()
})

test('that an output is not known is not that it is unspent', async () => {
  const { source } = await setUp()
  await expect(source.spenderOf({ txid: UNKNOWN, vout: 0 })).rejects.toMatchObject({
    code: 'NOT_KNOWN',
    message: expect.stringContaining(`does not know ${UNKNOWN}_0`),
  })
})

test.each<[string, Fault]>([
  ['busy', { kind: 'busy', until: '0' }],
  ['in trouble', { kind: 'status', status: 502 }],
  ['cut off', 'cut'],
  ['half', 'half'],
  ['about something else', 'other'],
])('what is %s is asked for again, so many times and no more', async (_, fault) => {
  const { service, source } = await setUp()
  atFirst(service, fault, fault)
  expect(await source.transaction(coin.txid, LIMIT)).toEqual(recordOf(coin, 800_001))
  expect(source.client.asked.again).toBeGreaterThan(0)
  expect(source.client.asked.requests).toBe(service.asked.length)
  service.fault = () => fault
  const before = service.asked.length
  await expect(source.transaction(coin.txid, LIMIT)).rejects.toMatchObject({ name: 'ChainSourceError' })
  expect(service.asked.length - before).toBeLessThanOrEqual(6)
})

test('an answer that never comes is given up', async () => {
  const { service, source } = await setUp({ timeout: 50 })
  service.fault = () => 'never'
  await expect(source.spenderOf(parseOutpoint(coin.outpoint(0)))).rejects.toMatchObject({
    code: 'NO_ANSWER',
    message: expect.stringContaining('took longer than 50 ms'),
  })
  expect(service.asked).toHaveLength(3)
})

test('what is refused for good, or is too long, is not asked for again', async () => {
  const { service, source } = await setUp()
  service.fault = () => ({ kind: 'status', status: 401 })
  const outpoint = parseOutpoint(coin.outpoint(0))
  await expect(source.spenderOf(outpoint)).rejects.toMatchObject({ code: 'NO_ANSWER' })
  service.fault = () => 'long'
  await expect(source.spenderOf(outpoint)).rejects.toMatchObject({ code: 'BAD_ANSWER' })
  expect(service.asked).toHaveLength(2)
})

test.each([
  ['seconds', () => '1'],
  ['a date', () => new Date(Date.now() + 2000).toUTCString()],
])('a source that is busy is left alone by all questions, as long as it says in %s', async (_, until) => {
  const { service, source } = await setUp()
  let busyAt = 0
  const later: number[] = []
  service.onQuestion = () => {
    if (busyAt === 0) busyAt = Date.now()
    else later.push(Date.now() - busyAt)
  }
  service.fault = (__, nth) => (nth === 0 ? { kind: 'busy', until: until() } : undefined)
  const outpoint = parseOutpoint(coin.outpoint(0))
  await source.spenderOf(outpoint)
  await source.spenderOf(outpoint)
  // The second of a date may be all but over.
  expect(Math.min(...later)).toBeGreaterThan(900)
})

test('no more is asked at once than was said', async () => {
  const { service, source } = await setUp()
  service.delay = 5
  await Promise.all(Array.from({ length: 10 }, () => source.transaction(coin.txid, LIMIT)))
  expect(service.mostAtOnce).toBe(2)
})

test('what is under way ends with a signal', async () => {
  const stop = new AbortController()
  const { service, source } = await setUp({ signal: stop.signal })
  service.fault = () => 'never'
  service.onQuestion = () => stop.abort()
  await expect(source.transaction(coin.txid, LIMIT)).rejects.toThrow()
  expect(service.asked.length).toBeLessThanOrEqual(2)
})
