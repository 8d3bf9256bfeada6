import fc from 'fast-check'
import { outpointLabel, outpointOfLabel } from '../../../backend/src/protocol/host-label.js'
import { outpoint } from '../../support/protocol/arbitraries.js'

/** Made with another program: the bytes of the txid reversed, four of the vout little-endian, as one number in base 36. */
const LIVE_GENESIS = '58b7558ea379f24266c7e2f5fe321992ad9a724fd7a87423ba412677179ccb25'
const VECTORS: [string, number, string][] = [
  ['00'.repeat(32), 0, '0'.repeat(56)],
  ['00'.repeat(32), 0x01000000, `${'0'.repeat(55)}1`],
  ['00'.repeat(32), 1, `${'0'.repeat(51)}9zlds`],
  [`${'00'.repeat(31)}01`, 0, '01rqebqrqf0vfcdz5pu5fquov5813iobr29qjm1mf1lrufy1ifr3y8sg'],
  [LIVE_GENESIS, 0, '1uwtkow7d0thl4lt97clwro2c38zttuj24jt7l1afsbjnb3mu716t05c'],
  [LIVE_GENESIS, 258, '1uwtkow7d0thl4lt97clwro2c38zttuj24jt7l1afsbjnb3mu71qtlhc'],
  ['ff'.repeat(32), 0xffffffff, 'cl7pvid7uu7h43e0nqenyy8th53t0szkg58rgrjezeu0he2r40s3ii9r'],
]

test.each(VECTORS)('%s_%d is %s', (txid, vout, label) => {
  expect(outpointLabel({ txid, vout })).toBe(label)
  expect(outpointOfLabel(label)).toEqual({ txid, vout })
})

test.each([
  ['the number after the last outpoint', 'cl7pvid7uu7h43e0nqenyy8th53t0szkg58rgrjezeu0he2r40s3ii9s'],
  ['the largest number', 'z'.repeat(56)],
  ['a digit less', '0'.repeat(55)],
  ['a digit more', '0'.repeat(57)],
  ['a capital', `${'0'.repeat(55)}A`],
  ['a hyphen', `${'0'.repeat(55)}-`],
  ['nothing', ''],
])('%s is no outpoint', (_, label) => {
  expect(outpointOfLabel(label)).toBeUndefined()
})

test('every outpoint has one label of 56 characters that a DNS label can hold, and back', () => {
  fc.assert(
    fc.property(outpoint, (one) => {
      const label = outpointLabel(one)
      expect(label).toMatch(/^[0-9a-z]{56}$/)
      expect(outpointOfLabel(label)).toEqual(one)
    }),
  )
})
