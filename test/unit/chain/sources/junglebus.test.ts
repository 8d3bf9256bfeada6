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
  const usual = { url: `${url}/` }
  return { service, source: new JungleBusSource({ ...usual, ...options }) }
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
])('what is %s is no answer', async (_, fault) => {
  const { service, source } = await setUp()
  service.fault = () => fault
  await expect(source.transaction(coin.txid, LIMIT)).rejects.toMatchObject({ name: 'ChainSourceError' })
  // The transaction and its proof.
  expect(service.asked.length).toBe(2)
})

test('an answer that never comes is given up', async () => {
  const { service, source } = await setUp({ timeout: 50 })
  service.fault = () => 'never'
  await expect(source.spenderOf(parseOutpoint(coin.outpoint(0)))).rejects.toMatchObject({
    code: 'NO_ANSWER',
    message: expect.stringContaining('took longer than 50 ms'),
  })
})

const NOW = 1_000_000

test.each([
  ['seconds', '2'],
  ['a date', new Date(NOW + 2000).toUTCString()],
])('a source that is busy is left alone for as long as it says in %s', async (_, until) => {
  const { service, source } = await setUp({ now: () => NOW })
  service.fault = () => ({ kind: 'busy', until })
  const outpoint = parseOutpoint(coin.outpoint(0))
  await expect(source.spenderOf(outpoint)).rejects.toMatchObject({ code: 'NO_ANSWER' })
  expect(source.client.rest).toBe(2000)
  await expect(source.spenderOf(outpoint)).rejects.toThrow(' rests for 2 seconds')
  expect(service.asked).toHaveLength(1)
})

test('no more than eight are asked at once', async () => {
  const { service, source } = await setUp()
  service.delay = 5
  await Promise.all(Array.from({ length: 10 }, () => source.transaction(coin.txid, LIMIT)))
  expect(service.mostAtOnce).toBe(8)
})

test('what is under way ends with a signal', async () => {
  const stop = new AbortController()
  const { service, source } = await setUp({ signal: stop.signal })
  service.fault = () => 'never'
  service.onQuestion = () => stop.abort()
  await expect(source.transaction(coin.txid, LIMIT)).rejects.toThrow()
  expect(service.asked.length).toBeLessThanOrEqual(2)
})
