import { hostedOrdinals } from '../../../backend/src/lookup-services/services.js'
import { encodeAddress } from '../../../backend/src/protocol/address.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { History } from '../../support/graph/history.js'
import { ownerOf } from '../../support/graph/owner-of.js'
import { directHooks } from '../../support/plugin/direct-hooks.js'
import { type FakeTransaction, inscriptionScript, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

afterAll(() => close())

const history = new History()
const { chain } = history

const card = (contentType: string, map: Record<string, string>, parent?: string): Uint8Array =>
  concatBytes(
    inscriptionScript({
      contentType,
      body: utf8(JSON.stringify(map)),
      lock: p2pkh(1),
      ...(parent !== undefined && { parent: parseOutpoint(parent) }),
    }),
    mapTail(map),
  )

/** @param parent Where its parent is, which moves to output 2. */
async function born(
  lockingScript: Uint8Array,
  parent?: FakeTransaction | { transaction: FakeTransaction; vout: number },
): Promise<FakeTransaction> {
  const coin = history.know(chain.spend({ outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] }))
  const kept = [{ satoshis: 4, lockingScript: p2pkh(0) }, p2pkh(8)]
  const outputs = [lockingScript, ...(parent ? kept : [])]
  return await history.submit(chain.spend({ inputs: [coin, ...(parent ? [parent] : [])], outputs }), 'later')
}

async function moved(transaction: FakeTransaction, lockingScript: Uint8Array, satoshis = 1) {
  const outputs = [{ satoshis, lockingScript }]
  return await history.submit(chain.spend({ inputs: [transaction], outputs }), 'later')
}

const parent = await born(card('application/json', {}))
const PARENT = parent.outpoint(0)
const red = await born(card('image/png', { app: 'cards', colour: 'red' }, PARENT), parent)
const blue = await born(card('text/html; charset=utf-8', { app: 'cards', colour: 'blue' }))
const sold = await moved(await born(card('image/png', { app: 'cards', colour: 'red' })), p2pkh(2))
const painted = await moved(
  await born(card('image/png', { app: 'cards', colour: 'red' }, PARENT), { transaction: red, vout: 2 }),
  concatBytes(p2pkh(2), mapTail({ colour: 'green', __proto__x: 'y' })),
)
const burnt = await born(card('image/png', { app: 'cards', colour: 'burnt' }))
await moved(burnt, inscriptionScript({ body: utf8('ash'), lock: p2pkh(3) }), 9)
// The coin that it received is not known: so its origin is not.
const unknown = { txid: 'ef'.repeat(32), vout: 0 }
const stray = await history.submit(
  chain.spend({ inputs: [unknown], outputs: [card('image/png', { app: 'cards' })] }),
)

const { store, close } = await openStore({ stays: true })
const service = hostedOrdinals({ ...directHooks(store), store, users: 0 })
for (const notice of history.notices) {
  if ('spent' in notice) await service.outputSpent(notice.spent)
  else await service.outputAdmittedByTopic(notice.admitted)
}

async function asked(query: unknown): Promise<string[]> {
  const found = await service.lookup({ service: 'ls_ordinals', query })
  if (!Array.isArray(found)) throw new Error('an answer is a list of outputs')
  return found.map(({ txid, outputIndex }) => formatOutpoint({ txid, vout: outputIndex }))
}

const at = (...steps: FakeTransaction[]): string[] => steps.map((step) => step.outpoint(0)).sort()
const address = (seed: number): string => encodeAddress(ownerOf(seed), 'main')

test.each<[string, unknown, string[]]>([
  ['an entry', { map: { colour: 'red' } }, at(red, sold)],
  ['all of several entries', { map: { app: 'cards', colour: 'blue' } }, at(blue)],
  ['an entry that came later', { map: { colour: 'green' } }, at(painted)],
  ['an entry that nobody has', { map: { app: 'cards', colour: 'grey' } }, []],
  ['the whole text of an entry', { map: { colour: 'gree' } }, []],
  ['entries that a burnt one had at its end', { map: { colour: 'burnt' } }, at(burnt)],
  ['their parent', { parent: PARENT }, at(red, painted)],
  ['their parent, in its other form', { parent: PARENT.replace('_', '.') }, at(red, painted)],
  ['their type', { contentType: 'image/png' }, at(red, sold, painted, burnt)],
  ['their type, whatever its parameters and case', { contentType: 'TEXT/html;a=b' }, at(blue)],
  ['who holds them', { owner: address(2) }, at(sold, painted)],
  ['who holds them, with an origin or without', { owner: address(1) }, at(red, blue, stray)],
  ['who holds them, on either network', { owner: encodeAddress(ownerOf(2), 'test') }, at(sold, painted)],
  ['who holds none', { owner: address(9) }, []],
])('ordinals are found by %s', async (_, query, expected) => {
  expect((await asked(query)).sort()).toEqual(expected)
})

test('pages add up to the whole, and stay in place while ordinals move on', async () => {
  const query = { map: { app: 'cards' } }
  const whole = await asked(query)
  expect(whole.slice().sort()).toEqual(at(red, blue, sold, painted, burnt))
  const [first, second] = whole
  expect(await asked({ ...query, limit: 2 })).toEqual([first, second])
  expect(await asked({ ...query, limit: 2, after: second })).toEqual(whole.slice(2, 4))
  expect(await asked({ ...query, after: whole.at(-1) })).toEqual([])
  // The one that was asked behind is by another outpoint now: that of its origin will do as well.
  const { outpoint } = (await store.ordinals.at(parseOutpoint(at(sold)[0] ?? ''), 0))?.output ?? {}
  const place = whole.indexOf(at(sold)[0] ?? '')
  const after = outpoint && formatOutpoint(outpoint)
  expect(await asked({ ...query, after })).toEqual(whole.slice(place + 1))
  expect(await asked({ ...query, after: `${'00'.repeat(32)}_0` })).toEqual(whole)
})

test('a key that JavaScript knows is one as any other', async () => {
  expect(await asked({ map: { __proto__x: 'y' } })).toEqual(at(painted))
  expect(await asked(JSON.parse('{"map":{"__proto__":"y"}}'))).toEqual([])
  expect(await asked({ map: { constructor: 'y', toString: 'z' } })).toEqual([])
})

const outpoint = `${'ab'.repeat(32)}_0`

const many = Object.fromEntries(Array.from({ length: 17 }, (_, key) => [key, 'x']))
test.each<unknown>([
  ...[{}, { a: 1 }, { a: null }, ['a'], 'a', many].map((map) => ({ map })),
  ...[{ limit: 0 }, { limit: 101 }, { after: 'x' }, { parent: outpoint }].map((more) => ({
    map: { a: '1' },
    ...more,
  })),
  ...['x', 'ab'.repeat(32)].map((parent) => ({ parent })),
  ...[7, 'x'.repeat(256), 'image'].map((contentType) => ({ contentType })),
  ...['x', ownerOf(1), address(1).slice(0, -1)].map((owner) => ({ owner })),
  { owner: address(1), seq: 1 },
])('%j is answered with the forms there are', async (query) => {
  await expect(asked(query)).rejects.toMatchObject({ name: 'QueryError', code: 'BAD_BODY' })
})
