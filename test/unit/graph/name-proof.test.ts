import fc from 'fast-check'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { listedBeef } from '../../../backend/src/graph/write-beef.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { nameProof } from '../../../backend/src/read/provenance.js'
import { overridden } from '../../support/gateway/faults.js'
import { MineTree } from '../../support/graph/mine-tree.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, OPEN_LOCK, p2pkh } from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

const txidsOf = (transactions: { txid: string }[]): string[] => transactions.map(({ txid }) => txid)
const at = (transaction: FakeTransaction, vout: number): Outpoint => parseOutpoint(transaction.outpoint(vout))

/** A store with some transactions of a tree: all of them by default. */
async function storeOf(
  tree: MineTree,
  {
    transactions = tree.transactions,
    unproven = [],
  }: { transactions?: FakeTransaction[]; unproven?: FakeTransaction[] } = {},
) {
  const store = await storeFor(tree)
  const records = transactions.map((each) =>
    unproven.includes(each) ? recordOf(each) : recordOf(each, each.height),
  )
  await store.record(records)
  return store
}

/** An empty one. */
async function storeFor({ chain: { deployment } }: MineTree): Promise<FactStore> {
  const { store } = await openStore()
  const rules: AdmissionOptions['rules'] = admissionRules({ deployment })
  store.deriveBy({ rules, pending: { maxTransactions: 1000, maxBytes: 10_000_000 } })
  return store
}

type ProofStore = Parameters<typeof nameProof>[1]['store']
const proofIn = (tree: MineTree, store: ProofStore, name: string) =>
  nameProof(name, { store, genesis: tree.chain.deployment.genesis })

/** The transactions of the proof of a name, which has to be whole. */
async function shown(tree: MineTree, store: ProofStore, name: string): Promise<string[]> {
  const proof = await proofIn(tree, store, name)
  if (proof.kind !== 'complete') throw new Error(`the proof of ${name} is ${proof.kind}`)
  expect(proof.origin).toEqual(at(tree.mintOf(name), 2))
  return txidsOf(proof.transactions)
}

/** A tree of names that were mined in this order. */
function treeOf(...names: string[]): MineTree {
  const tree = new MineTree()
  for (const name of names) tree.mint(name)
  return tree
}

test('of any tree, recorded in any order, the proof of each name has its path and no more', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'abc')), { minLength: 1, maxLength: 25 }),
      fc.infiniteStream(fc.nat()),
      async (wishes, numbers) => {
        const tree = new MineTree()
        const names = ['']
        for (const [parent, character] of wishes) {
          const name = `${names[parent % names.length]}${character}`
          if (names.includes(name)) continue
          tree.mint(name)
          names.push(name)
        }
        const rank = new Map(tree.transactions.map((each) => [each, numbers.next().value]))
        const shuffled = [...tree.transactions].sort((a, b) => Number(rank.get(a)) - Number(rank.get(b)))
        const store = await storeFor(tree)
        for (const each of shuffled) await store.record([recordOf(each, each.height)])
        for (const name of names.slice(1))
          expect(await shown(tree, store, name)).toEqual(txidsOf(tree.way(name)))
      },
    ),
    { numRuns: 15, endOnFailure: true },
  )
})

test('the store is asked in step with the spends, and raw transactions are not kept', async () => {
  const reads = async (depth: number): Promise<{ collecting: number; sending: number }> => {
    const name = 'n'.repeat(depth)
    const tree = treeOf(...Array.from(name, (_, i) => name.slice(0, i + 1)))
    const store = await storeOf(tree)
    let asked = 0
    const counting = {
      names: overridden(store.names, {
        genuineNodes: (outpoints: Outpoint[]) => {
          asked++
          return store.names.genuineNodes(outpoints)
        },
      }),
      transactions: overridden(store.transactions, {
        raw: (txid: string) => {
          asked++
          return store.transactions.raw(txid)
        },
      }),
    }
    const proof = await proofIn(tree, counting, name)
    if (proof.kind !== 'complete') throw new Error(`the proof is ${proof.kind}`)
    const collecting = asked
    expect(proof.transactions.flatMap((each) => Object.keys(each)).includes('raw')).toBe(false)
    const { transactions } = proof
    const beef = await listedBeef({ transactions, store: counting.transactions })
    for (const chunk of beef.bytes()) expect(chunk.length).toBeLessThan(beef.length)
    return { collecting, sending: asked - collecting }
  }
  // A transaction and a node for each spend, and the genesis transaction.
  expect(await reads(10)).toEqual({ collecting: 21, sending: 11 })
  expect(await reads(255)).toEqual({ collecting: 511, sending: 256 })
})

