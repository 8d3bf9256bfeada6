import { BlockHeadersService, MerklePath, Transaction, WhatsOnChain } from '@bsv/sdk'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { FakeChain, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import { HeaderChain, meetsTarget } from '../../support/server/header-chain.js'
import { useHeaderServices } from '../../support/server/header-service.js'

const services = useHeaderServices()

function inscriptions(count: number): FakeTransaction[] {
  const chain = new FakeChain()
  return Array.from({ length: count }, () => chain.inscribe({ body: Uint8Array.of(1) }))
}

test('headers are 80 bytes that name the one before, with the work that their bits ask for', () => {
  const chain = new HeaderChain()
  chain.grow(3)
  const headers = [...chain.branch.blocks()].map(({ header }) => header)
  expect(headers.map(({ height }) => height)).toEqual([800_003, 800_002, 800_001, 800_000])
  headers.forEach(({ bytes, hash, previous, bits, root }, at) => {
    expect(bytes).toHaveLength(80)
    expect(toHex(reversed(nativeHash256(bytes)))).toBe(hash)
    expect(meetsTarget(hash, bits)).toBe(true)
    expect(toHex(reversed(bytes.subarray(4, 36)))).toBe(previous)
    expect(toHex(reversed(bytes.subarray(36, 68)))).toBe(root)
    if (at < 3) expect(previous).toBe(headers[at + 1]?.hash)
  })
})

test.each([0, 1, 2, 3, 4, 5, 8, 11])('a block of a coinbase and %i more has a path for each', (count) => {
  const chain = new HeaderChain()
  const transactions = inscriptions(count)
  const block = chain.mine(transactions)
  expect(block.txids.slice(1)).toEqual(transactions.map(({ txid }) => txid))
  for (const txid of block.txids) {
    const path = MerklePath.fromBinary(block.path(txid).toBinary())
    expect(path.computeRoot(txid)).toBe(block.header.root)
    expect(path.blockHeight).toBe(800_001)
  }
  expect(() => block.path('ab'.repeat(32))).toThrow('does not hold')
})

test('a branch counts from the reorg on, and only where it is longer', () => {
  const chain = new HeaderChain()
  const [first, second] = inscriptions(2) as [FakeTransaction, FakeTransaction]
  const lost = chain.mine([first])
  const branch = chain.fork(800_000)
  branch.mine([second])
  expect(() => chain.reorg(branch)).toThrow('not longer')
  branch.mine()
  expect(chain.rootAt(800_001)).toBe(lost.header.root)
  expect(chain.isOnChain(lost.header)).toBe(true)
  chain.reorg(branch)
  expect(chain.bestTip.height).toBe(800_002)
  expect(chain.isOnChain(lost.header)).toBe(false)
  expect(chain.rootAt(800_001)).toBe(branch.path(second.txid)?.computeRoot(second.txid))
  expect(chain.branch.path(first.txid)).toBeUndefined()
})

test('of a BEEF, what was mined in the branch is proven, and the rest is not', async () => {
  const fake = new FakeChain()
  const chain = new HeaderChain()
  const parent = fake.inscribe({ body: Uint8Array.of(1) })
  const child = fake.spend({ inputs: [{ transaction: parent, vout: 0 }], outputs: [] })
  chain.mine([parent, ...inscriptions(2)])
  const subject = Transaction.fromBEEF(Array.from(chain.branch.beef(child, [parent])))
  expect(subject.id('hex')).toBe(child.txid)
  expect(subject.merklePath).toBeUndefined()
  expect(subject.inputs[0]?.sourceTransaction?.merklePath?.computeRoot(parent.txid)).toBe(chain.bestTip.root)
})

test('the SDK’s clients of both services are answered from the chain as it is', async () => {
  const chain = new HeaderChain()
  chain.grow(12)
  const { url, service } = await services.start(chain)
  const explorer = new WhatsOnChain('main')
  Object.assign(explorer, { URL: `${url}/v1/bsv/main` })
  const branch = chain.fork(800_011)
  branch.mine()
  branch.mine()
  for (const tracker of [new BlockHeadersService(url), explorer]) {
    const here = chain.rootAt(800_012) ?? ''
    expect(await tracker.isValidRootForHeight(here, 800_012)).toBe(true)
    expect(await tracker.isValidRootForHeight(here, 800_011)).toBe(false)
    expect(await tracker.isValidRootForHeight(here, 800_013)).toBe(false)
    expect(await tracker.isValidRootForHeight(here, 900_000)).toBe(false)
    expect(await tracker.currentHeight()).toBe(800_012)
    service.syncedTo = 800_005
    expect(await tracker.isValidRootForHeight(here, 800_012)).toBe(false)
    expect(await tracker.currentHeight()).toBe(800_005)
    service.syncedTo = undefined
  }
  const before = chain.rootAt(800_012) ?? ''
  chain.reorg(branch)
  expect(await explorer.isValidRootForHeight(before, 800_012)).toBe(false)
  expect(await explorer.currentHeight()).toBe(800_013)
  expect(service.asked.slice(0, 2)).toEqual([`800012 ${before}`, `800011 ${before}`])
})
