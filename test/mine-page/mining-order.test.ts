import { encodeAddress, p2pkhLock } from '../../backend/src/protocol/address.js'
import { type OrderFields, readOrder } from '../../src/mine-page/mining-order.js'

const OWNER = 'cd'.repeat(20)
const ADDRESS = encodeAddress(OWNER, 'test')
const FIELDS: OrderFields = { name: 'a-1', owner: ADDRESS, payer: 'nobody', workers: '2' }

test('what stands in the form is an order', () => {
  expect(readOrder({ ...FIELDS, name: ' a-1 ', owner: `${ADDRESS} ` })).toEqual({
    name: 'a-1',
    payer: 'nobody',
    ownerLock: p2pkhLock(OWNER),
    workers: 2,
  })
})

test.each(['made-up', 'wallet'])('with %s no owner need be named', (payer) => {
  expect(readOrder({ ...FIELDS, payer, owner: '' }).ownerLock).toBeUndefined()
})

test.each<[keyof OrderFields, string]>([
  ['name', ''],
  ['name', 'A'],
  ['name', 'a.b'],
  ['name', 'ä'],
  ['name', 'a'.repeat(256)],
  ['owner', ''],
  ['owner', 'x'],
  ['owner', `${ADDRESS.slice(0, -1)}0`],
  ['payer', ''],
  ['payer', 'somebody'],
  ['workers', ''],
  ['workers', '0'],
  ['workers', '1.5'],
  ['workers', '1025'],
  ['workers', 'two'],
])('of %s, %j will not do', (field, text) => {
  const read = () => readOrder({ ...FIELDS, [field]: text })
  expect(read).toThrow(expect.objectContaining({ code: 'BAD_FIELD', field }))
})
