import { encodeAddress, p2pkhLock } from '../../../../backend/src/protocol/address.js'
import type { DeploymentTerms } from '../../../../backend/src/protocol/mint.js'
import { PROFILES, termsOf } from '../../../../backend/src/protocol/profile.js'
import { type OrderFields, readOrder } from '../../../../src/explorer/mine-page/mining-order.js'

const OWNER = 'cd'.repeat(20)
const ADDRESS = encodeAddress(OWNER, 'test')
const SERVER = { network: 'test', deployment: termsOf(PROFILES.local) } as const
const FIELDS: OrderFields = { name: 'a-1', owner: ADDRESS, payer: 'nobody', workers: '2' }

test('what stands in the form is an order', () => {
  expect(readOrder({ ...FIELDS, name: ' a-1 ', owner: `${ADDRESS} ` }, SERVER)).toEqual({
    name: 'a-1',
    payer: 'nobody',
    ownerLock: p2pkhLock(OWNER),
    workers: 2,
  })
})

test('a name is as long as the covenant can write it', () => {
  const order = (name: string, deployment: DeploymentTerms) =>
    readOrder({ ...FIELDS, name }, { ...SERVER, deployment })
  const ours = termsOf(PROFILES.local, { nameTld: 'tld' })
  expect(order('a'.repeat(71), ours).name).toHaveLength(71)
  expect(() => order('a'.repeat(72), ours)).toThrow(
    'A name is 1 to 71 characters of a–z, 0–9 and the hyphen.',
  )
  expect(order('a'.repeat(255), termsOf(PROFILES.mainnet)).name).toHaveLength(255)
})

test.each(['fake', 'wallet'])('with %s no owner need be named', (payer) => {
  expect(readOrder({ ...FIELDS, payer, owner: '' }, SERVER).ownerLock).toBeUndefined()
})

test.each<[keyof OrderFields, string]>([
  ['name', ''],
  ['name', 'ä'],
  ['name', 'a'.repeat(76)],
  ['owner', ''],
  ['owner', `${ADDRESS.slice(0, -1)}0`],
  ['owner', encodeAddress(OWNER, 'main')],
  ['payer', ''],
  ['payer', 'somebody'],
  ['workers', ''],
  ['workers', '1025'],
])('of %s, %j will not do', (field, text) => {
  const read = () => readOrder({ ...FIELDS, [field]: text }, SERVER)
  expect(read).toThrow(expect.objectContaining({ code: 'BAD_FIELD', field }))
})