describe('what is not proven', () => {
  test('comes with its ancestors down to proven ones, before it', async () => {
    const tree = new MineTree()
    const { chain } = tree
    const proven = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: OPEN_LOCK }] })
    const funding = chain.spend({
      inputs: [{ transaction: proven, vout: 0 }],
      outputs: [{ satoshis: 8, lockingScript: OPEN_LOCK }],
    })
    const a = tree.mint('a')
    const ab = tree.mint('ab', { funding: [{ transaction: funding, vout: 0 }] })
    const abc = tree.mint('abc')
    const store = await storeOf(tree, { unproven: [ab, abc] })
    await store.record([recordOf(proven, 1), recordOf(funding)])
    const txids = await shown(tree, store, 'abc')
    expect([...txids].sort()).toEqual(txidsOf([chain.genesis, a, proven, funding, ab, abc]).sort())
    expect(txids.indexOf(proven.txid)).toBeLessThan(txids.indexOf(funding.txid))
    expect(txids.indexOf(funding.txid)).toBeLessThan(txids.indexOf(ab.txid))
    expect(txids.at(-1)).toBe(abc.txid)
  })

  test('may be paid for by the change of a mint on its way, which is still a mint on its way', async () => {
    const tree = new MineTree()
    const { chain } = tree
    const a = tree.mint('a')
    const ab = tree.mint('ab')
    // Paid for by what two mints before it left, one of them through a transaction between.
    const change = chain.spend({
      inputs: [{ transaction: a, vout: 3 }],
      outputs: [{ satoshis: 900, lockingScript: p2pkh(0) }],
    })
    const funding = [
      { transaction: ab, vout: 3 },
      { transaction: change, vout: 0 },
    ]
    const abc = tree.mint('abc', { funding, nodeInputPosition: 2 })
    const store = await storeOf(tree, { unproven: [abc] })
    await store.record([recordOf(change)])
    expect(await shown(tree, store, 'abc')).toEqual(txidsOf([chain.genesis, a, ab, change, abc]))
  })

  test('stands before what is proven and spends of it', async () => {
    const tree = new MineTree()
    const { chain } = tree
    const output = { satoshis: 500, lockingScript: p2pkh(0) }
    const purse = chain.spend({ inputs: [], outputs: [output, output] })
    const a = tree.mint('a', { funding: [{ transaction: purse, vout: 0 }] })
    const ab = tree.mint('ab', { funding: [{ transaction: purse, vout: 1 }] })
    // Nothing but the mint that is not proven asks for the purse; the one before spends of it, too.
    const store = await storeOf(tree, { unproven: [ab] })
    await store.record([recordOf(purse, 5)])
    const txids = await shown(tree, store, 'ab')
    expect([...txids].sort()).toEqual(txidsOf([chain.genesis, purse, a, ab]).sort())
    expect(txids.indexOf(purse.txid)).toBeLessThan(txids.indexOf(a.txid))
    expect(txids.at(-1)).toBe(ab.txid)
  })

  test('and not held is not waited for', async () => {
    const tree = treeOf('a', 'ab')
    const store = await storeOf(tree, { unproven: tree.transactions })
    expect(await shown(tree, store, 'ab')).toEqual(txidsOf(tree.transactions))
  })
})

test('a copy of a node among the inputs leads nowhere', async () => {
  const tree = treeOf('a', 'ab')
  const { chain } = tree
  const node = chain.node('a')
  const copy = chain.spend({ inputs: [], outputs: [node, node] })
  const funding = [0, 1].map((vout) => ({ transaction: copy, vout }))
  const ac = tree.mint('ac', { funding, nodeInputPosition: 2 })
  // The copy is held, as anything that an ordinal was paid with.
  const store = await storeOf(tree)
  await store.record([recordOf(copy, 1)])
  expect(await shown(tree, store, 'ac')).toEqual(
    txidsOf([chain.genesis, tree.mintOf('a'), tree.mintOf('ab'), ac]),
  )
})

describe('there is no whole one', () => {
  const tree = treeOf('a', 'ab', 'abc')
  const { genesis } = tree.chain
  const [a, ab, abc] = ['a', 'ab', 'abc'].map((name) => tree.mintOf(name)) as [
    FakeTransaction,
    FakeTransaction,
    FakeTransaction,
  ]
  const ending = async (store: FactStore) => await proofIn(tree, store, 'abc')

  test('of what is not claimed', async () => {
    expect(await proofIn(tree, await storeOf(tree), 'abcd')).toEqual({ kind: 'unclaimed' })
  })

  test.each([
    ['the genesis transaction', genesis],
    ['a mint on the way', ab],
    ['the mint itself', abc],
  ])('where the store lacks %s, whose node it knows', async (_, missing) => {
    const store = await storeOf(tree)
    const raw = store.transactions.raw.bind(store.transactions)
    Object.assign(store.transactions, {
      raw: (txid: string) => (txid === missing.txid ? undefined : raw(txid)),
    })
    expect(await ending(store)).toEqual({ kind: 'incomplete', txid: missing.txid })
  })

  test('where the genesis transaction is missing', async () => {
    const store = await storeOf(tree, { transactions: [a, ab, abc] })
    expect(await ending(store)).toEqual({ kind: 'incomplete', txid: a.txid })
  })

  test('where a node on the way is not known', async () => {
    const store = await storeOf(tree)
    const lost = formatOutpoint(at(a, 1))
    const genuineNodes = store.names.genuineNodes.bind(store.names)
    Object.assign(store.names, {
      genuineNodes: async (outpoints: Outpoint[]) =>
        (await genuineNodes(outpoints)).filter(({ outpoint }) => formatOutpoint(outpoint) !== lost),
    })
    expect(await ending(store)).toEqual({ kind: 'incomplete', txid: ab.txid })
    expect(await proofIn(tree, store, 'a')).toMatchObject({ kind: 'complete' })
  })

  test('but where a node on the way was evicted there is: it shows where the name comes from', async () => {
    const store = await storeOf(tree)
    await store.evict(at(a, 1))
    expect(await ending(store)).toMatchObject({ kind: 'complete' })
  })

  test('where the way ends at another genesis', async () => {
    const other = { txid: a.txid, vout: 5 }
    const proof = await nameProof('abc', { store: await storeOf(tree), genesis: other })
    expect(proof).toEqual({ kind: 'incomplete', txid: genesis.txid })
  })
})
