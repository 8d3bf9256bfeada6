import { BigNumber } from '@bsv/sdk'
import fc from 'fast-check'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { assemble } from '../../../src/mining/covenant.js'

test('a number reads back as the script number that it is', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 40), max: 2 ** 40 }), (value) => {
      const [pushed] = readPushes(assemble(String(value)), { limit: 1 })
      expect(BigNumber.fromScriptNum(Array.from(pushed ?? []), true).toString()).toBe(String(value))
    }),
  )
})

test.each(['DUPE', 'dup', '', 'DUP  CAT', '01', '1.5', 'OP_DUP', '0x10', 'PUSHDATA9'])(
  '%j is refused',
  (words) => {
    expect(() => assemble(words)).toThrow(RangeError)
  },
)
