import { BSON } from 'mongodb'
import { bsonBytes } from '../../../backend/src/storage/mongo/journal.js'

test.each([
  ['nothing', {}],
  ['text', { name: 'ä'.repeat(1000), empty: '' }],
  ['bytes', { raw: Buffer.alloc(100_000), none: Buffer.alloc(0) }],
  ['numbers', { vout: 1, satoshis: 2 ** 40, ratio: 0.5, isBig: true, height: null }],
  ['a change', { collection: 'graph_outputs', put: { _id: Buffer.alloc(36), texts: ['a', 'b'], vout: 0 } }],
])('the journal counts at least the bytes of %s, and few more', (_, value) => {
  const bytes = BSON.calculateObjectSize(value)
  expect(bsonBytes(value)).toBeGreaterThanOrEqual(bytes)
  expect(bsonBytes(value)).toBeLessThan(bytes + 64)
})
