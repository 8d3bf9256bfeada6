import { readBeef } from '../../../backend/src/graph/read-beef.js'
import {
  admittedTransactions,
  isNodeOutpoint,
  spendsOf,
  unsoundness,
} from '../../../backend/src/graph/transaction-records.js'
import { beefOf, FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'

const ONE = { satoshis: 1, lockingScript: p2pkh(2) }

describe('an output of the names topic', () => {
  const chain = new FakeChain({ tld: 'test' })
  const { genesis } = chain.deployment
  const a = chain.mint('a')

  test('is a node in places 0 and 1, and of the genesis transaction only where the genesis is', () => {
    const vouts = [0, 1, 2, 3]
    expect(vouts.filter((vout) => isNodeOutpoint({ txid: a.txid, vout }, genesis))).toEqual([0, 1])
    const { txid } = chain.genesis
    expect(vouts.filter((vout) => isNodeOutpoint({ txid, vout }, { txid, vout: 3 }))).toEqual([3])
  })
})

describe('of an admitted transaction', () => {
  const chain = new FakeChain()
  const spend = (...parents: FakeTransaction[]) =>
    chain.spend({ inputs: parents.map((transaction) => ({ transaction, vout: 0 })), outputs: [ONE] })
  const root = spend()
  const [left, right] = [spend(root), spend()]
  const child = spend(left, right, left)
  const all = [root, right, left]

  test('the subject alone is kept where it is proven', () => {
    const kept = admittedTransactions(readBeef(beefOf(child, { with: all })))
    expect(kept.map(({ txid, proof }) => [txid, proof?.height])).toEqual([[child.txid, child.height]])
  })

  test('and else what it descends from, down to what is proven', () => {
    const stranger = spend()
    const beef = beefOf(child, { proven: false, with: [stranger, ...all], unproven: [stranger, left] })
    const kept = admittedTransactions(readBeef(beef))
    const heights = Object.fromEntries(kept.map(({ txid, proof }) => [txid, proof?.height]))
    expect(heights).toEqual({
      [child.txid]: undefined,
      [left.txid]: undefined,
      [right.txid]: right.height,
      [root.txid]: root.height,
    })
  })

  test('a chain of thousands is followed without recursion', () => {
    const links = [spend()]
    for (let tip = links[0]; tip !== undefined && links.length < 5000; tip = links.at(-1))
      links.push(spend(tip))
    const tip = links.at(-1)
    if (tip === undefined) throw new Error('no links')
    const ancestors = links.slice(0, -1)
    const beef = beefOf(tip, { proven: false, with: ancestors, unproven: ancestors })
    expect(admittedTransactions(readBeef(beef))).toHaveLength(5000)
  })

  test('every input is a spend', () => {
    const beef = readBeef(beefOf(child))
    expect(spendsOf(admittedTransactions(beef))).toEqual(
      [left, right, left].map(({ txid }) => ({ outpoint: { txid, vout: 0 }, spender: child.txid })),
    )
  })
})

test('what is behind a proven subject is not judged: the chain has judged that', () => {
  const chain = new FakeChain()
  const small = chain.spend({ inputs: [], outputs: [ONE] })
  const odd = chain.spend({
    inputs: [small, small].map((transaction) => ({ transaction, vout: 0 })),
    outputs: [ONE],
  })
  const child = chain.spend({ inputs: [{ transaction: odd, vout: 0 }], outputs: [ONE] })
  expect(unsoundness(readBeef(beefOf(child, { with: [odd], unproven: [odd] })))).toBeUndefined()
})
