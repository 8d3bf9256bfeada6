import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { verifyNode } from '../../../src/client/verify-name.js'
import { at, FakeHeaders, namedWorld, recordsOf } from '../../support/client/name-proofs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'

const { chain, deployment, headers, line, mints } = namedWorld()

type Check = Parameters<typeof verifyNode>[0]
type Given = Omit<Partial<Check>, 'beef'> &
  Pick<Check, 'outpoint'> & { unproven?: readonly FakeTransaction[] }

const verify = async (transactions: readonly FakeTransaction[], check: Given) => {
  const beef = encodeBeef(recordsOf(transactions, check.unproven))
  return await verifyNode({ deployment, chainTracker: headers, beef, ...check })
}

describe('a node that descends from the genesis', () => {
  test('is the root as deployed', async () => {
    const node = await verify([chain.genesis], { outpoint: deployment.genesis })
    expect(node).toMatchObject({
      ...{ domain: '', outpoint: deployment.genesis, line: [], proven: true, satoshis: 1 },
    })
    expect(node.transaction.id('hex')).toBe(chain.genesis.txid)
  })

  test('is what a mint adds, and what it restates', async () => {
    const names = line.slice(1).map(({ txid }) => txid)
    const child = await verify(line, { outpoint: at(mints.abc, 1) })
    expect(child).toMatchObject({ domain: 'abc', proven: true })
    expect(child.line.map(({ txid }) => txid)).toEqual(names)
    expect(child.lockingScript).toEqual(mints.abc.transaction.outputs[1]?.lockingScript)
    expect(await verify(line, { outpoint: at(mints.abc, 0) })).toMatchObject({ domain: 'ab' })
  })

  test('comes with its merkle path, and with nothing else that was shown beside it', async () => {
    const stray = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(100_000) })
    const { transaction } = await verify([...line, stray], { outpoint: at(mints.abc, 1) })
    expect(transaction.merklePath?.computeRoot(mints.abc.txid)).toBe(mints.abc.txid)
    expect(transaction.inputs.every(({ sourceTransaction }) => sourceTransaction === undefined)).toBe(true)
    expect(transaction.toBEEF().length).toBeLessThan(10_000)
  })

  test('comes with its ancestors where it is in no block', async () => {
    const own = new FakeChain()
    const purse = own.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
    const mint = own.mint('a', { funding: [{ transaction: purse, vout: 0 }] })
    const all = [own.genesis, purse, mint]
    const node = await verify(all, {
      ...{ deployment: own.deployment, chainTracker: new FakeHeaders(all) },
      ...{ outpoint: at(mint, 1), unproven: [mint] },
    })
    expect(node).toMatchObject({ domain: 'a', proven: false })
    const sources = node.transaction.inputs.map(({ sourceTransaction }) => sourceTransaction?.id('hex'))
    expect(sources.sort()).toEqual([own.genesis.txid, purse.txid].sort())
  })

  test('leads through the mint that spends the node before it', async () => {
    for (const after of [deployment.genesis, at(mints.a, 1), at(mints.ab, 1)])
      expect(await verify(line, { outpoint: at(mints.abc, 1), after })).toMatchObject({ domain: 'abc' })
  })
})

describe('a node is refused', () => {
  const [, b, a] = line as [FakeTransaction, FakeTransaction, FakeTransaction]
  const other = new FakeChain({ codeSize: 65 })

  const foreign = [other.genesis, other.mint('a')]
  const [outpoint, name, trailing] = [at(mints.abc, 1), at(mints.abc, 2), at(mints.abc, 9)]
  const cut = line.filter((mint) => mint !== mints.ax)
  const copy = chain.spend({ inputs: [], outputs: [chain.node('abc')] })
  const root = deployment.genesis
  const open = { outpoint, unproven: [mints.abc], requireProofs: true }

  test.each<[string, readonly FakeTransaction[], Given, string]>([
    ['of another tree', foreign, { outpoint: other.deployment.genesis }, 'NO_GENESIS'],
    ['that is the name beside it', line, { outpoint: name }, 'NOT_IN_TREE'],
    ['that is the coin beside it', line, { outpoint: trailing }, 'NOT_IN_TREE'],
    ['whose line is cut', cut, { outpoint }, 'NOT_IN_TREE'],
    ['that a copy of the root leads to', [...line, copy], { outpoint: at(copy, 0) }, 'NOT_IN_TREE'],
    ['that is spent by what is shown', line, { outpoint: at(mints.ab, 1) }, 'STALE_TIP'],
    ['from another than the one before', line, { outpoint, after: at(b, 1) }, 'NOT_DESCENDED'],
    [
      'that is the one before',
      [chain.genesis, b, a],
      { outpoint: at(a, 1), after: at(a, 1) },
      'NOT_DESCENDED',
    ],
    [
      'that is the root, after another',
      [chain.genesis],
      { outpoint: root, after: at(a, 1) },
      'NOT_DESCENDED',
    ],
    ['in no block, where proofs are asked for', line, open, 'UNPROVEN'],
    ['in no known block', line, { outpoint, chainTracker: new FakeHeaders() }, 'BAD_PATH'],
  ])('%s', async (_, transactions, check, code) => {
    await expect(verify(transactions, check)).rejects.toMatchObject({ name: 'ProofError', code })
  })
})
