import { readBeef } from '../../../../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../../../../backend/src/graph/records.js'
import type { FactStore } from '../../../../backend/src/read/fact-store.js'
import { gather } from '../../../../src/chain/ancestors/ancestors.js'
import { proven } from '../../../support/follow/ancestors-world.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'

const limits = { maxTransactions: 100, maxBytes: 1_000_000 }
const coin = (satoshis: number) => ({ satoshis, lockingScript: OPEN_LOCK })

/** An ordinal that is placed by its two parents, whose first one spends a coin of its own. */
function placedByTwo() {
  const chain = new FakeChain()
  const before = chain.spend({ inputs: [chain.madeUpCoin()], outputs: [coin(10)] })
  const first = chain.spend({ inputs: [{ transaction: before, vout: 0 }], outputs: [coin(9)] })
  const second = chain.spend({ inputs: [chain.madeUpCoin()], outputs: [coin(10)] })
  const inputs = [first, second].map((transaction) => ({ transaction, vout: 0 }))
  const subject = chain.spend({ inputs, outputs: [coin(10), coin(1)] })
  return { before, first, second, subject }
}

/** What a subject is gathered with, if the store and the source know so much. */
async function gathered(
  subject: TransactionRecord,
  { stored, sourced }: { stored: TransactionRecord[]; sourced: FakeTransaction[] },
) {
  const asked: string[] = []
  const found = (txid: string) => stored.find((each) => each.txid === txid)
  const transactions = {
    get: (txid: string) => found(txid),
    has: (txid: string) => found(txid) !== undefined,
  } as Partial<FactStore['transactions']> as FactStore['transactions']
  const { beef, ...counts } = await gather(subject, {
    store: { transactions },
    source: {
      async transaction(txid) {
        asked.push(txid)
        const one = sourced.find((each) => each.txid === txid)
        return one && proven(one)
      },
    },
    limits,
  })
  return { txids: readBeef(beef).txids, subject: readBeef(beef).subject.txid, asked, ...counts }
}

test('a proven transaction comes alone if the store has its parents', async () => {
  const { first, second, subject } = placedByTwo()
  expect(await gathered(proven(subject), { stored: [proven(first), proven(second)], sourced: [] })).toEqual({
    ...{ txids: [subject.txid], subject: subject.txid, asked: [] },
    ...{ fetched: [], unproven: 0 },
  })
})

test('with it come the parents that place its ordinals and that the store lacks', async () => {
  const { first, second, subject } = placedByTwo()
  expect(await gathered(proven(subject), { stored: [proven(first)], sourced: [second] })).toEqual({
    ...{ txids: [second.txid, subject.txid], subject: subject.txid, asked: [second.txid] },
    ...{ fetched: [second.txid], unproven: 0 },
  })
})

test('a parent that nobody knows is named', async () => {
  const { first, second, subject } = placedByTwo()
  expect(await gathered(proven(subject), { stored: [proven(second)], sourced: [] })).toEqual({
    ...{ txids: [subject.txid], subject: subject.txid, asked: [first.txid] },
    ...{ fetched: [], unproven: 0, unknown: first.txid },
  })
})

test('an unproven transaction comes with all ancestors that verify it', async () => {
  const { before, first, second, subject } = placedByTwo()
  const { txid, raw } = subject
  const stored = [proven(before), { txid: first.txid, raw: first.raw }, proven(second)]
  const { txids, asked } = await gathered({ txid, raw }, { stored, sourced: [] })
  expect(new Set(txids)).toEqual(new Set([before, first, second, subject].map((each) => each.txid)))
  expect(asked).toEqual([])
})
