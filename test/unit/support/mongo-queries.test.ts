import { isLedTo } from '../../support/storage/mongo-queries.js'

const indexes = [['_id'], ['txid', 'vout'], ['topic', 'score', 'txid'], ['lineage', 'step']]
const asked = (filter: Record<string, unknown>, sort: Record<string, number> = {}, limited = false) => ({
  filter,
  sort,
  limited,
})
const bytes = Buffer.alloc(32)

test.each([
  ['a key', asked({ _id: bytes })],
  ['some keys', asked({ _id: { $in: [bytes] } })],
  ['the first field of an index', asked({ txid: bytes, kind: 'node' })],
  ['a range of the first field', asked({ txid: { $gt: bytes, $lte: bytes } })],
  [
    'a range behind equal fields, in its order',
    asked({ topic: 'a', score: { $gte: 1 } }, { score: 1, txid: 1 }),
  ],
  ['the same, backwards', asked({ topic: 'a', score: { $gte: 1 } }, { score: -1, txid: -1 })],
  ['the last of an order', asked({ lineage: bytes }, { step: -1 }, true)],
  ['the first of all in an order', asked({}, { topic: 1, score: 1 }, true)],
  ['any one', asked({}, {}, true)],
  ['an order by what is equal anyway', asked({ txid: bytes, vout: 1 }, { txid: 1 })],
  ['branches that each have an index', asked({ $or: [{ txid: bytes, vout: 1 }, { lineage: bytes }] })],
  ['branches beside what has an index', asked({ lineage: bytes, $or: [{ kind: 1 }] }, { step: 1 })],
  ['conditions of which one has an index', asked({ $and: [{ txid: bytes }, { kind: 'node' }] })],
])('%s is led to', (_, each) => {
  expect(isLedTo(each, indexes)).toBe(true)
})

test.each([
  ['everything', asked({})],
  ['a field of no index', asked({ kind: 'node' })],
  ['any one with a field of no index', asked({ kind: 'node' }, {}, true)],
  ['the second field of an index', asked({ vout: 1 })],
  ['what is not equal', asked({ txid: { $ne: null } })],
  ['an order of no index', asked({ txid: bytes }, { score: 1 })],
  ['an order that goes both ways', asked({ topic: 'a' }, { score: 1, txid: -1 })],
  ['an order over several values', asked({ lineage: { $in: [bytes] } }, { step: 1 })],
  ['an order over branches', asked({ $or: [{ txid: bytes }] }, { txid: 1 })],
  ['all in an order', asked({}, { topic: 1 })],
  ['branches of which one has no index', asked({ $or: [{ txid: bytes }, { kind: 'node' }] })],
])('%s is not', (_, each) => {
  expect(isLedTo(each, indexes)).toBe(false)
})
