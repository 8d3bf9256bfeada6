import { createHash } from 'node:crypto'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { graphRecords, mergeRecords } from '../../../backend/src/graph/records.js'
import {
  admittedTransactions,
  flowOf,
  isNodeOutpoint,
  namesRecords,
  ordinalsRecords,
  placingRecords,
  transactionRecords,
  unsoundness,
} from '../../../backend/src/graph/transaction-records.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { ownerOf } from '../../support/graph/owner-of.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

const ONE = { satoshis: 1, lockingScript: p2pkh(2) }

describe('an output of the names topic', () => {
  const chain = new FakeChain({ tld: 'test' })
  const { genesis } = chain.deployment
  const [a, ab] = chain.mintAll('ab')
  if (!a || !ab) throw new Error('no mints')
  const records = (transaction: FakeTransaction, vout: number) =>
    namesRecords({ transaction: transaction.transaction, vout, genesis })

  test('is the root where it is the genesis', () => {
    const outpoint = { txid: chain.genesis.txid, vout: 0 }
    expect(records(chain.genesis, 0)).toEqual(graphRecords({ nodes: [{ outpoint, domain: '' }] }))
  })

  test('is the restated node, the child or the name, by its place', () => {
    const outpoint = (vout: number) => ({ txid: ab.txid, vout })
    expect(records(ab, 0)).toEqual(graphRecords({ nodes: [{ outpoint: outpoint(0), domain: 'a' }] }))
    expect(records(ab, 1)).toEqual(graphRecords({ nodes: [{ outpoint: outpoint(1), domain: 'ab' }] }))
    expect(records(ab, 2)).toEqual(graphRecords({ names: [{ outpoint: outpoint(2), name: 'ab' }] }))
    expect(records(a, 2).names).toEqual([{ outpoint: { txid: a.txid, vout: 2 }, name: 'a' }])
  })

  test('must be there', () => {
    const { transaction } = chain.spend({ inputs: [], outputs: [] })
    for (const vout of [0, 1, 2])
      expect(() => namesRecords({ transaction, vout, genesis })).toThrow(RangeError)
  })

  test('is a node in places 0 and 1, and of the genesis transaction only where the genesis is', () => {
    const vouts = [0, 1, 2, 3]
    expect(vouts.filter((vout) => isNodeOutpoint({ txid: a.txid, vout }, genesis))).toEqual([0, 1])
    const { txid } = chain.genesis
    expect(vouts.filter((vout) => isNodeOutpoint({ txid, vout }, { txid, vout: 3 }))).toEqual([3])
  })
})

describe('an output of the ordinals topic', () => {
  const records = async (
    subject: FakeTransaction,
    options: { vout?: number; with?: FakeTransaction[] } = {},
  ) => {
    const beef = readBeef(beefOf(subject, { with: options.with ?? [] }))
    const flow = await flowOf(beef, undefined)
    return ordinalsRecords({ transaction: beef.subject, vout: options.vout ?? 0, flow })
  }

  test('has its content by hash', async () => {
    const body = utf8('hello')
    const sha256 = createHash('sha256').update(body).digest('hex')
    const file = new FakeChain().inscribe({ satoshis: 600, contentType: 'text/plain', body })
    expect(await records(file)).toEqual(
      graphRecords({
        outputs: [
          {
            outpoint: { txid: file.txid, vout: 0 },
            satoshis: 600,
            owner: ownerOf(1),
            content: { sha256, contentType: 'text/plain', length: 5 },
          },
        ],
        contents: [{ sha256, bytes: body }],
      }),
    )
  })

  test('has the coin that it received', async () => {
    const chain = new FakeChain()
    const [first, second] = [1, 2].map(() => chain.spend({ inputs: [], outputs: [ONE] }))
    if (!first || !second) throw new Error('no coins')
    const inputs = [first, second].map((transaction) => ({ transaction, vout: 0 }))
    const subject = chain.spend({ inputs, outputs: [ONE, { ...ONE, satoshis: 0 }, ONE] })
    const [received] = (await records(subject, { vout: 2, with: [first, second] })).outputs
    expect(received).toEqual({
      outpoint: { txid: subject.txid, vout: 2 },
      satoshis: 1,
      owner: ownerOf(2),
      previous: { txid: second.txid, vout: 0 },
    })
  })

  test('is unresolved where that is not known, and not where it received none', async () => {
    const chain = new FakeChain()
    const rich = chain.spend({ inputs: [], outputs: [{ ...ONE, satoshis: 9 }] })
    const outputs = [ONE, { satoshis: 2, lockingScript: inscriptionScript({ body: utf8('a') }) }]
    const subject = chain.spend({ inputs: [{ transaction: rich, vout: 0 }], outputs })
    expect((await records(subject)).outputs).toEqual([
      { outpoint: { txid: subject.txid, vout: 0 }, satoshis: 1, owner: ownerOf(2), unsettled: true },
    ])
    expect((await records(subject, { with: [rich] })).outputs).toEqual([
      { outpoint: { txid: subject.txid, vout: 0 }, satoshis: 1, owner: ownerOf(2) },
    ])
    const [larger] = (await records(subject, { vout: 1 })).outputs
    expect(larger).not.toHaveProperty('unsettled')
  })

  test('must be there', async () => {
    const subject = new FakeChain().spend({ inputs: [], outputs: [ONE] })
    await expect(records(subject, { vout: 1 })).rejects.toThrow(RangeError)
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
    const { spends } = transactionRecords(readBeef(beefOf(child)))
    expect(spends).toEqual(
      [left, right, left].map(({ txid }) => ({ outpoint: { txid, vout: 0 }, spender: child.txid })),
    )
  })

  test('the records are the same for every output of one BEEF, and counted once', () => {
    const beef = readBeef(beefOf(child))
    const records = transactionRecords(beef)
    expect(transactionRecords(beef)).toBe(records)
    const name = graphRecords({ names: [{ outpoint: { txid: child.txid, vout: 2 }, name: 'a' }] })
    const merged = mergeRecords([
      mergeRecords([records, name]),
      records,
      mergeRecords([records, graphRecords({})]),
    ])
    expect(merged).toEqual({ ...records, names: name.names })
  })
})

test('sets of facts merge into all of them', () => {
  const applied = [1, 2, 3].map((i) => ({ topic: 'tm_names', txid: `${i}`.padStart(64, '0') }))
  const merged = mergeRecords(applied.map((each) => graphRecords({ applied: [each] })))
  expect(merged).toEqual(graphRecords({ applied }))
  expect(mergeRecords([])).toEqual(graphRecords({}))
})

describe('beside a proven subject', () => {
  const chain = new FakeChain()
  const coin = (satoshis: number) =>
    chain.spend({ inputs: [], outputs: [{ satoshis, lockingScript: p2pkh(0) }] })
  const [large, small, fee] = [coin(700), coin(1), coin(50)]
  const subject = chain.spend({
    inputs: [large, small, fee].map((transaction) => ({ transaction, vout: 0 })),
    outputs: [{ ...ONE, satoshis: 700 }, ONE, { ...ONE, satoshis: 20 }],
  })
  const kept = (options: Parameters<typeof beefOf>[1]) =>
    placingRecords(readBeef(beefOf(subject, options))).transactions

  test('what places its 1-sat outputs is kept, raw and without the proof that nobody checked', () => {
    const { raw, txid } = large
    expect(kept({ with: [fee, large, small] })).toEqual([
      { txid, raw },
      { txid: small.txid, raw: small.raw },
    ])
  })

  test('and more of it where a value is missing, since it might be 0', () => {
    expect(kept({ with: [fee, small] }).map(({ txid }) => txid)).toEqual([small.txid, fee.txid])
  })

  test('nothing is kept where no output is an ordinal, or where the ancestors of the subject are', () => {
    const payment = chain.spend({
      inputs: [{ transaction: small, vout: 0 }],
      outputs: [{ ...ONE, satoshis: 0 }],
    })
    expect(placingRecords(readBeef(beefOf(payment, { with: [small] }))).transactions).toEqual([])
    expect(kept({ proven: false, with: [fee, large, small] })).toEqual([])
  })

  test('what is kept is not judged: the chain has judged the subject', () => {
    const odd = chain.spend({
      inputs: [small, small].map((transaction) => ({ transaction, vout: 0 })),
      outputs: [ONE],
    })
    const child = chain.spend({ inputs: [{ transaction: odd, vout: 0 }], outputs: [ONE] })
    const beef = readBeef(beefOf(child, { with: [odd], unproven: [odd] }))
    expect(placingRecords(beef).transactions).toEqual([{ txid: odd.txid, raw: odd.raw }])
    expect(unsoundness(beef)).toBeUndefined()
  })

  test('the records are made once for all outputs', () => {
    const beef = readBeef(beefOf(subject, { with: [large] }))
    expect(placingRecords(beef)).toBe(placingRecords(beef))
  })
})
